"""How much of the delay of schedulers that share a cell is that each of them decides slowly, and
how much is conflicts and outdated views.

An arm of the main comparison runs as it is. Then each of its schedulers runs alone, with the same
speed and the same jobs at the same times, on the whole cell: without rivals, so without conflicts,
and with a view that only it changes. Its rounds are cut as often as in the arm. What the tasks wait
then is the time of decisions, one after the other.

    python -m tests.benchmarks.lone_schedulers --seeds 10
    python -m tests.benchmarks.lone_schedulers --seeds 5 --first-seed 101 --quick    # half the cell
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from experiments.analysis.statistics import interval_in_words, median_interval, paired_difference
from experiments.campaign.running import make_metrics, make_workload
from experiments.config.presets import default_arms, demo_scale
from experiments.config.run_config import RunConfig
from experiments.config.warm_up import state_after
from experiments.config.workload_config import WorkloadConfig
from parsync.metrics.kinds.delay import DelayMetric
from parsync.runtime.assembly import Assembly
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import InitialPlacement, Workload, starting_from

SHARING = ("StateSync aligned quality-first", "ParSync adaptive", "Omega")


def configuration(quick: bool) -> RunConfig:
    """The main comparison, or its quick form."""
    scale = demo_scale(quick)
    return RunConfig(
        workload=WorkloadConfig.of("synthetic", scale.synthetic),
        arms=default_arms(scale),
        settle_s=scale.settle_s,
        drain_s=scale.drain_s,
    )


def jobs_of(config: RunConfig, arm: ArmConfig, agent: int, workload: Workload) -> Workload:
    """The part of a workload that one agent of the arm gets; of the tasks that run at time 0 an
    equal share."""
    spec = arm.seeded(config.seed, config.heartbeat_us, 100_000, live=False)
    owner, _ = Assembly.of(spec, workload).owners()
    mine = owner == agent
    sizes = np.diff(workload.arrival_offsets)
    arriving = workload.arrival_rows[np.repeat(mine, sizes)]
    agents = sum(group.count for group in arm.groups)
    runs = np.arange(len(workload.initial.task)) % agents == agent
    before = np.concatenate([arriving, workload.initial.task[runs]])
    rows = np.sort(before)
    row = np.searchsorted(rows, before)
    return replace(
        workload,
        tasks=replace(workload.tasks.take(rows), task=np.arange(len(rows), dtype=np.int64)),
        duration_us=workload.duration_us[rows],
        arrival_us=workload.arrival_us[mine],
        arrival_offsets=np.concatenate([[0], np.cumsum(sizes[mine])]).astype(np.int64),
        arrival_rows=row[: len(arriving)].astype(np.int64),
        initial=InitialPlacement(
            row[len(arriving) :].astype(np.int64), workload.initial.machine[runs]
        ),
    )


def alone(arm: ArmConfig) -> ArmConfig:
    """One scheduler of the arm by itself; it needs but one partition. Its rounds end as often as in
    the arm: under DiffSyn every G/N, and not every G, so that no task waits longer for the end of
    its round."""
    (group,) = arm.groups
    protocol = group.protocol
    if protocol.described["sync"] == "diff_block":
        assert protocol.gap_us is not None
        gap_s = protocol.gap_us / 1e6 / group.count
        protocol = protocol.changed(sync="state_aligned", gap_s=gap_s)
    lone = group.model_copy(update={"count": 1, "protocol": protocol})
    return arm.model_copy(update={"partitions": 1, "groups": (lone,)})


def delays(
    config: RunConfig, arm: ArmConfig, workload: Workload, warm_up: Workload, seed: int
) -> tuple[int, int]:
    """The sum of the counted tasks' delays in us, and their number, in steady state."""
    message_us, limit_s = config.virtual.message_us, config.plan_limit_s
    spec = arm.seeded(seed, config.heartbeat_us, 100_000, live=False)
    state = state_after(spec, warm_up, lambda _: None, message_us, limit_s)
    begins = starting_from(workload, state)
    metrics = make_metrics(config, arm, begins)
    drain_us = round(config.drain_s * 1e6)
    run_virtual(
        spec,
        begins,
        drain_us,
        lambda record: metrics.add(record.table, record.columns),
        lambda _: None,
        message_us,
        plan_limit_s=limit_s,
    )
    metrics.flush()
    count, phases = metrics.get(DelayMetric).count, slice(0, len(workload.phases))
    return int(count["delay_us"][:, phases].sum()), int(count["committed"][:, phases].sum())


def mean_ms(parts: list[tuple[int, int]]) -> float:
    """The mean delay over several runs."""
    return sum(delay for delay, _ in parts) / sum(tasks for _, tasks in parts) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="half the cell")
    given = parser.parse_args()
    config = configuration(given.quick)
    arms = {arm.name: arm for arm in config.arms}
    sharing: dict[str, list[float]] = {name: [] for name in SHARING}
    lone: dict[str, list[float]] = {name: [] for name in SHARING}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        workload, warm_up = make_workload(config, seed), config.workload.make_warm_up(seed)
        assert warm_up is not None, "the demo begins steady"
        for name in SHARING:
            arm = arms[name]
            sharing[name].append(mean_ms([delays(config, arm, workload, warm_up, seed)]))
            parts = [
                delays(
                    config,
                    alone(arm),
                    jobs_of(config, arm, agent, workload),
                    jobs_of(config, arm, agent, warm_up),
                    seed,
                )
                for agent in range(arm.groups[0].count)
            ]
            lone[name].append(mean_ms(parts))
    for name in SHARING:
        more = paired_difference(sharing[name], lone[name]).absolute
        limits = "" if more.spread is None else f" ({more.spread[0]:+.1f} to {more.spread[1]:+.1f})"
        print(
            f"{name}: {median_interval(sharing[name]).estimate:.1f} ms sharing, "
            f"{median_interval(lone[name]).estimate:.1f} ms alone; "
            f"{more.estimate:+.1f} ms by sharing{limits}; medians over the seeds, "
            f"{interval_in_words(given.seeds)}"
        )


if __name__ == "__main__":
    main()
