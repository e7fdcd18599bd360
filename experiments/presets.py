"""The arms of the main job, at demo and paper scale, and the short form of a mix on the command
line."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from experiments.arm_config import ArmConfig, GroupConfig, ModelledTime
from experiments.config import first_error
from experiments.workloads.parsync_cells import demo_options, paper_options
from experiments.workloads.synthetic import SyntheticOptions
from parsync.protocols import registry as protocols
from parsync.protocols.capability import ProtocolCapability
from parsync.protocols.optimistic.choices import StrategyKind
from schedulers import registry
from schedulers.capability import Capability
from shared_state.errors import AgoraError

# A decision that looks at every partition costs 1.75 times one that looks at none. Section 6.2 of
# ParSync: quality-first's delay grows "because of a higher scheduling overhead as it checks all
# partitions", beyond what it can decide in the 95 % phase (its throughput falls below 1.9K tasks/s
# and 5,800 tasks wait per scheduler). From 1.4, which would fit Table 2, no such growth follows and
# adaptive never leaves quality-first; from 1.75 Figs. 5, 7b and 8 follow.
PARTITIONS_COST = 0.75
GREEDY: tuple[str, ...] = tuple(StrategyKind)
FLOW_SHARE = 0.25
TOGETHER = "all"  # the sync set of groups that count together as ParSync's N schedulers
MOST_DIGITS = 18  # of a count


@dataclass(frozen=True, slots=True)
class Scale:
    """The differences between the demo and the paper's cell."""

    synthetic: SyntheticOptions
    schedulers: int
    partitions: int
    gap_s: float
    tau_s: float
    drain_s: float
    settle_s: float

    @property
    def task_us(self) -> float:
        return self.schedulers / (2 * self.synthetic.tasks_per_s) * 1e6


def demo_scale(quick: bool) -> Scale:
    """ParSync's ratios at a tenth of its size. A task length of each phase settles.

    Args:
        quick: Use half of the demo's cell, and halve its times with the tasks' length.
    """
    options = demo_options(quick)
    task_s = options.mean_duration_s
    return Scale(
        options, 8, 8, gap_s=task_s / 10, tau_s=task_s * 0.4, drain_s=10.0, settle_s=task_s
    )


def paper_scale() -> Scale:
    """ParSync section 6: 200,000 slots, 20 schedulers and partitions, G = 0.5 s, tau = 2 s, phases
    of 60 s."""
    return Scale(paper_options(), 20, 20, 0.5, 2.0, drain_s=60.0, settle_s=5.0)


def optimistic(sync: str, gap_s: float, **options: Any) -> dict[str, Any]:
    """A group's choice of the optimistic protocol."""
    return {"kind": "optimistic", "sync": sync, "gap_s": gap_s, **options}


def greedy_group(
    scale: Scale,
    strategy: str,
    count: int,
    sync: str = "diff_block",
    kind: str = "random",
    **options: Any,
) -> GroupConfig:
    """A group of `count` greedy schedulers with ParSync's modelled decision time.

    Args:
        options: Options of the protocol.
    """
    decision = ModelledTime(
        task_us=scale.task_us, partition_us=scale.task_us * PARTITIONS_COST / scale.partitions
    )
    return GroupConfig(
        name=strategy,
        kind=kind,
        count=count,
        protocol=optimistic(sync, scale.gap_s, strategy=strategy, tau_s=scale.tau_s, **options),
        decision=decision,
    )


def flow_group(
    scale: Scale, name: str, count: int, sync: str, share: float | None = None, **options: Any
) -> GroupConfig:
    """A group of `count` flow schedulers with their kind's decision time: Measured when live,
    Counted in virtual time.

    Args:
        options: Options of the protocol.
    """
    protocol = optimistic(sync, scale.gap_s, **options)
    return GroupConfig(name=name, kind=name, count=count, share=share, protocol=protocol)


def default_arms(scale: Scale) -> tuple[ArmConfig, ...]:
    """The first three differ in nothing but the sync policy."""

    def arm(name: str, *groups: GroupConfig) -> ArmConfig:
        count = sum(group.count for group in groups)
        # The flow scheduler counts in N, and ParSync needs P >= N.
        return ArmConfig(name=name, partitions=max(scale.partitions, count), groups=groups)

    n = scale.schedulers

    def quality(sync: str) -> GroupConfig:
        return greedy_group(scale, "quality_first", n, sync)

    return (
        arm("StateSync aligned quality-first", quality("state_aligned")),
        arm("StateSync staggered quality-first", quality("state_staggered")),
        arm("ParSync quality-first", quality("diff_block")),
        arm("ParSync adaptive", greedy_group(scale, "adaptive", n)),
        arm("Flow", flow_group(scale, "firmament", 1, "state_aligned")),
        arm(
            "Mix",
            greedy_group(scale, "adaptive", n, sync_set=TOGETHER),
            flow_group(scale, "firmament", 1, "diff_block", FLOW_SHARE, sync_set=TOGETHER),
        ),
    )


def mix_arm(text: str, scale: Scale) -> ArmConfig:
    """An arm from "[protocol:]kind=count,...": the groups share the jobs in proportion to their
    counts, and those of the optimistic protocol are one sync set.

    A kind is a strategy of ParSync (a random placer that ranks partitions so) or any registered
    kind of scheduler; a protocol that runs no schedulers stands by itself ("lottery=2").

    Raises:
        AgoraError: Names what is wrong.
    """
    groups = [_mix_group(part, scale) for part in text.split(",")]
    if len({group.name for group in groups}) < len(groups):
        raise AgoraError("--mix: a name appears twice")
    count = sum(group.count for group in groups)
    try:
        return ArmConfig(
            name=f"Mix: {text}", partitions=max(scale.partitions, count), groups=tuple(groups)
        )
    except ValidationError as error:
        raise AgoraError(f"--mix: {first_error(error)}") from error


def _mix_group(part: str, scale: Scale) -> GroupConfig:
    name, equals, number = (piece.strip() for piece in part.partition("="))
    if not equals or not (number.isascii() and number.isdecimal()):
        raise AgoraError(f"--mix: '{part.strip()}' is not of the form [protocol:]kind=count")
    if len(number) > MOST_DIGITS:
        raise AgoraError(f"--mix: {name}: a count of {len(number)} digits is too large")
    count = int(number)
    if count < 1:
        raise AgoraError(f"--mix: {name}={number}: a group holds at least one scheduler")
    protocol, colon, kind = name.rpartition(":")
    if colon and not (protocol and kind):
        raise AgoraError(f"--mix: '{part.strip()}' is not of the form [protocol:]kind=count")
    if not colon and kind not in (*GREEDY, *registry.names()) and kind in protocols.kinds():
        protocol, kind = kind, ""
    if protocol not in ("", "optimistic", *protocols.kinds()):
        raise AgoraError(
            f"--mix: unknown protocol '{_shortened(protocol)}', expected one of "
            f"{', '.join(protocols.kinds())}"
        )
    if protocol not in ("", "optimistic"):
        return _mix_group_of(protocol, kind, count, scale)
    if kind in GREEDY:
        return greedy_group(scale, kind, count, sync_set=TOGETHER)
    if kind not in registry.names():
        raise AgoraError(
            f"--mix: unknown '{_shortened(kind)}', expected a strategy ({', '.join(GREEDY)}), a "
            f"kind of scheduler ({registry.listing()}) or a protocol that runs no schedulers "
            f"({', '.join(_without_schedulers()) or 'none is installed'})"
        )
    if Capability.MEASURED_WHEN_LIVE in registry.get(kind).capabilities:
        return flow_group(scale, kind, count, "diff_block", sync_set=TOGETHER)
    group = greedy_group(scale, "optimistic", count, kind=kind, sync_set=TOGETHER)
    return group.model_copy(update={"name": kind})


def _without_schedulers() -> list[str]:
    """The protocols that run no schedulers, by their default options."""
    found: list[str] = []
    for kind in protocols.kinds():
        with suppress(AgoraError):  # one that cannot be loaded is not to be had
            spec = protocols.get(kind)
            capabilities = spec.capabilities_of(spec.parse_options({}))
            if ProtocolCapability.RUNS_SCHEDULERS not in capabilities:
                found.append(kind)
    return found


def _mix_group_of(protocol: str, kind: str, count: int, scale: Scale) -> GroupConfig:
    """A group of another protocol, with the options that it has by default."""
    tree = {
        "name": f"{protocol}:{kind}" if kind else protocol,
        "kind": kind or None,
        "count": count,
        "protocol": {"kind": protocol},
        "decision": ModelledTime(task_us=scale.task_us),
    }
    try:
        return GroupConfig.model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"--mix: {first_error(error)}") from error


def _shortened(name: str) -> str:
    """The first 40 characters of a name that a user gave."""
    return name if len(name) <= 40 else name[:39] + "…"
