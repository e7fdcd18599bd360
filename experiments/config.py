"""A run's configuration: one validated model, read from TOML and flags, written beside the results,
and enough to run it again."""

from __future__ import annotations

import tomllib
import unicodedata
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from experiments.workloads.google2011 import Google2011Options
from experiments.workloads.synthetic import SyntheticOptions
from parsync.protocols.optimistic.agent import AgentPolicy
from parsync.protocols.optimistic.choices import Cut, FreedVisibility, LoserPolicy, WhileCommitting
from parsync.protocols.optimistic.sync.policies import make_sync_policy
from parsync.runtime.assembly import ArmSpec, GroupSpec
from parsync.runtime.json_files import unreadable
from parsync.runtime.plan_limit import PLAN_LIMIT_S
from schedulers import registry
from schedulers.decision_time import Counted, DecisionClock, Measured, Modelled
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import CommitMode, ConflictCheck

ENTIRE = 1000  # shares are kept in permille


StrategyName = Literal["optimistic", "quality_first", "latency_first", "adaptive"]
SyncName = Literal[
    "state_aligned", "state_staggered", "diff_block", "diff_single", "same_block", "every_attempt"
]

LONGEST_S = 1e6  # of any time: far beyond use, far within int64 microseconds


LONGEST_NAME = 200
LARGEST_FILE = 1 << 24


def _printable(name: str) -> str:
    """Names stand in files, tables, figures and on the terminal. (Of what str.isprintable refuses,
    emoji and some scripts need the joiners.)"""
    if not name.strip():
        raise ValueError("expected a name, got only spaces")
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise ValueError(
                f"expected a name without control characters, got U+{ord(character):04X}"
            )
    return name


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_printable)]


class _Strict(BaseModel):
    """No number is true, a text or infinite, and no list anything else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelledTime(_Strict):
    """t_job + t_task * tasks + t_partition * partitions looked at (ParSync section 6.2:
    quality-first checks them all)."""

    clock: Literal["modelled"] = "modelled"
    job_us: int = Field(0, ge=0, le=LONGEST_S * 1e6)
    task_us: float = Field(gt=0, le=LONGEST_S * 1e6)
    partition_us: float = Field(0, ge=0, le=LONGEST_S * 1e6)

    def make(self) -> DecisionClock:
        return Modelled(self.job_us, round(self.task_us * 1000), round(self.partition_us * 1000))


class CountedTime(_Strict):
    """Work the scheduler counts, weighted so that an operation takes about 100 ns on the machine it
    was calibrated on: deterministic."""

    clock: Literal["counted"] = "counted"
    ns_per_operation: int = Field(100, gt=0)

    def make(self) -> DecisionClock:
        return Counted(self.ns_per_operation)


class MeasuredTime(_Strict):
    """Wall time of the computation: under the virtual runtime such a run is not repeatable."""

    clock: Literal["measured"] = "measured"

    def make(self) -> DecisionClock:
        return Measured()


DecisionTime = Annotated[ModelledTime | CountedTime | MeasuredTime, Field(discriminator="clock")]


class GroupConfig(_Strict):
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


class ArmConfig(_Strict):
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
    """The configured clock, or the kind's own: deterministic in virtual time, Measured for flow
    schedulers when live."""
    if group.decision is not None:
        return group.decision.make()
    spec = registry.get(group.kind)
    return Measured() if live and spec.retains_pending else spec.default_decision


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


class LiveConfig(_Strict):
    """How arms run on Ray. address: of a running cluster; unset: an embedded one. hosts: scheduler
    processes.

    fsync: the cell waits for the disk at each step, so that its log survives the machine and not
    only the process.
    """

    address: str | None = None
    hosts: int = Field(2, ge=1, le=64)
    tick_ms: int = Field(25, ge=1, le=10_000)
    fsync: bool = False


class VirtualConfig(_Strict):
    """How arms run in virtual time. message_us: one-way time of every message between schedulers,
    cell, workers and workload source."""

    message_us: int = Field(0, ge=0, le=1_000_000)


class RunConfig(_Strict):
    """Everything a run depends on. seeds: paired seeds in virtual time for the confidence intervals
    (seed, seed + 1, ...)."""

    name: Name = "parsync_vs_flow"
    runtime: Literal["virtual", "ray"] = "virtual"
    live: LiveConfig = LiveConfig()
    virtual: VirtualConfig = VirtualConfig()
    seed: int = Field(1, ge=0, lt=1 << 63)
    seeds: int = Field(10, ge=1, le=1000)
    drain_s: float = Field(10.0, ge=0, le=LONGEST_S)
    settle_s: float = Field(
        2.0,
        ge=0,
        le=LONGEST_S,
        description="left out at the start of each phase (of a trace: at its start)",
    )
    heartbeat_us: int = Field(1000, ge=1, le=LONGEST_S * 1e6)
    sample_s: float = Field(0.1, ge=0.001, le=60)
    plan_limit_s: float = Field(
        PLAN_LIMIT_S,
        ge=0.1,
        le=LONGEST_S,
        description="wall time in seconds after which a scheduler's call counts as never returning",
    )
    synthetic: SyntheticOptions | None = None
    google2011: Google2011Options | None = None
    arms: tuple[ArmConfig, ...] = Field(min_length=1, strict=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.synthetic is None) == (self.google2011 is None):
            raise ValueError("exactly one of [synthetic] and [google2011] describes the workload")
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError("two arms have the same name")
        if self.synthetic is not None:
            for arm in self.arms:
                if self.synthetic.phase_s < arm.gap_s:
                    raise ValueError(
                        f"phase_s: phases of {self.synthetic.phase_s:g} s are shorter than the gap G of {arm.gap_s:g} s of arm '{arm.name}'"
                    )
            if self.settle_s >= self.synthetic.phase_s:
                raise ValueError(
                    f"settle_s: {self.settle_s:g} s leaves nothing of phases of {self.synthetic.phase_s:g} s"
                )
        return self


def first_error(error: ValidationError) -> str:
    """The first of pydantic's complaints, as `field.path: what is wrong`."""
    problem = error.errors()[0]
    place = ".".join(str(part) or '""' for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "unknown option"
    elif message != problem["msg"] or problem["type"] == "missing":
        pass  # our own words, or nothing was given
    else:
        message += _got(problem["input"])
    return f"{place}: {message}" if place else message


def _got(value: Any) -> str:
    """What was given, as TOML has it, if it is short."""
    if isinstance(value, bool):
        return f", got {str(value).lower()}"
    if not isinstance(value, int | float | str):
        return ""
    if isinstance(value, int) and value.bit_length() > 128:
        return f", got an integer of {value.bit_length()} bits"
    return f", got {value!r}" if len(repr(value)) <= 60 else ""


def load_config(path: Path) -> RunConfig:
    """The run a TOML file describes. Raises AgoraError naming the file and the line (syntax) or
    field (meaning)."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise AgoraError(
            f"{path}: {getattr(error, 'strerror', None) or 'is not UTF-8 text'}"
        ) from error
    if len(data) > LARGEST_FILE:
        raise AgoraError(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or beyond what Python reads
        raise AgoraError(f"{path}: {unreadable(error)}") from error
    return validated(tree, str(path))


def validated(tree: dict[str, Any], source: str) -> RunConfig:
    """A RunConfig from plain values. Raises AgoraError naming `source` and the field."""
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"{source}: {first_error(error)}") from error
