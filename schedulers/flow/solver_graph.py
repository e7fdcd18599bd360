"""What a flow scheduler keeps for its graph: the tasks that it answers for (TaskTable: waiting,
claimed and unanswered, and running under preemption), and the solver's graph, with what its arcs
stand for and how much a round changed it (SolverGraph). Columnar and compiled
(native/flow_graph.hpp)."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsolver import FlowNetwork, IncrementalSolver
from schedulers import _native
from schedulers.flow.policies.interface import TaskArcs
from shared_state.tasks import Int32, Int64, TaskBatch

NO_ROW = -1
NO_NODE = -1
NO_ARC = -1


class TaskState(IntEnum):
    ABSENT = 0  # the row is free
    WAITING = 1  # to be placed
    IN_FLIGHT = 2  # claimed; the cell has not answered
    RUNNING = 3  # may be migrated or preempted
    EVICTING = 4  # running; the plan asked for its eviction


class TaskNodeState(IntEnum):
    """As what a task stands in the solver's graph."""

    NONE = 0
    WAITING = 1
    RUNNING = 2


class TaskTable(_native.TaskTable):  # type: ignore[misc] # compiled
    """Columns of `capacity` C >= the tasks known. Tasks are named by id or by row.

    The columns are read-only windows on the table's memory, right until the next offer(). Methods
    raise ValueError for columns that do not go together and for rows that do not exist; ids that
    are not known are passed over.

    Attributes:
        capacity: C.
        task, gang, machine, allocation, since_us: int64[C], what the agent said.
        request: int64[C, R].
        state: int8[C], a TaskState.
        node_state: int8[C], a TaskNodeState.
        node: int64[C], the task's node in the graph, or NO_NODE.
        running_arc: int64[C], the arc to the machine it runs on, or NO_ARC.
        patience_ends_us: int64[C], of tasks in the graph; 0 if they have no patience.
    """

    capacity: int
    task: Int64
    gang: Int64
    machine: Int64
    allocation: Int64
    since_us: Int64
    request: Int64
    state: NDArray[np.int8]
    node_state: NDArray[np.int8]
    node: Int64
    running_arc: Int64
    patience_ends_us: Int64

    # --- what became of tasks (int64[n], ids) ----------------------------------------------------

    # (task): those IN_FLIGHT wait again
    reject: Callable[[Int64], None]
    # (task, machine int32[n], allocation int64[n], at_us)
    run: Callable[[Int64, Int32, Int64, int], None]
    # (task): they leave the table, and the graph with its next update
    forget: Callable[[Int64], None]
    # (row int64[n], state)
    set_state: Callable[[Int64, TaskState], None]

    def offer(self, tasks: TaskBatch) -> None:
        """These tasks wait. One that was known already was evicted or lost without our hearing, or
        is offered twice."""
        self.offer_columns(
            tasks.task,
            tasks.job,
            tasks.request,
            tasks.priority,
            tasks.submit_us,
            tasks.preference,
            tasks.gang,
            tasks.task_class,
        )

    # --- the graph's keeping ---------------------------------------------------------------------

    # (preemption) -> the nodes to be removed, the rows of tasks that waited in the graph and run
    # now, and the rows of tasks that need a node: int64 each
    begin_update: Callable[[bool], tuple[Int64, Int64, Int64]]
    # what begin_update() said is done
    end_update: Callable[[], None]
    # (row, group: int64[n] each; quantum_us of the waiting price) -> the new groups, ascending, and
    # in which quantum the first task of each was submitted, int64[k] each
    enter_groups: Callable[[Int64, Int64, int], tuple[Int64, Int64]]
    # (node, arc to the sink, cost of a quantum: int64[k] each), of the new groups
    name_groups: Callable[[Int64, Int64, Int64], None]
    # -> the nodes of groups without tasks in the graph, which are forgotten
    close_empty_groups: Callable[[], Int64]
    # -> group, node, arc to the sink, first quantum, cost of a quantum, and tasks of each group in
    # the graph
    open_groups: Callable[[], tuple[Int64, Int64, Int64, Int64, Int64, Int64]]
    # (row int64[n]) -> the node of each task's group
    group_node: Callable[[Int64], Int64]
    # (row int64[n]) -> what a quantum of waiting costs in each task's group
    group_cost: Callable[[Int64], Int64]
    # (row int64[n], quantum_us) -> by how much the price of each task's group exceeds its own
    cost_of_lateness: Callable[[Int64, int], Int64]
    # (row, node: int64[n] each)
    set_node: Callable[[Int64, Int64], None]
    # (row, arc: int64[n] each)
    set_running_arc: Callable[[Int64, Int64], None]
    # (row, arc or NO_ARC, end in us or 0: int64[n] each)
    set_patience: Callable[[Int64, Int64, Int64], None]
    # (row of tasks that run now, ascending; now_us) -> the arcs of their patience, and of that
    # which is over
    end_patience: Callable[[Int64, int], Int64]

    # --- queries ---------------------------------------------------------------------------------

    # (task int64[n]) -> int64[n], NO_ROW if unknown
    rows: Callable[[Int64], Int64]
    # -> the rows of tasks that wait, ascending
    waiting: Callable[[], Int64]
    # (task int64[n], all known) -> which of them wait, as indices
    still_waiting: Callable[[Int64], Int64]
    # (machines M) -> how many tasks are RUNNING on each, int64[M]
    running_on: Callable[[int], Int64]
    # -> when the patience of the first waiting task that has some ends; 0: none has
    first_end_of_patience: Callable[[], int]

    # (unit int64[R]) -> whether all tasks that wait request just that
    waiting_ask_for: Callable[[Int64], bool]
    # (row int64[n]) -> what they request, int64[n, R]
    requests: Callable[[Int64], Int64]
    # (row int64[n]) -> their gangs, int64[n]
    gangs: Callable[[Int64], Int64]

    def batch(self, row: Int64) -> TaskBatch:
        """The tasks of these rows, int64[n]."""
        return TaskBatch(*self.columns(row))


UNSCHEDULED = np.iinfo(np.int64).min  # a task's destination when its flow goes to U_j


class JoiningTasks(NamedTuple):
    """n tasks that join the graph: int64[n] each.

    Attributes:
        row: Of the task table.
        node: Of the task.
        unscheduled_node: Of its U_j.
        unscheduled_cost: Of the arc there.
    """

    row: Int64
    node: Int64
    unscheduled_node: Int64
    unscheduled_cost: Int64


class SolverGraph:
    """Adds nodes and arcs to an incremental solver, and keeps whose arcs they are
    (native/flow_graph.hpp).

    added: nodes and arcs added in the current round. altered: capacities and costs of arcs set in
    it.

    Several of the solver's arcs may stand for one row of the graph's table of arcs out of
    aggregators (aggregators.InnerArcs).

    solver: An empty one; None: one of the solver's default algorithm.
    """

    def __init__(self, solver: IncrementalSolver | None = None) -> None:
        self.solver = IncrementalSolver(FlowNetwork()) if solver is None else solver
        self._arcs = _native.FlowArcs()
        self.added = 0
        self.altered = 0

    def add_nodes(self, n: int, supply: int = 0) -> Int64:
        """Add n nodes and return their ids, int64[n]."""
        self.added += n
        return self.solver.add_nodes(np.full(n, supply, np.int64))

    def add_arcs(self, tail: Int64, head: Int64, capacity: Int64, cost: Int64) -> Int64:
        """Add k arcs between nodes and return their ids, int64[k]."""
        arc = self._add(tail, head, capacity, cost)
        self._arcs.add_others(arc)
        return arc

    def add_inner_arcs(
        self, inner: Int64, tail: Int64, head: Int64, capacity: Int64, cost: Int64
    ) -> Int64:
        """Add k arcs out of aggregators, which stand for these rows, and return their ids,
        int64[k]."""
        arc = self._add(tail, head, capacity, cost)
        self._arcs.add_inner(arc, inner)
        return arc

    def add_joining_tasks(
        self, tasks: JoiningTasks, arcs: TaskArcs, machine_node: Int64, aggregator_node: Int64
    ) -> None:
        """Add the arcs of tasks that join the graph, of one unit each: those that the policy gives
        them, then those to their U_j.

        Args:
            tasks: The tasks.
            arcs: From each of them, `row` counting from 0 to n - 1.
            machine_node: int64[M], where these arcs enter machines.
            aggregator_node: int64[A], the nodes of aggregators.
        """
        tail, head, cost = self._arcs.join(
            tasks.row,
            tasks.node,
            arcs.row,
            arcs.head,
            arcs.cost,
            tasks.unscheduled_node,
            tasks.unscheduled_cost,
            machine_node,
            aggregator_node,
        )
        self._arcs.name(self._add(tail, head, np.ones(len(tail), np.int64), cost))

    def relist_tasks(
        self, tasks: JoiningTasks, arcs: TaskArcs, machine_node: Int64, aggregator_node: Int64
    ) -> None:
        """Give tasks that are in the graph other arcs. Arguments as of add_joining_tasks(). An arc
        that leads where one of the task's arcs led before is that arc, and has its flow."""
        arc, cost, removed, tail, head, cost_of_new = self._arcs.relist(
            tasks.row,
            tasks.node,
            arcs.row,
            arcs.head,
            arcs.cost,
            tasks.unscheduled_node,
            tasks.unscheduled_cost,
            machine_node,
            aggregator_node,
        )
        if len(removed):
            self.solver.remove_arcs(removed)
        if len(arc):
            self.solver.set_cost(arc, cost)
            self.altered += len(arc)
        self._arcs.name_relisted(self._add(tail, head, np.ones(len(tail), np.int64), cost_of_new))

    def move_inner_arcs(self, row: Int64) -> None:
        """The rows of arcs out of aggregators have moved: each to row[its old one], NO_ROW if it is
        gone."""
        self._arcs.move_inner(row)

    def add_task_arcs(
        self, row: Int64, node: Int64, head: Int64, head_node: Int64, cost: Int64
    ) -> Int64:
        """Add k further arcs of one unit out of the nodes of tasks in these rows and return their
        ids, int64[k]."""
        arc = self._add(node, head_node, np.ones(len(node), np.int64), cost)
        self._arcs.add_of_tasks(arc, row, head)
        return arc

    def change_arcs(self, arc: Int64, capacity: Int64, cost: Int64) -> None:
        """Set the capacities and costs of arcs some of which differ, int64[k] each."""
        if len(arc):
            self.solver.set_arcs(arc, capacity, cost)
        self.altered += len(arc)

    def take_flow(self, inner_flow: Int64) -> None:
        """Take in what the last solve changed.

        Args:
            inner_flow: int64[rows], the flow of the arcs out of aggregators, changed in place.
        """
        arc, flow = self.solver.changed_flow()
        self._arcs.take_flow(arc, flow, inner_flow)

    # --- tasks (rows, int64[n]), and their flow after the last solve -----------------------------

    def next_hop(self, row: Int64) -> Int64:
        """The arc that carries each task's unit, int64[n]."""
        arc: Int64 = self._arcs.next_hop(row)
        return arc

    def destination(self, row: Int64) -> Int64:
        """Where that arc leads, int64[n]: a machine row, to_aggregator(a), or UNSCHEDULED."""
        head: Int64 = self._arcs.destination(row)
        return head

    def sent(self, row: Int64) -> tuple[Int64, Int64]:
        """The tasks whose flow does not go to their U_j, and where it goes: rows and heads."""
        sent: tuple[Int64, Int64] = self._arcs.sent(row)
        return sent

    def running(self, table: TaskTable, machines: int) -> tuple[Int64, Int64]:
        """Of the running tasks in the graph: the rows of those that the flow moves, ascending, and
        how many others stay on each of M machines, int64[M]."""
        running: tuple[Int64, Int64] = self._arcs.running(table, machines)
        return running

    def arcs_of(self, row: Int64) -> tuple[Int64, TaskArcs]:
        """The arcs that these tasks joined the graph with, those to their U_j among them (head
        UNSCHEDULED): ids, int64[k], and what was asked for, `row` counting from 0 to n - 1."""
        task, arc, head, cost = self._arcs.lists(row)
        return arc, TaskArcs(task, head, cost)

    def _add(self, tail: Int64, head: Int64, capacity: Int64, cost: Int64) -> Int64:
        arc = self.solver.add_arcs(tail, head, capacity, cost)
        self.added += len(arc)
        return arc
