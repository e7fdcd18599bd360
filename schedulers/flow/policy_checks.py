"""What a policy may not ask of the flow graph: arcs to nowhere, aggregators in a cycle, and costs
beyond the solver's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.flow.policies.policy import Policy, PolicyError
from shared_state.tasks import Int64

MAX_COST = 1 << 40  # of one arc; keeps every path of a large graph within the solver's arithmetic


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
