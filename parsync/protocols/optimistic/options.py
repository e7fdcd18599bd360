"""What a group may choose under the optimistic protocol, and what its agents make of it: the
strategies by which an agent ranks partitions from one decision round to the next (ParSync section
5.2), and how long its rounds last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from parsync.core.queued_tasks import (
    DEFAULT_S,
    HEAD_OF_LINE,
    HeadOfLineSeconds,
    head_of_line_us,
)
from parsync.core.quotas import SchedulerLimits
from parsync.protocols import _native
from parsync.protocols._native import DelayAverage as DelayAverage  # agents use it from here
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.pending_queue import LoserPolicy
from parsync.protocols.rounds import ClaimUnit
from parsync.strict_model import LONGEST_S, RenamedOption, Strict
from parsync.workload.workload import TaskGangs, Workload
from schedulers.interface import PartitionQuality, PartitionRanking
from shared_state.errors import AgoraError
from shared_state.tasks import ENTIRE, Int64
from shared_state.transaction import CommitMode, ConflictCheck

# How many rounds a prompt scheduler has time for from one synchronisation of DiffSyn to the next.
PROMPT_ROUNDS = 8


class StrategyKind(StrEnum):
    """How an agent ranks partitions: those of ParSync section 5.2, and two of Agora's."""

    OPTIMISTIC = "optimistic"  # not at all: the whole view is one pool
    QUALITY_FIRST = "quality_first"
    LATENCY_FIRST = "latency_first"
    ADAPTIVE = "adaptive"
    FRESHEST_PREFERRED = "freshest_preferred"  # preferred machines, the freshest of them first
    PROMPT = "prompt"  # as quality-first, in rounds of a fraction of G/N

    @property
    def ranks_by_quality(self) -> bool:
        """Whether some of its batches look for the best partition."""
        return self in (StrategyKind.QUALITY_FIRST, StrategyKind.ADAPTIVE, StrategyKind.PROMPT)


_FIXED = {
    StrategyKind.OPTIMISTIC: PartitionRanking.OPTIMISTIC,
    StrategyKind.QUALITY_FIRST: PartitionRanking.QUALITY_FIRST,
    StrategyKind.LATENCY_FIRST: PartitionRanking.LATENCY_FIRST,
    StrategyKind.FRESHEST_PREFERRED: PartitionRanking.FRESHEST_PREFERRED,
    StrategyKind.PROMPT: PartitionRanking.QUALITY_FIRST,
}


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an agent ranks partitions.

    Attributes:
        native: parsync/protocols/native/round_planner.hpp.
        rounds_per_sync: At least how many rounds fit into G/N, the time between two
            synchronisations of DiffSyn (ParSync section 5.1); None: a round may be longer.
    """

    native: _native.Strategy
    rounds_per_sync: int | None = None

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        """The ranking for a batch begun when the agent's average scheduling delay is
        `delay_average_us`."""
        return PartitionRanking(self.native.ranking(delay_average_us))


def longest_round_us(strategy: Strategy, gap_us: int, agents: int) -> int | None:
    """How long a decision round of one of so many agents may last at most, with this gap; None: as
    long as it takes."""
    rounds = strategy.rounds_per_sync
    return None if rounds is None else gap_us // (agents * rounds)


def make_strategy(kind: StrategyKind, tau_us: int) -> Strategy:
    """The strategy that a configuration names: adaptive is quality-first while the average delay is
    below tau, else latency-first. Raises AgoraError if it has no positive tau."""
    if kind != StrategyKind.ADAPTIVE:
        rounds = PROMPT_ROUNDS if kind == StrategyKind.PROMPT else None
        return Strategy(_native.Strategy.fixed(int(_FIXED[kind])), rounds)
    if tau_us <= 0:
        raise AgoraError(
            f"tau_us: {tau_us} is not positive; adaptive switches when the average delay reaches it"
        )
    return Strategy(_native.Strategy.adaptive(tau_us))


class RoundRankings(_native.RoundRankings):
    """The ranking of each decision round of an agent, short and long jobs apart if they have
    different strategies (parsync/protocols/native/round_planner.hpp).

    Args:
        strategy: Of all jobs, or of those that are not long.
        long_strategy: Of long jobs; None: as the others.
        task_class: int8[tasks], the TaskClass of every task.

    Attributes:
        tells_lengths: Whether the ranking of a round depends on its tasks.
    """

    def __init__(
        self, strategy: Strategy, long_strategy: Strategy | None, task_class: NDArray[np.int8]
    ) -> None:
        long_jobs = None if long_strategy is None else long_strategy.native
        super().__init__(strategy.native, long_jobs, task_class)

    def begin_batch(self, delay_average_us: int) -> None:
        """A batch begins; `delay_average_us` is the agent's average scheduling delay."""
        super().begin_batch(delay_average_us)

    @property
    def ranking(self) -> PartitionRanking:
        """The ranking of a round, or of one about jobs that are not long."""
        return PartitionRanking(super().ranking)

    def of(self, task: Int64) -> tuple[PartitionRanking, int]:
        """The ranking of a round about the first of these tasks, int64[n], and how many of them
        share it."""
        ranking, count = super().of(task)
        return PartitionRanking(ranking), count


def named(enum: type[Enum]) -> tuple[BeforeValidator, PlainSerializer]:
    """The annotations of a field that a configuration fills with the name of a member of `enum`,
    in lower case. The field itself holds the member."""
    members = {member.name.lower(): member for member in enum}
    *first, last = (repr(name) for name in members)
    expected = f"{', '.join(first)} or {last}"

    def member(value: Any) -> Any:
        if isinstance(value, enum):
            return value
        if not isinstance(value, str) or value not in members:
            raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
        return members[value]

    return (
        BeforeValidator(member),
        PlainSerializer(lambda value: value.name.lower(), return_type=str),
    )


class AtomicUnit(IntEnum):
    """Which claims of a transaction CommitMode.ALL_OR_NOTHING accepts together or not at all: those
    of a gang, or those of a job (Omega's simulator, whose transactions are of one job each)."""

    GANG = 0
    JOB = 1


class OptimisticOptions(Strict):
    """The options of a group, as they stand in a configuration."""

    sync: str = Field(description="the sync policy: which partitions are refreshed, and when")
    gap_s: float | None = Field(
        None,
        gt=0,
        le=LONGEST_S,
        description="the synchronisation gap G in seconds; required by every sync policy but"
        " every_attempt, which has no gap and uses retry_s",
    )
    retry_s: float | None = Field(
        None,
        gt=0,
        le=LONGEST_S,
        description="how many seconds a scheduler that found no room waits before it looks again;"
        " required by every_attempt, without effect otherwise",
    )
    sync_options: dict[str, Any] = Field(
        default_factory=dict, description="options of the sync policy's own"
    )
    sync_set: str | None = Field(
        None,
        description="groups that name the same set count together as the N schedulers of ParSync;"
        " unset: the group by itself",
    )
    only_partitions: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        None,
        min_length=1,
        strict=False,
        description="the partitions, counted from 0, that the group's schedulers see and claim in"
        " (static partitioning: groups that have none in common); unset: all",
    )
    strategy: Annotated[StrategyKind, *named(StrategyKind)] = Field(
        StrategyKind.OPTIMISTIC,
        description="how partitions are ranked: optimistic (the whole view is one pool, as in"
        " Omega), quality_first, latency_first, adaptive (between these two), freshest_preferred"
        " (preferred machines, the freshest of them first) or prompt (as quality_first, in rounds"
        " of at most an eighth of G/N, where the decision time is known beforehand)",
    )
    long_strategy: Annotated[StrategyKind, *named(StrategyKind)] | None = Field(
        None,
        description="the strategy for long jobs, which are those of services; a round has tasks of"
        " short jobs or of long ones; unset: the same as for others; not for kinds that keep"
        " waiting tasks themselves (flow schedulers, patience_s)",
    )
    quality: Annotated[PartitionQuality, *named(PartitionQuality)] = Field(
        PartitionQuality.MEAN_WEIGHT,
        description="quality_first, adaptive and prompt, in a cell whose slots have scores: the"
        " best partition is that with the highest mean_score of its open slots (ParSync), or with"
        " the highest mean_weight, where the weight of a slot is exp(score)",
    )
    tau_s: float = Field(
        0.8,
        ge=1e-6,
        le=LONGEST_S,
        description="adaptive: the average delay in seconds at which it turns latency-first",
    )
    average_permille: int = Field(
        100,
        ge=1,
        le=1000,
        description="adaptive: weight of one batch in the moving average of the delay",
    )
    cut_at_sync: bool = Field(
        True,
        description="a round ends at the next sync and the rest is planned on the refreshed view;"
        " without effect where the decision time is not known beforehand (counted, measured),"
        " under every_attempt, and for kinds that plan the whole queue (flow schedulers)",
    )
    round_tasks: int | None = Field(
        None,
        ge=1,
        description="at most how many tasks a round is about, but for a gang, which is never"
        " divided; 1: tasks are decided and committed one by one, as Kubernetes does; not"
        " for kinds that plan the whole queue (flow schedulers); unset: a whole batch",
    )
    freed_at_once: bool = Field(
        False, description="see the room of own tasks when they end, not at the next sync"
    )
    min_retry_interval_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="kinds that keep waiting tasks (flow schedulers, patience_s): how long after"
        " the start of a round the next one may begin that is about waiting tasks only; new tasks"
        " are planned at once, with those that wait",
    )
    commit_pipelining: bool = Field(
        True,
        description="begin the next round before the answer to the last commit has come; off: wait"
        " for it, as ParSync's slot simulation does",
    )
    losers: Annotated[LoserPolicy, *named(LoserPolicy)] = Field(
        LoserPolicy.BLOCK,
        description="what becomes of rejected tasks: decided again at once while the next batch"
        " waits (ParSync), or back to the tail of the queue after requeue_s (Omega; not for kinds"
        " that keep waiting tasks themselves: flow schedulers, patience_s)",
    )
    requeue_s: float = Field(
        1.0, ge=1e-6, le=LONGEST_S, description="requeue: the pause in seconds"
    )
    attempts_max: int = Field(
        1000,
        ge=1,
        le=1_000_000,
        description="requeue: rounds without a place after which tasks are given up (Omega's 1000)",
    )
    attempts_max_unplaced: int = Field(
        100,
        ge=1,
        le=1_000_000,
        description="the same where no task submitted with them got a place either (Omega's 100)",
    )
    head_of_line_s: HeadOfLineSeconds = Field(
        DEFAULT_S,
        description=HEAD_OF_LINE + "; no effect where losers are requeued, or for kinds that plan"
        " the whole queue or keep waiting tasks themselves: there no task holds up another",
    )
    hold_max: float | None = Field(
        None,
        gt=0,
        le=1,
        description="share of the cell, in each resource, that the tasks of one scheduler may hold"
        " together (a limit of Omega's schedulers; not beside quotas, nor for kinds that keep"
        " waiting tasks themselves); unset: no limit",
    )
    jobs_max: int | None = Field(
        None,
        ge=1,
        le=1_000_000_000,
        description="how many of its jobs a scheduler admits at a time; others wait until one has"
        " ended (not beside quotas); unset: no limit",
    )
    conflict_check: Annotated[ConflictCheck, *named(ConflictCheck)] = Field(
        ConflictCheck.RESOURCE_FIT,
        description="what the cell checks of a claim: that it fits, or also that nobody has claimed"
        " on the machine since the state it was planned on",
    )
    commit_mode: Annotated[CommitMode, *named(CommitMode)] | None = Field(
        None,
        description="incremental: every claim is accepted by itself, so that a gang may be torn;"
        " all_or_nothing: the claims of an atomic_unit are accepted together or not at all; unset:"
        " all_or_nothing where the workload has gangs, else incremental",
    )
    atomic_unit: Annotated[AtomicUnit, *named(AtomicUnit)] = Field(
        AtomicUnit.GANG,
        description="all_or_nothing: the unit is a gang that the workload marks, or a job (Omega's"
        " simulator): its claims in one transaction",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, given: Any) -> Any:
        """The time after which a scheduler looks again was called gap_s, too."""
        if not isinstance(given, dict) or given.get("gap_s") is None or _is_periodic(given):
            return given
        under = f'gap_s under sync = "{given["sync"]}"'
        if given.get("retry_s") is not None:
            warn(f"{under} has no effect; retry_s is used", RenamedOption, stacklevel=2)
            return given
        warn(f"{under} is now called retry_s; please rename it", RenamedOption, stacklevel=2)
        options = {**given, "retry_s": given["gap_s"]}
        del options["gap_s"]
        return options

    @model_validator(mode="after")
    def _known_policy(self) -> Self:
        try:
            policy = sync_policies.get(self.sync)
            policy.parse_options(self.sync_options)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        name = "gap_s" if policy.periodic else "retry_s"
        if getattr(self, name) is None:
            raise ValueError(f"{name}: missing; sync = {self.sync!r} requires it")
        return self

    @model_validator(mode="after")
    def _ranks_by_quality(self) -> Self:
        if self.quality is not PartitionQuality.MEAN_WEIGHT and not self.strategy.ranks_by_quality:
            raise ValueError(
                "quality: has no effect unless strategy is quality_first, adaptive or prompt, got "
                f"{self.strategy.value!r}"
            )
        return self

    @model_validator(mode="after")
    def _has_units(self) -> Self:
        if (
            self.atomic_unit is not AtomicUnit.GANG
            and self.commit_mode is not CommitMode.ALL_OR_NOTHING
        ):
            raise ValueError(
                "atomic_unit: has no effect unless commit_mode is 'all_or_nothing', got "
                + ("none" if self.commit_mode is None else repr(self.commit_mode.name.lower()))
            )
        return self

    @model_validator(mode="after")
    def _one_length_of_rounds(self) -> Self:
        if self.long_strategy is StrategyKind.PROMPT:
            raise ValueError(
                "long_strategy: 'prompt' is quality_first in short rounds, which a scheduler has "
                "for all its tasks or for none; expected 'quality_first' here, and 'prompt' as "
                "strategy for short rounds"
            )
        return self

    def for_workload(self, workload: Workload) -> OptimisticOptions:
        """The same with the commit mode that it has with this workload, where it is unset: no
        gang is torn unless the configuration says so."""
        if self.commit_mode is not None:
            return self
        has_gangs = TaskGangs.of(workload) is not None
        mode = CommitMode.ALL_OR_NOTHING if has_gangs else CommitMode.INCREMENTAL
        return self.model_copy(update={"commit_mode": mode})

    @property
    def interval(self) -> tuple[str, float]:
        """The option that says after what time a scheduler that only waits looks at the cell again,
        and this time in seconds."""
        name = "gap_s" if sync_policies.get(self.sync).periodic else "retry_s"
        interval_s: float = getattr(self, name)
        return name, interval_s

    @property
    def gap_us(self) -> int:
        """The interval in microseconds."""
        return round(self.interval[1] * 1e6)

    def for_gap(self, gap_us: int) -> dict[str, float]:
        """The option that sets the interval."""
        return {self.interval[0]: gap_us / 1e6}

    def described(self) -> dict[str, str]:
        """What is said of a group with these options."""
        mode = self.commit_mode
        gangs = {} if mode is None else {"gangs": f'commit_mode = "{mode.name.lower()}"'}
        return {"sync": self.sync, "strategy": self.strategy.value, **gangs}

    @property
    def limits(self) -> SchedulerLimits:
        """What each scheduler of the group limits itself to."""
        share = self.hold_max
        permille = None if share is None else max(1, round(share * ENTIRE))
        return SchedulerLimits(permille, self.jobs_max)

    def make_strategy(self) -> Strategy:
        """The strategy of one agent."""
        return make_strategy(self.strategy, round(self.tau_s * 1e6))

    def make_long_strategy(self) -> Strategy | None:
        """The strategy of one agent for long jobs; None: the same as for others."""
        kind = self.long_strategy
        return None if kind is None else make_strategy(kind, round(self.tau_s * 1e6))

    # in the units of the agents

    @property
    def requeue_us(self) -> int:
        return round(self.requeue_s * 1e6)

    @property
    def min_retry_interval_us(self) -> int:
        return round(self.min_retry_interval_s * 1e6)

    @property
    def head_of_line_us(self) -> int | None:
        """How long a unit without room lets those behind it go ahead; None: for ever."""
        return head_of_line_us(self.head_of_line_s)

    @property
    def claim_unit(self) -> ClaimUnit:
        """Which claims of a transaction stand or fall together, once the workload is known."""
        assert self.commit_mode is not None, "for_workload fills in what is unset"
        if self.commit_mode is not CommitMode.ALL_OR_NOTHING:
            return ClaimUnit.CLAIM
        return ClaimUnit.JOB if self.atomic_unit is AtomicUnit.JOB else ClaimUnit.GANG


def _is_periodic(options: Mapping[str, Any]) -> bool:
    """Whether the sync policy of these options has a gap; yes, if it is unknown."""
    try:
        return sync_policies.get(options["sync"]).periodic
    except (AgoraError, KeyError, TypeError):
        return True
