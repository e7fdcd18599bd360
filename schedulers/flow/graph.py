"""The flow graph manager: task and cell changes become merged bulk changes of the solver's graph,
once per round.

The graph holds what may still move: waiting tasks, and running ones under preemption. What may not
move (tasks in flight, tasks of others, running tasks without preemption) is no part of it, but
takes from the capacity of its machine, as the view shows. A placement therefore costs one removed
node and one lowered capacity, and rounds cost what changed, not what runs.

The waiting price rises for all tasks alike, so it sits on the arcs U_j -> sink: one cost per job
and quantum, not one per task. A task's own arc to U_j corrects for having come later than the job's
first.

Between tasks and sink stand the aggregators of the policy, with the arcs out of them; the
unscheduled aggregator U_j of each job, through which its tasks that stay waiting flow; and the
patience node W, where tasks wait for a place that they prefer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsolver import Certificate, IncrementalSolver, Stats, Status
from flowsolver.solution import describe_cut
from schedulers import _native
from schedulers.flow.extraction import AggregatorFlow, flow_placements
from schedulers.flow.machine_arcs import MachineArcs, SlotPricing, SlotState
from schedulers.flow.policies.interface import (
    UNBOUNDED,
    AggregatorArcs,
    MachineLoad,
    Policy,
    PolicyError,
    TimePrice,
    arcs_as_int64,
    as_int64,
    check_acyclic,
    check_costs,
    check_heads,
    check_one_arc_elsewhere,
    check_room_elsewhere,
    check_rows,
    join_arcs,
    to_aggregator,
)
from schedulers.flow.solver_graph import (
    NO_ARC,
    NO_NODE,
    UNSCHEDULED,
    JoiningTasks,
    SolverGraph,
    TaskNodeState,
    TaskState,
    TaskTable,
)
from shared_state.random import Stream
from shared_state.tasks import Int64, TaskBatch
from shared_state.view import ClusterView

MAX_INT64 = np.iinfo(np.int64).max
UNROUTED = -1  # where a flow takes a task whose unit has not reached the sink yet


class InnerArcs(NamedTuple):
    """The arcs out of aggregators, int64[k] each; those of one aggregator in consecutive rows. arc:
    the solver's id, or NO_ARC where priced arcs stand in for it. flow: as of the last solve.
    is_priced: bool[k], whether tasks that enter machines over the arc pay for their slots."""

    tail: Int64
    head: Int64
    cost: Int64
    level: Int64
    arc: Int64
    capacity: Int64
    flow: Int64
    is_priced: NDArray[np.bool_]


class Aggregators:
    """The aggregators of a policy. One comes into being when the first arc leads to it, and stays.

    Attributes:
        node: int64[A], the node of each aggregator, or NO_NODE.
        inner: The arcs out of those that exist.

    Args:
        graph: The solver's graph.
        machine_arcs: The way from machines to the sink.
        policy: Says which arcs there are.
        machines: Of the cell.
    """

    def __init__(
        self, graph: SolverGraph, machine_arcs: MachineArcs, policy: Policy, machines: int
    ) -> None:
        self._graph = graph
        self._machine_arcs = machine_arcs
        self._policy = policy
        self._machines = machines
        self.node = np.full(policy.aggregators, NO_NODE, np.int64)
        none = np.zeros(0, np.int64)
        self.inner = InnerArcs(none, none, none, none, none, none, none, none.astype(bool))
        # The rows of inner by tail: the first, and the one after the last.
        self._rows = (
            np.zeros(policy.aggregators, np.int64),
            np.zeros(policy.aggregators, np.int64),
        )
        # And by machine: where its rows begin in the second array.
        self._rows_into = (np.zeros(machines + 1, np.int64), none)

    def set_load(self, machine: Int64, load: MachineLoad) -> None:
        """Set the capacities of the arcs into these machines (int64[k]), whose load changed."""
        if len(machine) == 0:
            return
        entry: Int64 = _native.entries_of(*self._rows_into, machine)
        capacity = self._capacity_into_machines(entry, load)
        differs = capacity != self.inner.capacity[entry]
        self.inner.capacity[entry] = capacity
        arc = self.inner.arc[entry]
        altered = len(entry)
        if self._machine_arcs.replaces_inner:
            own = arc != NO_ARC
            differs &= own
            altered = int(np.count_nonzero(own))
        self._graph.solver.set_capacity(arc[differs], capacity[differs])
        self._graph.altered += altered

    def open(self, head: Int64, load: MachineLoad, stream: int) -> None:
        """Bring into being the aggregators that these heads (int64[n]) name, and all that they lead
        to. The order of the new arcs is drawn from `stream`."""
        new: list[AggregatorArcs] = []
        while True:
            named: Int64 = _native.without_node(head, self.node)
            if len(named) == 0:
                break
            self.node[named] = self._graph.add_nodes(len(named))
            arcs = arcs_as_int64(
                self._policy, self._policy.aggregator_arcs(named, load), "aggregator_arcs"
            )
            check_heads(self._policy, arcs.head, self._machines, "an aggregator")
            check_costs(self._policy, arcs.cost, "out of an aggregator")
            new.append(arcs)
            head = arcs.head
        if not new:
            return
        arcs = join_arcs(new)
        between = arcs.head < 0
        check_acyclic(self._policy, arcs.tail[between], to_aggregator(arcs.head[between]))
        order = Stream(stream).permutation(len(arcs.tail))
        order = order[np.argsort(arcs.tail[order], kind="stable")]
        tail, head, cost, level = (
            column[order] for column in (arcs.tail, arcs.head, arcs.cost, arcs.level)
        )
        is_elsewhere = self._policy.is_elsewhere(tail)
        is_priced = self._machine_arcs.is_priced(is_elsewhere)
        old = self.inner
        no_arc, unbounded, flow = (np.full(len(tail), n, np.int64) for n in (NO_ARC, UNBOUNDED, 0))
        new_rows = InnerArcs(tail, head, cost, level, no_arc, unbounded, flow, is_priced)
        pairs: Any = zip(old, new_rows, strict=True)
        self.inner = InnerArcs(*(np.concatenate(pair) for pair in pairs))
        first, end = self._rows
        opened = np.unique(tail)
        first[opened] = len(old.tail) + np.searchsorted(tail, opened, side="left")
        end[opened] = len(old.tail) + np.searchsorted(tail, opened, side="right")
        into = len(old.tail) + np.flatnonzero(head >= 0)
        self.inner.capacity[into] = self._capacity_into_machines(into, load)
        tail_node, inner = self.node[tail], len(old.tail) + np.arange(len(tail))
        replaced = np.zeros(len(tail), bool)
        if self._machine_arcs.replaces_inner:
            replaced = is_priced & (head >= 0)
            entering = self.inner.is_priced & (self.inner.head >= 0)
            check_one_arc_elsewhere(
                self._policy, self.inner.head[entering], self.inner.cost[entering]
            )
            self._machine_arcs.open(head[replaced], tail_node[replaced], inner[replaced])
        own = inner[~replaced]
        self.inner.arc[own] = self._graph.add_inner_arcs(
            own,
            tail_node[~replaced],
            self.node_of(head, is_elsewhere)[~replaced],
            self.inner.capacity[own],
            cost[~replaced],
        )
        self._index_machines()

    def node_of(self, head: Int64, is_elsewhere: NDArray[np.bool_]) -> Int64:
        """The nodes to which arcs with these heads lead (int64[k]), given whether each leads to
        machines that its tasks do not prefer (bool[k])."""
        into_machine = self._machine_arcs.entrance(np.maximum(head, 0), is_elsewhere)
        if len(self.node) == 0:
            return into_machine
        return np.where(head >= 0, into_machine, self.node[np.maximum(-1 - head, 0)])

    def flow(self) -> AggregatorFlow:
        """The flow out of aggregators after the last solve, for the extraction."""
        inner = self.inner
        return AggregatorFlow(*self._rows, inner.head, inner.cost, inner.flow, inner.capacity)

    def _capacity_into_machines(self, entry: Int64, load: MachineLoad) -> Int64:
        capacity = as_int64(
            self._policy,
            self._policy.machine_arc_capacity(
                self.inner.level[entry], self.inner.head[entry], load
            ),
            "machine_arc_capacity",
        )
        if _native.first_outside(capacity, 0, MAX_INT64) >= 0:
            worst = entry[capacity.argmin()]
            raise PolicyError(
                f"{self._policy.name}: the arc from aggregator {self.inner.tail[worst]} to machine "
                f"{self.inner.head[worst]} has capacity {capacity.min()}"
            )
        if self._machine_arcs.replaces_inner:
            priced = self.inner.is_priced[entry]
            machine = self.inner.head[entry[priced]]
            check_room_elsewhere(self._policy, machine, capacity[priced], load.room[machine])
        return capacity

    def _index_machines(self) -> None:
        into = np.flatnonzero(self.inner.head >= 0)
        order = into[np.argsort(self.inner.head[into], kind="stable")]
        self._rows_into = (
            np.searchsorted(self.inner.head[order], np.arange(self._machines + 1)),
            order,
        )


class JobAggregators:
    """The unscheduled aggregators U_j: one node, and one arc to the sink with the waiting price,
    for each job with tasks in the graph. The task table keeps them
    (native/flow_graph.hpp)."""

    def __init__(self, graph: SolverGraph, sink: int, wait_price: TimePrice) -> None:
        self._graph = graph
        self._sink = sink
        self._wait_price = wait_price

    def enter(self, table: TaskTable, row: Int64, quantum: int) -> Int64:
        """Add tasks (rows, int64[n]) to their jobs' aggregators in this quantum.

        Returns: int64[n], what the waiting price of a task's job has in excess of its own. It is
            negative if the task came later than the job's first.
        """
        first, lateness = table.enter_jobs(row, self._wait_price.quantum_us)
        if len(first):
            node = self._graph.add_nodes(len(first))
            arc = self._graph.add_arcs(
                node,
                np.full(len(first), self._sink),
                np.full(len(first), UNBOUNDED),
                self._wait_price.cost * (quantum - first),
            )
            table.name_jobs(node, arc)
        return self._wait_price.cost * lateness

    def close_empty(self, table: TaskTable) -> None:
        """Remove the aggregators of jobs without tasks."""
        node = table.close_empty_jobs()
        if len(node):
            self._graph.solver.remove_nodes(node)

    def price_waiting(self, table: TaskTable, quantum: int) -> None:
        """Set the waiting price of all jobs to that of this quantum."""
        _, arc, first = table.open_jobs()
        self._graph.solver.set_cost(arc, self._wait_price.cost * (quantum - first))
        self._graph.altered += len(arc)


class PatienceArcs:
    """The arcs to the patience node W: tasks with patience wait there for a place that they prefer,
    for less than any other place costs.

    The price of waiting there rises for all tasks alike, so it sits on the one arc W -> sink.
    """

    def __init__(self, graph: SolverGraph, sink: int, policy: Policy) -> None:
        self._graph = graph
        self._sink = sink
        self._policy = policy
        # W and its arc to the sink, from the first task with patience on
        self._node = self._to_sink = np.zeros(0, np.int64)
        # the quantum in which that arc began to count the price, and that it has now
        self._first_quantum = self._quantum = 0

    def price(self, tasks: TaskBatch, now_us: int) -> tuple[Int64, Int64]:
        """Tell what waiting costs these tasks while their patience lasts, and when it ends.

        Returns:
            int64[n] each: the cost, negative where patience does not last; the time in us, 0 where
            it is over.
        """
        price = self._policy.patience_price
        ends_us = tasks.submit_us + self._policy.patience_us
        cost = as_int64(self._policy, self._policy.patient_wait_cost(tasks), "patient_wait_cost")
        lasts = (cost >= 0) & (ends_us > now_us)
        waited = now_us // price.quantum_us - tasks.submit_us // price.quantum_us
        return np.where(lasts, cost + price.cost * waited, -1), np.where(lasts, ends_us, 0)

    def add(self, table: TaskTable, row: Int64, now_us: int) -> None:
        """Let those of these tasks (new in the graph) wait whose patience lasts."""
        cost, ends_us = self.price(table.batch(row), now_us)
        arc = np.full(len(row), NO_ARC)
        patient = np.flatnonzero(cost >= 0)
        if len(self._node) or len(patient):
            arc[patient] = self._add(table, row[patient], cost[patient], now_us)
        table.set_patience(row, arc, ends_us)

    def close(self, table: TaskTable, started: Int64, now_us: int) -> None:
        """Close the arcs of tasks that run now, and of those whose patience is over."""
        arc = table.end_patience(started, now_us)
        if len(arc):
            self._graph.solver.set_capacity(arc, np.zeros(len(arc), np.int64))
            self._graph.altered += len(arc)

    def _add(self, table: TaskTable, row: Int64, cost: Int64, now_us: int) -> Int64:
        """Arcs of these costs to W, and W with the first."""
        price = self._policy.patience_price
        quantum = now_us // price.quantum_us
        if len(self._node) == 0:
            self._node = self._graph.add_nodes(1)
            unbounded, zero = np.array([UNBOUNDED]), np.zeros(1, np.int64)
            self._to_sink = self._graph.add_arcs(
                self._node, np.array([self._sink]), unbounded, zero
            )
            self._first_quantum = quantum
        risen = price.cost * (quantum - self._first_quantum)
        if quantum != self._quantum:
            self._quantum = quantum
            self._graph.solver.set_cost(self._to_sink, np.array([risen]))
            self._graph.altered += 1
        check_costs(self._policy, cost, "out of a task")
        head = np.full(len(row), UNSCHEDULED)
        node = np.repeat(self._node, len(row))
        return self._graph.add_task_arcs(row, table.node[row], head, node, cost - risen)


class FlowGraph:
    """The flow graph of one scheduler: `update` brings it up to date, `solve` re-optimises it.

    Attributes:
        arcs: The solver's graph, which also says where the flow of tasks goes.
        solver: Its solver.
        tasks: How many have a node in it.
        joined: How many of them joined in the current round.
        reached: None unless the last solve ended early. Then, by row of the task table, where the
            flow takes tasks so far: a machine row, UNSCHEDULED, or UNROUTED; int64[C].
        unrouted: How many tasks are UNROUTED.
    """

    def __init__(
        self,
        policy: Policy,
        machines: int,
        preemption: bool,
        pricing: SlotPricing | None = None,
        *,
        migration: bool = True,
        solver: IncrementalSolver | None = None,
    ) -> None:
        """
        Args:
            policy: The policy; that of `pricing`, if there is one.
            machines: Of the cell.
            preemption: Whether running tasks stay in the graph.
            pricing: How slot prices count, if there are any.
            migration: Whether they may be placed on other machines.
            solver: An empty one; None: one of the solver's default algorithm.
        """
        self.arcs = SolverGraph(solver)
        self.solver = self.arcs.solver
        self._policy = policy
        self._pricing = pricing
        self._preemption = preemption
        self._migration = migration
        self._machines = machines
        self.tasks = 0
        self.joined = 0
        self.unrouted = 0
        self.reached: Int64 | None = None
        self._sink_node = self.arcs.add_nodes(1)
        self._sink = int(self._sink_node[0])
        self._machine_arcs = MachineArcs(self.arcs, self._sink, machines, pricing, preemption)
        self._aggregators = Aggregators(self.arcs, self._machine_arcs, policy, machines)
        self._jobs = JobAggregators(self.arcs, self._sink, policy.wait_price)
        self._quantum = 0
        self._progress = -1  # quantum the running arcs are priced for
        self._patience = PatienceArcs(self.arcs, self._sink, policy)

    # --- the round's changes ---------------------------------------------------------------------

    def update(
        self,
        table: TaskTable,
        load: MachineLoad,
        now_us: int,
        stream: int,
        slots: SlotState | None = None,
    ) -> None:
        """Bring the graph up to date with the table, the load, and the prices of slots.

        The arcs of new aggregators come in an order drawn from `stream`: the solver breaks ties by
        it, and schedulers that break ties alike would claim the same machines.
        """
        self.arcs.added = self.arcs.altered = 0
        self._quantum = now_us // self._policy.wait_price.quantum_us
        removed, started, joining = table.begin_update(self._preemption)
        if len(removed):
            self.tasks -= len(removed)
            self.solver.remove_nodes(removed)
        self._aggregators.set_load(self._machine_arcs.set_load(load, slots), load)
        self.joined = len(joining)
        if len(joining):
            self._join(table, joining, load, stream)
        self._jobs.close_empty(table)
        self._jobs.price_waiting(table, self._quantum)
        waits = joining
        if self._preemption:
            runs = table.state[joining] == TaskState.RUNNING
            waits = joining[~runs]
            self._price_running_arcs(table, now_us)
            # A waiting task that now runs keeps its node and gets one more arc.
            self._add_running_arcs(table, np.concatenate([started, joining[runs]]), now_us)
        if self._policy.patience_us:
            self._patience.add(table, waits, now_us)
            self._patience.close(table, started, now_us)
        table.end_update()
        self.solver.set_supply(self._sink_node, np.array([-self.tasks], np.int64))

    def solve(
        self, table: TaskTable, max_operations: int | None = None, places_when_stopped: bool = True
    ) -> None:
        """Re-optimise, and take in what flow has changed.

        Args:
            table: The tasks.
            max_operations: Counted operations of the solver after which it ends early.
            places_when_stopped: Whether its flow is of use then. If not, no task is routed.
        """
        status = self.solver.resolve(max_operations=max_operations)
        self.reached = None
        self.unrouted = 0
        if status == Status.BUDGET:
            self.reached = self._take_reached(table, places_when_stopped)
            return
        if status != Status.OPTIMAL:
            raise RuntimeError(
                f"{self._policy.name}: the flow problem was left {status.name}"
                f"{self._infeasibility(table)}"
            )
        self.arcs.take_flow(self._aggregators.inner.flow)

    def _take_reached(self, table: TaskTable, places: bool) -> Int64:
        """Where an unfinished flow takes tasks (as `reached`), if `places`."""
        rows = np.flatnonzero(table.node_state != TaskNodeState.NONE)
        reached = np.full(table.capacity, UNROUTED, np.int64)
        self.unrouted = len(rows)
        if not places:
            return reached
        _, last = self.solver.routed(table.node[rows])
        rows, last = rows[last != NO_ARC], last[last != NO_ARC]
        self.unrouted -= len(rows)
        network, nodes, arcs = self.solver.snapshot()
        before_sink = np.full(int(arcs.max(initial=0)) + 1, NO_NODE)
        before_sink[arcs] = nodes[network.tail]
        machine = np.full(int(nodes.max(initial=0)) + 1, UNSCHEDULED)
        machine[self._machine_arcs.node] = np.arange(self._machines)
        reached[rows] = machine[before_sink[last]]
        return reached

    def _infeasibility(self, table: TaskTable) -> str:
        """Describe an INFEASIBLE solve: what the cut proves, and which tasks are on its side."""
        cut = self.solver.cut
        if cut.size == 0:
            return ""
        tasks = np.sort(
            table.task[(table.node_state != TaskNodeState.NONE) & np.isin(table.node, cut)]
        )
        named = ", ".join(map(str, tasks[:5].tolist())) + (", ..." if tasks.size > 5 else "")
        return f": {describe_cut(self.solver.certify_cut())}; tasks there: {named or 'none'}"

    def certificate(self, whole: bool) -> Certificate:
        """Whether the last solve is proved optimal: everywhere, or where it touched the graph."""
        return self.solver.certify() if whole else self.solver.certify_touched()

    def stays(self, table: TaskTable, row: Int64) -> NDArray[np.bool_]:
        """Whether the flow lets each of these running tasks (rows, int64[n]) run on: bool[n]."""
        stays: NDArray[np.bool_] = self.arcs.next_hop(row) == table.running_arc[row]
        return stays

    def placements(
        self,
        table: TaskTable,
        row: Int64,
        head: Int64,
        staying: Int64,
        view: ClusterView,
        stream: int,
    ) -> Int64:
        """Place tasks whose flow goes to these machines and aggregators first, int64[n] each.

        All tasks whose flow goes to machines must be among them, except running ones that stay on
        these machines (staying: int64[s]).

        Returns:
            int64[n], machine rows. Where paths of the same cost lead to several machines, the
            emptiest in the view; of equals one drawn at random.
        """
        room = self._machine_arcs.room
        if len(staying):
            room = room - np.bincount(staying, minlength=len(room))
        _, arcs = self.arcs.arcs_of(row)
        _, chosen = flow_placements(
            view,
            head,
            table.requests(row),
            arcs,
            self._aggregators.flow(),
            room,
            stream,
            self._machine_arcs.priced(self._aggregators.inner.is_priced),
        )
        return chosen

    def potentials(self) -> tuple[Int64, int]:
        """The potentials of machines (int64[M]) and of the sink after the last solve, as in
        LearnsPotentials: in the unit of placement costs."""
        machine, sink = self._machine_arcs.potentials()
        scale = 1 if self._pricing is None else self._pricing.scale
        return (machine - sink) // scale, 0

    def placement_value(
        self, cost: Int64, preferred: NDArray[np.bool_], machine: Int64, free: Int64
    ) -> Int64:
        """What placements count as in the flow problem (extraction.PlacementValue)."""
        if self._pricing is None or self._machine_arcs.slots is None:
            return cost
        paid = self._machine_arcs.slots.next_cost(machine, free)
        return cost * self._pricing.scale + np.where(
            self._machine_arcs.is_priced(~preferred), paid, 0
        )

    @property
    def work(self) -> Stats:
        """What the last solve did."""
        return self.solver.stats

    @property
    def size(self) -> int:
        """Nodes and arcs."""
        return self.solver.num_nodes + self.solver.num_arcs

    def wait_cost(self, tasks: TaskBatch, now_us: int) -> Int64:
        """The cost of leaving these tasks waiting now, int64[n]."""
        price = self._policy.wait_price
        waited: Int64 = now_us // price.quantum_us - tasks.submit_us // price.quantum_us
        cost: Int64 = self._policy.unscheduled_cost(tasks) + price.cost * waited
        if not self._policy.patience_us:
            return cost
        patient, _ = self._patience.price(tasks, now_us)
        return np.where(patient >= 0, np.minimum(patient, cost), cost)

    # --- tasks -----------------------------------------------------------------------------------

    def _join(self, table: TaskTable, row: Int64, load: MachineLoad, stream: int) -> None:
        """Nodes for these tasks, with the arcs every task has."""
        tasks = table.batch(row)
        arcs = arcs_as_int64(self._policy, self._policy.task_arcs(tasks), "task_arcs")
        check_rows(self._policy, arcs.row, len(row))
        check_heads(self._policy, arcs.head, self._machines, "a task")
        self._aggregators.open(arcs.head, load, stream)
        late = self._jobs.enter(table, row, self._quantum)
        node = self.arcs.add_nodes(len(row), supply=1)
        table.set_node(row, node)
        self.tasks += len(row)
        unscheduled = as_int64(
            self._policy, self._policy.unscheduled_cost(tasks) + late, "unscheduled_cost"
        )
        check_costs(self._policy, arcs.cost, "out of a task")
        check_costs(self._policy, unscheduled, "out of a task")
        self.arcs.add_joining_tasks(
            JoiningTasks(row, node, table.job_node(row), unscheduled),
            arcs,
            self._machine_arcs.entrance_of_preferred,
            self._aggregators.node,
        )

    def _add_running_arcs(self, table: TaskTable, row: Int64, now_us: int) -> None:
        machine = table.machine[row]
        base = as_int64(
            self._policy,
            self._policy.running_arc_cost(table.batch(row), machine),
            "running_arc_cost",
        )
        cost = base - self._progress_price(table, row, now_us)
        check_costs(self._policy, cost, "out of a task")
        if not self._migration:
            self._close_other_machines(row)
        arc = self.arcs.add_task_arcs(
            row, table.node[row], machine, self._machine_arcs.node[machine], cost
        )
        table.set_running_arc(row, arc, base)

    def _close_other_machines(self, row: Int64) -> None:
        """Leave tasks that begin to run only their running arc and the one to U_j."""
        arc, arcs = self.arcs.arcs_of(row)
        to_machines = arc[arcs.head != UNSCHEDULED]
        self.solver.set_capacity(to_machines, np.zeros(len(to_machines), np.int64))
        self.arcs.altered += len(to_machines)

    def _price_running_arcs(self, table: TaskTable, now_us: int) -> None:
        quantum = now_us // self._policy.progress_price.quantum_us
        if quantum == self._progress:
            return
        self._progress = quantum
        row = np.flatnonzero(table.node_state == TaskNodeState.RUNNING)
        cost = table.running_arc_cost[row] - self._progress_price(table, row, now_us)
        self.solver.set_cost(table.running_arc[row], cost)
        self.arcs.altered += len(row)

    def _progress_price(self, table: TaskTable, row: Int64, now_us: int) -> Int64:
        price = self._policy.progress_price
        progress: Int64 = now_us // price.quantum_us - table.since_us[row] // price.quantum_us
        return price.cost * progress
