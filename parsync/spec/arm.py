"""The competitors of a run: schedulers in groups, how they decide and how they synchronise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from parsync.spec.decision_times import DecisionTime, ModelledTime
from experiments.price_settings import prices_of_groups
from parsync.spec.quotas import QuotaConfig
from parsync.spec.strict_model import Name, Strict
from parsync.protocols import registry as protocols
from parsync.protocols.capability import ProtocolCapability
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.pending_queue import LoserPolicy
from parsync.runtime.arm_spec import ArmSpec, GroupSpec, ProtocolChoice
from parsync.spec.protocol_checks import check_protocols
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.capability import Capability
from schedulers.decision_time import DecisionClock, Measured
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import EvictionPolicy

ENTIRE = 1000  # shares are kept in permille


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
    protocol: dict[str, Any] = Field(
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

    @field_validator("protocol", mode="before")
    @classmethod
    def _a_table(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError('expected a table, protocol = {kind = "optimistic", ...}')
        return given

    @field_validator("protocol")
    @classmethod
    def _with_every_option(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The protocol's options, defaults filled in: a run's configuration says all of them."""
        return _every_option(_protocol(given))

    @model_validator(mode="after")
    def _known(self) -> Self:
        choice = self.protocol_choice()
        try:
            capabilities = protocols.get(choice.kind).capabilities_of(choice.options)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        runs_schedulers = ProtocolCapability.RUNS_SCHEDULERS in capabilities
        if runs_schedulers and self.kind is None:
            raise ValueError(f"kind: missing; protocol {choice.kind!r} runs schedulers")
        if not runs_schedulers and self.kind is not None:
            raise ValueError(f"kind: expected none, as protocol {choice.kind!r} runs no schedulers")
        if not runs_schedulers and self.decision is None:
            raise ValueError(f"decision: missing; protocol {choice.kind!r} has no default")
        if self.kind is not None:
            try:
                spec = registry.get(self.kind)
                spec = spec.with_options(spec.parse_options(self.options))
            except AgoraError as error:
                raise ValueError(str(error)) from error
            if (
                isinstance(choice.options, OptimisticOptions)
                and choice.options.losers is LoserPolicy.REQUEUE
                and Capability.KEEPS_PENDING in spec.capabilities
            ):
                raise ValueError(
                    "protocol.losers: expected 'block', got 'requeue': a scheduler of kind "
                    f"{self.kind!r} with these options keeps the tasks that wait, rejected ones "
                    "among them, so the agent cannot make them pause"
                )
        return self

    def protocol_choice(self) -> ProtocolChoice:
        """The protocol with its validated options."""
        return _protocol(self.protocol)

    def for_workload(self, workload: Workload) -> GroupConfig:
        """The group with the options of its protocol that depend on the workload filled in."""
        choice = self.protocol_choice().for_workload(workload)
        return self.model_copy(update={"protocol": _every_option(choice)})


def _every_option(choice: ProtocolChoice) -> dict[str, Any]:
    """A protocol as a group's table has it."""
    return {"kind": choice.kind, **choice.options.model_dump(exclude_none=True)}


def _protocol(given: dict[str, Any]) -> ProtocolChoice:
    options = dict(given)
    kind = options.pop("kind", None)
    if not isinstance(kind, str):
        raise ValueError(f"kind: expected one of {', '.join(protocols.kinds())}")
    renamed = [name for name in options if _OPTIONS_NOW.get(name, name) != name]
    if kind == "optimistic" and renamed:
        raise ValueError(f"protocol 'optimistic': renamed options: {_now(renamed)}")
    try:
        return ProtocolChoice(kind, protocols.get(kind).parse_options(options))
    except AgoraError as error:
        raise ValueError(str(error)) from error


class ArmConfig(Strict):
    """One competitor: its groups of schedulers, and the partitions of the cell."""

    name: Name
    partitions: int = Field(ge=1)
    groups: tuple[GroupConfig, ...] = Field(min_length=1, strict=False)
    protocols: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        validate_default=True,
        description="options of a protocol as a whole, by its kind: [arms.protocols.lottery]",
    )
    quotas: QuotaConfig | None = Field(
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

    @field_validator("protocols")
    @classmethod
    def _with_every_option(
        cls, given: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        """The options of every protocol of the arm that has some, defaults filled in."""
        if "groups" not in info.data:  # they are wrong themselves
            return given
        used = dict.fromkeys(group.protocol["kind"] for group in info.data["groups"])
        every: dict[str, dict[str, Any]] = {}
        try:
            for kind in (*given, *used):
                options = protocols.get(kind).parse_shared_options(given.get(kind, {}))
                if kind not in used:
                    raise ValueError(f"no group of the arm uses protocol {kind!r}")
                every[kind] = options.model_dump(exclude_none=True)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return {kind: options for kind, options in every.items() if options}

    @model_serializer(mode="wrap")
    def _plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without options of protocols as a whole, quotas, and another policy of evictions, where
        there are none."""
        plain: dict[str, Any] = handler(self)
        for part in ("protocols", "quotas"):
            if not plain.get(part):
                plain.pop(part, None)
        if self.evictions == "own":
            plain.pop("evictions", None)
        return plain

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self.shares_permille()
        try:
            check_protocols(self.spec(seed=0, heartbeat_us=1, sample_us=1, live=False))
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return self

    def for_workload(self, workload: Workload) -> ArmConfig:
        """The arm with the options of its protocols that depend on the workload filled in."""
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
    def prices(self) -> str:
        """The slot prices of its schedulers, in words; "" if none uses any."""
        return prices_of_groups([group.model_dump() for group in self.groups])

    @property
    def protocol_kinds(self) -> tuple[str, ...]:
        """The protocols of its groups, each once."""
        return tuple(dict.fromkeys(group.protocol["kind"] for group in self.groups))

    @property
    def gap_s(self) -> float:
        """The longest synchronisation gap of its groups in seconds; 0 if none has one."""
        gaps: list[float] = [group.protocol.get("gap_s", 0.0) for group in self.groups]
        return max(gaps)

    @property
    def sync(self) -> str:
        """How its groups synchronise: a sync policy, or a protocol that has none."""
        texts: dict[str, str] = {
            group.name: group.protocol.get("sync", group.protocol["kind"]) for group in self.groups
        }
        if len(set(texts.values())) == 1:
            return texts[self.groups[0].name]
        return ", ".join(f"{name}: {text}" for name, text in texts.items())

    @property
    def strategy(self) -> str:
        """The strategies of its groups, each once."""
        strategies = (group.protocol.get("strategy", "") for group in self.groups)
        return ", ".join(filter(None, dict.fromkeys(strategies)))

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

    def spec(self, seed: int, heartbeat_us: int, sample_us: int, live: bool) -> ArmSpec:
        """What the runtimes run."""
        groups = tuple(
            GroupSpec(
                name=group.name,
                kind=group.kind,
                count=group.count,
                options=group.options,
                protocol=group.protocol_choice(),
                share_permille=share,
                task_class=None
                if group.task_class is None
                else TaskClass[group.task_class.upper()],
                clock=decision_clock(group, self.partitions, live),
            )
            for group, share in zip(self.groups, self.shares_permille(), strict=True)
        )
        shared = {
            kind: protocols.get(kind).parse_shared_options(options)
            for kind, options in self.protocols.items()
        }
        quotas = None if self.quotas is None else self.quotas.spec()
        return ArmSpec(
            self.name,
            groups,
            self.partitions,
            heartbeat_us,
            sample_us,
            seed,
            shared,
            quotas,
            EvictionPolicy[self.evictions.upper()],
        )


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
