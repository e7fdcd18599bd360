"""An equivalent problem with fewer nodes and arcs."""

from __future__ import annotations

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.network import FlowNetwork


def packed(network: FlowNetwork) -> FlowNetwork:
    """An equivalent network without redundant nodes and arcs. The optimal cost is the same.

    Parallel arcs of equal cost become one (the first). Arcs of capacity 0, self-loops that save
    nothing, and nodes without arcs and supply are dropped; the others are renumbered in order.

    Raises:
        ValueError: if the capacity of joined arcs does not fit 64 bits.
    """
    tail, head, capacity, cost = network.tail, network.head, network.capacity, network.cost
    useful = np.flatnonzero((capacity > 0) & ((tail != head) | (cost < 0)))
    order = useful[np.lexsort((cost[useful], head[useful], tail[useful]))]
    same = np.zeros(order.size, dtype=bool)
    same[1:] = True
    for column in (tail, head, cost):
        same[1:] &= column[order[1:]] == column[order[:-1]]
    begin = np.flatnonzero(~same)
    total = _sums(capacity[order], begin)
    first = order[begin]
    by_place = np.argsort(first)
    arc, total = first[by_place], total[by_place]

    supply = network.supply
    needed = supply != 0
    needed[tail[arc]] = True
    needed[head[arc]] = True
    number = np.cumsum(needed) - 1
    result = FlowNetwork()
    result.add_nodes(supply[needed])
    result.add_arcs(number[tail[arc]], number[head[arc]], total, cost[arc])
    return result


def _sums(values: Int64Array, begin: Int64Array) -> Int64Array:
    """The sum of the non-negative values from each position in `begin` to the next."""
    if begin.size == 0:
        return np.zeros(0, dtype=np.int64)
    low = np.add.reduceat(values & (2**32 - 1), begin)
    high = np.add.reduceat(values >> 32, begin) + (low >> 32)
    if (high >= 2**31).any():
        raise ValueError("the capacity of parallel arcs does not fit 64 bits")
    sums: Int64Array = (high << 32) + (low & (2**32 - 1))
    return sums
