"""Rounds of the flow scheduler: changes, prices, solve, extract, claims (Firmament sections 3.1 and
6.3, on a shared cell).

It sees the cell as its rivals do: a view as of its last sync. Its claims may be rejected; a
rejected task waits again, and the view shows the machine full, so the next round places it
elsewhere. A round's cost follows what changed since the last.

kinds.py has the kinds of flow scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, mul
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from flowsolver import Certificate, FlowNetwork, IncrementalSolver
from flowsolver.choices import AlgorithmChoice
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.flow.extraction import fit_together, in_whole_gangs, place_singly
from schedulers.flow.graph import UNROUTED, FlowGraph
from schedulers.flow.machine_arcs import SlotPricing, SlotState
from schedulers.flow.options import FlowOptions
from schedulers.flow.policies.interface import MachineLoad, ObservedCell, Policy
from schedulers.flow.priority_preemption import RoomMaker
from schedulers.flow.solver_graph import NO_ROW, UNSCHEDULED, TaskNodeState, TaskState, TaskTable
from schedulers.flow.solver_work import (
    BESIDE_PERMILLE,
    DEFAULT_ALGORITHM,
    RACE_PS,
    SolverWork,
    orders_beyond_cache,
)
from schedulers.flow.waiting import check_time_prices
from schedulers.interface import (
    NO_REASON,
    NONE,
    ChangeKind,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.prices.interface import LearnsPotentials, SharesDemand
from schedulers.prices.registry import PriceMode
from schedulers.running_tasks import FirstSeen, RunningTasks
from schedulers.units import FlowUnit, fits_somewhere, units_in
from shared_state.random import Stream
from shared_state.tasks import NO_GANG, Int64, TaskBatch, fits
from shared_state.view import ClusterView

# Algorithms whose flow is feasible when they are stopped, but for units without a way. The others
# give a flow when they are done (Firmament, Table 2).
PLACES_WHEN_STOPPED = frozenset({"cost_scaling", "cycle_cancelling", "network_simplex"})
_RUNNING = (ChangeKind.COMMITTED, ChangeKind.ADOPTED)
# Under preemption all tasks are in the graph. There each round is proved from the round before: all
# that changed, not only what the solver touched. So the rest is looked at less often.
_RELIANCE = 8
MAX_PRIORITY = (1 << 31) - 1


class FlowScheduler:
    """A schedulers.interface.Scheduler that keeps pending tasks. Under preemption, tasks that it
    adopts may be moved like those that it placed. A gang is claimed when all its waiting tasks have
    a place; until then their places are not given to others. `work` counts what the last plan
    did."""

    work: RoundWork

    def __init__(
        self, policy: Policy, options: FlowOptions, environment: SchedulerEnvironment
    ) -> None:
        self._options = options
        self._cell = environment.cell
        self._catalog = environment.catalog
        dimensions = len(environment.cell.dimensions)
        self.table = TaskTable(dimensions)
        machines = environment.cell.machines
        self._estimator = options.estimator(environment)
        self._learner = self._estimator if isinstance(self._estimator, LearnsPotentials) else None
        pricing = None
        if self._estimator is not None:
            pricing = SlotPricing(options, policy, machines, options.preemption)
            policy = pricing.policy
        check_time_prices(policy, options.preemption, environment.end_us)
        self._policy = policy
        self._observes = policy.overrides("observe")
        self._knows_running = options.preemption or policy.observes_running
        self._prices_are_paid = pricing is not None and options.price_mode is PriceMode.PAID
        racers = options.algorithm
        self.graph = FlowGraph(
            policy,
            machines,
            options.preemption,
            pricing,
            migration=options.migration,
            solver=IncrementalSolver(FlowNetwork(), racers, deterministic=options.deterministic),
        )
        self._racers = racers
        self._solved_by_before: AlgorithmChoice | None = None
        self._places_when_stopped = racers[0].name in PLACES_WHEN_STOPPED
        self._seen = FirstSeen() if options.priority_preemption else None
        self._typical = FlowUnit(dimensions)
        self._total = np.zeros(machines, np.int64)  # units an empty machine holds
        self._limit = environment.cell.limit
        self._solver_operations = 0  # of the last round, if not of the default algorithm
        self._price_operations = 0  # counted by the estimator in the last round
        self._priced_machines = 0  # whose prices were made anew for it
        self._size = self.graph.size  # after the last round
        self._rounds = 0

    @property
    def shared_demand(self) -> SharesDemand | None:
        """What learns demand in it (SharingScheduler)."""
        return None if self._estimator is None else self._estimator.shared_demand

    # --- what became of tasks --------------------------------------------------------------------

    def observe(self, changes: TaskChanges) -> None:
        self._policy.learn(changes)
        kind = changes.kind
        if kind == ChangeKind.REJECTED:
            self.table.reject(changes.task)
        elif self._knows_running and kind in _RUNNING:
            if changes.adopted is not None:
                self.table.offer(changes.adopted)
            self.table.run(changes.task, changes.machine, changes.allocation, changes.at_us)
        else:  # it runs for good, or has ended; evicted and lost tasks are offered again
            self.table.forget(changes.task)

    # --- one round -------------------------------------------------------------------------------

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        begin_ns = perf_counter_ns()
        self._rounds += 1
        self.table.offer(tasks)
        load = self._load(view)
        slots = self._price_slots(tasks, view, load, context.now_us)
        observed = self._observed(view) if self._observes else None
        self.graph.update(self.table, load, context.now_us, context.stream, slots, observed)
        graph_ns = perf_counter_ns()
        self.graph.solve(self.table, self._options.max_operations, self._places_when_stopped)
        certificate = self._certify() if self.graph.reached is None else None
        if self._learner is not None and certificate is not None:
            self._learner.learn_potentials(*self.graph.potentials(), context.now_us)
        solve_ns = perf_counter_ns()
        row, machine, evict, figures = self._extract(view, context)
        claims = self.table.batch(row)
        pending, reason = self._pending(tasks, view.free, claims.request, machine, context.now_us)
        extract_ns = perf_counter_ns()
        self.work = self._count(certificate, figures)
        self._solver_operations = self._count_solver()
        figures |= {
            "tasks": self.graph.tasks,
            "graph_us": (graph_ns - begin_ns) // 1000,
            "solve_us": (solve_ns - graph_ns) // 1000,
            "extract_us": (extract_ns - solve_ns) // 1000,
            "arcs_scanned": self.graph.work.scanned,
            "nodes": self.graph.solver.num_nodes,
            "arcs": self.graph.solver.num_arcs,
            "unrouted": self.graph.unrouted,
        }
        return Plan(
            task=claims.task,
            machine=machine.astype(np.int32),
            request=claims.request,
            gang=claims.gang,
            evict=evict,
            pending=pending,
            pending_reason=reason,
            operations=self.work.operations + self._solver_operations + self._price_operations,
            stats=figures,
            retry_at_us=self._patience_ends_us(),
            priced_machines=self._priced_machines,
        )

    def _patience_ends_us(self) -> int | None:
        """When the patience of the first waiting task that has some ends."""
        return self.table.first_end_of_patience() or None if self._policy.patience_us else None

    def _load(self, view: ClusterView) -> MachineLoad:
        table = self.table
        if self._typical.known and table.waiting_ask_for(self._typical.unit):
            self._typical.exact = True
        elif self._typical.update(table.requests(table.waiting())):
            self._total = units_in(self._limit, self._typical.unit)
        free = units_in(view.free, self._typical.unit)
        room = free
        if self._options.preemption:
            room = free + np.where(view.up, table.running_on(len(free)), 0)
        used = self._total - free
        return MachineLoad(self._total, np.maximum(used, 0, out=used), room, free)

    def _observed(self, view: ClusterView) -> ObservedCell:
        """What the policy is told of the cell."""
        running = NONE
        if self._policy.observes_running:
            running = np.flatnonzero(self.table.state == TaskState.RUNNING)
        return ObservedCell(
            self._limit,
            view.free,
            view.up,
            self.table.batch(running),
            self.table.machine[running].astype(np.int32),
        )

    def _price_slots(
        self, tasks: TaskBatch, view: ClusterView, load: MachineLoad, now_us: int
    ) -> SlotState | None:
        """The slots and their prices in this round, which has been offered these tasks."""
        estimator = self._estimator
        if estimator is None:
            return None
        estimator.offered(tasks.task, tasks.preference, tasks.request)
        prices = estimator.update(view, now_us)
        self._price_operations = estimator.operations
        self._priced_machines = len(prices.price) if estimator.operations else 0
        if prices.unit.tolist() == self._typical.unit.tolist():
            return SlotState(prices, load.free)  # a slot is a unit of the flow
        return SlotState(prices, np.minimum(units_in(view.free, prices.unit), prices.slots))

    def _certify(self) -> Certificate:
        """Prove the round's flow optimal."""
        every = self._options.certify_every
        if self._options.preemption:
            certificate = self.graph.certificate_of_changes(_RELIANCE * every)
        else:
            certificate = self.graph.certificate(whole=self._rounds % every == 0)
        if not certificate.ok:
            raise RuntimeError(
                f"round {self._rounds}: the solver's flow fails its optimality certificate"
            )
        return certificate

    @property
    def solved_by(self) -> AlgorithmChoice:
        """The algorithm of the last answer; of a round that ended early the one named first."""
        winner = self.graph.solver.winner
        if self.graph.reached is not None or winner is None:
            return self._racers[0]
        # small budgets, time and again, make shortest paths complete a solve
        named = (racer for racer in self._racers if racer.name == winner)
        return next(named, None) or AlgorithmChoice(winner)

    def _count_solver(self) -> int:
        """The operations of the solver, if its algorithm is not the default, whose are part of
        RoundWork; of a race those of the winner, and what running beside others adds."""
        by, graph = self.solved_by, self.graph
        # who lost begins anew, with the winner's answer
        reads_all = by.from_scratch or (len(self._racers) > 1 and by != self._solved_by_before)
        self._solved_by_before = by
        spent_ps = 0
        if by.name != DEFAULT_ALGORITHM:
            spent_ps = SolverWork.of(graph.work, graph.size, reads_all).duration_ps(by.name)
        if len(self._racers) > 1:
            spent_ps = RACE_PS + spent_ps * BESIDE_PERMILLE // 1000
        return spent_ps // PS_PER_OPERATION

    def _count(self, certificate: Certificate | None, figures: dict[str, int]) -> RoundWork:
        graph, machines = self.graph, self._cell.machines
        solve = graph.work
        own = int(self.solved_by.name == DEFAULT_ALGORITHM)  # others: _count_solver()
        settled, repaired = own * solve.settled, own * solve.repaired
        size = graph.size
        removed = self._size + graph.arcs.added - size
        self._size = size
        certified = 0 if certificate is None else certificate.arcs_checked
        # a proof of all arcs reads them in order
        read = certified if certified >= graph.solver.num_arcs else 0
        certified -= read
        altered = graph.arcs.altered
        touched = graph.arcs.added + removed + altered + settled + repaired + certified
        return RoundWork(
            rounds=1,
            joining=int(graph.joined > 0),
            placing=int(figures["placed"] > 0),
            machines=machines * len(self._cell.dimensions),
            table_rows=self.table.capacity,
            waiting=figures["waiting"],
            added=graph.arcs.added,
            removed=removed,
            altered=altered,
            scanned=own * solve.scanned,
            settled=settled,
            augmented=own * solve.augmentations,
            repaired=repaired,
            certified=certified,
            read=read,
            rebuilt=own * solve.rebuilds * size,
            far=touched * orders_beyond_cache(size),
            tried=figures["tried"] * machines,
        )

    def _extract(
        self, view: ClusterView, context: PlanContext
    ) -> tuple[Int64, Int64, Int64, dict[str, int]]:
        """The claims (row, machine: int64[k]), allocations to evict, and figures for the report.
        Moves the tasks' states on."""
        table = self.table
        waiting = table.waiting()
        ended_early = self.graph.reached is not None
        if self.graph.reached is not None:
            row, machine, migrated, preempted, free = self._take_reached(self.graph.reached, view)
        elif self._options.preemption:
            row, head = self.graph.arcs.sent(waiting)
            machine, migrated, preempted, free = self._move_running(row, head, view, context)
        else:
            row, head = self.graph.arcs.sent(waiting)
            machine = self.graph.placements(table, row, head, None, view, context.stream)
            migrated, preempted, free = NONE, NONE, view.free
        fit = fit_together(table.batch(row), machine, free)
        oversubscribed = len(row) - int(np.count_nonzero(fit))
        if oversubscribed:
            row, machine = row[fit], machine[fit]
        tried = repaired = 0
        if not self._typical.exact and not ended_early:
            row, machine, tried, repaired = self._repair(waiting, row, machine, free, context)
        whole = in_whole_gangs(table.gangs(row), table.gangs(waiting))
        held_back = len(row) - int(np.count_nonzero(whole))
        if held_back and ended_early:
            row, machine = row[whole], machine[whole]
        elif held_back:
            row, machine, more_tried, more = self._without_torn(
                waiting, row[whole], machine[whole], free, context
            )
            tried, repaired = tried + more_tried, repaired + more

        evict = NONE
        if len(migrated) or len(preempted):
            preempted = self._needed(preempted, view.free, row, machine)
            evicted = np.concatenate([migrated, preempted])
            evict = table.allocation[evicted]
            table.set_state(evicted, TaskState.EVICTING)
        if self._seen is not None and context.running is not None and not ended_early:
            row, machine, evict, more = self._make_room(
                waiting, row, machine, evict, context.running, view, context
            )
            tried += more
        table.set_state(row, TaskState.IN_FLIGHT)
        figures = {
            "waiting": len(waiting),
            "placed": len(row),
            "migrated": len(migrated),
            "preempted": len(preempted),
            "oversubscribed": oversubscribed,
            "tried": tried,
            "repaired": repaired,
            "held_back": held_back,
        }
        return row, machine, evict, figures

    def _move_running(
        self, row: Int64, head: Int64, view: ClusterView, context: PlanContext
    ) -> tuple[Int64, Int64, Int64, Int64]:
        """The machines of placed tasks (row, and where their flow goes first: int64[n] each)
        beside running tasks that the flow moves; the rows of those that it places elsewhere, and
        that it would have wait; and what is free without both, int64[M, R]."""
        table, graph = self.table, self.graph
        moved, staying = graph.running(table)
        moved_to = graph.arcs.destination(moved)
        on = moved_to != UNSCHEDULED
        found = graph.placements(
            table,
            np.concatenate([row, moved[on]]),
            np.concatenate([head, moved_to[on]]),
            staying,
            view,
            context.stream,
        )
        machine, moved_to[on] = found[: len(row)], found[len(row) :]
        differs = moved_to != table.machine[moved]
        return machine, *self._moved(moved[differs], moved_to[differs], view)

    def _moved(
        self, moved: Int64, moved_to: Int64, view: ClusterView
    ) -> tuple[Int64, Int64, Int64]:
        """Of running tasks (rows, int64[n]) that go to other machines, or to UNSCHEDULED: those
        that are placed, those that would wait, and what is free without both, int64[M, R]."""
        free = view.free
        if len(moved):
            free = free.copy()
            np.add.at(free, self.table.machine[moved], self.table.request[moved])
        waits = moved_to == UNSCHEDULED
        return moved[~waits], moved[waits], free

    def _take_reached(
        self, reached: Int64, view: ClusterView
    ) -> tuple[Int64, Int64, Int64, Int64, Int64]:
        """The tasks that an unfinished flow places (row, machine: int64[n]), and the running ones
        that it moves, as _moved()."""
        table = self.table
        row = table.waiting()
        row = row[reached[row] >= 0]
        running = np.flatnonzero(table.node_state == TaskNodeState.RUNNING)
        goes = (reached[running] != UNROUTED) & (reached[running] != table.machine[running])
        moved = running[goes]
        return row, reached[row], *self._moved(moved, reached[moved], view)

    def _repair(
        self, waiting: Int64, row: Int64, machine: Int64, free: Int64, context: PlanContext
    ) -> tuple[Int64, Int64, int, int]:
        """The claims, and added to them waiting tasks that could be placed singly; how many were
        tried, and placed. A random few when there are many."""
        left = free.copy()
        np.subtract.at(left, machine, self.table.request[row])
        over = np.setdiff1d(waiting, row, assume_unique=True)
        over = over[fits(self.table.request[over], left.max(axis=0))]
        over = over[self.graph.may_be_placed(self.table, over, row)]
        if len(over) > self._options.repairs:
            over = over[
                np.sort(Stream(context.stream).permutation(len(over))[: self._options.repairs])
            ]
        tasks = self.table.batch(over)
        wait_cost = self.graph.wait_cost(self.table, over, context.now_us)
        chosen = place_singly(
            tasks,
            wait_cost,
            left,
            self._catalog,
            self._cell.rack,
            context.stream,
            self.graph.placement_value,
        )
        found = chosen >= 0
        row, machine = np.concatenate([row, over[found]]), np.concatenate([machine, chosen[found]])
        return row, machine, len(over), int(np.count_nonzero(found))

    def _without_torn(
        self, waiting: Int64, row: Int64, machine: Int64, free: Int64, context: PlanContext
    ) -> tuple[Int64, Int64, int, int]:
        """As _repair, for claims without those of gangs that the flow would have torn. Their places
        go to waiting gangs as a whole, the first submitted first, and then to tasks without one:
        else a gang that has no room would keep others from theirs as long as it waits."""
        gang, tried, repaired = self.table.gang, 0, 0
        over = np.setdiff1d(waiting, row, assume_unique=True)
        over = over[np.argsort(gang[over], kind="stable")]
        alone = gang[over] < 0
        begins = np.flatnonzero(np.diff(gang[over], prepend=NO_GANG))
        for begin, end in zip(begins, np.append(begins[1:], len(over)), strict=True):
            if tried >= self._options.repairs:
                break
            members = over[begin:end]
            if tried + len(members) > self._options.repairs:
                continue
            with_gang = self._repair(members, row, machine, free, context)
            tried += with_gang[2]
            if with_gang[3] == len(members):
                row, machine = with_gang[:2]
                repaired += len(members)
        row, machine, more, found = self._repair(over[alone], row, machine, free, context)
        return row, machine, tried + more, repaired + found

    def _needed(self, victim: Int64, free: Int64, row: Int64, machine: Int64) -> Int64:
        """The running tasks that the flow would rather have waiting and whose place a claim
        needs."""
        if len(victim) == 0:
            return victim
        demand = np.zeros_like(free)
        np.add.at(demand, machine, self.table.request[row])
        short = np.zeros(len(free), bool)
        short[machine] = ~fits(demand[machine], free[machine])
        return victim[short[self.table.machine[victim]]]

    def _make_room(
        self,
        waiting: Int64,
        row: Int64,
        machine: Int64,
        evict: Int64,
        running: RunningTasks,
        view: ClusterView,
        context: PlanContext,
    ) -> tuple[Int64, Int64, Int64, int]:
        """The claims and the allocations to evict, and added to them waiting tasks for which
        running ones of lower priority make room; and how many were tried."""
        table, now_us = self.table, context.now_us
        assert self._seen is not None
        since_us = self._seen.since_us(running.allocation, now_us)
        over = np.setdiff1d(waiting, row, assume_unique=True)
        over = over[table.gangs(over) == NO_GANG]
        tasks = table.batch(over)
        urgent = np.flatnonzero(tasks.priority > running.priority.min(initial=MAX_PRIORITY))
        order = np.lexsort((tasks.task[urgent], tasks.submit_us[urgent], -tasks.priority[urgent]))
        over = over[urgent[order[: self._options.repairs]]]
        if not len(over):
            return row, machine, evict, len(running) // self._cell.machines
        claims = table.batch(row)
        room = np.where(view.up[:, None], view.free, -1)
        leaves = np.isin(running.allocation, evict)
        np.add.at(room, running.machine[leaves], running.request[leaves])
        np.subtract.at(room, machine, claims.request)
        lowest = np.full(len(room), MAX_PRIORITY + 1, np.int64)
        np.minimum.at(lowest, machine, claims.priority)
        own = table.rows(running.task)
        gone = own != NO_ROW  # but for those of which it is known that they run on
        gone[gone] = (table.state[own[gone]] != TaskState.RUNNING) | (
            table.allocation[own[gone]] != running.allocation[gone]
        )
        kept = np.flatnonzero(~leaves & ~gone & (running.priority < lowest[running.machine]))
        victims, tasks = running.take(kept), table.batch(over)
        loss = self.graph.loss(victims.as_tasks(), victims.machine, since_us[kept], now_us)
        maker = RoomMaker(
            victims,
            loss,
            room,
            self._catalog,
            self._cell.rack,
            self.graph.placement_value,
            context.stream,
        )
        made = maker.place(tasks, self.graph.wait_cost(table, over, now_us))
        if self._options.preemption:
            ended = own[kept[made.victim]]
            table.set_state(ended[ended != NO_ROW], TaskState.EVICTING)
        return (
            np.concatenate([row, over[made.row]]),
            np.concatenate([machine, made.machine]),
            np.concatenate([evict, victims.allocation[made.victim]]),
            len(over) + len(running) // self._cell.machines,
        )

    def _pending(
        self,
        tasks: TaskBatch,
        free: Int64,
        request: Int64,
        machine: Int64,
        now_us: int,
    ) -> tuple[Int64, NDArray[np.int8]]:
        """Which tasks of this call wait, and why.

        Args:
            request, machine: The claims of this call.
        """
        left_over = self.table.still_waiting(tasks.task)
        if len(left_over) == 0:
            return NONE, NO_REASON
        row = self.table.rows(tasks.task[left_over])
        left = free.copy()
        np.subtract.at(left, machine, request)
        fit = fits_somewhere(tasks.request[left_over], left)
        reason = np.full(len(left_over), PendingReason.NO_ROOM, np.int8)
        reason[fit] = PendingReason.PRICED_OUT
        if self._prices_are_paid:
            reason[fit & self._waits_for_prices(row, now_us)] = PendingReason.SLOTS_TOO_DEAR
        if self.graph.reached is not None:
            reason[fit & (self.graph.reached[row] == UNROUTED)] = PendingReason.NOT_ROUTED
        patient = self.table.patience_ends_us[row] > 0
        reason[patient] = PendingReason.WAITS_FOR_PREFERRED
        return tasks.task[left_over], reason

    def _waits_for_prices(self, row: Int64, now_us: int) -> NDArray[np.bool_]:
        """Whether the flow leaves these waiting tasks unplaced although any place costs less than
        waiting does, but for the price of its slot: bool[n]."""
        tasks = self.table.batch(row)
        if self.graph.reached is not None:
            return np.zeros(len(row), bool)
        unplaced = self.graph.arcs.destination(row) == UNSCHEDULED
        waits: NDArray[np.bool_] = unplaced & (
            self._policy.cost_anywhere(tasks) < self.graph.wait_cost(self.table, row, now_us)
        )
        return waits


@dataclass(frozen=True, slots=True)
class RoundWork:
    """The counted work of a round: what its decision time is made of under the Counted clock.

    Steps differ too much in what they take to be summed as they are (looking at a half-edge takes
    nanoseconds, bringing an arc in a tenth of a microsecond, an array call on nothing
    microseconds), so each kind has a weight in picoseconds. The weights were fitted to the
    processor time of 658 rounds of 20 cells: from 100 to 12,477 machines, half empty to
    oversubscribed, rounds of everything at once, of 2 to 2,000 changes, of time passing, of lost
    machines. tests/benchmarks/calibrate_flow_work.py has the rounds, makes the fit again and prints
    what it leaves.

    Attributes:
        rounds: 1.
        joining, placing: 1 if some task joined the graph, or was placed.
        machines: Times resources, which the statistics pass looks at.
        table_rows: Of the task table.
        waiting: Tasks in the graph that are not running.
        added, removed: Nodes and arcs.
        altered: Capacities and costs set.
        scanned, settled, augmented, repaired: The solver's (flowsolver Stats).
        certified: Arcs whose optimality was checked, if not all were.
        read: Arcs, if the optimality of all was checked.
        rebuilt: Nodes and arcs, if the solver rebuilt its residual graph.
        far: All nodes and arcs touched, times the binary orders of magnitude by which the graph
            exceeds 2^CACHED_BITS (solver_work.py).
        tried: Tasks that were placed one at a time, or not, times machines.
    """

    rounds: int
    joining: int
    placing: int
    machines: int
    table_rows: int
    waiting: int
    added: int
    removed: int
    altered: int
    scanned: int
    settled: int
    augmented: int
    repaired: int
    certified: int
    read: int
    rebuilt: int
    far: int
    tried: int

    @property
    def operations(self) -> int:
        """The weighted sum: an operation is what takes 100 ns on the machine of the calibration."""
        weighted: int = sum(map(mul, _counts(self), _WEIGHTS))
        return weighted // PS_PER_OPERATION


# Fitted on an x86-64 server core. Predicted over true time of the rounds: median 1.05, 10 % below
# 0.69, 10 % above 1.30, 3 % off by more than two; of the demo's cells median 1.1, 10 % below 0.7,
# 10 % above 1.4. Worst are rounds in which the solver solves an oversubscribed cell anew, after
# many changes at once: 0.25. The fit gives an augmentation nothing, as what it takes is in what
# comes with it; 50 ns are kept. Reading all arcs in order is measured by itself, in the replay of
# the Google trace (2.3 million arcs, 16 to 18 ms). On a run that was no part of the fit, the demo's
# flow arm: 0.85 (0.75 to 0.92), with the platform's own work in the true time.
WEIGHTS_PS = RoundWork(
    rounds=290_000_000,
    joining=160_000_000,
    placing=100_000_000,
    machines=18_000,
    table_rows=15_000,
    waiting=160_000,
    added=140_000,
    removed=24_000,
    altered=62_000,
    scanned=850,
    settled=120_000,
    augmented=50_000,
    repaired=255_000,
    certified=25_000,
    read=7_500,
    rebuilt=39_000,
    far=14_000,
    tried=6_000,
)
# dataclasses.astuple copies each value: it took a tenth of a round.
_counts = attrgetter(*(field.name for field in fields(RoundWork)))
_WEIGHTS: tuple[int, ...] = _counts(WEIGHTS_PS)
