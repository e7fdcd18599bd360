"""What a protocol is made of: how the schedulers of some groups get places on the cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from pydantic import BaseModel

from parsync.core.event import Event
from parsync.core.participant import Agent, CellSide, NodeSide
from parsync.core.quotas import NO_LIMITS, SchedulerLimits, TaskQuotas
from parsync.metrics.tables import Tables
from parsync.workload.workload import Workload
from schedulers.checked import CheckedScheduler
from schedulers.decision_clock import DecisionClock
from schedulers.entry_points import NoOptions as NoOptions  # a protocol names it from here
from schedulers.entry_points import parse_options, raised, unknown_member
from schedulers.interface import Capability, ContractBroken
from schedulers.unplaceable import UnplaceableUnits
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, PreferenceCatalog, TaskBatch
from shared_state.view import StaticCellState


class ProtocolCapability(StrEnum):
    """What a protocol needs of the runtimes: each is declared by the protocol, means one thing, and
    follows from no other."""

    # Its agents drive schedulers of the registry: every group names a kind. Without it, agents
    # place tasks by themselves, and a group names none.
    RUNS_SCHEDULERS = "runs_schedulers"

    # Its agents pass on what their schedulers were offered, and learn what others were
    # (schedulers.interface.Capability.SHARES_DEMAND). Without it, schedulers share no demand.
    PASSES_DEMAND = "passes_demand"

    # Its agents obey quotas: they answer QuotaRequest, and hold the tasks of a quota group back
    # while these would exceed their last QuotaGrant (agent_quota.py). Arms with quotas have no
    # other protocols.
    OBEYS_QUOTAS = "obeys_quotas"

    # Its agents know which tasks of lower priority run (PlanContext.running). Without it,
    # schedulers cannot preempt.
    SHOWS_RUNNING = "shows_running"

    # The master tells its agents whenever their tasks finish (TasksEnded). Agents of schedulers
    # that want to know of ends are told without it, too; see SYNCHRONISES.
    WANTS_ENDS = "wants_ends"

    # Its agents plan on what the master told them when they last synchronised (SyncRequest). So an
    # agent whose scheduler wants to know of ends is told of them then, all at once, and not
    # whenever tasks finish.
    SYNCHRONISES = "synchronises"

    # With a group's options, the tasks of a gang are committed together or not at all. Without it,
    # gangs may be torn; a run that has gangs says so.
    COMMITS_GANGS_WHOLE = "commits_gangs_whole"

    # The master notifies the protocol's participant beside it of every start, end and machine
    # change (TasksStarted, AllocationsEnded, MachinesChanged), and of holds that transactions or
    # lost machines end (HoldsEnded), at the same instant.
    WATCHES_CELL = "watches_cell"


NO_CAPABILITIES: Set[ProtocolCapability] = frozenset()


@dataclass(frozen=True, slots=True)
class Member:
    """A group of agents [first_agent, first_agent + count) that use the protocol.

    Args:
        name: The group's name.
        options: The protocol's options, validated.
        capabilities: Of the group's kind of scheduler; none if the protocol runs no schedulers.
    """

    name: str
    first_agent: int
    count: int
    options: Any
    capabilities: Set[Capability]


@dataclass(frozen=True, slots=True)
class Environment:
    """What every part of a protocol is given. Arrays are read-only.

    Args:
        seed: The root of the arm's random streams.
        members: The arm's groups that use this protocol, in their order.
        cell, partitioning, catalog: The cell and the preferences, which never change.
        table: Every task (row = id), without true durations.
        cell_side: The address of the protocol's participant beside the master, if it has one.
        sample_us: The time between two points of the time series.
        options: Those of the protocol as a whole (ProtocolSpec.shared_options), validated.
        quotas: The quota groups of the tasks, which agents have to obey
            (ProtocolCapability.OBEYS_QUOTAS); None if the arm has none.
    """

    seed: int
    members: tuple[Member, ...]
    cell: CellSpec
    partitioning: Partitioning
    catalog: PreferenceCatalog
    table: TaskBatch
    cell_side: int
    sample_us: int
    options: Any = field(default_factory=NoOptions)
    quotas: TaskQuotas | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnvironment(Environment):
    """The environment of queues at the machines: they are part of the worker pool, which knows the
    true run times.

    Args:
        workload: That of the run. A protocol whose agents learn its run times is an oracle, and has
            to say so.
    """

    workload: Workload


@dataclass(frozen=True, slots=True)
class AgentEnvironment:
    """What an agent is given besides.

    Args:
        index: Its address.
        name: E.g. latency_first-3.
        member: Its group.
        scheduler: Its scheduler; None if the protocol runs no schedulers.
        clock: What its decisions cost.
        static_state: The constant part of views, shared by the agents in one process; None: the
            agent makes one.
        unplaceable: The units that it can never place; None: it can place all.
    """

    shared: Environment
    index: int
    name: str
    member: Member
    scheduler: CheckedScheduler | None
    clock: DecisionClock
    static_state: StaticCellState | None
    unplaceable: UnplaceableUnits | None = None


@dataclass(frozen=True, slots=True)
class GroupReach:
    """What a scheduler of a group may use, by the group's options. What it could place only beyond
    that is sorted out (parsync.workload.placeability).

    Args:
        only_partitions: The partitions that it may use; None: all.
        partitions_at_once: How many partitions one decision may use; None: all.
        limits: What it limits itself to.
    """

    only_partitions: tuple[int, ...] | None = None
    partitions_at_once: int | None = None
    limits: SchedulerLimits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    """A protocol.

    Args:
        kind: Its name in configurations.
        options: A pydantic model that forbids unknown fields: what a group may choose.
        make_agent: Creates an agent of a group.
        cell_side: Creates the participant that lives beside the master, such as an allocator; it
            may read the cell and must not change it. None: the protocol has no such participant.
        uses_cell_side: Whether an arm with these groups has that participant.
        node_side: Creates the queues at the machines, which are part of the worker pool (see
            BaseNodeSide in base.py). None: it has none.
        events: The classes of the protocol's own events, numbered within it.
        capabilities: What its groups need of the runtimes: a set, or a function that returns one
            for the options of a group. To be asked for by capabilities_of().
        check: Raises AgoraError if groups with these options cannot share an arm.
        check_shared: Raises AgoraError if the options of the protocol as a whole do not go with
            those of the groups.
        tables: The schemas of the protocol's own tables of measurements, by name. Its participants
            add rows by the effect Record; the tables are then kept, written and described as those
            of every run (parsync/metrics/tables.py) are.
        shared_options: A pydantic model that forbids unknown fields: what an arm may choose for the
            protocol as a whole, such as an allocator's interval.
        reach: What a scheduler of a group with these options may use.
        for_workload: Returns the options of a group with those filled in that depend on the
            workload where they are unset.
        describe: What summaries, reports and estimates say of a group with these options: texts by
            label. `sync` is how its schedulers synchronise (without it: the protocol's name),
            `strategy` how they rank partitions, `gangs` why they may tear gangs.
        gap_us: The synchronisation gap of a group with these options: after what time a scheduler
            that only waits has learned anew how full the cell is. None: the protocol has no such
            time. Phases are not shorter, and estimates of how long a run takes count by it.
        gap_options: Returns, for the options of a group and a gap in us, those options by name that
            give it this gap, so that a frontier can set it. None: it cannot be set.
    """

    kind: str
    options: type[BaseModel]
    make_agent: Callable[[AgentEnvironment], Agent]
    cell_side: Callable[[Environment, Cell], CellSide] | None = None
    uses_cell_side: Callable[[tuple[Member, ...]], bool] = lambda members: True
    node_side: Callable[[NodeEnvironment], NodeSide] | None = None
    events: tuple[type[Event], ...] = ()
    capabilities: Callable[[Any], Set[ProtocolCapability]] | Set[ProtocolCapability] = (
        NO_CAPABILITIES
    )
    check: Callable[[tuple[Member, ...], int], None] = lambda members, partitions: None
    check_shared: Callable[[tuple[Member, ...], Any], None] = lambda members, options: None
    tables: Tables = field(default_factory=dict)
    shared_options: type[BaseModel] = NoOptions
    reach: Callable[[Any], GroupReach] = lambda options: GroupReach()
    for_workload: Callable[[Any, Workload], Any] = lambda options, workload: options
    describe: Callable[[Any], Mapping[str, str]] = lambda options: {}
    gap_us: Callable[[Any], int | None] = lambda options: None
    gap_options: Callable[[Any, int], Mapping[str, Any]] | None = None

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """A group's options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("protocol", self.kind, self.options, options)

    def parse_shared_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options of the protocol as a whole, validated. AgoraError naming the first that is
        unknown or wrong."""
        return parse_options("protocol", self.kind, self.shared_options, options, "shared option")

    def options_for(self, options: BaseModel, workload: Workload) -> BaseModel:
        """A group's options with this workload, none of them unset that depends on it.

        Raises:
            AgoraError: The protocol's function raises, or returns something else.
        """
        found: BaseModel = self._asked(
            "for_workload",
            self.options.__name__,
            self.options,
            self.for_workload,
            options,
            workload,
        )
        return found

    def description_of(self, options: Any) -> Mapping[str, str]:
        """What is said of a group with these options. AgoraError if the protocol's function raises,
        or returns no dict of strings."""
        expected = "a dict of strings"
        said: dict[str, str] = self._asked("describe", expected, dict, self.describe, options)
        if not all(isinstance(text, str) for text in (*said, *said.values())):
            raise AgoraError(f"protocol {self.kind!r}: describe: expected {expected}, got {said!r}")
        return said

    def gap_of(self, options: Any) -> int | None:
        """The synchronisation gap of a group with these options in us, None if it has none.
        AgoraError if the protocol's function raises, or returns no time."""
        expected = "a whole number of us or None"
        found: int | None = self._asked("gap_us", expected, int | None, self.gap_us, options)
        if found is not None and found < 0:
            raise AgoraError(f"protocol {self.kind!r}: gap_us: expected 0 or more, got {found}")
        return found

    def with_gap(self, options: Any, gap_us: int) -> BaseModel:
        """A group's options with another synchronisation gap. AgoraError if they cannot have it, or
        the protocol's function raises or returns no options."""
        if self.gap_options is None:
            raise AgoraError(
                f"protocol {self.kind!r}: its gap cannot be set, because it declares no gap_options"
            )
        changes = self._asked(
            "gap_options", "a dict of options", dict, self.gap_options, options, gap_us
        )
        return self.parse_options({**options.model_dump(), **changes})

    def has_cell_side(self, members: tuple[Member, ...]) -> bool:
        """Whether an arm with these groups has the protocol's participant beside the master.

        Raises:
            AgoraError: The protocol's function raises, or returns no bool.
        """
        if self.cell_side is None:
            return False
        uses: bool = self._asked("uses_cell_side", "a bool", bool, self.uses_cell_side, members)
        return uses

    def reach_of(self, options: Any) -> GroupReach:
        """What a scheduler of a group with these options may use. AgoraError if the protocol's
        function raises, or returns no GroupReach."""
        found: GroupReach = self._asked("reach", "a GroupReach", GroupReach, self.reach, options)
        return found

    def capabilities_of(self, options: Any) -> Set[ProtocolCapability]:
        """What a group with these options needs of the runtimes.

        Raises:
            AgoraError: A capability is unknown, or the protocol's function raises or returns no
                set.
        """
        given: object = self.capabilities
        if callable(given):
            given = self._asked("capabilities", "a set", object, given, options)
        if wrong := wrong_capabilities(given):
            raise AgoraError(f"protocol {self.kind!r}: {wrong}")
        return cast(Set[ProtocolCapability], given)

    def _asked(
        self, name: str, expected: str, kind: Any, function: Callable[..., Any], *given: Any
    ) -> Any:
        """What one of the protocol's functions returns. AgoraError if it raises, or returns
        something else than it should."""
        try:
            found: object = function(*given)
        except Exception as error:  # whatever somebody else's code raises
            rule = f"{name} raised {raised(error, function)}"
            raise AgoraError(f"protocol {self.kind!r}: {rule}") from error
        if not isinstance(found, kind):
            rule = f"{name}: expected {expected}, got a {type(found).__name__}"
            raise AgoraError(f"protocol {self.kind!r}: {rule}")
        return found


def wrong_capabilities(given: object) -> str:
    """What is wrong with the capabilities that a protocol declares, "" if nothing."""
    if not isinstance(given, Set):
        return f"capabilities: expected a set of ProtocolCapability, got a {type(given).__name__}"
    return unknown_member("capability", given, ProtocolCapability)


class ProtocolBroken(ContractBroken):
    """A participant of a protocol broke its contract. Its arm ends; the measurements up to then are
    kept.

    Args:
        protocol: Its kind.
        participant: Its name, e.g. "agent lottery-3".
        when: What it was doing, e.g. "handling Drawn".
        rule: What it did.
    """

    def __init__(self, protocol: str, participant: str, when: str, rule: str) -> None:
        super().__init__(participant, protocol, 0, rule)
        self.args = (protocol, participant, when, rule)  # all of them, so that it can be pickled
        self.when = when

    def __str__(self) -> str:
        return f"protocol '{self.kind}', {self.scheduler}, {self.when}: {self.rule}"
