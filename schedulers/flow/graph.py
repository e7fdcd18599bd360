"""The flow graph manager: task and cell changes become merged bulk changes of the solver's graph,
once per round.

The graph holds what may still move: waiting tasks, and running ones under preemption. What may not
move (tasks in flight, tasks of others, running tasks without preemption) is no part of it, but
takes from the capacity of its machine, as the view shows. A placement therefore costs one removed
node and one lowered capacity, and rounds cost what changed, not what runs.

The waiting price rises for all tasks of a group alike, so it sits on the arcs U_j -> sink: one cost
per group and quantum, not one per task. A task's own arc to U_j corrects for having come later than
the group's first. The price of progress falls for all running tasks alike, which is the same as
that all else rises: entering any machine anew, and waiting. So it is added to one arc per machine
and to those of the U_j, and the arc of a running task has what had risen when it started, and never
changes.


Between tasks and sink stand the aggregators of the policy, with the arcs out of them
(aggregators.py); the unscheduled aggregator U_j of each job or group, through which its tasks that
stay waiting flow, and the patience node W, where tasks wait for a place that they prefer
(waiting.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsolver import Certificate, IncrementalSolver, Stats, Status
from flowsolver.solution import describe_cut
from schedulers import _native
from schedulers.flow.aggregators import Aggregators
from schedulers.flow.extraction import flow_placements
from schedulers.flow.machine_arcs import MachineArcs, SlotPricing, SlotState
from schedulers.flow.policies.interface import (
    MachineLoad,
    ObservedCell,
    Policy,
    PolicyError,
    TaskArcs,
    answer,
    arcs_as_int64,
    as_int64,
    check_costs,
    check_heads,
    check_rows,
    name_of_head,
)
from schedulers.flow.solver_graph import (
    NO_ARC,
    NO_NODE,
    NO_ROW,
    UNSCHEDULED,
    JoiningTasks,
    SolverGraph,
    TaskNodeState,
    TaskState,
    TaskTable,
)
from schedulers.flow.waiting import PatienceArcs, WaitingGroups, check_progress
from shared_state.tasks import Int32, Int64, TaskBatch
from shared_state.view import ClusterView

UNROUTED = -1  # where a flow takes a task whose unit has not reached the sink yet


class Observations:
    """Which machines a policy was told something new of, from one round to the next."""

    def __init__(self) -> None:
        self._load: MachineLoad | None = None
        self._free: Int64 = np.zeros((0, 0), np.int64)
        self._up: NDArray[np.bool_] = np.zeros(0, bool)
        # by row of the task table: which task runs there (-1: none), and where
        self._task = self._machine = np.zeros(0, np.int64)

    def changed(
        self, load: MachineLoad, cell: ObservedCell | None, table: TaskTable, moved: Int64
    ) -> Int64:
        """The machines whose load or tasks differ from those of the last call, int64[k].

        moved: int64[m], those whose room does.
        """
        machines = len(load.room)
        before, self._load = self._load, load
        same_total = before is not None and load.total is before.total
        if cell is None and same_total and load.room is load.free:
            return moved  # what is used differs only with the room
        if before is None:
            differs = np.ones(machines, bool)
        else:
            differs = np.zeros(machines, bool)
            for now, was in (
                (load.total, before.total),
                (load.used, before.used),
                (load.room, before.room),
            ):
                differs |= now != was
        if cell is not None:
            if self._free.shape == cell.free.shape:
                differs |= np.any(cell.free != self._free, axis=1) | (cell.up != self._up)
            self._free, self._up = cell.free.copy(), cell.up.copy()
            if len(cell.running) or len(self._task):
                self._mark_moved(differs, table)
        return np.flatnonzero(differs)

    def _mark_moved(self, differs: NDArray[np.bool_], table: TaskTable) -> None:
        """Mark the machines on which other tasks run than at the last call."""
        runs = table.state == TaskState.RUNNING
        task, machine = np.where(runs, table.task, -1), np.where(runs, table.machine, -1)
        more = np.full(len(task) - len(self._task), -1, np.int64)
        was_task, was_machine = np.append(self._task, more), np.append(self._machine, more)
        moved = (task != was_task) | (machine != was_machine)
        for row in (machine[moved], was_machine[moved]):
            differs[row[row >= 0]] = True
        self._task, self._machine = task, machine


class GraphNodes(NamedTuple):
    """The nodes of the graph, for those who look at it (snapshot.py).

    Attributes:
        policy: Names the aggregators.
        scale: By what the policy's costs are multiplied, so that prices of slots fit below them.
        risen: What all paths cost more in the solver's graph than they do (the module's docstring):
            on running arcs, on the arcs from `placement` to `machine`, and on those of the U_j and
            of W to the sink.
        sink: Of all flow.
        machine: int64[M], where running tasks enter machines.
        placement: int64[M], where placements enter; the same, if nothing rises.
        entrance: int64[M], where placements enter that pay for their slots; mostly the same.
        aggregator: int64[A], NO_NODE for those that are not in the graph.
        patience: int64[0] or int64[1], where tasks wait for a place that they prefer.
    """

    policy: Policy
    scale: int
    risen: int
    sink: int
    machine: Int64
    placement: Int64
    entrance: Int64
    aggregator: Int64
    patience: Int64


class FlowGraph:
    """The flow graph of one scheduler: `update` brings it up to date, `solve` re-optimises it.

    Attributes:
        arcs: The solver's graph, which also says where the flow of tasks goes.
        solver: Its solver.
        tasks: How many have a node in it.
        joined: How many of them joined in the current round.
        load: Of machines, in the current round; None before the first.
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
        progress = preemption and policy.progress_price.cost > 0
        self._machine_arcs = MachineArcs(
            self.arcs, self._sink, machines, pricing, preemption, progress
        )
        self._aggregators = Aggregators(self.arcs, self._machine_arcs, policy, machines)
        self._groups = WaitingGroups(self.arcs, self._sink, policy)
        self._arcs_change = policy.overrides("stale_aggregators")
        self._tasks_change = policy.overrides("stale_tasks")
        self._observations = Observations()
        self._joined_before = np.zeros(0, bool)  # by task id, if the arcs of tasks change
        self.load: MachineLoad | None = None
        self._quantum = 0
        self._risen = 0  # what all tasks pay more in the last round, as running ones pay no less
        self._patience = PatienceArcs(self.arcs, self._sink, policy)

    # --- the round's changes ---------------------------------------------------------------------

    def update(
        self,
        table: TaskTable,
        load: MachineLoad,
        now_us: int,
        stream: int,
        slots: SlotState | None = None,
        observed: ObservedCell | None = None,
    ) -> None:
        """Bring the graph up to date with the table, the load, the prices of slots, and what the
        policy observes.

        The arcs of new aggregators come in an order drawn from `stream`: the solver breaks ties by
        it, and schedulers that break ties alike would claim the same machines.
        """
        self.arcs.added = self.arcs.altered = 0
        self._quantum = now_us // self._policy.wait_price.quantum_us
        self.load = load
        if observed is not None:
            self._policy.observe(observed, now_us)
            self._aggregators.grow()
        removed, started, joining = table.begin_update(self._preemption)
        if len(removed):
            self.tasks -= len(removed)
            self.solver.remove_nodes(removed)
        machine = self._machine_arcs.set_load(load, slots)
        if self._aggregators.follow_load:
            machine = self._observations.changed(load, observed, table, machine)
        self._aggregators.set_load(machine, load)
        progress_price = self._policy.progress_price
        risen = progress_price.cost * (now_us // progress_price.quantum_us)
        if not self._preemption:
            risen = 0
        check_progress(self._policy, risen)
        self._machine_arcs.raise_placements(risen)
        if self._arcs_change:
            self._refresh_aggregators(load, stream)
        if self._tasks_change:
            self._refresh_tasks(table, load, stream)
        self.joined = len(joining)
        if len(joining):
            self._join(table, joining, load, stream, risen)
        self._groups.close_empty(table)
        self._groups.price_waiting(table, self._quantum, risen)
        have_to_wait = (
            self._groups.bound(table, load, self._quantum) if self._groups.has_bounds else 0
        )
        waits = joining
        if self._preemption:
            runs = table.state[joining] == TaskState.RUNNING
            waits = joining[~runs]
            # A waiting task that now runs keeps its node and gets one more arc.
            self._add_running_arcs(table, np.concatenate([started, joining[runs]]))
        if self._policy.patience_us:
            self._patience.add(table, waits, now_us, risen)
            self._patience.close(table, started, now_us)
        table.end_update()
        to_sink = self.tasks - have_to_wait
        self._risen = risen * to_sink
        self.solver.set_supply(self._sink_node, np.array([-to_sink], np.int64))

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
        if status == Status.INFEASIBLE and self._groups.has_bounds:
            unmet = self._groups.unmet_bounds(self.solver.cut)
            if unmet:
                raise PolicyError(f"{self._policy.name}: {unmet}")
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

    def certificate_of_changes(self, rounds: int) -> Certificate:
        """The same from what has changed since the last round; all that has not is looked at once
        in so many rounds."""
        return self.solver.certify_changes(-(-self.solver.num_nodes // rounds))

    def running(self, table: TaskTable) -> tuple[Int64, Int64]:
        """What the flow does with running tasks: the rows of those that it moves, and how many
        others stay on each machine, int64[M]."""
        return self.arcs.running(table, self._machines)

    def placements(
        self,
        table: TaskTable,
        row: Int64,
        head: Int64,
        staying: Int64 | None,
        view: ClusterView,
        stream: int,
    ) -> Int64:
        """Place tasks whose flow goes to these machines and aggregators first, int64[n] each.

        All tasks whose flow goes to machines must be among them, except running ones that stay, as
        many on each machine as `staying` says (int64[M]; None: none).

        Returns:
            int64[n], machine rows. Where paths of the same cost lead to several machines, the
            emptiest in the view; of equals one drawn at random.
        """
        room = self._machine_arcs.room
        if staying is not None:
            room = room - staying
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

    def may_be_placed(self, table: TaskTable, row: Int64, placed: Int64) -> NDArray[np.bool_]:
        """Which of these waiting tasks may be placed beside the flow's (rows, int64[n] and
        int64[p]), because enough tasks of their groups are left waiting: bool[n]."""
        if not self._groups.has_bounds:
            return np.ones(len(row), bool)
        unplaced = np.setdiff1d(table.waiting(), placed, assume_unique=True)
        return self._groups.leave_enough(table, row, unplaced)

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
    def nodes(self) -> GraphNodes:
        """The nodes that are not those of single tasks and groups, which the task table has."""
        return GraphNodes(
            self._policy,
            1 if self._pricing is None else self._pricing.scale,
            self._machine_arcs.risen,
            self._sink,
            self._machine_arcs.node,
            self._machine_arcs.unpriced,
            self._machine_arcs.entrance_of_priced,
            self._aggregators.node,
            self._patience.node,
        )

    @property
    def work(self) -> Stats:
        """What the last solve did."""
        return self.solver.stats

    @property
    def cost(self) -> int:
        """What the last flow costs by what the policy says. In the solver's graph, what rises for
        all tasks alike is added, and tasks that have to wait pay their group nothing."""
        return self.solver.cost - self._risen + self._groups.prepaid

    @property
    def size(self) -> int:
        """Nodes and arcs."""
        return self.solver.num_nodes + self.solver.num_arcs

    def wait_cost(self, table: TaskTable, row: Int64, now_us: int) -> Int64:
        """The cost of leaving these tasks (rows, int64[n]), which are in the graph, waiting now:
        int64[n]."""
        tasks, quantum_us = table.batch(row), self._policy.wait_price.quantum_us
        waited: Int64 = now_us // quantum_us - tasks.submit_us // quantum_us
        cost: Int64 = self._policy.unscheduled_cost(tasks) + table.group_cost(row) * waited
        if not self._policy.patience_us:
            return cost
        patient, _ = self._patience.price(tasks, now_us)
        return np.where(patient >= 0, np.minimum(patient, cost), cost)

    def loss(self, tasks: TaskBatch, machine: Int32, since_us: Int64, now_us: int) -> Int64:
        """By how much more running tasks, which need not be in the graph, would cost if they waited
        now instead of running on: int64[n].

        Args:
            tasks: The tasks.
            machine: int32[n], where they run.
            since_us: int64[n], since when.
        """
        waiting, running = self._policy.wait_price, self._policy.progress_price
        waited = now_us // waiting.quantum_us - tasks.submit_us // waiting.quantum_us
        ran = now_us // running.quantum_us - since_us // running.quantum_us
        waits: Int64 = self._policy.unscheduled_cost(tasks) + waiting.cost * waited
        stays: Int64 = self._policy.running_arc_cost(tasks, machine.astype(np.int64))
        return waits - (stays - running.cost * ran)

    # --- tasks -----------------------------------------------------------------------------------

    def _join(
        self, table: TaskTable, row: Int64, load: MachineLoad, stream: int, risen: int
    ) -> None:
        """Nodes for these tasks, with the arcs every task has."""
        tasks = table.batch(row)
        arcs = self._ask(tasks)
        self._aggregators.open(arcs.head, load, stream)
        late = self._groups.enter(table, row, tasks, self._quantum, risen)
        node = self.arcs.add_nodes(len(row), supply=1)
        table.set_node(row, node)
        self.tasks += len(row)
        self.arcs.add_joining_tasks(
            self._with_costs(table, row, tasks, late),
            arcs,
            self._machine_arcs.entrance_of_preferred,
            self._aggregators.node,
        )
        if self._tasks_change:
            known, largest = len(self._joined_before), int(tasks.task.max())
            if largest >= known:
                more = np.zeros(max(largest + 1 - known, known), bool)
                self._joined_before = np.append(self._joined_before, more)
            self._joined_before[tasks.task] = True

    def _ask(self, tasks: TaskBatch) -> TaskArcs:
        """The arcs that the policy gives these tasks."""
        arcs = arcs_as_int64(self._policy, self._policy.task_arcs(tasks), "task_arcs")
        self._aggregators.grow()
        check_rows(self._policy, arcs.row, len(tasks))

        def name_of_tail(arc: int) -> str:
            return f"task {int(tasks.task[arcs.row[arc]])}"

        def name_of_arc(arc: int) -> str:
            return f"{name_of_tail(arc)} to {name_of_head(self._policy, arcs.head[arc])}"

        check_heads(self._policy, arcs.head, self._machines, name_of_tail)
        check_costs(self._policy, arcs.cost, name_of_arc)
        return arcs

    def _with_costs(
        self, table: TaskTable, row: Int64, tasks: TaskBatch, late: Int64
    ) -> JoiningTasks:
        """These tasks, with what leaving them waiting costs beside the price of their group."""
        said = answer(
            self._policy, self._policy.unscheduled_cost(tasks), len(row), "unscheduled_cost"
        )
        cost = said + late
        check_costs(self._policy, cost, lambda i: f"task {int(tasks.task[i])} to where it waits")
        return JoiningTasks(row, table.node[row], table.group_node(row), cost)

    # --- what the policy says anew ---------------------------------------------------------------

    def _refresh_aggregators(self, load: MachineLoad, stream: int) -> None:
        which = "stale_aggregators"
        stale = as_int64(self._policy, self._policy.stale_aggregators(), which)
        self._aggregators.grow()
        first = _native.first_outside(stale, 0, self._policy.aggregators - 1)
        if first >= 0:
            raise PolicyError(
                f"{self._policy.name}: {which}: aggregator {int(stale[first])} does not exist; "
                f"there are {self._policy.aggregators}"
            )
        if len(stale):
            self._aggregators.refresh(stale, load, stream)

    def _refresh_tasks(self, table: TaskTable, load: MachineLoad, stream: int) -> None:
        task = as_int64(self._policy, self._policy.stale_tasks(), "stale_tasks")
        if len(task) == 0:
            return
        row = table.rows(task)
        known = len(self._joined_before)
        # Those that join in this round, as what runs already does, are asked about then.
        never = row == NO_ROW
        ended = never & (task >= 0) & (task < known)
        never[ended] = ~self._joined_before[task[ended]]
        if never.any():
            raise PolicyError(
                f"{self._policy.name}: stale_tasks: task {int(task[never][0])} was never in the "
                f"graph"
            )
        row = np.unique(row[row != NO_ROW])
        row = row[table.node_state[row] != TaskNodeState.NONE]  # others have ended, or may not move
        if len(row) == 0:
            return
        tasks = table.batch(row)
        arcs = self._ask(tasks)
        self._aggregators.open(arcs.head, load, stream)
        late = table.cost_of_lateness(row, self._policy.wait_price.quantum_us)
        self.arcs.relist_tasks(
            self._with_costs(table, row, tasks, late),
            arcs,
            self._machine_arcs.entrance_of_preferred,
            self._aggregators.node,
        )
        row = row[table.node_state[row] == TaskNodeState.RUNNING]
        if len(row) == 0:
            return
        if not self._migration:
            self._close_other_machines(row)
        cost = self._running_arc_cost(table, row)
        self.solver.set_cost(table.running_arc[row], cost)
        self.arcs.altered += len(row)

    # --- running tasks ---------------------------------------------------------------------------

    def _add_running_arcs(self, table: TaskTable, row: Int64) -> None:
        machine = table.machine[row]
        cost = self._running_arc_cost(table, row)
        if not self._migration:
            self._close_other_machines(row)
        arc = self.arcs.add_task_arcs(
            row, table.node[row], machine, self._machine_arcs.node[machine], cost
        )
        table.set_running_arc(row, arc)

    def _running_arc_cost(self, table: TaskTable, row: Int64) -> Int64:
        """What the running arcs of these tasks cost: what the policy says, and what has risen for
        all else when they started."""
        said = self._policy.running_arc_cost(table.batch(row), table.machine[row])
        price = self._policy.progress_price
        cost: Int64 = answer(self._policy, said, len(row), "running_arc_cost") + price.cost * (
            table.since_us[row] // price.quantum_us
        )

        def name_of_arc(i: int) -> str:
            return f"task {int(table.task[row[i]])} to machine {int(table.machine[row[i]])}"

        check_costs(self._policy, cost, name_of_arc)
        return cost

    def _close_other_machines(self, row: Int64) -> None:
        """Leave running tasks only their running arc and the one to U_j."""
        arc, arcs = self.arcs.arcs_of(row)
        to_machines = arc[arcs.head != UNSCHEDULED]
        self.solver.set_capacity(to_machines, np.zeros(len(to_machines), np.int64))
        self.arcs.altered += len(to_machines)
