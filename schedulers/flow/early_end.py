"""The part of an unfinished flow that can be placed (Firmament, OSDI 2016, section 5.1, Fig. 10).

A solve that ends early leaves units on their way: more may enter a node than leave it. Only tasks
whose unit has a way to a machine that is free of such units are placed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.policies.interface import to_aggregator
from shared_state.tasks import Int64

# Algorithms whose flow is feasible, but for units that it leaves out, whenever they are stopped.
# The others give a flow when they are done (Firmament, Table 2).
PLACES_WHEN_STOPPED = frozenset({"cost_scaling", "cycle_cancelling", "network_simplex"})


class RoutedPart(NamedTuple):
    """What reaches machines.

    Attributes:
        task: bool[n], which tasks do.
        flow: int64[k], what arcs out of aggregators carry of them, or more.
    """

    task: NDArray[np.bool_]
    flow: Int64


def routed_part(
    head: Int64, tail: Int64, inner_head: Int64, flow: Int64, into_sink: Int64, aggregators: int
) -> RoutedPart:
    """Take from an unfinished flow what cannot go on, from the machines backwards.

    Args:
        head: int64[n], where the unit of each task goes first: a machine row or to_aggregator(a).
        tail, inner_head: int64[k], the arcs out of aggregators (AggregatorFlow).
        flow: int64[k], what they carry.
        into_sink: int64[M], what machines can pass on.
        aggregators: How many there are.

    Returns:
        Of the tasks that enter a node with too little room, the first ones. No more tasks enter an
        aggregator than its arcs carry, and no more than into_sink enter a machine.
    """
    machines, tasks = len(into_sink), len(head)
    heads = np.concatenate([head, inner_head])  # of all that enters nodes: tasks, then arcs
    node = np.where(heads >= 0, heads, machines + to_aggregator(heads))
    order = np.argsort(node, kind="stable")
    node = node[order]
    begins = np.searchsorted(node, node)
    enters = np.concatenate([np.ones(tasks, np.int64), np.maximum(flow, 0)])
    while True:
        leaves = np.zeros(machines + aggregators, np.int64)
        leaves[:machines] = into_sink
        np.add.at(leaves, machines + tail, enters[tasks:])
        wants = enters[order]
        before = np.cumsum(wants) - wants
        before -= before[begins]
        goes_on = np.empty_like(enters)
        goes_on[order] = np.clip(leaves[node] - before, 0, wants)
        if np.array_equal(goes_on, enters):
            return RoutedPart(enters[:tasks] > 0, enters[tasks:])
        enters = goes_on
