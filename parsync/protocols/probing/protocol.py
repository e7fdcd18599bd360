"""The probing protocol (Ousterhout et al., "Sparrow", SOSP 2013), as a ProtocolSpec.

Agents and queues are native (parsync/protocols/native/probing_agent.hpp, node_queues.hpp, with what
they do upon each message). Here they are put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np

from parsync.metrics.kinds.probing import TABLES
from parsync.metrics.record import AgentLog, Record
from parsync.metrics.tables import SCHEMAS
from parsync.protocols import _native
from parsync.protocols.base import SortingOut
from parsync.protocols.probing.events import EVENTS, KIND
from parsync.protocols.probing.options import ProbingOptions, ProbingSharedOptions
from parsync.protocols.spec import AgentEnvironment, Environment, NodeEnvironment, ProtocolSpec
from schedulers.decision_clock import native_clock
from schedulers.interface import ContractBroken
from schedulers.objective import native_columns
from shared_state.errors import AgoraError
from shared_state.tasks import NOWHERE_ELSE, Int32, TaskClass, fits

_BINDINGS = ("late", "random", "least_queue", "least_work")  # by ProbingAgent::Binding
_ORDERS = ("first_come", "round_robin", "priority")  # by NodeQueues::Order


class ProbingAgent(_native.ProbingAgent):
    """A scheduler without a view of the cell: an Agent (parsync.core.participant).

    Raises:
        AgoraError: It is to probe more distinct machines for a task than the cell has.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, options = environment.shared, environment.member.options
        machines = shared.cell.machines
        if options.probe_ratio > machines and not options.with_replacement:
            raise AgoraError(
                f"group '{environment.member.name}': probe_ratio: expected at most {machines}, the "
                f"machines of the cell, got {options.probe_ratio:g}"
            )
        self.index = environment.index
        self.name = environment.name
        tables = {**SCHEMAS, **TABLES}
        self._log = AgentLog(self.index, shared.cell, shared.table, shared.catalog, tables)
        clock = native_clock(environment.clock)
        assert clock is not None, "the decision times of a group are native"
        super().__init__(
            self._log.records,
            _settings(environment, options),
            self._log,
            SortingOut(environment, self._log),
            clock,
            TaskMachines(shared),
        )

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words."""
        return f"{self.name}, {self.queued:,} queued, {self.decisions:,} decisions"

    @property
    def calling(self) -> str:
        """No scheduler's call is ever under way."""
        return ""

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """No scheduler's call takes too long."""
        return None

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self.log_end(now_us)
        return self._log.flush()


def _settings(environment: AgentEnvironment, options: ProbingOptions) -> SimpleNamespace:
    """ProbingAgent::Settings."""
    shared, table = environment.shared, environment.shared.table
    return SimpleNamespace(
        index=environment.index,
        seed=shared.seed,
        name=environment.name,
        sample_us=shared.sample_us,
        hop_us=round(shared.options.hop_s * 1e6),
        reprobe_us=round(options.reprobe_s * 1e6),
        ratio_permille=round(options.probe_ratio * 1000),
        preferred_permille=round(options.preferred_probes * 1000),
        binding=_BINDINGS.index(options.binding),
        per_task=options.sampling == "per_task",
        replace=options.with_replacement,
        cancels=options.cancellation,
        job=np.ascontiguousarray(table.job, np.int64),
        preference=np.ascontiguousarray(table.preference, np.int32),
        task_class=np.ascontiguousarray(table.task_class, np.int8),
        priority=np.ascontiguousarray(
            table.priority if shared.options.queue == "priority" else [], np.int32
        ),
        is_constraint=shared.catalog.elsewhere_cost == NOWHERE_ELSE,
        request=np.ascontiguousarray(table.request, np.int64),
    )


class TaskMachines:
    """Where tasks may run, whatever runs there now (TaskMachines in probing_agent.hpp).

    Args:
        shared: What every part of the protocol is given.
    """

    def __init__(self, shared: Environment) -> None:
        self._cell, self._catalog, self._table = shared.cell, shared.catalog, shared.table

    def allowed(self, task: int) -> Int32:
        """The machines that hold a task when empty and that its constraint allows, int32[k],
        ascending."""
        catalog, preference = self._catalog, int(self._table.preference[task])
        if catalog.elsewhere_cost[preference] != NOWHERE_ELSE:
            return self._large_enough(task, np.arange(self._cell.machines, dtype=np.int32))
        racks = slice(*catalog.rack_offsets[preference : preference + 2])
        in_racks = np.flatnonzero(np.isin(self._cell.rack, catalog.rack[racks]))
        listed = np.union1d(self._listed(task), in_racks).astype(np.int32)
        return self._large_enough(task, listed)

    def preferred(self, task: int) -> Int32:
        """Those of them that the task prefers, int32[k], ascending."""
        return self._large_enough(task, self._listed(task))

    def _listed(self, task: int) -> Int32:
        preference = int(self._table.preference[task])
        return self._catalog.machine[slice(*self._catalog.machine_offsets[preference:][:2])]

    def _large_enough(self, task: int, machine: Int32) -> Int32:
        found: Int32 = machine[fits(self._table.request[task], self._cell.limit[machine])]
        return found


class NodeQueues(_native.NodeQueues):
    """The queues of reservations at all machines: a NodeSide (parsync.core.participant)."""

    def __init__(self, environment: NodeEnvironment) -> None:
        workload, table = environment.workload, environment.table
        key: Int32 | list[int] = []
        if environment.options.queue == "priority":
            key = table.priority
        elif environment.options.queue == "round_robin" and workload.quotas is not None:
            key = workload.quotas.group
        asks_work = np.zeros(
            max(member.first_agent + member.count for member in environment.members), np.bool_
        )
        for member in environment.members:
            agents = slice(member.first_agent, member.first_agent + member.count)
            asks_work[agents] = member.options.binding == "least_work"
        settings = SimpleNamespace(
            hop_us=round(environment.options.hop_s * 1e6),
            limit=np.ascontiguousarray(environment.cell.limit, np.int64),
            request=np.ascontiguousarray(table.request, np.int64),
            agents=len(asks_work),
            order=_ORDERS.index(environment.options.queue),
            key=np.ascontiguousarray(key, np.int32),
            is_long=np.ascontiguousarray(table.task_class == TaskClass.SERVICE),
            catalog=None,
        )
        if asks_work.any():
            settings.asks_work = asks_work
            settings.catalog = native_columns(environment.catalog, environment.cell)
            settings.duration_us = np.ascontiguousarray(workload.duration_us, np.int64)
            settings.preference = np.ascontiguousarray(table.preference, np.int32)
            settings.preferred_permille = workload.preferred_permille
        super().__init__(settings)

    def finish(self, now_us: int) -> list[Record]:
        """It makes no measurements: its agents do."""
        return []


def describe(options: ProbingOptions) -> Mapping[str, str]:
    """What summaries and reports say of a group with these options."""
    if options.binding == "random":
        return {"sync": "a random machine"}
    binding = {
        "late": "late binding",
        "least_queue": "least queue",
        "least_work": "least work, by an oracle",
    }[options.binding]
    sampling = "batch" if options.sampling == "batch" else "per task"
    return {"sync": f"{options.probe_ratio:g} probes per task ({sampling}), {binding}"}


SPEC = ProtocolSpec(
    KIND,
    ProbingOptions,
    ProbingAgent,
    node_side=NodeQueues,
    events=EVENTS,
    tables=TABLES,
    shared_options=ProbingSharedOptions,
    describe=describe,
)
