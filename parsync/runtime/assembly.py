"""Puts the participants of one arm together: the same cores for both runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parsync.core.arrivals import ArrivalSource
from parsync.core.codec import Codec
from parsync.core.coordinator import Coordinator
from parsync.core.master import MasterCore
from parsync.core.routing import Route, route_jobs
from parsync.core.workers import WorkerPool
from parsync.protocols.optimistic import events as optimistic_events
from parsync.protocols.optimistic.agent import AgentPolicy, SchedulerAgent
from parsync.protocols.optimistic.choices import FreedVisibility
from parsync.protocols.optimistic.strategies import make_strategy
from parsync.protocols.optimistic.sync.policies import make_sync_policy
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.capability import Capability
from schedulers.checked import CheckedScheduler
from schedulers.decision_time import DecisionClock
from schedulers.interface import SchedulerEnvironment
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import Int32, TaskClass
from shared_state.view import Terrain


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`count` agents of one scheduler kind. strategy: a name of STRATEGIES; tau_us: adaptive's
    threshold."""

    name: str
    kind: str
    count: int
    options: Mapping[str, Any]
    strategy: str
    tau_us: int
    share_permille: int
    task_class: TaskClass | None
    clock: DecisionClock
    policy: AgentPolicy


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One competitor of an experiment: schedulers, how they synchronise, and the seed of their
    random streams."""

    name: str
    groups: tuple[GroupSpec, ...]
    sync: str
    gap_us: int
    partitions: int
    heartbeat_us: int
    sample_us: int
    seed: int

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


@dataclass(frozen=True)
class Assembly:
    """Builds any participant of an arm; each is built where it lives (an actor builds only its
    own)."""

    arm: ArmSpec
    workload: Workload
    partitioning: Partitioning

    @staticmethod
    def of(arm: ArmSpec, workload: Workload) -> Assembly:
        return Assembly(arm, workload, Partitioning.by_topology(workload.cell, arm.partitions))

    @cached_property
    def codec(self) -> Codec:
        """Encodes the events of the core and of the arm's protocols."""
        return Codec(optimistic_events.EVENTS)

    def terrain(self) -> Terrain:
        """What the views of agents in one process share."""
        return Terrain(self.workload.cell, self.partitioning)

    def agent(self, index: int, terrain: Terrain | None = None) -> SchedulerAgent:
        arm, workload = self.arm, self.workload
        group = arm.group_of(index)
        return SchedulerAgent(
            index=index,
            agents=arm.agents,
            name=arm.agent_name(index),
            seed=arm.seed,
            scheduler=self.scheduler(index),
            capabilities=registry.get(group.kind).capabilities,
            cell=workload.cell,
            partitioning=self.partitioning,
            table=workload.tasks,
            catalog=workload.catalog,
            sync=make_sync_policy(arm.sync, arm.gap_us, self.partitioning.count, index, arm.agents),
            strategy=make_strategy(group.strategy, group.tau_us),
            clock=group.clock,
            policy=group.policy,
            terrain=terrain,
        )

    def scheduler(self, index: int) -> CheckedScheduler:
        """The scheduler of an agent, by itself. Raises ContractBroken if it cannot be made."""
        workload, group = self.workload, self.arm.group_of(index)
        spec = registry.get(group.kind)
        environment = SchedulerEnvironment(
            self.arm.agent_name(index), workload.cell, self.partitioning.offsets, workload.catalog
        )
        options = spec.parse_options(group.options)
        return CheckedScheduler.build(spec, options, environment, workload.tasks)

    def master(self) -> MasterCore:
        workload = self.workload
        tells_ends = np.array(
            [self._is_told_of_ends(self.arm.group_of(i)) for i in range(self.arm.agents)]
        )
        _, initial_owner = self.owners()
        return MasterCore(
            cell=Cell(workload.cell, self.partitioning),
            table=workload.tasks,
            initial_task=workload.initial.task,
            initial_machine=workload.initial.machine,
            initial_owner=initial_owner,
            tells_ends=tells_ends,
            sample_us=self.arm.sample_us,
        )

    @staticmethod
    def _is_told_of_ends(group: GroupSpec) -> bool:
        """Schedulers that want the ends of their tasks, and agents that see the room of theirs as
        soon as they end."""
        wants = Capability.WANTS_ENDS in registry.get(group.kind).capabilities
        return wants or group.policy.freed is FreedVisibility.AT_ONCE

    def workers(self) -> WorkerPool:
        workload = self.workload
        return WorkerPool(
            workload.cell,
            workload.catalog,
            workload.tasks.preference,
            workload.duration_us,
            workload.preferred_permille,
            self.arm.heartbeat_us,
        )

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
        return Coordinator(starts)

    def routes(self) -> tuple[Route, ...]:
        routes: list[Route] = []
        first = 0
        for group in self.arm.groups:
            routes.append(
                Route(group.name, first, group.count, group.share_permille, group.task_class)
            )
            first += group.count
        return tuple(routes)

    def owners(self) -> tuple[Int32, Int32]:
        """(agent of each arrival batch int32[B], agent of each initially running task int32[k]):
        one agent per job."""
        workload = self.workload
        tasks = workload.tasks
        first_rows = workload.arrival_rows[workload.arrival_offsets[:-1]]
        rows = np.concatenate([workload.initial.task, first_rows])
        owner = route_jobs(self.routes(), tasks.job[rows], tasks.task_class[rows], self.arm.seed)
        running = len(workload.initial.task)
        return owner[running:], owner[:running]
