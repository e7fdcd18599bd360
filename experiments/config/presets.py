"""The arms and frontiers of the main comparison, at demo and paper scale, and the short form of a
mix on the command line."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from experiments.config.frontier_config import Architecture, FrontierConfig
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.synthetic import SyntheticOptions, demo_options, paper_options
from parsync.metrics.quantity import duration
from parsync.protocols import registry as protocols
from parsync.protocols.optimistic.options import StrategyKind
from parsync.protocols.spec import ProtocolCapability
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice
from parsync.spec.decision_times import CountedTime, DecisionTime, ModelledTime
from parsync.strict_model import first_error
from schedulers import registry
from schedulers.entry_points import near_match
from schedulers.interface import Capability
from shared_state.errors import AgoraError

# ParSync section 4.3's A: how many times the arrivals at 100 % load all schedulers of an arm
# together can decide.
CAPACITY = 2
# What a decision that looks at every partition costs besides, where ParSync's figures are meant.
# Section 6.2: quality-first's delay grows "because of a higher scheduling overhead as it checks all
# partitions", beyond what it can decide in the 95 % phase (its throughput falls below 1.9K tasks/s
# and 5,800 tasks wait per scheduler). From 0.4, which would fit Table 2, no such growth follows and
# adaptive never leaves quality-first; from 0.75 Figs. 5, 7b and 8 follow.
PARSYNC_SCAN_COST = 0.75
GREEDY: tuple[str, ...] = tuple(StrategyKind)
# Takes the emptier of equally good machines, as flow schedulers do: so a comparison of the two does
# not rest on ties.
MAIN_KIND = "load_spreading"
# The arm of the main comparison that also runs live: many schedulers, the paper's own, and the
# baseline of the differences. Each further one takes the length of the workload.
LIVE_ARM = "ParSync adaptive"
FLOW_SHARE = 0.25
# The group of flow schedulers of policy `quincy`. Its name keys their random streams.
FLOW_GROUP = "quincy"
# Kinds that stand for a system and its solver, so that they decide as fast as that does.
AT_OWN_SPEED = ("firmament", "quincy")
SPARROW = "Sparrow"
# The slot prices of the arms that have them (docs/prices_results.md).
PRICES = {"prices": "implied"}
SHARED_PRICES = {**PRICES, "share_demand": True}
# How long patient schedulers wait for a preferred machine, in mean task durations.
PATIENCE = 0.15
TOGETHER = "all"  # the sync set of groups that count together as ParSync's N schedulers
MOST_SCHEDULERS = 1_000_000  # of one kind
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

    def equal_capacity(
        self, schedulers: int, share: float = 1.0, scan_cost: float = 0.0
    ) -> ModelledTime:
        """The decision times with which so many schedulers, that get this share of the jobs, can
        decide CAPACITY times what arrives for them at 100 % load."""
        task_us = schedulers / (CAPACITY * share * self.synthetic.tasks_per_s) * 1e6
        return ModelledTime(task_us=task_us, scan_cost=scan_cost)


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


def optimistic(sync: str, gap_s: float, **options: Any) -> ProtocolChoice:
    """A group's choice of the optimistic protocol; without a gap, schedulers look again after that
    time."""
    gap = "retry_s" if sync == "every_attempt" else "gap_s"
    table = {"kind": "optimistic", "sync": sync, gap: gap_s, **options}
    return ProtocolChoice.model_validate(table)


def greedy_group(
    scale: Scale,
    strategy: str,
    count: int,
    sync: str = "diff_block",
    kind: str = MAIN_KIND,
    decision: DecisionTime | None = None,
    **options: Any,
) -> GroupConfig:
    """`count` greedy schedulers that rank partitions by a strategy.

    Args:
        scale: The cell, the gap and tau.
        strategy: A strategy of the optimistic protocol.
        count: How many.
        sync: The sync policy.
        kind: Of the schedulers.
        decision: What decisions cost; unset: what gives them CAPACITY times all arrivals.
        options: Further options of the protocol.
    """
    return GroupConfig(
        name=strategy,
        kind=kind,
        count=count,
        protocol=optimistic(sync, scale.gap_s, strategy=strategy, tau_s=scale.tau_s, **options),
        decision=scale.equal_capacity(count) if decision is None else decision,
    )


def flow_group(
    scale: Scale,
    kind: str,
    count: int,
    sync: str,
    decision: DecisionTime | None = None,
    share: float | None = None,
    name: str | None = None,
    **options: Any,
) -> GroupConfig:
    """A group of `count` flow schedulers.

    Args:
        name: Of the group; unset: the kind.
        decision: What decisions cost; unset: the kind's own, Measured when live, Counted in
            virtual time.
        options: Options of the protocol.
    """
    protocol = optimistic(sync, scale.gap_s, **options)
    return GroupConfig(
        name=name or kind, kind=kind, count=count, share=share, protocol=protocol, decision=decision
    )


def probing_group(scale: Scale, count: int) -> GroupConfig:
    """`count` schedulers that probe two machines per task, as Sparrow's paper recommends."""
    return GroupConfig(
        name="sparrow",
        count=count,
        protocol=ProtocolChoice.model_validate({"kind": "probing"}),
        decision=scale.equal_capacity(count),
    )


def mesos_arm(scale: Scale, count: int) -> ArmConfig:
    """`count` schedulers that are offered room by Mesos' allocator. Its times are scaled with the
    length of tasks: it runs once per synchronisation gap, and filters last five gaps."""
    protocol = {"kind": "offers", "refuse_s": 5 * scale.gap_s}
    group = GroupConfig(
        name="mesos",
        kind=MAIN_KIND,
        count=count,
        protocol=ProtocolChoice.model_validate(protocol),
        decision=scale.equal_capacity(count),
    )
    tree = {
        "name": _mesos(scale),
        "partitions": max(scale.partitions, count),
        "groups": (group,),
        "protocols": {"offers": {"interval_s": scale.gap_s}},
    }
    return ArmConfig.model_validate(tree)


def _mesos(scale: Scale) -> str:
    return f"Mesos, interval {duration(scale.gap_s * 1e6)}"


def default_arms(scale: Scale) -> tuple[ArmConfig, ...]:
    """The main comparison: architectures at equal capacity, each next to its control, and single
    schedulers at their own speed.

    The first three differ in nothing but the sync policy.
    """

    def arm(name: str, *groups: GroupConfig) -> ArmConfig:
        count = sum(group.count for group in groups)
        # The flow scheduler counts in N, and ParSync needs P >= N.
        return ArmConfig(name=name, partitions=max(scale.partitions, count), groups=groups)

    n = scale.schedulers
    one = scale.equal_capacity(1)

    def quality(sync: str) -> GroupConfig:
        return greedy_group(scale, "quality_first", n, sync)

    # Omega's simulator pauses for 1 s beside batch tasks of 100 s.
    pause_s = scale.synthetic.mean_duration_s / 100

    def greedy(
        decision: DecisionTime, count: int = 1, kind: str = MAIN_KIND, **of_kind: Any
    ) -> GroupConfig:
        group = greedy_group(
            scale, "optimistic", count, "state_aligned", kind=kind, decision=decision
        )
        return group.model_copy(update={"options": of_kind})

    patience_s = scale.synthetic.mean_duration_s * PATIENCE

    def flow(decision: DecisionTime, **of_kind: Any) -> GroupConfig:
        group = flow_group(scale, "flow", 1, "state_aligned", decision, name=FLOW_GROUP)
        return group.model_copy(update={"options": of_kind})

    return (
        arm("StateSync aligned quality-first", quality("state_aligned")),
        arm("StateSync staggered quality-first", quality("state_staggered")),
        arm("ParSync quality-first", quality("diff_block")),
        arm("ParSync adaptive", greedy_group(scale, "adaptive", n)),
        arm(
            "ParSync adaptive with prices",
            greedy_group(scale, "adaptive", n).model_copy(update={"options": SHARED_PRICES}),
        ),
        arm(
            "Omega",
            greedy_group(
                scale, "optimistic", n, "every_attempt", losers="requeue", requeue_s=pause_s
            ),
        ),
        arm(SPARROW, probing_group(scale, n)),
        mesos_arm(scale, n),
        arm("Greedy, one scheduler", greedy(one)),
        arm("Greedy, patient", greedy(one, patience_s=patience_s)),
        arm("Preferred first", greedy(one, kind="preferred_first")),
        arm("Flow", flow(one)),
        arm("Flow with prices", flow(one, **PRICES)),
        arm(
            "Mix",
            greedy_group(
                scale,
                "adaptive",
                n,
                decision=scale.equal_capacity(n, 1 - FLOW_SHARE),
                sync_set=TOGETHER,
            ),
            flow_group(
                scale,
                "flow",
                1,
                "diff_block",
                scale.equal_capacity(1, FLOW_SHARE),
                FLOW_SHARE,
                FLOW_GROUP,
                sync_set=TOGETHER,
            ),
        ),
        arm("Greedy at own speed", greedy(CountedTime())),
        arm(f"{n} greedy at own speed", greedy(CountedTime(), n)),
        arm("Flow at own speed", flow(CountedTime())),
        # With preemption a run takes nine times as long (docs/firmament.md).
        arm(
            "Firmament, no preemption",
            flow_group(scale, "firmament", 1, "state_aligned", CountedTime()).model_copy(
                update={"options": {"preemption": False}}
            ),
        ),
    )


def mix_arm(text: str, scale: Scale) -> ArmConfig:
    """An arm from "[protocol:]kind=count,...": the groups share the jobs in proportion to their
    counts, all schedulers have the same modelled decision times and together decide CAPACITY times
    what arrives at 100 % load, and those of the optimistic protocol are one sync set. Kinds that
    decide AT_OWN_SPEED have their own decision times.

    A kind is a strategy of ParSync (a load-spreading placer that ranks partitions so) or any
    registered kind of scheduler. A protocol that runs no schedulers stands by itself ("lottery=2").

    Raises:
        AgoraError: Names what is wrong.
    """
    parts = [_mix_part(part) for part in text.split(",")]
    for name, count in parts:
        if count > MOST_SCHEDULERS:
            raise AgoraError(
                f"--mix {name}={count}: expected at most {MOST_SCHEDULERS:,} schedulers"
            )
    decision = scale.equal_capacity(sum(count for _, count in parts))
    groups = [_mix_group(name, count, scale, decision) for name, count in parts]
    names = [group.name for group in groups]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise AgoraError(f"--mix: '{_shortened(twice)}' appears twice")
    count = sum(group.count for group in groups)
    try:
        return ArmConfig(
            name=f"Mix: {text}", partitions=max(scale.partitions, count), groups=tuple(groups)
        )
    except ValidationError as error:
        raise AgoraError(f"--mix: {first_error(error)}") from error


def _mix_part(part: str) -> tuple[str, int]:
    """(name, count) of "name=count"."""
    name, equals, number = (piece.strip() for piece in part.partition("="))
    if not equals or not (number.isascii() and number.isdecimal()):
        raise AgoraError(f"--mix: '{part.strip()}' is not of the form [protocol:]kind=count")
    if len(number) > MOST_DIGITS:
        raise AgoraError(f"--mix: {name}: a count of {len(number)} digits is too large")
    count = int(number)
    if count < 1:
        raise AgoraError(f"--mix: {name}={number}: a group holds at least one scheduler")
    return name, count


def _mix_group(name: str, count: int, scale: Scale, decision: ModelledTime) -> GroupConfig:
    protocol, colon, kind = name.rpartition(":")
    if colon and not (protocol and kind):
        raise AgoraError(f"--mix: '{name}={count}' is not of the form [protocol:]kind=count")
    if not colon and kind not in (*GREEDY, *registry.kinds()) and kind in protocols.kinds():
        protocol, kind = kind, ""
    if protocol not in ("", "optimistic", *protocols.kinds()):
        raise AgoraError(
            f"--mix: unknown protocol '{_shortened(protocol)}'"
            f"{near_match(protocol, protocols.kinds())}, expected one of "
            f"{', '.join(protocols.kinds())}"
        )
    times = None if kind in AT_OWN_SPEED else decision
    if protocol not in ("", "optimistic"):
        return _mix_group_of(protocol, kind, count, times)
    if kind in GREEDY:
        return greedy_group(scale, kind, count, decision=decision, sync_set=TOGETHER)
    if kind not in registry.kinds():
        alone = _without_schedulers()
        known = (*GREEDY, *registry.kinds(), *alone)
        raise AgoraError(
            f"--mix: unknown '{_shortened(kind)}'{near_match(kind, known)}, expected a strategy "
            f"({', '.join(GREEDY)}), a kind of scheduler ({registry.listing()}) or a protocol that "
            f"runs no schedulers ({', '.join(alone) or 'none is installed'})"
        )
    if Capability.MEASURED_WHEN_LIVE in registry.get(kind).capabilities:
        return flow_group(scale, kind, count, "diff_block", times, sync_set=TOGETHER)
    group = greedy_group(
        scale, "optimistic", count, kind=kind, decision=decision, sync_set=TOGETHER
    )
    return group.model_copy(update={"name": kind})


def _runs_schedulers(protocol: str) -> bool:
    """Whether a protocol with its default options does."""
    spec = protocols.get(protocol)
    return ProtocolCapability.RUNS_SCHEDULERS in spec.capabilities_of(spec.parse_options({}))


def _without_schedulers() -> list[str]:
    """The protocols that run no schedulers, by their default options."""
    found: list[str] = []
    for kind in protocols.kinds():
        with suppress(AgoraError):  # one that cannot be loaded is not to be had
            if not _runs_schedulers(kind):
                found.append(kind)
    return found


def _mix_group_of(
    protocol: str, kind: str, count: int, decision: ModelledTime | None
) -> GroupConfig:
    """A group of another protocol, with the options that it has by default."""
    given = f"--mix: '{protocol}{kind and ':'}{_shortened(kind)}={count}'"
    runs_schedulers = _runs_schedulers(protocol)
    if kind and not runs_schedulers:
        raise AgoraError(
            f"{given}: protocol '{protocol}' runs no schedulers, expected '{protocol}={count}'"
        )
    if runs_schedulers and not kind:
        raise AgoraError(
            f"{given}: protocol '{protocol}' runs schedulers, expected '{protocol}:KIND={count}' "
            f"with a kind of scheduler ({registry.listing()})"
        )
    tree = {
        "name": f"{protocol}:{kind}" if kind else protocol,
        "kind": kind or None,
        "count": count,
        "protocol": {"kind": protocol},
        "decision": decision,
    }
    try:
        return GroupConfig.model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"--mix: {first_error(error)}") from error


def _shortened(name: str) -> str:
    """The first 40 characters of a name that a user gave."""
    return name if len(name) <= 40 else name[:39] + "…"


PATIENT = ("ParSync, patient", "ParSync quality-first")
# adaptive is quality-first where tau is never reached, and latency-first where it always is
NEVER_S, ALWAYS_S = 1e6, 1e-6


def small_frontier(scale: Scale) -> FrontierConfig:
    """Three points of each architecture at equal capacity; most are arms of the comparison. Flow
    has two, because its runs take longest."""
    task_s = scale.synthetic.mean_duration_s
    patience_s = (0.0, PATIENCE * task_s, task_s / 2)
    return FrontierConfig(
        seeds=3,
        architectures=(
            _tau(ALWAYS_S, task_s / 50, scale.tau_s),
            _patient(*PATIENT, patience_s),
            _patient("Greedy, one scheduler", "Greedy, one scheduler", patience_s),
            _patient("Flow", "Flow", patience_s[:2]),
            _preferred_probes(0.0, 1.0),
        ),
    )


def full_frontier(scale: Scale, quick: bool) -> FrontierConfig:
    """Every architecture of the comparison that has a knob, at equal capacity and at own speed; the
    others as points."""
    task_s = scale.synthetic.mean_duration_s
    patience_s = tuple(task_s * part for part in ((0, 0.15, 0.5) if quick else PATIENCES))
    tau_s = tuple(task_s * part for part in ((0.02,) if quick else (0.01, 0.02, 0.04)))
    patient = (PATIENT, *((arm, arm) for arm in _ONE_SCHEDULER))
    return FrontierConfig(
        seeds=2 if quick else 5,
        load_percent=(80,),
        architectures=(
            _tau(ALWAYS_S, *tau_s, NEVER_S),
            *(_patient(name, arm, patience_s) for name, arm in patient),
            Architecture(arm="StateSync staggered quality-first"),
            Architecture(arm="Omega"),
            _preferred_probes(0.0, 0.5, 1.0),
            _interval(scale, scale.gap_s / 4, scale.gap_s, 5 * scale.gap_s),
        ),
    )


# in mean task durations
PATIENCES = (0.0, 0.02, 0.05, 0.15, 0.5)
_ONE_SCHEDULER = (
    "Greedy, one scheduler",
    "Preferred first",
    "Flow",
    "Greedy at own speed",
    "Flow at own speed",
)


def _tau(*values_s: float) -> Architecture:
    return Architecture(
        name="ParSync, tau", arm="ParSync adaptive", knob="protocol.tau_s", values=values_s
    )


def _preferred_probes(*values: float) -> Architecture:
    """Sparrow with a share of its probes sent to preferred machines, an extension."""
    return Architecture(
        name="Sparrow, preferred probes",
        arm=SPARROW,
        knob="protocol.preferred_probes",
        values=values,
    )


def _interval(scale: Scale, *values_s: float) -> Architecture:
    """Mesos over the time between two runs of its allocator."""
    return Architecture(
        name="Mesos, interval",
        arm=_mesos(scale),
        knob="protocols.offers.interval_s",
        values=values_s,
    )


def _patient(name: str, arm: str, values_s: tuple[float, ...]) -> Architecture:
    return Architecture(name=name, arm=arm, knob="options.patience_s", values=values_s)


def default_config(quick: bool) -> RunConfig:
    """What `agora frontier` runs without a file: the demo's cell at a constant load of 80 %.

    Args:
        quick: Use half of the cell and fewer points.
    """
    scale = demo_scale(quick)
    # One task length settles, and five are counted.
    options = scale.synthetic.model_copy(update={"phase_s": 6 * scale.synthetic.mean_duration_s})
    return RunConfig(
        name="frontier",
        workload=WorkloadConfig.of("synthetic", options),
        arms=default_arms(scale),
        settle_s=scale.settle_s,
        drain_s=scale.drain_s,
        frontier=full_frontier(scale, quick),
    )
