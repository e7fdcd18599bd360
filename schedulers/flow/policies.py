"""What a policy decides: the arcs of the flow graph and their integer costs (Firmament, 3.3). First
the contract and its checks, then the policies: LoadSpreading and Quincy.

Every graph has the same frame, kept by graph.FlowGraph; a policy fills in what is between tasks and
machines:

    task --cost, 1 unit--> machine | aggregator          task_arcs
    task --cost, 1 unit--> U_j --waiting price--> sink   unscheduled_cost, wait_price; a U_j per job
    task --cost, 1 unit--> W --patience price--> sink    patient_wait_cost, while patience_us lasts
    aggregator --cost--> aggregator | machine            aggregator_arcs, machine_arc_capacity
    running task --cost--> its machine                   running_arc_cost, only under preemption
    machine --0, as many tasks as fit--> sink

With slot prices, the way into a machine gets arcs with the prices of its next slots
(machine_arcs.py). A policy's own costs never change with them.

The optimal flow takes each task along a path to the sink. The path says where the task is placed,
or that it waits; the sum of its costs is what that costs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.objective import placement_cost
from shared_state.tasks import NOWHERE_ELSE, CellSpec, Int64, PreferenceCatalog, TaskBatch

UNBOUNDED = 1 << 30  # a capacity no round reaches
MAX_COST = 1 << 40  # of one arc; keeps every path of a large graph within the solver's arithmetic
UNKNOWN_COST = np.iinfo(np.int64).max


class PolicyError(ValueError):
    """A policy asked for an impossible arc. The message names the policy and the arc."""


def to_aggregator(aggregator: Int64 | int) -> Int64:
    """The head of an arc that leads to these aggregators; heads >= 0 are machine rows.

    It is its own inverse.
    """
    return -1 - np.asarray(aggregator, np.int64)


@dataclass(frozen=True, slots=True)
class TaskArcs:
    """The arcs of one unit out of tasks, k of them.

    Attributes:
        row: int64[k], which task of the batch asked about.
        head: int64[k], a machine row or to_aggregator(a).
        cost: int64[k].
    """

    row: Int64
    head: Int64
    cost: Int64


@dataclass(frozen=True, slots=True)
class AggregatorArcs:
    """The arcs out of aggregators, k of them. Their costs never change.

    Attributes:
        tail: int64[k], aggregators.
        head: int64[k], as in TaskArcs.
        cost: int64[k].
        level: int64[k], tells parallel arcs to one machine apart (see machine_arc_capacity).
    """

    tail: Int64
    head: Int64
    cost: Int64
    level: Int64


Arcs = TypeVar("Arcs", TaskArcs, AggregatorArcs)


def join_arcs(parts: Sequence[Arcs]) -> Arcs:
    """The arcs of all parts, one part after the other."""
    kind = type(parts[0])
    names = [field.name for field in fields(kind)]
    return kind(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What the round's statistics pass found, counted in tasks of typical size (schedulers.units).

    Attributes:
        total: int64[M], what an empty machine holds.
        used: int64[M], what the tasks of all schedulers take.
        room: int64[M], what may flow through the machine: what is free, and under preemption also
            what this scheduler's own running tasks take.
        free: int64[M], what is free; the same array as `room` without preemption.
    """

    total: Int64
    used: Int64
    room: Int64
    free: Int64


@dataclass(frozen=True, slots=True)
class TimePrice:
    """A price of time, the same for all tasks: `cost` for each `quantum_us` begun.

    Quincy's 0.5 per second of waiting is 1 per 2 s.
    """

    cost: int
    quantum_us: int


class Policy(ABC):
    """The arcs between tasks and machines, and their costs.

    A policy is deterministic, and has no state that placements change: equal tasks and loads give
    equal arcs.

    Attributes:
        wait_price: What each quantum of waiting adds to the cost of leaving a task waiting.
        progress_price: What each quantum of running takes off the cost of letting a task run on,
            which protects the work that it has done.
        patience_us: How long after its submission a task may wait at patient_wait_cost (delay
            scheduling: Zaharia et al., EuroSys 2010).
        patience_price: What each quantum of such waiting adds, so that of two tasks the one that
            has waited longer is placed.
    """

    patience_us = 0
    patience_price = TimePrice(0, 1_000_000)
    wait_price = TimePrice(1, 1_000_000)
    progress_price = TimePrice(1, 1_000_000)

    @property
    def name(self) -> str:
        """The name for messages."""
        return type(self).__name__

    @property
    @abstractmethod
    def aggregators(self) -> int:
        """The number of aggregators A; they are numbered 0..A-1.

        An aggregator joins the graph with its first task, and stays.
        """

    @abstractmethod
    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        """All arcs out of these aggregators (int64[k]), each of which is asked for once.

        They may lead to other aggregators, without cycles.
        """

    @abstractmethod
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        """The arcs out of tasks, except those to their U_j."""

    @abstractmethod
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        """What leaving each task waiting costs, without the waiting price: int64[n]."""

    def is_elsewhere(self, aggregator: Int64) -> NDArray[np.bool_]:
        """Whether the arcs of these aggregators (int64[k]) into machines take tasks to machines
        that they do not prefer: bool[k].

        Arcs from tasks to machines lead to machines that they prefer.
        """
        return np.ones(len(aggregator), bool)

    @property
    def one_arc_elsewhere(self) -> bool:
        """Whether each machine has one arc at most that takes tasks there which do not prefer it,
        and its cost is 0 and its capacity `load.room`.

        Prices of places elsewhere then need no nodes of their own (machine_arcs.py).
        """
        return False

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        """The cost, without slot prices, at which each task may be placed on any machine that has
        room for it: int64[n]. A task that waits although waiting costs more waits because of slot
        prices."""
        return np.full(len(tasks), UNKNOWN_COST)

    def largest_cost(self) -> int:
        """The largest cost of an arc, without prices of time: 0 if it is not known beforehand."""
        return 0

    def patient_wait_cost(self, tasks: TaskBatch) -> Int64:
        """What waiting costs each task while its patience lasts, without the patience price:
        int64[n], negative for tasks that do not wait so.

        Called only if patience_us is above 0.
        """
        return np.full(len(tasks), -1, np.int64)

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        """How many tasks may take aggregator arcs of these levels into these machines: int64[k].

        Called when a machine's load changes.
        """
        return load.room[machine]

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        """The cost of the running arcs of tasks that just started on these machines: int64[n].

        Called only under preemption. The default lets every task stay unless a place or waiting
        costs less than nothing.
        """
        return np.zeros(len(tasks), np.int64)


def as_int64(policy: Policy, column: NDArray[Any], which: str) -> Int64:
    """The column as int64, or PolicyError if it may hold other numbers.

    Args:
        which: What it holds, for the message.
    """
    if column.dtype == np.int64:
        return column
    if not np.can_cast(column.dtype, np.int64):
        raise PolicyError(f"{policy.name}: {which}: expected int64, got {column.dtype}")
    return column.astype(np.int64)


def arcs_as_int64(policy: Policy, arcs: Arcs, method: str) -> Arcs:
    """What a method of the policy returned, each column as as_int64() has it."""
    kind = type(arcs)
    columns = ((field.name, getattr(arcs, field.name)) for field in fields(kind))
    return kind(*(as_int64(policy, column, f"{name} of {method}") for name, column in columns))


def check_rows(policy: Policy, row: Int64, tasks: int) -> None:
    """Raise PolicyError if one of these rows, int64[k], is none of so many tasks."""
    first = _native.first_outside(row, 0, tasks - 1)
    if first >= 0:
        raise PolicyError(
            f"{policy.name}: an arc of task {int(row[first])} of {tasks} that were asked about"
        )


def check_heads(policy: Policy, head: Int64, machines: int, tail: str) -> None:
    """Raise PolicyError if one of these heads, int64[k], is no machine row and no aggregator.

    Args:
        tail: Where the arcs begin, for the message.
    """
    first = _native.first_outside(head, -policy.aggregators, machines - 1)
    if first >= 0:
        bad = int(head[first])
        name = f"machine {bad}" if bad >= 0 else f"aggregator {-1 - bad}"
        raise PolicyError(
            f"{policy.name}: an arc from {tail} leads to {name}, which does not exist"
        )


def check_acyclic(policy: Policy, tail: Int64, head: Int64) -> None:
    """Raise PolicyError if these arcs between aggregators, int64[k] each, form a cycle."""
    cycle: Int64 = _native.cycle_among(tail, head)
    if len(cycle):
        around = " -> ".join(map(str, cycle.tolist()))
        raise PolicyError(f"{policy.name}: the arcs between aggregators form a cycle: {around}")


def check_costs(policy: Policy, cost: Int64, which: str) -> None:
    """Raise PolicyError if one of these costs, int64[k], is larger than MAX_COST either way.

    Args:
        which: Which arcs they are of, for the message.
    """
    first = _native.first_outside(cost, -MAX_COST, MAX_COST)
    if first >= 0:
        raise PolicyError(
            f"{policy.name}: an arc {which} costs {int(cost[first])}; at most {MAX_COST} either way"
        )


def check_one_arc_elsewhere(policy: Policy, machine: Int64, cost: Int64) -> None:
    """Raise PolicyError if these arcs, int64[k] each, are not those of a policy with
    one_arc_elsewhere: one to a machine at most, of cost 0."""
    machines, arcs = np.unique(machine, return_counts=True)
    if np.any(arcs > 1):
        bad = int(machines[arcs > 1][0])
        raise PolicyError(
            f"{policy.name}: one_arc_elsewhere: {int(arcs.max())} arcs lead to machine {bad}"
        )
    paid = np.flatnonzero(cost)
    if len(paid):
        first = paid[machine[paid].argmin()]
        raise PolicyError(
            f"{policy.name}: one_arc_elsewhere: the arc to machine {int(machine[first])} costs "
            f"{int(cost[first])}; expected 0"
        )


def check_room_elsewhere(policy: Policy, machine: Int64, capacity: Int64, room: Int64) -> None:
    """Raise PolicyError if the capacities of these arcs into machines, int64[k] each, are not those
    of a policy with one_arc_elsewhere: the room of the machine."""
    differs = np.flatnonzero(capacity != room)
    if len(differs):
        first = differs[machine[differs].argmin()]
        raise PolicyError(
            f"{policy.name}: one_arc_elsewhere: the arc to machine {int(machine[first])} has "
            f"capacity {int(capacity[first])}; expected {int(room[first])}"
        )


class LoadSpreading(Policy):
    """Load spreading: a machine's next task costs in proportion to the tasks that it runs
    (Firmament section 3.3, Fig. 6a; as Docker SwarmKit).

        T --0--> X ==step * k==> M --0--> S      an arc for each task k that a machine can hold,
                                                 open where used <= k < total
        T --unscheduled--> U_j --waiting--> S

    The arcs of a machine never change their cost: when its load moves, another one opens. A machine
    of more than `levels` tasks gets `levels` arcs of several units each, cost at the first: the
    spread is then exact to that width. Everybody's tasks count as load. Running tasks go on at no
    cost, so even under preemption they stay. No machine is preferred.
    """

    def __init__(
        self, step_cost: int, unscheduled_cost: int, levels: int, wait_price: TimePrice
    ) -> None:
        self.wait_price = wait_price
        self._step = step_cost
        self._unscheduled = unscheduled_cost
        self._levels = levels
        self._dearest = 0  # place, when X comes into being
        self._arcs_of = np.zeros(0, np.int64)  # per machine, fixed when X comes into being

    @property
    def aggregators(self) -> int:
        return 1

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        self._arcs_of = np.clip(load.total, 1, self._levels)
        machine = np.repeat(np.arange(len(load.total)), self._arcs_of)
        first = np.cumsum(self._arcs_of) - self._arcs_of
        level = np.arange(len(machine)) - np.repeat(first, self._arcs_of)
        cost = self._step * (level * self._width(machine, load) + 1)
        self._dearest = int(cost.max(initial=0))
        return AggregatorArcs(np.zeros(len(machine), np.int64), machine, cost, level)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        n = len(tasks)
        return TaskArcs(np.arange(n), np.full(n, to_aggregator(0)), np.zeros(n, np.int64))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._unscheduled, np.int64)

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._dearest)

    def largest_cost(self) -> int:
        return self._unscheduled

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        width = self._width(machine, load)
        begin = np.maximum(level * width, load.used[machine])
        end = np.minimum((level + 1) * width, load.total[machine])
        capacity: Int64 = np.maximum(end - begin, 0)
        return capacity

    def _width(self, machine: Int64, load: MachineLoad) -> Int64:
        width: Int64 = np.maximum(-(-load.total[machine] // self._arcs_of[machine]), 1)
        return width


# A task that costs as much placed as waiting is placed.
TIE_TOWARDS_PLACING = 1
# By how much the cost of waiting for preferred machines rises while patience lasts, at most.
PATIENCE_STEPS = 64


def dearest_place(catalog: PreferenceCatalog) -> int:
    """The cost of the most expensive placement that a catalog allows."""
    elsewhere = catalog.elsewhere_cost[catalog.elsewhere_cost != NOWHERE_ELSE]
    return max(
        int(cost.max(initial=0)) for cost in (catalog.machine_cost, catalog.rack_cost, elsewhere)
    )


def dearest_machine(catalog: PreferenceCatalog) -> Int64:
    """int64[K]: the highest machine cost of each set, 0 of a set without machines."""
    dearest = np.zeros(catalog.sets, np.int64)
    owner = np.repeat(np.arange(catalog.sets), np.diff(catalog.machine_offsets))
    np.maximum.at(dearest, owner, catalog.machine_cost)
    return dearest


def patience_price(catalog: PreferenceCatalog, patience_us: int) -> TimePrice:
    """The price of waiting for preferred machines: it distinguishes tasks by their age, and yet
    waiting stays cheaper than any place that costs more than the dearest of those machines."""
    dearest = dearest_machine(catalog)
    has_machines = np.diff(catalog.machine_offsets) > 0
    of_rack = np.repeat(np.arange(catalog.sets), np.diff(catalog.rack_offsets))
    dearer_by = np.concatenate(
        [
            (catalog.elsewhere_cost - dearest)[has_machines],
            (catalog.rack_cost - dearest[of_rack])[has_machines[of_rack]],
        ]
    )
    smallest = int(dearer_by[dearer_by > 0].min(initial=PATIENCE_STEPS + 2))
    steps = min(PATIENCE_STEPS, smallest - 2)
    if steps <= 0 or patience_us == 0:
        return Policy.patience_price
    return TimePrice(1, -(-patience_us // steps))


class Quincy(Policy):
    """Quincy's locality-oriented policy: the workload's placement costs as arcs (Quincy section
    4.2; Firmament section 3.3, Fig. 6b).

        T --machine_cost--> M --0--> S                  preferred machines
        T --rack_cost--> R --0--> M                     preferred racks
        T --elsewhere_cost--> X --0--> R                anywhere, if the set is no constraint
        T --0--> K --machine_cost, rack_cost--> M, R    large sets, instead of the first two
        T --dearest machine + 1--> W --waiting--> S     while the patience of T lasts
        T --unscheduled + 1 (+ dearest)--> U_j --waiting--> S
        running T --(cost here - 1 - progress)--> M     under preemption

    A set K of more than `max_task_arcs` machines and racks is an equivalence class: its tasks share
    one aggregator with the set's arcs, and the cost of every path is the same as with arcs of their
    own. The flow takes the cheapest path, so catalogs should list machines at no more than their
    rack, and racks at no more than elsewhere.

    may_wait: a task waits while that costs less than its best free place. Without it, waiting costs
    as much more as the dearest place of the catalog, so tasks wait only where there is no room; who
    waits then is decided as before, because all cost the same more.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        max_task_arcs: int,
        wait_price: TimePrice,
        may_wait: bool,
        patience_us: int,
    ) -> None:
        self.wait_price = wait_price
        self.patience_us = patience_us
        self.patience_price = patience_price(catalog, patience_us)
        # In whole seconds: a finer quantum would change the arcs of all running tasks every round.
        self.progress_price = TimePrice(
            catalog.wait_cost * 1_000_000 // catalog.wait_quantum_us, 1_000_000
        )
        self._catalog = catalog
        self._waiting_surcharge = TIE_TOWARDS_PLACING + (0 if may_wait else dearest_place(catalog))
        self._rack = cell.rack
        self._racks = int(self._rack[-1]) + 1 if cell.machines else 0
        self._rack_begin = np.searchsorted(self._rack, np.arange(self._racks + 1))
        self._patient_wait_cost = dearest_machine(catalog) + TIE_TOWARDS_PLACING
        self._patient_wait_cost[np.diff(catalog.machine_offsets) == 0] = -1
        self._machine = catalog.machine.astype(np.int64)  # as heads of arcs
        self._listed_rack = to_aggregator(1 + catalog.rack.astype(np.int64))
        listed = np.diff(catalog.machine_offsets) + np.diff(catalog.rack_offsets)
        self._shared = listed > max_task_arcs
        self._some_share = bool(self._shared.any())
        self._some_constrain = bool(np.any(catalog.elsewhere_cost == NOWHERE_ELSE))

    # Aggregators: X is 0, rack r is 1 + r, preference set k is 1 + racks + k.

    @property
    def aggregators(self) -> int:
        return 1 + self._racks + self._catalog.sets

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        is_set = aggregator > self._racks
        is_rack = (aggregator > 0) & ~is_set
        parts = [self._rack_to_machines(aggregator[is_rack] - 1)]
        if np.any(aggregator == 0):
            parts.append(self._cluster_to_racks())
        if np.any(is_set):
            parts.append(self._set_to_preferred(aggregator[is_set] - 1 - self._racks))
        return join_arcs(parts)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        preference = tasks.preference.astype(np.int64)
        parts = [self._to_cluster(row, preference)]
        own_row, own_set = row, preference
        if self._some_share:
            shares = self._shared[preference]
            own_row, own_set = row[~shares], preference[~shares]
        parts.append(self._to_preferred_machines(own_row, own_set))
        if len(self._catalog.rack):
            parts.append(self._to_preferred_racks(own_row, own_set))
        if len(own_row) < len(row):
            aggregator = to_aggregator(1 + self._racks + preference[shares])
            parts.append(TaskArcs(row[shares], aggregator, np.zeros(len(aggregator), np.int64)))
        return join_arcs(parts)

    def is_elsewhere(self, aggregator: Int64) -> NDArray[np.bool_]:
        return aggregator <= self._racks

    @property
    def one_arc_elsewhere(self) -> bool:
        return True

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return self._catalog.elsewhere_cost[tasks.preference]

    def largest_cost(self) -> int:
        waiting = int(self._catalog.unscheduled_cost.max(initial=0)) + self._waiting_surcharge
        return max(waiting, dearest_place(self._catalog))

    def patient_wait_cost(self, tasks: TaskBatch) -> Int64:
        """Just above the dearest machine of the task's set: a task is placed on any of them, and
        nowhere else while other places cost more."""
        return self._patient_wait_cost[tasks.preference]

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return self._catalog.unscheduled_cost[tasks.preference] + self._waiting_surcharge

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        """One below the cost of placing it there anew, so that ties never move a task."""
        cost, _ = placement_cost(
            self._catalog, self._rack, tasks.preference, machine.astype(np.int32)
        )
        return cost - 1

    def _to_cluster(self, row: Int64, preference: Int64) -> TaskArcs:
        cost = self._catalog.elsewhere_cost[preference]
        if self._some_constrain:
            free = cost != NOWHERE_ELSE
            row, cost = row[free], cost[free]
        return TaskArcs(row, np.full(len(row), to_aggregator(0)), cost)

    def _to_preferred_machines(self, row: Int64, preference: Int64) -> TaskArcs:
        catalog = self._catalog
        return TaskArcs(
            *_native.listed_arcs(
                catalog.machine_offsets, self._machine, catalog.machine_cost, row, preference
            )
        )

    def _to_preferred_racks(self, row: Int64, preference: Int64) -> TaskArcs:
        catalog = self._catalog
        return TaskArcs(
            *_native.listed_arcs(
                catalog.rack_offsets, self._listed_rack, catalog.rack_cost, row, preference
            )
        )

    def _set_to_preferred(self, preference: Int64) -> AggregatorArcs:
        tail = 1 + self._racks + preference
        machines = self._to_preferred_machines(tail, preference)
        arcs = join_arcs([machines, self._to_preferred_racks(tail, preference)])
        return AggregatorArcs(arcs.row, arcs.head, arcs.cost, np.zeros(len(arcs.row), np.int64))

    def _cluster_to_racks(self) -> AggregatorArcs:
        zero = np.zeros(self._racks, np.int64)
        return AggregatorArcs(zero, to_aggregator(1 + np.arange(self._racks)), zero, zero)

    def _rack_to_machines(self, rack: Int64) -> AggregatorArcs:
        begin, size = self._rack_begin[rack], self._rack_begin[rack + 1] - self._rack_begin[rack]
        machine: Int64 = _native.ranges(begin, size)
        zero = np.zeros(len(machine), np.int64)
        return AggregatorArcs(1 + np.repeat(rack, size), machine, zero, zero)
