"""The competitors of a run: schedulers in groups, how they decide and how they synchronise.

These models are what a configuration says of an arm, what the runtimes run, and what arm.json keeps
beside the logs of a run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Set
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from parsync.core.quotas import QuotaSpec
from parsync.protocols import registry as protocols
from parsync.protocols.registry import tables_of
from parsync.protocols.spec import GroupReach, Member, ProtocolCapability
from parsync.spec.decision_times import DecisionTime, ModelledTime
from parsync.strict_model import NO_EFFECT, Name, RenamedOption, Strict
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.decision_clock import DecisionClock, Measured
from schedulers.interface import Capability
from shared_state.errors import AgoraError
from shared_state.tasks import ENTIRE, TaskClass
from shared_state.transaction import EvictionPolicy

MOST_SCHEDULERS = 1 << 20  # of an arm


# What a field of older versions has become, by the class that had it.
_OPTIONS_NOW = {
    "strategy": "strategy",
    "tau_s": "tau_s",
    "cut_at_sync": "cut_at_sync",
    "freed_at_once": "freed_at_once",
    "waits_for_commit": "commit_pipelining, with the opposite meaning",
    "losers": "losers",
    "requeue_s": "requeue_s",
    "attempts_max": "attempts_max",
    "attempts_max_unplaced": "attempts_max_unplaced",
    "average_permille": "average_permille",
    "check": "conflict_check",
    "commit": "commit_mode",
}


_PROTOCOL_FORM = 'protocol = {kind = "optimistic", sync = "...", gap_s = ..., ...}'


def _now(names: Iterable[str]) -> str:
    """The names of options of older versions, with those that they have now."""
    return ", ".join(
        name if (new := _OPTIONS_NOW[name]) == name else f"{name} (now {new})" for name in names
    )


class ProtocolChoice(Strict):
    """A protocol by name, with the validated options of a group. Written and read as one flat
    table: {kind = "optimistic", sync = "diff_block", gap_s = 0.5}."""

    kind: str
    options: BaseModel

    @model_validator(mode="before")
    @classmethod
    def _parsed(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise ValueError('expected a table, protocol = {kind = "optimistic", ...}')
        if isinstance(given.get("options"), BaseModel):
            return given
        options = dict(given)
        kind = options.pop("kind", None)
        if not isinstance(kind, str):
            raise ValueError(f"kind: expected one of {', '.join(protocols.kinds())}")
        renamed = [name for name in options if _OPTIONS_NOW.get(name, name) != name]
        if kind == "optimistic" and renamed:
            raise ValueError(f"protocol 'optimistic': renamed options: {_now(renamed)}")
        try:
            return {"kind": kind, "options": protocols.get(kind).parse_options(options)}
        except AgoraError as error:
            raise ValueError(str(error)) from error

    @model_serializer(mode="plain")
    def _flat(self, info: SerializationInfo) -> dict[str, Any]:
        """Every option, defaults filled in, by the type that the options have."""
        return {"kind": self.kind, **_written(self.options, info.mode)}

    def changed(self, **options: Any) -> ProtocolChoice:
        """The same with other options. Raises ValidationError naming the first that is wrong."""
        return ProtocolChoice.model_validate({**self.model_dump(), **options})

    def for_workload(self, workload: Workload) -> ProtocolChoice:
        """The same with the options that depend on the workload filled in. AgoraError if the code
        of a user's protocol fails."""
        options = protocols.get(self.kind).options_for(self.options, workload)
        return self.model_copy(update={"options": options})

    @property
    def capabilities(self) -> Set[ProtocolCapability]:
        """What a group with these options needs of the runtimes."""
        return protocols.get(self.kind).capabilities_of(self.options)

    @property
    def reach(self) -> GroupReach:
        """What a scheduler of a group with these options may use."""
        return protocols.get(self.kind).reach_of(self.options)

    @property
    def described(self) -> Mapping[str, str]:
        """What the protocol says of these options (ProtocolSpec.describe)."""
        return protocols.get(self.kind).description_of(self.options)

    @property
    def gap_us(self) -> int | None:
        """The synchronisation gap (ProtocolSpec.gap_us); None if there is none."""
        return protocols.get(self.kind).gap_of(self.options)

    def with_gap(self, gap_us: int) -> ProtocolChoice:
        """The same with another gap. AgoraError if the protocol cannot have it."""
        options = protocols.get(self.kind).with_gap(self.options, gap_us)
        return self.model_copy(update={"options": options})


def kept_choice(table: object) -> ProtocolChoice | None:
    """The protocol of a group as a summary keeps it; None if it is not installed any more, or not
    in the version that the summary is of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedOption)
        try:
            return ProtocolChoice.model_validate(table)
        except ValidationError:
            return None


def _written(options: BaseModel, mode: str) -> dict[str, Any]:
    """Options as a table has them, which has no word for what is unset. None is written only where
    the default is something else."""
    written = options.model_dump(mode=mode, exclude_none=True)
    for name, field in type(options).model_fields.items():
        if field.default is not None and getattr(options, name) is None:
            written[name] = None
    return written


class GroupConfig(Strict):
    """`count` schedulers of one kind, and how they get places on the cell."""

    name: Name
    kind: str | None = Field(
        None, description="the kind of scheduler; none for protocols that run no schedulers"
    )
    count: int = Field(ge=1)
    options: dict[str, Any] = Field(
        default_factory=dict, description="options of the kind of scheduler"
    )
    protocol: ProtocolChoice = Field(
        description="the protocol's kind, and its options beside it: protocol = {kind ="
        ' "optimistic", sync = "diff_block", gap_s = 0.5}'
    )
    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="of the jobs (of task_class, if given); unset: in proportion to count of what"
        " the other groups leave",
    )
    task_class: Literal["batch", "service", "mapreduce"] | None = None
    decision: DecisionTime | None = Field(
        None,
        description="unset: the kind's own; that of flow schedulers is measured when live",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, given: Any) -> Any:
        moved = [name for name in _OPTIONS_NOW if isinstance(given, dict) and name in given]
        if moved:
            raise ValueError(
                f"moved to the options of the group's protocol: {_now(moved)}; expected "
                f"{_PROTOCOL_FORM}"
            )
        if (
            isinstance(given, dict)
            and "protocol" not in given
            and given.keys() <= cls.model_fields.keys()
        ):
            raise ValueError(f"protocol: missing; expected {_PROTOCOL_FORM}")
        return given

    @model_validator(mode="after")
    def _known(self) -> Self:
        kind = self.protocol.kind
        try:
            runs_schedulers = ProtocolCapability.RUNS_SCHEDULERS in self.protocol.capabilities
            if runs_schedulers and self.kind is None:
                raise ValueError(f"kind: missing; protocol {kind!r} runs schedulers")
            if not runs_schedulers and self.kind is not None:
                raise ValueError(f"kind: expected none, as protocol {kind!r} runs no schedulers")
            if not runs_schedulers and self.decision is None:
                raise ValueError(f"decision: missing; protocol {kind!r} has no default")
            if Capability.RACES in self.capabilities and isinstance(self.decision, ModelledTime):
                raise ValueError(
                    f"decision: scheduler kind {self.kind!r} races algorithms, which has no effect "
                    'on modelled times; expected clock = "counted" or "measured", or a single '
                    "algorithm in its options"
                )
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def capabilities(self) -> Set[Capability]:
        """The capabilities of its kind of scheduler with its options; none if it has no
        scheduler."""
        if self.kind is None:
            return frozenset()
        spec = registry.get(self.kind)
        return spec.with_options(spec.parse_options(self.options)).capabilities

    @property
    def takes(self) -> TaskClass | None:
        """The class of the jobs that it takes; None: every class."""
        return None if self.task_class is None else TaskClass[self.task_class.upper()]

    def for_workload(self, workload: Workload) -> Self:
        """The group with the options of its protocol that depend on the workload filled in."""
        return self.model_copy(update={"protocol": self.protocol.for_workload(workload)})


class ArmConfig(Strict):
    """One competitor: its groups of schedulers, and the partitions of the cell."""

    name: Annotated[Name, NO_EFFECT]
    partitions: int = Field(ge=1)
    groups: tuple[GroupConfig, ...] = Field(min_length=1, strict=False)
    protocols: dict[str, BaseModel] = Field(
        default_factory=dict,
        validate_default=True,
        description="options of a protocol as a whole, by its kind: [arms.protocols.lottery]",
    )
    quotas: QuotaSpec | None = Field(
        None,
        description="what part of the cell each quota group of the workload may take; unset: any",
    )

    evictions: Literal["own", "lower_priority"] = Field(
        "own",
        description="whose running tasks a scheduler may end to make room: its own, or also those"
        " of other schedulers that are of lower priority than the tasks it places there",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, given: Any) -> Any:
        moved = [name for name in ("sync", "gap_s") if isinstance(given, dict) and name in given]
        if moved:
            raise ValueError(
                f"moved to the options of each group's protocol: {', '.join(moved)}; expected"
                ' protocol = {kind = "optimistic", sync = "...", gap_s = ...} in each group, with'
                " the same sync_set in groups that count together as ParSync's N schedulers"
            )
        return given

    @field_validator("groups")
    @classmethod
    def _distinct(cls, groups: tuple[GroupConfig, ...]) -> tuple[GroupConfig, ...]:
        names = [group.name for group in groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have the same name")
        return groups

    @field_validator("protocols", mode="before")
    @classmethod
    def _parsed(cls, given: Any, info: ValidationInfo) -> Any:
        """The options of every protocol of the arm that has some, defaults filled in."""
        if "groups" not in info.data or not isinstance(given, dict):  # they are wrong themselves
            return given
        used = dict.fromkeys(group.protocol.kind for group in info.data["groups"])
        every: dict[str, BaseModel] = {}
        try:
            for kind in (*given, *used):
                chosen = given.get(kind, {})
                if not isinstance(chosen, Mapping | BaseModel):
                    raise ValueError(f"protocol {kind!r}: expected a table")
                every[kind] = (
                    chosen
                    if isinstance(chosen, BaseModel)
                    else protocols.get(kind).parse_shared_options(chosen)
                )
                if kind not in used:
                    raise ValueError(f"no group of the arm uses protocol {kind!r}")
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return {kind: options for kind, options in every.items() if _written(options, "json")}

    @model_serializer(mode="wrap")
    def _plain(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Without options of protocols as a whole, quotas, and another policy of evictions, where
        there are none."""
        plain: dict[str, Any] = handler(self)
        if "protocols" in plain:
            plain["protocols"] = {
                kind: _written(options, info.mode) for kind, options in self.protocols.items()
            }
        for part in ("protocols", "quotas"):
            if not plain.get(part):
                plain.pop(part, None)
        if self.evictions == "own":
            plain.pop("evictions", None)
        return plain

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self.shares_permille()
        if self.agents > MOST_SCHEDULERS:
            raise ValueError(f"groups: more than {MOST_SCHEDULERS:,} schedulers")
        try:
            check_protocols(self)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return self

    def for_workload(self, workload: Workload) -> Self:
        """The arm with the options of its protocols that depend on the workload filled in.
        AgoraError if the code of a user's protocol fails."""
        groups = tuple(group.for_workload(workload) for group in self.groups)
        return self.model_copy(update={"groups": groups})

    def slowed(self, factor: float) -> ArmConfig:
        """The arm with every modelled decision time so many times longer (ModelledTime.slowed)."""
        groups = tuple(
            group.model_copy(update={"decision": group.decision.slowed(factor)})
            if isinstance(group.decision, ModelledTime)
            else group
            for group in self.groups
        )
        return self.model_copy(update={"groups": groups})

    @property
    def agents(self) -> int:
        """How many schedulers it has."""
        return sum(group.count for group in self.groups)

    @property
    def protocol_kinds(self) -> tuple[str, ...]:
        """The protocols of its groups, each once, in their order."""
        return tuple(dict.fromkeys(group.protocol.kind for group in self.groups))

    def members_of(self, kind: str) -> tuple[Member, ...]:
        """Its groups that use a protocol, as the protocol is told of them."""
        members: list[Member] = []
        first = 0
        for group in self.groups:
            if group.protocol.kind == kind:
                options = group.protocol.options
                members.append(Member(group.name, first, group.count, options, group.capabilities))
            first += group.count
        return tuple(members)

    def options_of(self, kind: str) -> BaseModel:
        """The options of a protocol as a whole. AgoraError if it has no defaults for them."""
        chosen = self.protocols.get(kind)
        return protocols.get(kind).parse_shared_options({}) if chosen is None else chosen

    @property
    def may_evict(self) -> EvictionPolicy:
        """Whose tasks its schedulers may end."""
        return EvictionPolicy[self.evictions.upper()]

    @property
    def gap_s(self) -> float:
        """The longest synchronisation gap of its groups in seconds; 0 if none has one."""
        return max(group.protocol.gap_us or 0 for group in self.groups) / 1e6

    @property
    def sync(self) -> str:
        """How its groups synchronise: a sync policy, or a protocol that has none."""
        texts = {
            group.name: group.protocol.described.get("sync", group.protocol.kind)
            for group in self.groups
        }
        if len(set(texts.values())) == 1:
            return texts[self.groups[0].name]
        return ", ".join(f"{name}: {text}" for name, text in texts.items())

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies of those groups that have one, each once."""
        found = (group.protocol.described.get("strategy", "") for group in self.groups)
        return tuple(filter(None, dict.fromkeys(found)))

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
                    "groups: the shares leave nothing for group "
                    f"'{self.groups[open_ended[0]].name}'"
                )
            counts = [self.groups[i].count for i in open_ended]
            for position, i in enumerate(open_ended):
                before = left * sum(counts[:position]) // sum(counts)
                shares[i] = left * sum(counts[: position + 1]) // sum(counts) - before
        return tuple(shares)

    def seeded(self, seed: int, heartbeat_us: int, sample_us: int, live: bool) -> SeededArm:
        """The arm as the runtimes run it."""
        return SeededArm.model_construct(
            **{name: getattr(self, name) for name in ArmConfig.model_fields},
            seed=seed,
            heartbeat_us=heartbeat_us,
            sample_us=sample_us,
            live=live,
        )


class SeededArm(ArmConfig):
    """An arm as it is run once: beside its description the seed of its random streams, and the
    times that it shares with the other arms of the run. It is what arm.json keeps."""

    seed: int = Field(ge=0, lt=1 << 63)
    heartbeat_us: int = Field(ge=1, lt=1 << 63)
    sample_us: int = Field(ge=1, lt=1 << 63)
    live: bool = Field(description="it runs on Ray, where some kinds measure their decision times")

    def clock(self, group: GroupConfig) -> DecisionClock:
        """What the decisions of one of its groups cost."""
        return decision_clock(group, self.partitions, self.live)

    def group_of(self, agent: int) -> GroupConfig:
        """The group of an agent."""
        return self._place(agent)[0]

    def agent_name(self, agent: int) -> str:
        """E.g. latency_first-3: the group's name and the agent's place in it."""
        group, place = self._place(agent)
        return f"{group.name}-{place}"

    def _place(self, agent: int) -> tuple[GroupConfig, int]:
        for group in self.groups:
            if agent < group.count:
                return group, agent
            agent -= group.count
        raise IndexError("no such agent")


def decision_clock(group: GroupConfig, partitions: int, live: bool) -> DecisionClock:
    """The configured clock, or the kind's own: deterministic in virtual time, Measured for some
    when live.

    Args:
        group: The group.
        partitions: Of its arm.
        live: Whether the arm runs on Ray.
    """
    if group.decision is not None:
        return group.decision.make(partitions)
    assert group.kind is not None, "a group without a kind has a decision time"
    spec = registry.get(group.kind)
    if live and Capability.MEASURED_WHEN_LIVE in spec.capabilities:
        return Measured()
    return spec.default_decision


def check_protocols(arm: ArmConfig) -> None:
    """Raise AgoraError if the groups of an arm cannot share it, as their protocols say, if there
    are options of a protocol that no group uses, or if a protocol asks for what is unknown or what
    it cannot have."""
    for kind in arm.protocols:
        if kind not in arm.protocol_kinds:
            raise AgoraError(f"options of protocol {kind!r}, which no group of the arm uses")
    for group in arm.groups:
        capabilities = group.protocol.capabilities
        if (
            Capability.SHARES_DEMAND in group.capabilities
            and ProtocolCapability.PASSES_DEMAND not in capabilities
        ):
            raise AgoraError(
                f"group '{group.name}': share_demand: protocol {group.protocol.kind!r} does not "
                "pass demand on"
            )
        if Capability.PREEMPTS in group.capabilities:
            _check_preemption(arm, group, capabilities)
        watches = ProtocolCapability.WATCHES_CELL in capabilities
        spec, members = protocols.get(group.protocol.kind), arm.members_of(group.protocol.kind)
        if not spec.has_cell_side(members) and watches:
            raise AgoraError(
                f"protocol {group.protocol.kind!r}: {ProtocolCapability.WATCHES_CELL}: needs a "
                "participant beside the master (cell_side)"
            )
    if arm.quotas is not None:
        _check_quotas(arm)
    for kind in arm.protocol_kinds:
        spec, members = protocols.get(kind), arm.members_of(kind)
        spec.check(members, arm.partitions)
        spec.check_shared(members, arm.options_of(kind))
    tables_of(arm.protocol_kinds)


def _check_preemption(
    arm: ArmConfig, group: GroupConfig, capabilities: Set[ProtocolCapability]
) -> None:
    """Raise AgoraError if a group of schedulers that preempt cannot do so."""
    if arm.may_evict is not EvictionPolicy.LOWER_PRIORITY:
        raise AgoraError(
            f"group '{group.name}': a scheduler of kind {group.kind!r} preempts tasks of other "
            'schedulers: expected evictions = "lower_priority" in the arm'
        )
    if ProtocolCapability.SHOWS_RUNNING not in capabilities:
        raise AgoraError(
            f"group '{group.name}': a scheduler of kind {group.kind!r} preempts, and protocol "
            f"{group.protocol.kind!r} does not show it the running tasks"
        )


def _check_quotas(arm: ArmConfig) -> None:
    """Raise AgoraError if a group of schedulers cannot obey."""
    for group in arm.groups:
        if ProtocolCapability.OBEYS_QUOTAS not in group.protocol.capabilities:
            raise AgoraError(
                f"group '{group.name}': quotas: protocol {group.protocol.kind!r} with these "
                "options does not obey them"
            )
        if Capability.KEEPS_PENDING in group.capabilities:
            raise AgoraError(
                f"group '{group.name}': quotas: a scheduler of kind {group.kind!r} with these "
                "options keeps the tasks that wait, so it may place them when their quota group "
                "has lost its room"
            )
