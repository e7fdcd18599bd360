"""Puts the participants of one arm together: the same cores for both runtimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from parsync.core.addresses import ARRIVALS, CELL_SIDE, COORDINATOR, MASTER, WORKERS
from parsync.core.arrivals import ArrivalSource, Route, route_jobs
from parsync.core.codec import Codec
from parsync.core.coordinator import Coordinator, QuotaRounds
from parsync.core.master import EndsNotice, MasterCore
from parsync.core.participant import Agent, CellSide, NodeSide
from parsync.core.quotas import Capacity, TaskQuotas
from parsync.core.workers import WorkerPool
from parsync.metrics.tables import Tables
from parsync.protocols import registry as protocols
from parsync.protocols.registry import tables_of
from parsync.protocols.spec import (
    AgentEnvironment,
    Environment,
    GroupReach,
    NodeEnvironment,
    ProtocolCapability,
)
from parsync.runtime.faults import CheckedNodeSide, ProtocolPart, made
from parsync.spec.arm import GroupConfig, SeededArm
from parsync.workload.placeability import Reach, unplaceable_units
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.interface import Capability, Scheduler, SchedulerEnvironment
from schedulers.registry import SchedulerSpec
from schedulers.unplaceable import UnplaceableUnits
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import Int32, TaskClass
from shared_state.transaction import EvictionPolicy
from shared_state.view import StaticCellState

# (its name, a new scheduler) -> what its agent is given in its place: the same scheduler, or one
# that hands all calls on to it and keeps a record of them.
SchedulerWatch = Callable[[str, Scheduler], Scheduler]


@dataclass(frozen=True)
class Assembly:
    """Builds any participant of an arm; each is built where it lives (an actor builds only its
    own)."""

    arm: SeededArm
    workload: Workload
    partitioning: Partitioning
    watch: SchedulerWatch | None = None

    @staticmethod
    def of(arm: SeededArm, workload: Workload, watch: SchedulerWatch | None = None) -> Assembly:
        """The assembly of an arm and its workload, whose options are settled with it."""
        partitioning = Partitioning.by_topology(workload.cell, arm.partitions)
        workload = replace(workload, tasks=workload.tasks.contiguous())
        return Assembly(arm.for_workload(workload), workload, partitioning, watch)

    @cached_property
    def codec(self) -> Codec:
        """Encodes the events of the core and of the arm's protocols."""
        return Codec(event for kind in self.protocols for event in protocols.get(kind).events)

    @cached_property
    def tables(self) -> Tables:
        """The tables of measurements: those of every run and those of the arm's protocols."""
        return tables_of(self.protocols)

    @cached_property
    def parts(self) -> Mapping[int, ProtocolPart]:
        """The participants, by address, of protocols that users brought."""
        parts = {
            CELL_SIDE - place: ProtocolPart(kind, "participant beside the master")
            for place, kind in enumerate(self.protocols)
        }
        for agent in range(self.arm.agents):
            kind = self.arm.group_of(agent).protocol.kind
            parts[agent] = ProtocolPart(kind, f"agent '{self.arm.agent_name(agent)}'")
        return {
            address: part
            for address, part in parts.items()
            if part.protocol not in protocols.BUILT_IN
        }

    def static_state(self) -> StaticCellState:
        """What the views of agents in one process share."""
        return StaticCellState(self.workload.cell, self.partitioning)

    def agent(self, index: int, static_state: StaticCellState | None = None) -> Agent:
        """The agent of an address, with its scheduler. Raises ContractBroken if that cannot be
        made."""
        group = self.arm.group_of(index)
        environment = self._environment(group.protocol.kind)
        member = next(
            member
            for member in environment.members
            if member.first_agent <= index < member.first_agent + member.count
        )
        of_agent = AgentEnvironment(
            environment,
            index,
            self.arm.agent_name(index),
            member,
            None if group.kind is None else self.scheduler(index),
            self.arm.clock(group),
            static_state,
            self.unplaceable(index),
        )
        make = protocols.get(group.protocol.kind).make_agent
        return made(self.parts.get(index), lambda: make(of_agent), make)

    def scheduler(self, index: int) -> CheckedScheduler:
        """The scheduler of an agent, by itself. Raises ContractBroken if it cannot be made."""
        workload, group = self.workload, self.arm.group_of(index)
        assert group.kind is not None, "the group's protocol runs schedulers"
        spec = registry.get(group.kind)
        environment = SchedulerEnvironment(
            self.arm.agent_name(index),
            workload.cell,
            self.partitioning.offsets,
            workload.catalog,
            workload.mapreduce,
            workload.end_us,
        )
        options = spec.parse_options(group.options)
        if self.watch is not None:
            spec = _watched(spec, self.watch)
        return CheckedScheduler.build(
            spec, options, environment, workload.tasks, self.unplaceable(index)
        )

    def unplaceable(self, agent: int) -> UnplaceableUnits | None:
        """The units of the workload that an agent could never place if it were given them; None if
        it could place all."""
        group, workload = self.arm.group_of(agent), self.workload
        spec = protocols.get(group.protocol.kind)
        reach = spec.reach_of(group.protocol.options)
        places_gangs = ProtocolCapability.RUNS_SCHEDULERS in group.protocol.capabilities
        key = (reach, places_gangs)
        if key not in self._unplaceable:
            holds = None
            if reach.limits.hold_permille is not None:
                holds = reach.limits.amount(workload.cell)
            quota_max = None
            if self.arm.quotas is not None:
                quota_max = self.arm.quotas.largest(Capacity.of(workload))
            self._unplaceable[key] = unplaceable_units(
                workload,
                Reach(
                    self.partitioning.of_each(),
                    reach.only_partitions,
                    reach.partitions_at_once,
                    holds,
                    None if self.quotas is None else self.quotas.of_task,
                    quota_max,
                    places_gangs,
                ),
            )
        return self._unplaceable[key]

    @cached_property
    def _unplaceable(self) -> dict[tuple[GroupReach, bool], UnplaceableUnits | None]:
        """By what the agents of a group may use, and whether they place gangs."""
        return {}

    def master(self) -> MasterCore:
        workload = self.workload
        ends_notice = [self._ends_notice(self.arm.group_of(i)) for i in range(self.arm.agents)]
        _, initial_owner = self.owners()
        return MasterCore(
            cell=Cell(workload.cell, self.partitioning, self.eviction_priority),
            table=workload.tasks,
            initial_task=workload.initial.task,
            initial_machine=workload.initial.machine,
            initial_owner=initial_owner,
            ends_notice=ends_notice,
            sample_us=self.arm.sample_us,
            watchers=self._watchers(),
            quotas=self._observed_quotas,
        )

    @property
    def eviction_priority(self) -> Int32 | None:
        """The priorities that evictions go by, as Cell takes them."""
        by_priority = self.arm.may_evict is EvictionPolicy.LOWER_PRIORITY
        return self.workload.tasks.priority if by_priority else None

    def _watchers(self) -> tuple[int, ...]:
        """The addresses that the master notifies of every start, end and machine change."""
        watching = dict.fromkeys(
            CELL_SIDE - self.protocols.index(group.protocol.kind)
            for group in self.arm.groups
            if ProtocolCapability.WATCHES_CELL in group.protocol.capabilities
        )
        return (*((WORKERS,) if self.has_node_sides else ()), *watching)

    @cached_property
    def has_node_sides(self) -> bool:
        """Whether a protocol of the arm has queues at the machines."""
        return any(protocols.get(kind).node_side is not None for kind in self.protocols)

    def cell_side(self, cell: Cell) -> dict[int, CellSide]:
        """The participants of the arm's protocols that live beside the master, by address.

        Args:
            cell: The master's cell, which they may read and must not change.
        """
        participants: dict[int, CellSide] = {}
        for kind in self.protocols:
            environment = self._environment(kind)
            make = protocols.get(kind).cell_side
            if make is not None and self._has_cell_side(kind):
                address = environment.cell_side
                call = partial(make, environment, cell)
                participants[address] = made(self.parts.get(address), call, make)
        return participants

    def _has_cell_side(self, kind: str) -> bool:
        """Whether a protocol of the arm has a participant beside the master."""
        return protocols.get(kind).has_cell_side(self.arm.members_of(kind))

    @cached_property
    def addresses(self) -> frozenset[int]:
        """The addresses of all participants."""
        cell_side = [
            CELL_SIDE - place
            for place, kind in enumerate(self.protocols)
            if self._has_cell_side(kind)
        ]
        others = (MASTER, WORKERS, COORDINATOR, ARRIVALS)
        return frozenset((*range(self.arm.agents), *others, *cell_side))

    def _ends_notice(self, group: GroupConfig) -> EndsNotice:
        protocol = group.protocol.capabilities
        if self.arm.quotas is not None or ProtocolCapability.WANTS_ENDS in protocol:
            return EndsNotice.AT_ONCE  # what ends makes room
        if Capability.WANTS_ENDS not in group.capabilities:
            return EndsNotice.NEVER
        synchronises = ProtocolCapability.SYNCHRONISES in protocol
        return EndsNotice.BEFORE_SYNC if synchronises else EndsNotice.AT_ONCE

    @cached_property
    def quotas(self) -> TaskQuotas | None:
        """The quota groups of the tasks that agents obey; None if the arm has no quotas. AgoraError
        as check_quotas."""
        quotas = self.arm.quotas
        return None if quotas is None else quotas.of_tasks(self.workload.quotas)

    @property
    def _observed_quotas(self) -> TaskQuotas | None:
        """The quota groups whose use is recorded: also of an arm that does not obey quotas."""
        if self.quotas is None and self.workload.quotas is not None:
            return TaskQuotas(len(self.workload.quotas.names), self.workload.quotas.group)
        return self.quotas

    def check_quotas(self) -> None:
        """Raise AgoraError if the workload has quota groups that the arm does not know."""
        if self.arm.quotas is not None:
            groups = self.workload.quotas
            self.arm.quotas.check_names(() if groups is None else groups.names)

    def check_mapreduce(self) -> None:
        """Raise AgoraError if MapReduce jobs may come to schedulers that would start their reduces
        before their maps have ended."""
        if self.workload.mapreduce is None:
            return
        for group in self.arm.groups:
            takes = group.takes in (None, TaskClass.MAPREDUCE)
            if takes and Capability.ORDERS_MAPREDUCE not in group.capabilities:
                raise AgoraError(
                    f"group '{group.name}': a scheduler of kind {group.kind!r} cannot take "
                    "MapReduce jobs: expected kind 'mapreduce', or another task_class"
                )

    @cached_property
    def protocols(self) -> tuple[str, ...]:
        """The protocols of the arm, in the order of its groups."""
        return self.arm.protocol_kinds

    def _environment(self, kind: str) -> Environment:
        return Environment(**self._environment_fields(kind))

    def _environment_fields(self, kind: str) -> dict[str, Any]:
        workload = self.workload
        return {
            "seed": self.arm.seed,
            "members": self.arm.members_of(kind),
            "cell": workload.cell,
            "partitioning": self.partitioning,
            "catalog": workload.catalog,
            "table": workload.tasks,
            "cell_side": CELL_SIDE - self.protocols.index(kind),
            "sample_us": self.arm.sample_us,
            "options": self.arm.options_of(kind),
            "quotas": self.quotas,
        }

    def workers(self) -> WorkerPool:
        workload = self.workload
        node_sides = {
            kind: self._node_side(kind, make)
            for kind in self.protocols
            if (make := protocols.get(kind).node_side) is not None
        }
        return WorkerPool(
            workload.cell,
            workload.catalog,
            workload.tasks.preference,
            workload.duration_us,
            workload.preferred_permille,
            self.arm.heartbeat_us,
            node_sides,
            [self.arm.group_of(agent).protocol.kind for agent in range(self.arm.agents)],
        )

    def _node_side(self, kind: str, make: Callable[[NodeEnvironment], NodeSide]) -> NodeSide:
        """The queues at the machines of a protocol."""
        environment = NodeEnvironment(**self._environment_fields(kind), workload=self.workload)
        part = None if kind in protocols.BUILT_IN else ProtocolPart(kind, "queues at the machines")
        node_side = made(part, partial(make, environment), make)
        return node_side if part is None else CheckedNodeSide(node_side, part)

    def arrivals(self) -> ArrivalSource:
        workload, events = self.workload, self.workload.machine_events
        agent_of_batch, _ = self.owners()
        return ArrivalSource(
            workload.tasks,
            workload.arrival_us,
            workload.arrival_offsets,
            workload.arrival_rows,
            agent_of_batch,
            events.at_us,
            events.machine,
            events.up,
        )

    def coordinator(self) -> Coordinator:
        starts = tuple(phase.start_us for phase in self.workload.phases)
        if self.arm.quotas is None:
            return Coordinator(starts)
        capacity = Capacity.of(self.workload)
        return Coordinator(starts, QuotaRounds(self.arm.quotas, capacity, self.arm.agents))

    def routes(self) -> tuple[Route, ...]:
        routes: list[Route] = []
        first = 0
        for group, share in zip(self.arm.groups, self.arm.shares_permille(), strict=True):
            routes.append(Route(group.name, first, group.count, share, group.takes))
            first += group.count
        return tuple(routes)

    def owners(self) -> tuple[Int32, Int32]:
        """The agent of each arrival batch, int32[B], and of each initially running task, int32[k]:
        one agent per job."""
        workload = self.workload
        tasks = workload.tasks
        first_rows = workload.arrival_rows[workload.arrival_offsets[:-1]]
        rows = np.concatenate([workload.initial.task, first_rows])
        owner = route_jobs(self.routes(), tasks.job[rows], tasks.task_class[rows], self.arm.seed)
        running = len(workload.initial.task)
        return owner[running:], owner[:running]

    def protocol_of_tasks(self) -> Int32:
        """The place in `protocols` of the one under which each task is scheduled, int32[tasks]."""
        workload = self.workload
        kinds = [group.protocol.kind for group in self.arm.groups for _ in range(group.count)]
        of_agent = np.array([self.protocols.index(kind) for kind in kinds], np.int32)
        of_batch, of_running = self.owners()
        found = np.zeros(len(workload.tasks), np.int32)
        sizes = np.diff(workload.arrival_offsets)
        found[workload.arrival_rows] = np.repeat(of_agent[of_batch], sizes)
        found[workload.initial.task] = of_agent[of_running]
        return found


def _watched(spec: SchedulerSpec, watch: SchedulerWatch) -> SchedulerSpec:
    """The kind, with schedulers that are watched."""

    def build(options: Any, environment: SchedulerEnvironment) -> Scheduler:
        return watch(environment.name, spec.build(options, environment))

    return replace(spec, build=build)
