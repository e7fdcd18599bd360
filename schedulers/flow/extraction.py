"""The way from the optimal flow to placements (Firmament section 6.3, Listing 1).

Listing 1 walks back from the machines and hands each aggregator the machines its flow reached. Here
the tasks walk forward: an aggregator's outgoing units of flow, in the order of its arcs, are dealt
to the tasks that reach it. Flow is conserved, so units and tasks match exactly. Only tasks whose
placement changes are walked. Where the flow could take other paths at the same cost, the task goes
to the emptiest machine that they lead to (native/flow_placements.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.flow.policies.interface import TaskArcs
from schedulers.objective import placement_cost
from shared_state.random import Stream
from shared_state.tasks import Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView


class AggregatorFlow(NamedTuple):
    """The arcs out of A aggregators, k in all: those of aggregator a are rows first[a]:end[a].

    Attributes:
        first: int64[A].
        end: int64[A].
        head: int64[k], a machine row or to_aggregator(a).
        cost: int64[k].
        flow: int64[k], in units, which are tasks.
        capacity: int64[k], likewise; UNBOUNDED: none.
        bounded: Whether an arc between aggregators has one.
    """

    first: Int64
    end: Int64
    head: Int64
    cost: Int64
    flow: Int64
    capacity: Int64
    bounded: bool


class PricedSlots(NamedTuple):
    """What tasks pay for the slots of M machines that they enter over priced arcs.

    Attributes:
        cost: int64[M, L], of the next slot of a machine with so many busy slots; L = 0: nothing has
            a price.
        slots: int64[M], of empty machines.
        free: int64[M], slots.
        units: int64[M], free units.
        beyond: The cost of a unit of a machine that has no free one left.
        direct: Whether the arcs of tasks to machines are priced.
        inner: bool[k], whether each arc out of aggregators is.
    """

    cost: Int64
    slots: Int64
    free: Int64
    units: Int64
    beyond: int
    direct: bool
    inner: NDArray[np.bool_]


_NONE = np.zeros(0, np.int64)
NO_SLOT_PRICES = PricedSlots(_NONE.reshape(0, 0), _NONE, _NONE, _NONE, 0, False, np.zeros(0, bool))


def flow_placements(
    view: ClusterView,
    head: Int64,
    request: Int64,
    arcs: TaskArcs,
    inner: AggregatorFlow,
    room: Int64,
    stream: int,
    priced: PricedSlots = NO_SLOT_PRICES,
) -> tuple[Int64, Int64]:
    """Decompose an optimal flow into a path per task, and break ties towards the emptier machine.

    Args:
        view: Says how much room machines have.
        head: int64[n], where each task's flow goes first: a machine row or to_aggregator(a). Of
            every aggregator named, all tasks that go to it.
        request: int64[n, R].
        arcs: The arcs of these tasks, `row` counting from 0 to n - 1. A task that goes straight to
            a machine may take any of its arcs to machines of the same cost; the others may take
            any machine that is reached from the same aggregator at the same cost.
        inner: The arcs out of aggregators.
        room: int64[M], how many of these tasks each machine can take, those included that the flow
            takes there.
        stream: The key of the draws among equally empty machines.
        priced: The prices of slots, which count before the room.

    Returns:
        Two machines per task, int64[n] each: the one to which the solver's flow takes it, and the
        one chosen. Both cost the same, summed over all tasks, and respect all capacities.

    Raises:
        RuntimeError: More tasks enter an aggregator than flow leaves it: this is no flow.
        ValueError: An arc leads nowhere, or columns are of different lengths.
    """
    solved, chosen = _native.flow_placements(
        view,
        head,
        request,
        arcs.row,
        arcs.head,
        arcs.cost,
        *inner,
        room,
        priced.cost,
        priced.cost.shape[1],
        *priced[1:],
        stream,
    )
    return solved, chosen


# (cost int64[k], preferred bool[k], machine int64[k], free int64[k, R]) -> int64[k]
PlacementValue = Callable[[Int64, NDArray[np.bool_], Int64, Int64], Int64]


def _cost_alone(cost: Int64, preferred: NDArray[np.bool_], machine: Int64, free: Int64) -> Int64:
    return cost


def fit_together(tasks: TaskBatch, machine: Int64, free: Int64) -> NDArray[np.bool_]:
    """Choose placements (machine int64[n]) that fit together in free, int64[M, R]: bool[n]. On one
    machine the more important come first, then the lower id. Tasks after one that does not fit are
    judged as if it did."""
    fit: NDArray[np.bool_] = _native.fit_together(
        tasks.task, tasks.priority, tasks.request, machine, free, free.shape[1]
    )
    return fit


def place_singly(
    tasks: TaskBatch,
    wait_cost: Int64,
    free: Int64,
    catalog: PreferenceCatalog,
    rack: Int32,
    stream: int,
    value: PlacementValue = _cost_alone,
) -> Int64:
    """Place a few tasks in turn, each on the cheapest machine that fits: int64[n], -1 where none
    does for less than waiting costs (int64[n]). Ties go to the first from a random row on.

    This is for what the flow cannot express: tasks sent where they do not fit by some resource
    would be sent there in every round.

    Args:
        free: int64[M, R].
        value: What placements count as, compared with the cost of waiting.
    """
    chosen = np.full(len(tasks), -1, np.int64)
    column = np.array(free.T, order="C")
    room = np.maximum(column, 0)  # a request of 0 fits what is overdrawn
    start = int(Stream(stream).integers(1, max(len(free), 1))[0])
    for i, request in enumerate(tasks.request.tolist()):
        fits = np.flatnonzero(
            np.logical_and.reduce(
                [room_r >= asked for room_r, asked in zip(room, request, strict=True)]
            )
        )
        if len(fits) == 0:
            continue
        cost, preferred = placement_cost(
            catalog, rack, np.full(len(fits), tasks.preference[i]), fits.astype(np.int32)
        )
        cost = value(cost, preferred, fits, column[:, fits].T)
        cheapest = int(cost.min())
        if cheapest >= wait_cost[i]:
            continue
        best = fits[cost == cheapest]
        chosen[i] = best[np.searchsorted(best, start) % len(best)]
        column[:, chosen[i]] -= tasks.request[i]
        room[:, chosen[i]] = np.maximum(column[:, chosen[i]], 0)
    return chosen


def in_whole_gangs(gang: Int64, waiting_gang: Int64) -> NDArray[np.bool_]:
    """Find the placements, of tasks of gang[n], whose gang has no waiting task without a place:
    bool[n]. waiting_gang: int64[w], of all waiting tasks, the placed ones among them; negative:
    no gang."""
    whole: NDArray[np.bool_] = _native.in_whole_gangs(gang, waiting_gang)
    return whole
