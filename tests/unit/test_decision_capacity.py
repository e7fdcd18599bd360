"""How much an arm can decide is what its modelled times allow: ParSync's A, less where looking at
all partitions costs something."""

from __future__ import annotations

import pytest

from experiments.config.decision_basis import decision_capacity
from experiments.config.presets import (
    PARSYNC_SCAN_COST,
    Scale,
    default_arms,
    demo_scale,
    greedy_group,
    mix_arm,
    optimistic,
    paper_scale,
)
from experiments.workloads.synthetic import SyntheticOptions
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime


@pytest.mark.parametrize("scale", [demo_scale(False), paper_scale()])
@pytest.mark.parametrize("scan_cost", [0.0, PARSYNC_SCAN_COST])
def test_whoever_looks_at_all_partitions_decides_less_by_the_scan_cost(
    scale: Scale, scan_cost: float
) -> None:
    n, partitions = scale.schedulers, scale.partitions

    def bounds(strategy: str) -> tuple[float, float]:
        decision = scale.equal_capacity(n, scan_cost=scan_cost)
        group = greedy_group(scale, strategy, n, decision=decision)
        arm = ArmConfig(name="arm", partitions=partitions, groups=(group,))
        (capacity,) = decision_capacity(arm, scale.synthetic.outline())
        return capacity.low, capacity.high

    least, most = 2 / (1 + scan_cost), 2 / (1 + scan_cost / partitions)
    for strategy in ("optimistic", "quality_first"):
        assert bounds(strategy) == pytest.approx((least, least))
    for strategy in ("latency_first", "adaptive"):
        assert bounds(strategy) == pytest.approx((least, most))


def test_a_group_is_held_against_its_own_share_of_the_jobs() -> None:
    options = SyntheticOptions(
        machines=100,
        slots_per_machine=10,
        mean_duration_s=1.0,
        batch_tasks=10,
        service_permille=250,
    )
    clock = ModelledTime(job_us=1000, task_us=900.0)

    def group(name: str, **fields: object) -> GroupConfig:
        return GroupConfig(
            name=name,
            kind="random",
            count=1,
            decision=clock,
            protocol=optimistic("diff_block", 0.1),
            **fields,
        )  # type: ignore[arg-type]

    groups = (group("half", share=0.5), group("rest"), group("services", task_class="service"))
    arm = ArmConfig(name="A", partitions=8, groups=groups)
    capacities = {
        capacity.group: capacity.low for capacity in decision_capacity(arm, options.outline())
    }
    # A task takes 900 us and its tenth of the batch's 1000: 1000 per second, against 1000 arriving.
    assert capacities == pytest.approx({"half": 2.0, "rest": 2.0, "services": 4.0})


def test_a_mix_on_the_command_line_decides_twice_what_comes_however_many_share_it() -> None:
    scale = demo_scale(False)
    for text in ("latency_first=4", "latency_first=1,random=1"):
        capacities = decision_capacity(mix_arm(text, scale), scale.synthetic.outline())
        assert [capacity.low for capacity in capacities] == pytest.approx([2.0] * len(capacities))


def test_own_speed_has_no_capacity_of_its_own() -> None:
    scale = demo_scale(False)
    (arm,) = (arm for arm in default_arms(scale) if arm.name == "Flow at own speed")
    assert decision_capacity(arm, scale.synthetic.outline()) == []
