"""What an arm of an experiment is: its groups of schedulers, their protocols and its rules."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from parsync.core.quotas import QuotaSpec
from parsync.protocols import registry as protocols
from parsync.protocols.capability import ProtocolCapability
from parsync.protocols.spec import Member
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.capability import Capability
from schedulers.decision_time import DecisionClock
from shared_state.tasks import TaskClass
from shared_state.transaction import EvictionPolicy


@dataclass(frozen=True, slots=True)
class ProtocolChoice:
    """A protocol by name, with the validated options of a group (or of an agent's environment)."""

    kind: str
    options: BaseModel

    def for_workload(self, workload: Workload) -> ProtocolChoice:
        """The same with the options that depend on the workload filled in. AgoraError if the code
        of a user's protocol fails."""
        spec = protocols.get(self.kind)
        return ProtocolChoice(self.kind, spec.options_for(self.options, workload))


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`count` agents of one protocol and one kind of scheduler.

    Args:
        kind: The scheduler's; None if the protocol runs no schedulers.
        options: Of the scheduler's kind.
        share_permille: The group's share of the jobs of task_class (None: of every class).
        clock: What decisions cost.
    """

    name: str
    kind: str | None
    count: int
    options: Mapping[str, Any]
    protocol: ProtocolChoice
    share_permille: int
    task_class: TaskClass | None
    clock: DecisionClock

    @property
    def capabilities(self) -> Set[Capability]:
        """The capabilities of its kind of scheduler with its options; none if it has no
        scheduler."""
        if self.kind is None:
            return frozenset()
        spec = registry.get(self.kind)
        return spec.with_options(spec.parse_options(self.options)).capabilities


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One competitor of an experiment: its groups of schedulers, the partitions of the cell, and
    the seed of their random streams.

    Args:
        shared_options: Of its protocols as a whole, validated, by protocol. A protocol that is not
            there has its defaults.
        quotas: The quota groups that its schedulers obey; None: they know of none.
        evictions: Whose tasks its schedulers may end.
    """

    name: str
    groups: tuple[GroupSpec, ...]
    partitions: int
    heartbeat_us: int
    sample_us: int
    seed: int
    shared_options: Mapping[str, BaseModel] = field(default_factory=dict)
    quotas: QuotaSpec | None = None
    evictions: EvictionPolicy = EvictionPolicy.OWN

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols of its groups, each once, in their order."""
        return tuple(dict.fromkeys(group.protocol.kind for group in self.groups))

    def options_of(self, kind: str) -> BaseModel:
        """The options of a protocol as a whole. AgoraError if it has no defaults for them."""
        chosen = self.shared_options.get(kind)
        return protocols.get(kind).parse_shared_options({}) if chosen is None else chosen

    def for_workload(self, workload: Workload) -> ArmSpec:
        """The arm with its groups' options that depend on the workload filled in. AgoraError if
        the code of a user's protocol fails."""
        groups = tuple(
            replace(group, protocol=group.protocol.for_workload(workload)) for group in self.groups
        )
        return replace(self, groups=groups)

    @property
    def agents(self) -> int:
        return sum(group.count for group in self.groups)

    def group_of(self, agent: int) -> GroupSpec:
        for group in self.groups:
            if agent < group.count:
                return group
            agent -= group.count
        raise IndexError("no such agent")

    def agent_name(self, agent: int) -> str:
        """E.g. latency_first-3: the group's name and the agent's place in it."""
        place = agent
        for group in self.groups:
            if place < group.count:
                return f"{group.name}-{place}"
            place -= group.count
        raise IndexError("no such agent")


def members_of(arm: ArmSpec, kind: str) -> tuple[Member, ...]:
    """The groups of an arm that use a protocol."""
    members: list[Member] = []
    first = 0
    for group in arm.groups:
        if group.protocol.kind == kind:
            options = group.protocol.options
            members.append(Member(group.name, first, group.count, options, group.capabilities))
        first += group.count
    return tuple(members)


def capabilities_of(group: GroupSpec) -> Set[ProtocolCapability]:
    """The capabilities of a group's protocol, with its options."""
    return protocols.get(group.protocol.kind).capabilities_of(group.protocol.options)
