"""What a slot simulation is given: the parameters of ParSync sections 4.3 and 5.2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from parsync.model import _native
from parsync.protocols.optimistic.options import StrategyKind
from parsync.protocols.pending_queue import LoserPolicy
from schedulers.interface import PartitionQuality
from shared_state.errors import AgoraError

LONGEST_S = 1e5  # of any time: far beyond use, far within int64 nanoseconds
# Those of ParSync: slots have scores, but no task prefers machines.
_OF_AGORA = (StrategyKind.FRESHEST_PREFERRED, StrategyKind.PROMPT)
STRATEGIES = [kind for kind in StrategyKind if kind not in _OF_AGORA]


class SyncMode(StrEnum):
    """The sync policies of the papers, by their names in the registry of sync policies."""

    STATE_ALIGNED = "state_aligned"
    STATE_STAGGERED = "state_staggered"
    DIFF_BLOCK = "diff_block"
    DIFF_SINGLE = "diff_single"
    SAME_BLOCK = "same_block"


class SlotWeighting(IntEnum):
    """How likely weighted sampling picks a slot: in proportion to its score (at variance 2 the
    weights hardly differ), or to e**score, which is what slot scores of a cell mean."""

    SCORE = 0
    EXP_SCORE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerGroup:
    """Schedulers that are alike.

    Args:
        schedulers: How many.
        batch_tasks: Tasks that arrive at a scheduler together.
        strategy: How they rank partitions.
        decision_s: The time to decide one task.
        tau_s: Adaptive: the average delay at which it turns latency-first.
        average_permille: Adaptive: weight of one batch in the moving average of the delay.
    """

    schedulers: int
    batch_tasks: int
    strategy: StrategyKind = StrategyKind.OPTIMISTIC
    decision_s: float = 0.25e-3
    tau_s: float = 1.5
    average_permille: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of time with constant rates.

    Args:
        duration_s: How long it lasts.
        rate_per_s: Tasks that arrive per second, one number for each group.
    """

    duration_s: float
    rate_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSettings:
    """The settings of a slot simulation. The event model, and what each choice means in it, is
    described in native/slot_simulator.hpp. Choices that the agent of the optimistic protocol has,
    too, are named as its options are.

    Args:
        groups, phases: Who schedules, and how much arrives when.
        slots, extra_slots: S and S_extra of the paper; the cell has both.
        partitions: P. With sync by blocks or partitions at least one per scheduler.
        score_variance: V; scores are drawn from N(10, V).
        weighting: How likely a slot is picked.
        quality: How quality-first ranks partitions.
        task_s: T, how long every task runs.
        sync, gap_s: The sync policy and its gap G.
        cut_at_sync: A round ends at the scheduler's next sync.
        freed_at_once: A scheduler sees the slots of its own tasks when they end.
        commit_pipelining: The next round begins before the answer to the last commit has come.
        losers, requeue_s: What becomes of tasks that lost their slot, and the pause of REQUEUE.
        scan_cost: What looking at all partitions adds to a decision, as a share of decision_s; all
            strategies but latency-first pay it.
        latency_s: One-way time of a message to the master; synchronisations take no time.
        service_s: Time of the master per claim, at the partition of the slot.
        seed: The seed of all random draws.
        horizon_s: The run ends then at the latest; unset: 1.6 times the phases, and 30 s.
        bin_s: The time step of the results.
        gap_slices: Into how many parts the results divide the time between two syncs.
        growing_bins, finish_by_s: End the run once its backlog has grown over this many bins and
            would not be committed by finish_by_s at the throughput of the best of them; 0: never.
    """

    groups: tuple[SchedulerGroup, ...]
    phases: tuple[Phase, ...]
    slots: int = 200_000
    extra_slots: int = 0
    partitions: int = 1
    score_variance: float = 2.0
    weighting: SlotWeighting = SlotWeighting.EXP_SCORE
    quality: PartitionQuality = PartitionQuality.MEAN_SCORE
    task_s: float = 5.0
    sync: SyncMode = SyncMode.STATE_ALIGNED
    gap_s: float = 0.5
    cut_at_sync: bool = True
    freed_at_once: bool = False
    commit_pipelining: bool = False
    losers: LoserPolicy = LoserPolicy.BLOCK
    requeue_s: float = 1.0
    scan_cost: float = 0.0
    latency_s: float = 0.0
    service_s: float = 0.0
    seed: int = 1
    horizon_s: float | None = None
    bin_s: float = 1.0
    gap_slices: int = 2
    growing_bins: int = 0
    finish_by_s: float | None = None

    @property
    def submission_s(self) -> float:
        """How long tasks arrive: the phases together."""
        return sum(phase.duration_s for phase in self.phases)

    @property
    def schedulers(self) -> int:
        """All schedulers, N A in the paper."""
        return sum(group.schedulers for group in self.groups)

    def to_native(self) -> _native.SlotSettings:
        """The same for the simulator. Raises AgoraError naming the field that is wrong."""
        native = _native.SlotSettings()
        _set_whole(native, "slots", self.slots + self.extra_slots)
        for name in ("partitions", "gap_slices", "growing_bins"):
            _set_whole(native, name, getattr(self, name))
        if self.extra_slots < 0:
            raise AgoraError(f"extra_slots: expected 0 or more, got {self.extra_slots}")
        if not 0 <= self.seed < 1 << 64:
            raise AgoraError(f"seed: expected 0 to 2^64 - 1, got {self.seed}")
        native.seed = self.seed
        native.score_variance = float(self.score_variance)
        native.weighting, native.quality = self.weighting.value, self.quality.value
        native.sync = list(SyncMode).index(self.sync)
        native.losers = self.losers.value
        for name in ("task", "gap", "requeue", "latency", "service", "bin"):
            setattr(native, f"{name}_ns", _to_ns(f"{name}_s", getattr(self, f"{name}_s")))
        for name in ("cut_at_sync", "freed_at_once", "commit_pipelining"):
            setattr(native, name, bool(getattr(self, name)))
        native.scan_permille = _scaled("scan_cost", self.scan_cost, 1000)
        native.groups = [_native_group(group) for group in self.groups]
        native.phases = [_native_phase(phase) for phase in self.phases]
        horizon_s = self.horizon_s
        if horizon_s is None:
            horizon_s = 1.6 * self.submission_s + 30.0
        native.horizon_ns = _to_ns("horizon_s", horizon_s)
        native.finish_by_ns = _to_ns("finish_by_s", self.finish_by_s or 0.0)
        field, reason = _native.check(native)
        if field:
            raise AgoraError(f"{field}: {reason}")
        return native


def paper_settings(
    schedulers_factor: int = 2, rate_per_s: float = 40_000.0, duration_s: float = 90.0
) -> SlotSettings:
    """The default setting of ParSync section 4.3: 200,000 slots, N = 10 times A schedulers,
    batches of 100 / A tasks, 90 s of arrivals; StateSync aligned, optimistic.

    Args:
        schedulers_factor: A.
        rate_per_s: R. The paper's own 10 batches per second and scheduler make a quarter of the
            default.
    """
    if not 1 <= schedulers_factor <= 100:
        raise AgoraError(f"schedulers_factor: expected 1 to 100, got {schedulers_factor}")
    group = SchedulerGroup(
        schedulers=10 * schedulers_factor, batch_tasks=max(1, round(100 / schedulers_factor))
    )
    return SlotSettings(
        groups=(group,), phases=(Phase(duration_s=duration_s, rate_per_s=(rate_per_s,)),)
    )


def _native_group(group: SchedulerGroup) -> _native.GroupSettings:
    native = _native.GroupSettings()
    for name in ("schedulers", "batch_tasks", "average_permille"):
        _set_whole(native, name, getattr(group, name))
    if group.strategy not in STRATEGIES:
        expected = ", ".join(STRATEGIES)
        raise AgoraError(f"strategy: expected one of {expected}, got {group.strategy}")
    native.strategy = STRATEGIES.index(group.strategy)
    native.decision_ns = _to_ns("decision_s", group.decision_s)
    native.tau_ns = _to_ns("tau_s", group.tau_s)
    return native


def _native_phase(phase: Phase) -> _native.PhaseSettings:
    native = _native.PhaseSettings()
    native.duration_ns = _to_ns("phases: duration_s", phase.duration_s)
    native.rate_per_ks = [_scaled("phases: rate_per_s", rate, 1000) for rate in phase.rate_per_s]
    return native


def _set_whole(native: object, name: str, value: int) -> None:
    if not isinstance(value, int) or not -(1 << 62) < value < 1 << 62:
        raise AgoraError(f"{name}: expected a whole number, got {value!r}")
    setattr(native, name, value)


def _to_ns(name: str, seconds: float) -> int:
    if not abs(seconds) <= LONGEST_S:
        raise AgoraError(f"{name}: expected at most {LONGEST_S:g} s, got {seconds!r}")
    return round(seconds * 1e9)


def _scaled(name: str, value: float, by: int) -> int:
    if not (math.isfinite(value) and abs(value) <= 1e12):
        raise AgoraError(f"{name}: expected a number up to 1e12, got {value!r}")
    return round(value * by)
