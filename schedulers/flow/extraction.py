"""The way from the optimal flow to placements (Firmament section 6.3, Listing 1), as array
operations.

Listing 1 walks back from the machines and hands each aggregator the machines its flow reached. Here
the tasks walk forward, all of them one level per step: an aggregator's outgoing units of flow, in
the order of its arcs, are dealt to the tasks that reach it. Flow is conserved, so units and tasks
match exactly. Only tasks whose placement changes are walked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.arrays import rank_within
from schedulers.flow.policies.policy import to_aggregator
from schedulers.objective import placement_cost
from shared_state.random import Stream
from shared_state.tasks import Int32, Int64, PreferenceCatalog, TaskBatch


def trace(head: Int64, arc_tail: Int64, arc_head: Int64, flow: Int64, aggregators: int) -> Int64:
    """The machine that each task's unit of flow passes, int64[n].

    Args:
        head: int64[n], where the flow of the task goes first, a machine row or to_aggregator(a).
        arc_tail, arc_head, flow: int64[k], the arcs out of aggregators: from which, where to (as
            head), and what they carry.

    Raises:
        RuntimeError: The flow of some aggregator is less than the tasks sent to it: then this is no
            flow.
    """
    used = np.flatnonzero(flow > 0)
    used = used[np.argsort(arc_tail[used], kind="stable")]
    unit_head = np.repeat(arc_head[used], flow[used])
    begin = np.searchsorted(np.repeat(arc_tail[used], flow[used]), np.arange(aggregators + 1))
    taken = np.zeros(aggregators, np.int64)
    at = head.copy()
    while True:
        moving = np.flatnonzero(at < 0)
        if len(moving) == 0:
            return at
        aggregator = to_aggregator(at[moving])
        order = np.argsort(aggregator, kind="stable")
        moving, aggregator = moving[order], aggregator[order]
        unit = begin[aggregator] + taken[aggregator] + rank_within(aggregator)
        if np.any(unit >= begin[aggregator + 1]):
            raise RuntimeError("more tasks flow into an aggregator than out of it")
        at[moving] = unit_head[unit]
        taken += np.bincount(aggregator, minlength=aggregators)


def fit_together(tasks: TaskBatch, machine: Int64, free: Int64) -> NDArray[np.bool_]:
    """Choose placements that fit together, by all resources: bool[n].

    On one machine the more important come first, then the lower id. Tasks after one that does not
    fit are judged as if it did.

    Args:
        machine: int64[n].
        free: int64[M, R].
    """
    order = np.lexsort((tasks.task, -tasks.priority, machine))
    request = tasks.request[order]
    total = np.cumsum(request, axis=0)
    first = np.arange(len(order)) - rank_within(machine[order])
    total -= total[first] - request[first]
    fits = np.empty(len(order), bool)
    fits[order] = np.all(total <= free[machine[order]], axis=1)
    return fits


def place_singly(
    tasks: TaskBatch,
    wait_cost: Int64,
    free: Int64,
    catalog: PreferenceCatalog,
    rack: Int32,
    stream: int,
) -> Int64:
    """Place a few tasks in turn, each on the cheapest machine that fits: int64[n], -1 where none
    does for less than waiting costs (int64[n]). Ties go to the first from a random row on.

    This is for what the flow cannot express: tasks sent where they do not fit by some resource
    would be sent there in every round.

    Args:
        free: int64[M, R].
    """
    chosen = np.full(len(tasks), -1, np.int64)
    column = np.ascontiguousarray(free.T)
    start = int(Stream(stream).integers(1, max(len(free), 1))[0])
    for i, request in enumerate(tasks.request.tolist()):
        fits = np.flatnonzero(
            np.logical_and.reduce(
                [free_r >= asked for free_r, asked in zip(column, request, strict=True)]
            )
        )
        if len(fits) == 0:
            continue
        cost, _ = placement_cost(
            catalog, rack, np.full(len(fits), tasks.preference[i]), fits.astype(np.int32)
        )
        cheapest = int(cost.min())
        if cheapest >= wait_cost[i]:
            continue
        best = fits[cost == cheapest]
        chosen[i] = best[np.searchsorted(best, start) % len(best)]
        column[:, chosen[i]] -= tasks.request[i]
    return chosen


def in_whole_gangs(gang: Int64, waiting_gang: Int64) -> NDArray[np.bool_]:
    """Find the placements, of tasks of gang[n], whose gang has no waiting task without a place:
    bool[n].

    Args:
        waiting_gang: int64[w], the gangs of all waiting tasks, the placed ones among them.
            Negative: no gang.
    """
    whole = np.ones(len(gang), bool)
    member = np.flatnonzero(gang >= 0)
    if len(member) == 0:
        return whole
    ids, placed = np.unique(gang[member], return_counts=True)
    entry = np.minimum(np.searchsorted(ids, waiting_gang), len(ids) - 1)
    waiting = np.bincount(entry[ids[entry] == waiting_gang], minlength=len(ids))
    whole[member] = (placed == waiting)[np.searchsorted(ids, gang[member])]
    return whole
