"""Priority preemption by a flow scheduler: tasks that its flow leaves waiting take the room of
running tasks of lower priority, of whatever scheduler, where the cell's policy allows it.

The victims could be arcs of the scheduler's graph: capacity of machines that costs what the victims
lose. But who may use it depends on the task (a victim makes room for higher priorities only, and
for no other claim on its machine), and a flow has one commodity: it would take a copy of the way
from tasks to machines for each priority. So the round's flow is settled first, on the room that
there is. Then the tasks that it leaves waiting are assigned by a small flow of their own, one for
each priority and request, the highest priority first:

    T --placement cost--> M             cheaper than waiting; M may be any machine
    M --0--> S                          a task for which there is room
    M --what victims lose--> S          one more task, and so on, for which victims make room
    T --dearer than all of these--> S   waits

So it places as many tasks as it can, and among the ways to do so takes the cheapest. Priority
decides who makes room for whom; costs decide where. What a victim loses is what the round's flow
would charge for having it wait instead of running on: the cost of waiting, as long as it has been
since its submission, less the cost of its place, plus its progress.

A task never makes room for one of its own priority, so no two tasks can take turns. Victims that
the claims turn out not to need run on. Tasks of gangs wait for room instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsolver import FlowNetwork, Status, solve
from schedulers.flow.extraction import PlacementValue
from schedulers.interface import NONE
from schedulers.objective import placement_cost
from schedulers.running_tasks import RunningTasks
from schedulers.units import units_in
from shared_state.random import Stream
from shared_state.tasks import NOWHERE_ELSE, Int32, Int64, PreferenceCatalog, TaskBatch

# Beyond the priorities of tasks, which are int32.
_BELOW_ALL = -(1 << 31) - 1
DEAREST = 1 << 40  # what a victim may be said to lose; keeps sums within the solver's range


class MadeRoom(NamedTuple):
    """The claims for which victims make room, k of them.

    Attributes:
        row: int64[k], which of the waiting tasks.
        machine: int64[k].
        victim: int64[v], which of the running tasks are to end.
    """

    row: Int64
    machine: Int64
    victim: Int64


class RoomMaker:
    """Makes room for the tasks that a round leaves waiting.

    Args:
        running: Tasks of lower priority than all claims on their machines.
        loss: int64[n], what each of them loses if it ends.
        room: int64[M, R], what is free beside the claims of the plan; negative for machines that
            are down. It is kept up to date.
        catalog, rack: Of the workload and the cell, for placement costs.
        value: What placements count as, compared with what waiting costs.
        stream: The key of the draw of the machine at which ties begin.
    """

    def __init__(
        self,
        running: RunningTasks,
        loss: Int64,
        room: Int64,
        catalog: PreferenceCatalog,
        rack: Int32,
        value: PlacementValue,
        stream: int,
    ) -> None:
        loss = np.clip(loss, 0, DEAREST)
        self._order = np.lexsort((running.allocation, loss, running.machine))
        self._running = running.take(self._order)
        self._loss = loss[self._order]
        self._room = room
        self._catalog, self._rack, self._value = catalog, rack, value
        self._runs: NDArray[np.bool_] = np.ones(len(self._order), np.bool_)
        # by machine: the highest priority of those that end
        self._highest = np.full(len(room), _BELOW_ALL, np.int64)
        start = int(Stream(stream).integers(1, max(len(room), 1))[0])
        self._turn = (np.arange(len(room)) - start) % max(len(room), 1)

    def place(self, tasks: TaskBatch, wait_cost: Int64) -> MadeRoom:
        """Place waiting tasks (those of a gang excepted), which cost wait_cost, int64[n], if they
        wait on."""
        machine = np.full(len(tasks), -1, np.int64)
        kinds = np.column_stack([-tasks.priority.astype(np.int64), tasks.request])
        _, of_kind = np.unique(kinds, axis=0, return_inverse=True)
        of_kind = of_kind.reshape(-1)
        for kind in range(int(of_kind.max(initial=-1)) + 1):
            rows = np.flatnonzero(of_kind == kind)
            machine[rows] = self._place_alike(tasks.take(rows), wait_cost[rows])
        placed = np.flatnonzero(machine >= 0)
        return MadeRoom(placed, machine[placed], np.sort(self._order[~self._runs]))

    def _place_alike(self, tasks: TaskBatch, wait_cost: Int64) -> Int64:
        """As place, for tasks of one priority and one request: int64[n], -1 for those that wait."""
        priority, request = int(tasks.priority[0]), tasks.request[0]
        is_open = self._open(priority, request)
        lower = np.flatnonzero(
            self._runs & (self._running.priority < priority) & is_open[self._running.machine]
        )
        places = self._places(lower, request, is_open, len(tasks))
        if not len(places.machine):
            return np.full(len(tasks), -1, np.int64)
        task, machine, cost = self._arcs(tasks, wait_cost, places)
        chosen = _assign(len(tasks), task, machine, cost, places)
        for taken in np.unique(chosen[chosen >= 0]).tolist():
            need = request * int(np.count_nonzero(chosen == taken))
            self._end(lower[self._running.machine[lower] == taken], taken, need)
        return chosen

    def _open(self, priority: int, request: Int64) -> NDArray[np.bool_]:
        """Whether tasks of this priority and request may take room on each machine: bool[M]."""
        up = np.all((self._room >= 0) | (request == 0), axis=1)
        is_open: NDArray[np.bool_] = up & (self._highest < priority)
        return is_open

    def _places(
        self, lower: Int64, request: Int64, is_open: NDArray[np.bool_], most: int
    ) -> _Places:
        """The places for tasks of a request, up to `most` on each machine: those for which there is
        room, and those for which victims (lower, int64[v], rows) make room."""
        free = np.minimum(np.where(is_open, units_in(self._room, request), 0), most)
        machine = self._running.machine[lower].astype(np.int64)
        # what is free on each victim's machine once it and those before it have ended
        freed = np.cumsum(self._running.request[lower], axis=0)
        loss = np.cumsum(self._loss[lower])
        begins = np.ones(len(lower), np.bool_)
        begins[1:] = np.diff(machine) != 0
        first = np.maximum.accumulate(np.where(begins, np.arange(len(lower)), 0))
        freed -= (freed - self._running.request[lower])[first]
        loss -= (loss - self._loss[lower])[first]
        units = np.minimum(units_in(self._room[machine] + freed, request), most)
        units = np.maximum(units, free[machine])
        before = np.where(begins, free[machine], np.concatenate([units[:1], units[:-1]]))
        opened = np.maximum(units - before, 0)
        # what victims lose since the last place was opened counts for the next
        opens = np.flatnonzero(opened)
        since = np.concatenate([[-1], opens[:-1]]) if len(opens) else NONE
        same = (since >= 0) & (machine[opens] == machine[np.maximum(since, 0)])
        price = loss[opens] - np.where(same, loss[np.maximum(since, 0)], 0)
        has_room = np.flatnonzero(free)
        of_machine = np.concatenate([has_room, machine[opens]])
        count = np.concatenate([free[has_room], opened[opens]])
        price = np.concatenate([np.zeros(len(has_room), np.int64), price])
        order = np.argsort(of_machine, kind="stable")
        return _Places(of_machine[order], count[order], _rising(of_machine[order], price[order]))

    def _arcs(
        self, tasks: TaskBatch, wait_cost: Int64, places: _Places
    ) -> tuple[Int64, Int64, Int64]:
        """Which tasks may go to which machines, and what the placements cost: int64[k] each.

        Of n tasks each has arcs to the n machines that are cheapest for it, counted with their
        first place: no more are needed, for n - 1 of them at most are taken by others.
        """
        first = np.flatnonzero(np.diff(places.machine, prepend=-1))
        machine, price = places.machine[first], places.price[first]
        turn = np.argsort(self._turn[machine])
        machine, price = machine[turn], price[turn]
        sets, of_set = np.unique(tasks.preference, return_inverse=True)
        found: list[tuple[Int64, Int64, Int64]] = []
        for place, preference in enumerate(sets.tolist()):
            plain, preferred = placement_cost(
                self._catalog,
                self._rack,
                np.full(len(machine), preference, np.int32),
                machine.astype(np.int32),
            )
            cost = self._value(plain, preferred, machine, self._room[machine])
            allowed = plain != NOWHERE_ELSE
            for task in np.flatnonzero(of_set == place).tolist():
                possible = np.flatnonzero(allowed & (cost < wait_cost[task]))
                possible = _cheapest(possible, cost[possible] + price[possible], len(tasks))
                row = np.full(len(possible), task, np.int64)
                found.append((row, machine[possible], cost[possible]))
        row, to, cost = (np.concatenate(column) for column in zip(*found, strict=True))
        return row, to, cost

    def _end(self, lower: Int64, machine: int, need: Int64) -> None:
        """End those of the victims on a machine (int64[v], by what they lose) that make enough
        room for what claims need, int64[R]: the dearest that can be spared run on."""
        room = self._room[machine] - need
        freed = room + np.cumsum(self._running.request[lower], axis=0)
        if np.all((room >= 0) | (need == 0)):
            ended = lower[:0]
        else:
            enough = np.all((freed >= 0) | (need == 0), axis=1)
            ended = lower[: int(np.argmax(enough)) + 1]
            left = freed[len(ended) - 1].copy()
            spared = np.zeros(len(ended), np.bool_)
            for place in range(len(ended) - 2, -1, -1):
                without = left - self._running.request[ended[place]]
                if np.all((without >= 0) | (need == 0)):
                    spared[place], left = True, without
            ended = ended[~spared]
        self._runs[ended] = False
        if len(ended):
            highest = int(self._running.priority[ended].max())
            self._highest[machine] = max(int(self._highest[machine]), highest)
        self._room[machine] = room + self._running.request[ended].sum(axis=0)


class _Places(NamedTuple):
    """Places on machines, by machine, then price: int64[k] each.

    Attributes:
        machine: Where.
        tasks: For how many.
        price: What victims lose for each.
    """

    machine: Int64
    tasks: Int64
    price: Int64


def _rising(machine: Int64, price: Int64) -> Int64:
    """The prices (int64[k]) of places that are sorted by machine, none below one before it on its
    machine: a flow takes the cheaper first, and victims end in their order."""
    apart = int(price.max(initial=0)) + 1
    above = apart * np.cumsum(np.diff(machine, prepend=machine[:1]) != 0)
    rising: Int64 = np.maximum.accumulate(price + above) - above
    return rising


def _cheapest(machine: Int64, cost: Int64, most: int) -> Int64:
    """The `most` cheapest of some machines, in their order; of equals the first."""
    if len(machine) <= most:
        return machine
    dearest = int(np.partition(cost, most - 1)[most - 1])
    kept = cost < dearest
    equals = np.flatnonzero(cost == dearest)
    kept[equals[: most - int(np.count_nonzero(kept))]] = True
    return machine[kept]


def _assign(tasks: int, task: Int64, machine: Int64, cost: Int64, places: _Places) -> Int64:
    """The machine of each task, int64[tasks], -1 where it waits: as many tasks as possible are
    placed, at the least cost.

    Args:
        task, machine, cost: int64[k] each, the arcs from tasks to machines.
        places: On these machines, and others.
    """
    chosen = np.full(tasks, -1, np.int64)
    used, head = np.unique(machine, return_inverse=True)
    if not len(used):
        return chosen
    network = FlowNetwork()
    tail = network.add_nodes(np.ones(tasks, np.int64))
    middle = network.add_nodes(np.zeros(len(used), np.int64))
    sink = network.add_nodes(np.array([-tasks]))[0]
    arcs = network.add_arcs(tail[task], middle[head], 1, cost)
    there = np.flatnonzero(np.isin(places.machine, used))
    of = np.searchsorted(used, places.machine[there])
    network.add_arcs(middle[of], sink, places.tasks[there], places.price[there])
    span = int(np.abs(cost).max()) + int(places.price.max())
    network.add_arcs(tail, sink, 1, (span + 1) * (tasks + 1))
    solution = solve(network)
    if solution.status != Status.OPTIMAL:
        raise RuntimeError(f"priority preemption: the flow problem was left {solution.status.name}")
    taken = np.flatnonzero(solution.flow[arcs])
    chosen[task[taken]] = machine[taken]
    return chosen
