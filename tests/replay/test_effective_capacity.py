"""The effective capacity of an arm is what its schedulers would commit if they never paused."""

from __future__ import annotations

import pytest

from experiments.campaign.running import make_workload, run_arm_virtual
from experiments.config.presets import Scale, demo_scale, flow_group, greedy_group
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.workloads.synthetic import SyntheticOptions
from parsync.metrics.summary import summarise
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import CountedTime, DecisionTime, ModelledTime

WORKLOAD = SyntheticOptions(
    machines=60,
    slots_per_machine=4,
    mean_duration_s=0.2,
    batch_tasks=10,
    load_percent=(70,),
    phase_s=2.0,
    start="cold",
)
SCALE = Scale(WORKLOAD, 4, 4, gap_s=0.05, tau_s=0.1, drain_s=5.0, settle_s=0.2)


def capacity_per_s(count: int, decision: DecisionTime, sync: str = "diff_block") -> float:
    group = greedy_group(SCALE, "quality_first", count, sync, decision=decision)
    return capacity_of(group, WORKLOAD)


def capacity_of(group: GroupConfig, options: SyntheticOptions) -> float:
    arm = ArmConfig(name="arm", partitions=4, groups=(group,))
    config = RunConfig(
        workload=WorkloadConfig.of("synthetic", options),
        arms=(arm,),
        settle_s=0.2,
        drain_s=5.0,
    )
    workload = make_workload(config, 1)
    run = run_arm_virtual(config, arm, workload, 1, None, lambda _: None, Interruption())
    figures = summarise(run.metrics)
    assert figures.overall.decisions_per_s is not None
    by_agent = [agent.decisions_per_s or 0.0 for agent in figures.agents]
    assert figures.overall.decisions_per_s == pytest.approx(sum(by_agent))
    return figures.overall.decisions_per_s


def test_a_scheduler_without_rivals_has_the_capacity_that_it_is_given() -> None:
    assert capacity_per_s(1, ModelledTime(task_us=400)) == pytest.approx(2500, rel=0.02)
    slower = capacity_per_s(1, ModelledTime(task_us=400, scan_cost=0.75))
    assert slower == pytest.approx(2500 / 1.75, rel=0.02)


def test_conflicts_lower_the_capacity_of_schedulers_that_share_a_cell() -> None:
    stale = capacity_per_s(4, ModelledTime(task_us=1600), "state_aligned")
    assert 0.5 * 2500 < stale < 0.99 * 2500


def test_tasks_that_a_flow_scheduler_keeps_take_time_only_if_they_are_charged() -> None:
    """In a cell with more load than it holds, every round has kept tasks."""
    crowded = WORKLOAD.model_copy(update={"load_percent": (130,)})
    free, charged = (
        capacity_of(flow_group(SCALE, "flow", 1, "state_aligned", time), crowded)
        for time in (ModelledTime(task_us=50), ModelledTime(task_us=50, charges_kept=True))
    )
    assert 10_000 < free <= 20_000, "a task takes 50 us once; some of the phase's wait at its end"
    assert charged < 0.5 * free


def test_fast_code_has_more_capacity() -> None:
    fast, slow = (capacity_per_s(1, CountedTime(ns_per_operation=ns)) for ns in (100, 1000))
    assert fast > 5 * slow > 0


def test_the_main_comparison_gives_twice_the_arrivals() -> None:
    scale = demo_scale(False)
    assert 1e6 / scale.equal_capacity(1).task_us == pytest.approx(2 * scale.synthetic.tasks_per_s)
