"""The flow graph manager: task and cell changes become merged bulk changes of the solver's graph,
once per round.

The graph holds what may still move: waiting tasks, and running ones under preemption. What may not
move (tasks in flight, tasks of others, running tasks without preemption) is no part of it, but
takes from the capacity of its machine, as the view shows. A placement therefore costs one removed
node and one lowered capacity, and rounds cost what changed, not what runs.

The waiting price rises for all tasks alike, so it sits on the arcs U_j -> sink: one cost per job
and quantum, not one per task. A task's own arc to U_j corrects for having come later than the job's
first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flowsolver import Certificate, Stats, Status
from flowsolver.solution import describe_cut
from schedulers.flow.aggregators import Aggregators, JobAggregators, PatienceArcs
from schedulers.flow.extraction import flow_placements
from schedulers.flow.machine_arcs import MachineArcs
from schedulers.flow.policies.policy import (
    MachineLoad,
    Policy,
    TaskArcs,
    as_int64,
    check_costs,
    check_heads,
    check_rows,
)
from schedulers.flow.slot_pricing import SlotPricing, SlotState
from schedulers.flow.solver_graph import JoiningTasks, SolverGraph
from schedulers.flow.task_table import TaskNodeState, TaskState, TaskTable
from shared_state.tasks import Int64, TaskBatch
from shared_state.view import ClusterView


class FlowGraph:
    """The flow graph of one scheduler: `update` brings it up to date, `solve` re-optimises it.

    Attributes:
        arcs: The solver's graph, which also says where the flow of tasks goes.
        solver: Its solver.
        tasks: How many have a node in it.
        joined: How many of them joined in the current round.
    """

    def __init__(
        self, policy: Policy, machines: int, preemption: bool, pricing: SlotPricing | None = None
    ) -> None:
        """
        Args:
            policy: The policy; that of `pricing`, if there is one.
            machines: Of the cell.
            preemption: Whether running tasks stay in the graph.
            pricing: How slot prices count, if there are any.
        """
        self.arcs = SolverGraph()
        self.solver = self.arcs.solver
        self._policy = policy
        self._pricing = pricing
        self._preemption = preemption
        self._machines = machines
        self.tasks = 0
        self.joined = 0
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

    def solve(self, table: TaskTable) -> None:
        """Re-optimise, and take in what flow has changed."""
        status = self.solver.resolve()
        if status != Status.OPTIMAL:
            raise RuntimeError(
                f"{self._policy.name}: the flow problem was left {status.name}"
                f"{self._infeasibility(table)}"
            )
        self.arcs.take_flow(self._aggregators.inner.flow)

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
        arcs = self._task_arcs(tasks)
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

    def _task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        arcs, policy = self._policy.task_arcs(tasks), self._policy
        return TaskArcs(
            as_int64(policy, arcs.row, "row of task_arcs"),
            as_int64(policy, arcs.head, "head of task_arcs"),
            as_int64(policy, arcs.cost, "cost of task_arcs"),
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
        arc = self.arcs.add_task_arcs(
            row, table.node[row], machine, self._machine_arcs.node[machine], cost
        )
        table.set_running_arc(row, arc, base)

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
