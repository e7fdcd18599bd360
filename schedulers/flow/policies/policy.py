"""What a policy decides: the arcs of the flow graph and their integer costs (Firmament, 3.3).

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

Below the contract stand its checks: what a policy may not ask of the graph is arcs to nowhere,
aggregators in a cycle, and costs beyond the solver's arithmetic.

The optimal flow takes each task along a path to the sink. The path says where the task is placed,
or that it waits; the sum of its costs is what that costs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from shared_state.tasks import Int64, TaskBatch

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

    @staticmethod
    def join(parts: list[TaskArcs]) -> TaskArcs:
        return TaskArcs(
            np.concatenate([part.row for part in parts]),
            np.concatenate([part.head for part in parts]),
            np.concatenate([part.cost for part in parts]),
        )


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

    @staticmethod
    def join(parts: list[AggregatorArcs]) -> AggregatorArcs:
        return AggregatorArcs(
            np.concatenate([part.tail for part in parts]),
            np.concatenate([part.head for part in parts]),
            np.concatenate([part.cost for part in parts]),
            np.concatenate([part.level for part in parts]),
        )


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
