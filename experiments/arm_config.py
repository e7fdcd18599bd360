"""The competitors of a run: schedulers in groups, how they decide and how they synchronise."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from experiments.strict_model import LONGEST_S, Name, Strict
from parsync.protocols.optimistic.agent import AgentPolicy
from parsync.protocols.optimistic.choices import Cut, FreedVisibility, LoserPolicy, WhileCommitting
from parsync.protocols.optimistic.sync.policies import make_sync_policy
from parsync.runtime.assembly import ArmSpec, GroupSpec
from schedulers import registry
from schedulers.capability import Capability
from schedulers.decision_time import Counted, DecisionClock, Measured, Modelled
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import CommitMode, ConflictCheck

ENTIRE = 1000  # shares are kept in permille


StrategyName = Literal["optimistic", "quality_first", "latency_first", "adaptive"]
SyncName = Literal[
    "state_aligned", "state_staggered", "diff_block", "diff_single", "same_block", "every_attempt"
]


class ModelledTime(Strict):
    """t_job + t_task * tasks + t_partition * partitions looked at (ParSync section 6.2:
    quality-first checks them all)."""

    clock: Literal["modelled"] = "modelled"
    job_us: int = Field(0, ge=0, le=LONGEST_S * 1e6)
    task_us: float = Field(gt=0, le=LONGEST_S * 1e6)
    partition_us: float = Field(0, ge=0, le=LONGEST_S * 1e6)

    def make(self) -> DecisionClock:
        return Modelled(self.job_us, round(self.task_us * 1000), round(self.partition_us * 1000))


class CountedTime(Strict):
    """Work the scheduler counts, weighted so that an operation takes about 100 ns on the machine it
    was calibrated on: deterministic."""

    clock: Literal["counted"] = "counted"
    ns_per_operation: int = Field(100, gt=0)

    def make(self) -> DecisionClock:
        return Counted(self.ns_per_operation)


class MeasuredTime(Strict):
    """Wall time of the computation: under the virtual runtime such a run is not repeatable."""

    clock: Literal["measured"] = "measured"

    def make(self) -> DecisionClock:
        return Measured()


DecisionTime = Annotated[ModelledTime | CountedTime | MeasuredTime, Field(discriminator="clock")]


class GroupConfig(Strict):
    """`count` schedulers of one kind. share: of the jobs (of task_class, if given); None: in
    proportion to count of what others leave."""

    name: Name
    kind: str
    count: int = Field(ge=1)
    options: dict[str, Any] = Field(default_factory=dict)
    strategy: StrategyName = "optimistic"
    tau_s: float = Field(0.8, ge=1e-6, le=LONGEST_S)
    share: float | None = Field(None, gt=0, le=1)
    task_class: Literal["batch", "service"] | None = None
    decision: DecisionTime | None = Field(
        None,
        description="unset: the kind's own; a kind that remembers what waits (flow) is Measured when live",
    )
    cut_at_sync: bool = Field(
        True,
        description="a round ends at the next sync; without effect under counted and measured decision times, which do not tell beforehand how many"
        " tasks fit, under every_attempt, and for kinds that remember what waits (flow)",
    )
    freed_at_once: bool = Field(
        False, description="see the room of own tasks when they end, not at the next sync"
    )
    waits_for_commit: bool = Field(
        False,
        description="wait for a transaction's outcome before the next round, as ParSync's slot simulation does",
    )
    losers: Literal["block", "requeue"] = "block"
    requeue_s: float = Field(1.0, ge=1e-6, le=LONGEST_S)
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
    average_permille: int = Field(
        100,
        ge=1,
        le=1000,
        description="adaptive: weight of one batch in the moving average of the delay",
    )
    check: Literal["resource_fit", "sequence_number"] = "resource_fit"
    commit: Literal["incremental", "all_or_nothing"] = Field(
        "incremental",
        description="all_or_nothing: the claims of a gang are accepted together or not at all, a task without a gang by itself; incremental: every claim by "
        "itself, so that a gang may be torn",
    )

    @model_validator(mode="after")
    def _known(self) -> Self:
        try:
            registry.get(self.kind).parse_options(self.options)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return self


class ArmConfig(Strict):
    """One competitor: its schedulers and how they synchronise."""

    name: Name
    sync: SyncName
    partitions: int = Field(ge=1)
    gap_s: float = Field(
        gt=0,
        le=LONGEST_S,
        description="G; under every_attempt, after what time a scheduler that found no room looks again",
    )
    groups: tuple[GroupConfig, ...] = Field(min_length=1, strict=False)

    @field_validator("groups")
    @classmethod
    def _distinct(cls, groups: tuple[GroupConfig, ...]) -> tuple[GroupConfig, ...]:
        names = [group.name for group in groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have the same name")
        return groups

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        agents = sum(group.count for group in self.groups)
        try:
            make_sync_policy(self.sync, round(self.gap_s * 1e6), self.partitions, 0, agents)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        self.shares_permille()
        return self

    def shares_permille(self) -> tuple[int, ...]:
        """The groups' shares of the jobs. Groups without one divide what is left of their class in
        proportion to their counts."""
        shares = [
            0 if group.share is None else round(group.share * ENTIRE) for group in self.groups
        ]
        for scope in sorted({group.task_class or "" for group in self.groups}):
            members = [
                i for i, group in enumerate(self.groups) if (group.task_class or "") == scope
            ]
            open_ended = [i for i in members if self.groups[i].share is None]
            left = ENTIRE - sum(shares[i] for i in members)
            if left < 0 or (left > 0 and not open_ended):
                of_class = f" of {scope} jobs" if scope else ""
                raise ValueError(
                    f"groups: shares{of_class} sum to {(ENTIRE - left) / ENTIRE:g}, not to 1"
                )
            if left == 0 and open_ended:
                raise ValueError(
                    f"groups: the shares leave nothing for group '{self.groups[open_ended[0]].name}'"
                )
            counts = [self.groups[i].count for i in open_ended]
            for position, i in enumerate(open_ended):
                before = left * sum(counts[:position]) // sum(counts)
                shares[i] = left * sum(counts[: position + 1]) // sum(counts) - before
        return tuple(shares)

    def spec(self, seed: int, heartbeat_us: int, sample_us: int, live: bool) -> ArmSpec:
        """What the runtimes run."""
        shares = self.shares_permille()
        groups = tuple(
            _group_spec(group, share, sample_us, live)
            for group, share in zip(self.groups, shares, strict=True)
        )
        return ArmSpec(
            self.name,
            groups,
            self.sync,
            round(self.gap_s * 1e6),
            self.partitions,
            heartbeat_us,
            sample_us,
            seed,
        )


def decision_clock(group: GroupConfig, live: bool) -> DecisionClock:
    """The configured clock, or the kind's own: deterministic in virtual time, Measured for some
    when live."""
    if group.decision is not None:
        return group.decision.make()
    spec = registry.get(group.kind)
    if live and Capability.MEASURED_WHEN_LIVE in spec.capabilities:
        return Measured()
    return spec.default_decision


def _group_spec(group: GroupConfig, share_permille: int, sample_us: int, live: bool) -> GroupSpec:
    policy = AgentPolicy(
        cut=Cut.AT_SYNC if group.cut_at_sync else Cut.NONE,
        freed=FreedVisibility.AT_ONCE if group.freed_at_once else FreedVisibility.AT_SYNC,
        losers=LoserPolicy[group.losers.upper()],
        mode=CommitMode[group.commit.upper()],
        check=ConflictCheck[group.check.upper()],
        while_committing=WhileCommitting.WAIT if group.waits_for_commit else WhileCommitting.GO_ON,
        average_permille=group.average_permille,
        requeue_us=round(group.requeue_s * 1e6),
        attempts_max=group.attempts_max,
        attempts_max_unplaced=group.attempts_max_unplaced,
        sample_us=sample_us,
    )
    return GroupSpec(
        name=group.name,
        kind=group.kind,
        count=group.count,
        options=group.options,
        strategy=group.strategy,
        tau_us=round(group.tau_s * 1e6),
        share_permille=share_permille,
        task_class=None if group.task_class is None else TaskClass[group.task_class.upper()],
        clock=decision_clock(group, live),
        policy=policy,
    )
