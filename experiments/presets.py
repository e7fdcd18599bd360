"""The arms of the main job, at demo and paper scale, and the short form of a mix on the command
line."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.arm_config import ArmConfig, GroupConfig, ModelledTime, StrategyName, SyncName
from experiments.workloads.synthetic import SyntheticOptions, demo_options, paper_options
from shared_state.errors import AgoraError

# A decision that looks at every partition costs 1.75 times one that looks at none. Section 6.2 of
# ParSync: quality-first's delay grows "because of a higher scheduling overhead as it checks all
# partitions", beyond what it can decide in the 95 % phase (its throughput falls below 1.9K tasks/s
# and 5,800 tasks wait per scheduler). From 1.4, which would fit Table 2, no such growth follows and
# adaptive never leaves quality-first; from 1.75 Figs. 5, 7b and 8 follow.
PARTITIONS_COST = 0.75
GREEDY: tuple[StrategyName, ...] = ("optimistic", "quality_first", "latency_first", "adaptive")
FLOW = {"firmament": "quincy", "quincy": "quincy", "flow_load_spreading": "flow_load_spreading"}
FLOW_SHARE = 0.25
MOST_DIGITS = 18  # of a count


@dataclass(frozen=True, slots=True)
class Scale:
    """What differs between the demo and the paper's cell. task_us: decision time of a task at A =
    2, twice the needed capacity."""

    synthetic: SyntheticOptions
    schedulers: int
    partitions: int
    gap_s: float
    tau_s: float
    drain_s: float
    settle_s: float

    @property
    def task_us(self) -> float:
        slots = self.synthetic.machines * self.synthetic.slots_per_machine
        tasks_per_s = slots / self.synthetic.mean_duration_s
        return self.schedulers / (2 * tasks_per_s) * 1e6


def demo_scale(quick: bool) -> Scale:
    """ParSync's ratios at a tenth of its size; quick: of half the demo's cell, its times halved
    with the tasks' length. A task length of each phase settles."""
    options = demo_options(quick)
    task_s = options.mean_duration_s
    return Scale(
        options, 8, 8, gap_s=task_s / 10, tau_s=task_s * 0.4, drain_s=10.0, settle_s=task_s
    )


def paper_scale() -> Scale:
    """ParSync section 6: 200,000 slots, 20 schedulers and partitions, G = 0.5 s, tau = 2 s, phases
    of 60 s."""
    return Scale(paper_options(), 20, 20, 0.5, 2.0, drain_s=60.0, settle_s=5.0)


def greedy_group(
    scale: Scale, strategy: StrategyName, count: int, kind: str = "random"
) -> GroupConfig:
    """`count` greedy schedulers with ParSync's modelled decision time."""
    decision = ModelledTime(
        task_us=scale.task_us, partition_us=scale.task_us * PARTITIONS_COST / scale.partitions
    )
    return GroupConfig(
        name=strategy,
        kind=kind,
        count=count,
        strategy=strategy,
        tau_s=scale.tau_s,
        decision=decision,
    )


def flow_group(name: str, share: float | None) -> GroupConfig:
    """One flow scheduler, with its kind's decision time: Measured when live, Counted in virtual
    time."""
    return GroupConfig(name=name, kind=FLOW[name], count=1, share=share, cut_at_sync=False)


def default_arms(scale: Scale) -> tuple[ArmConfig, ...]:
    """The first three differ in nothing but the sync policy."""

    def arm(name: str, sync: SyncName, *groups: GroupConfig) -> ArmConfig:
        count = sum(group.count for group in groups)
        # The flow scheduler counts in N, and ParSync needs P >= N.
        partitions = max(scale.partitions, count)
        return ArmConfig(
            name=name, sync=sync, partitions=partitions, gap_s=scale.gap_s, groups=groups
        )

    n = scale.schedulers
    quality, adaptive = greedy_group(scale, "quality_first", n), greedy_group(scale, "adaptive", n)
    return (
        arm("StateSync aligned quality-first", "state_aligned", quality),
        arm("StateSync staggered quality-first", "state_staggered", quality),
        arm("ParSync quality-first", "diff_block", quality),
        arm("ParSync adaptive", "diff_block", adaptive),
        arm("Flow", "state_aligned", flow_group("firmament", None)),
        arm("Mix", "diff_block", adaptive, flow_group("firmament", FLOW_SHARE)),
    )


def mix_arm(text: str, scale: Scale) -> ArmConfig:
    """An arm from "latency_first=8,quality_first=4,firmament=1": groups share the jobs in
    proportion to their counts.

    Raises AgoraError naming what is wrong.
    """
    groups: list[GroupConfig] = []
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not equals or not (number.isascii() and number.isdecimal()):
            raise AgoraError(f"--mix: '{part.strip()}' is not of the form name=count")
        if len(number) > MOST_DIGITS:
            raise AgoraError(f"--mix: {name}: a count of {len(number)} digits is too large")
        if int(number) < 1:
            raise AgoraError(f"--mix: {name}={number}: a group holds at least one scheduler")
        strategy = next((strategy for strategy in GREEDY if strategy == name), None)
        if strategy is not None:
            groups.append(greedy_group(scale, strategy, int(number)))
        elif name in FLOW:
            if int(number) > 1:
                raise AgoraError(f"--mix: {name}={number}: one flow scheduler at a time")
            groups.append(flow_group(name, None))
        else:
            raise AgoraError(
                f"--mix: unknown '{name if len(name) <= 40 else name[:39] + '…'}', expected one of {', '.join((*GREEDY, *FLOW))}"
            )
    if len({group.name for group in groups}) < len(groups):
        raise AgoraError("--mix: a name appears twice")
    count = sum(group.count for group in groups)
    return ArmConfig(
        name=f"Mix: {text}",
        sync="diff_block",
        partitions=max(scale.partitions, count),
        gap_s=scale.gap_s,
        groups=tuple(groups),
    )
