"""What a policy decides: the arcs of the flow graph and their integer costs (Firmament, 3.3), and
the checks of what it answers. registry.py has the policies by name.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.interface import TaskChanges
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64, TaskBatch

UNBOUNDED = 1 << 30  # a capacity no round reaches
MAX_COST = 1 << 40  # of one arc; keeps every path of a large graph within the solver's arithmetic
UNKNOWN_COST = np.iinfo(np.int64).max
NONE: Int64 = np.zeros(0, np.int64)
NONE.flags.writeable = False


class PolicyError(AgoraError):
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
    """The arcs out of aggregators, k of them.

    Attributes:
        tail: int64[k], aggregators.
        head: int64[k], as in TaskArcs.
        cost: int64[k].
        level: int64[k], tells parallel arcs with the same head apart (see machine_arc_capacity).
        capacity: int64[k], of arcs to other aggregators; what it says of arcs to machines is not
            read (see machine_arc_capacity). None: unbounded.
    """

    tail: Int64
    head: Int64
    cost: Int64
    level: Int64
    capacity: Int64 | None = None


Arcs = TypeVar("Arcs", TaskArcs, AggregatorArcs)


def join_arcs(parts: Sequence[Arcs]) -> Arcs:
    """The arcs of all parts, one part after the other; all have capacities, or none has."""
    kind = type(parts[0])
    names = [field.name for field in fields(kind)]
    columns: Any = ([getattr(part, name) for part in parts] for name in names)
    joined: Any = (None if part[0] is None else np.concatenate(part) for part in columns)
    return kind(*joined)


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
class ObservedCell:
    """The cell as the round's view shows it, in every resource. The load that is observed is the
    sum of what running tasks request.

    Attributes:
        limit: int64[M, R], what tasks may take of each machine.
        free: int64[M, R], what is left of it.
        up: bool[M], whether each machine is up.
        running: The scheduler's own running tasks, n of them, if the policy has observes_running;
            else none.
        machine: int32[n], where each of them runs.
    """

    limit: Int64
    free: Int64
    up: NDArray[np.bool_]
    running: TaskBatch
    machine: Int32


@dataclass(frozen=True, slots=True)
class TimePrice:
    """A price of time, the same for all tasks: `cost` for each `quantum_us` begun.

    Quincy's 0.5 per second of waiting is 1 per 2 s.
    """

    cost: int
    quantum_us: int


class Policy(ABC):
    """The arcs between tasks and machines, and their costs.

    A policy is deterministic: the same tasks, loads and observations, in the same order, give the
    same arcs. In each round it is told of the cell first (observe), then asked what has changed
    (stale_aggregators, stale_tasks), then for the arcs of new tasks and aggregators. What it does
    not override costs nothing.

    Attributes:
        observes_running: Whether observe() is told of the scheduler's running tasks.
        grows: Whether `aggregators` may grow from round to round.
        wait_price: What each quantum of waiting adds to the cost of leaving a task waiting.
        progress_price: What each quantum of running takes off the cost of letting a task run on,
            which protects the work that it has done.
        patience_us: How long after its submission a task may wait at patient_wait_cost (delay
            scheduling: Zaharia et al., EuroSys 2010).
        patience_price: What each quantum of such waiting adds, so that of two tasks the one that
            has waited longer is placed.
        kind: What the option `policy` calls it; "" if it was made in another way.
    """

    observes_running = False
    grows = False
    patience_us = 0
    patience_price = TimePrice(0, 1_000_000)
    wait_price = TimePrice(1, 1_000_000)
    progress_price = TimePrice(1, 1_000_000)
    kind = ""

    @property
    def name(self) -> str:
        """The name for messages: what the option `policy` calls it, or else its class."""
        return self.kind or type(self).__name__

    def overrides(self, method: str) -> bool:
        """Whether the policy has a method of its own in place of Policy's. The graph calls only
        those, so that what a policy does not use costs nothing."""
        return getattr(type(self), method) is not getattr(Policy, method)

    @property
    @abstractmethod
    def aggregators(self) -> int:
        """The number of aggregators A; they are numbered 0..A-1.

        It may grow from round to round if the policy `grows`. An aggregator joins the graph with
        its first task, and stays.
        """

    @abstractmethod
    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        """All arcs out of these aggregators (int64[k]). Each is asked for when it joins the graph,
        and again when stale_aggregators() names it.

        They may lead to other aggregators, without cycles.
        """

    @abstractmethod
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        """The arcs out of tasks, except those to their U_j."""

    @abstractmethod
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        """What leaving each task waiting costs, without the waiting price: int64[n]."""

    def observe(self, cell: ObservedCell, now_us: int) -> None:  # noqa: B027 (may do nothing)
        """Learn what the cell looks like at the beginning of a round."""

    def learn(self, changes: TaskChanges) -> None:  # noqa: B027 (may do nothing)
        """Learn what became of tasks of the scheduler, as soon as the scheduler does: which run,
        and since when, which have ended, and which have to run again."""

    def stale_aggregators(self) -> Int64:
        """The aggregators in the graph (int64[k]) whose arcs are no longer what aggregator_arcs()
        said of them. It is asked anew: arcs that differ in cost or capacity change, arcs that are
        not named any more close. Others are passed over.

        Arcs are told apart by tail, head and level: no two of a policy that has this method are
        alike in all."""
        return NONE

    def stale_tasks(self) -> Int64:
        """The ids of tasks in the graph (int64[k]), waiting or running, whose arcs are no longer
        what task_arcs(), unscheduled_cost() and running_arc_cost() said of them. They are asked
        anew. Tasks that join in this round, and those that were in the graph and are not any more,
        are passed over."""
        return NONE

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        """Through which unscheduled aggregator each task waits: int64[n], any numbers >= 0. By
        default a job is a group."""
        return tasks.job

    def group_wait_cost(self, group: Int64) -> Int64:
        """What each quantum of `wait_price` adds to the cost of waiting in these groups (int64[g],
        each asked about when its first task joins): int64[g], at least 0."""
        return np.full(len(group), self.wait_price.cost)

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        """How many tasks of each group have to wait, and may wait, in this round: int64[g] each, 0
        <= lower <= upper. None: any number may (Quincy section 4.2.2 bounds a job's share so).

        Asked once per round. Bounds that no flow meets end the run: more tasks that may not wait
        than there are places for. A policy that has bounds has no patience.

        Args:
            group: int64[g], the groups with tasks in the graph.
            tasks: int64[g], how many those are, waiting and, under preemption, running.
            load: As of this round: all tasks that have to be placed need room.
        """
        return None

    def aggregator_name(self, aggregator: int) -> str:
        """The name of an aggregator in drawings and messages."""
        return f"A{aggregator}"

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

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64 | None:
        """What arcs of these levels from these aggregators into these machines cost now: int64[k].
        None: as before.

        Called when a machine's load changes, or what observe() was told of it.
        """
        return None

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        """The cost of the running arcs of tasks that just started on these machines: int64[n].

        Called only under preemption. The default lets every task stay unless a place or waiting
        costs less than nothing.
        """
        return np.zeros(len(tasks), np.int64)


def as_int64(policy: Policy, column: NDArray[Any], which: str) -> Int64:
    """The column as int64, or PolicyError, which says `which` it is, if it is none or may hold
    others."""
    if not isinstance(column, np.ndarray) or column.ndim != 1:
        got = f"shape {column.shape}" if isinstance(column, np.ndarray) else type(column).__name__
        raise PolicyError(f"{policy.name}: {which}: expected an array int64[k], got {got}")
    if column.dtype == np.int64:
        return column
    if not np.can_cast(column.dtype, np.int64):
        raise PolicyError(f"{policy.name}: {which}: expected int64, got {column.dtype}")
    return column.astype(np.int64)


def answer(policy: Policy, column: NDArray[Any], asked: int, which: str) -> Int64:
    """The column as as_int64() has it, or PolicyError if it has not as many entries as were asked
    about."""
    found = as_int64(policy, column, which)
    if len(found) != asked:
        raise PolicyError(f"{policy.name}: {which}: expected {asked} numbers, got {len(found)}")
    return found


def arcs_as_int64(policy: Policy, arcs: Arcs, method: str) -> Arcs:
    """What a method of the policy returned, each column as as_int64() has it, all of one length."""
    kind = type(arcs)
    columns = {field.name: getattr(arcs, field.name) for field in fields(kind)}
    found: dict[str, Any] = {
        name: None if column is None else as_int64(policy, column, f"{name} of {method}")
        for name, column in columns.items()
    }
    lengths = {name: len(column) for name, column in found.items() if column is not None}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise PolicyError(f"{policy.name}: {method}: columns of different lengths: {said}")
    return kind(**found)


def name_of_head(policy: Policy, head: int) -> str:
    """The name of what arcs with this head lead to, for messages."""
    return f"machine {int(head)}" if head >= 0 else policy.aggregator_name(-1 - int(head))


def check_rows(policy: Policy, row: Int64, tasks: int) -> None:
    """Raise PolicyError if one of these rows, int64[k], is none of so many tasks."""
    first = _native.first_outside(row, 0, tasks - 1)
    if first >= 0:
        raise PolicyError(
            f"{policy.name}: an arc of row {int(row[first])}, but {tasks} tasks were asked about"
        )


def check_heads(
    policy: Policy, head: Int64, machines: int, name_of_tail: Callable[[int], str]
) -> None:
    """Raise PolicyError, which says where the arc begins (name_of_tail, given its place among the
    k), if one of these heads, int64[k], is no machine row and no aggregator."""
    first = _native.first_outside(head, -policy.aggregators, machines - 1)
    if first >= 0:
        bad = int(head[first])
        name = f"machine {bad}" if bad >= 0 else f"aggregator {-1 - bad}"
        raise PolicyError(
            f"{policy.name}: an arc from {name_of_tail(first)} leads to {name}, which does not "
            f"exist"
        )


def check_acyclic(policy: Policy, tail: Int64, head: Int64) -> None:
    """Raise PolicyError if these arcs between aggregators, int64[k] each, form a cycle."""
    cycle: Int64 = _native.cycle_among(tail, head)
    if len(cycle):
        around = " -> ".join(map(policy.aggregator_name, cycle.tolist()))
        raise PolicyError(f"{policy.name}: the arcs between aggregators form a cycle: {around}")


def check_costs(policy: Policy, cost: Int64, name_of_arc: Callable[[int], str]) -> None:
    """Raise PolicyError, which says which arc it is of (name_of_arc, given its place among the k),
    if one of these costs, int64[k], is larger than MAX_COST either way."""
    first = _native.first_outside(cost, -MAX_COST, MAX_COST)
    if first >= 0:
        raise PolicyError(
            f"{policy.name}: the arc from {name_of_arc(first)} costs {int(cost[first])}; "
            f"expected {-MAX_COST} to {MAX_COST}"
        )


def check_capacities(policy: Policy, tail: Int64, head: Int64, capacity: Int64) -> None:
    """Raise PolicyError, which names the arc, if one of these arcs out of aggregators, int64[k]
    each, has a negative capacity."""
    first = _native.first_outside(capacity, 0, np.iinfo(np.int64).max)
    if first >= 0:
        raise PolicyError(
            f"{policy.name}: the arc from {policy.aggregator_name(int(tail[first]))} to "
            f"{name_of_head(policy, head[first])} has capacity {int(capacity[first])}"
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
