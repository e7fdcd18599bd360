"""A minimum-cost flow problem: nodes with supplies, arcs with capacities and costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_ids, as_int64, broadcast, need_type

UNBOUNDED = int(np.iinfo(np.int64).max)
MAX_NODES, MAX_ARCS = native.MAX_NODES, native.MAX_ARCS  # ids are 32 bits wide


class FlowNetwork:
    """A directed graph for `flowsolver.solve` and `flowsolver.IncrementalSolver`.

    Nodes and arcs are numbered from 0 in the order in which they are added. Arc a carries an
    integer flow 0 <= x[a] <= capacity[a] at cost[a] per unit (any sign). supply[v] is > 0 where
    flow starts and < 0 where it ends; a feasible flow has outflow - inflow == supply at every node.
    Parallel arcs, self-loops, zero capacities and isolated nodes are allowed.

    A capacity may be up to `flowsolver.UNBOUNDED` (int64's maximum). Capacities too large for the
    solver's sums count as unbounded: a cycle of negative cost over such arcs gives the status
    UNBOUNDED.

    Arguments named nodes or arcs are ids, int64[k], or a mask, bool[n] or bool[m]. A call with a
    bad id, length or value raises ValueError (TypeError for None) that names the field, and changes
    nothing. Networks can be copied (`copy.copy` makes an independent network) and pickled.
    """

    def __init__(self, core: native.Network | None = None) -> None:
        if core is not None:
            need_type("core", core, native.Network, "nothing: FlowNetwork() is an empty network")
        self._core = native.Network() if core is None else core

    def add_nodes(self, supply: ArrayLike) -> Int64Array:
        """Add nodes of these supplies, int64[k] in units of flow. Returns their ids, int64[k]."""
        values = as_int64("supply", supply)
        first = self._core.add_nodes(values)
        return np.arange(first, first + values.size, dtype=np.int64)

    def add_arcs(
        self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike
    ) -> Int64Array:
        """Add k arcs.

        Args:
            tail: node ids, int64[k].
            head: node ids, int64[k] or one for all.
            capacity: >= 0, in units of flow, int64[k] or one for all.
            cost: per unit of flow, int64[k] or one for all.

        Returns:
            Their ids, int64[k].

        Raises:
            ValueError: for an unknown node or a negative capacity; names the field and index.
                Nothing is added then.
        """
        tails = as_int64("tail", tail)
        first = self._core.add_arcs(
            tails,
            broadcast("head", head, tails.size),
            broadcast("capacity", capacity, tails.size),
            broadcast("cost", cost, tails.size),
        )
        return np.arange(first, first + tails.size, dtype=np.int64)

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacities of arcs: >= 0, int64[k] or one for all."""
        ids = as_ids("arcs", arcs, lambda: self.num_arcs)
        self._core.set_capacity(ids, broadcast("capacity", capacity, ids.size))

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Set the costs of arcs per unit of flow: int64[k] or one for all."""
        ids = as_ids("arcs", arcs, lambda: self.num_arcs)
        self._core.set_cost(ids, broadcast("cost", cost, ids.size))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Set the supplies of nodes: int64[k] or one for all."""
        ids = as_ids("nodes", nodes, lambda: self.num_nodes)
        self._core.set_supply(ids, broadcast("supply", supply, ids.size))

    @property
    def num_nodes(self) -> int:
        """The number of nodes; their ids are 0 .. num_nodes - 1."""
        return self._core.num_nodes

    @property
    def num_arcs(self) -> int:
        """The number of arcs; their ids are 0 .. num_arcs - 1."""
        return self._core.num_arcs

    @property
    def tail(self) -> Int64Array:
        """The node that each arc leaves: int64[m], a copy."""
        return self._core.tail()

    @property
    def head(self) -> Int64Array:
        """The node that each arc enters: int64[m], a copy."""
        return self._core.head()

    @property
    def capacity(self) -> Int64Array:
        """The largest flow of each arc: int64[m], a copy. `set_capacity` changes it."""
        return self._core.capacity()

    @property
    def cost(self) -> Int64Array:
        """The cost per unit of each arc: int64[m], a copy. `set_cost` changes it."""
        return self._core.cost()

    @property
    def supply(self) -> Int64Array:
        """The units that start (> 0) or end (< 0) at each node: int64[n], a copy."""
        return self._core.supply()

    def __copy__(self) -> FlowNetwork:
        return FlowNetwork(self._core.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> FlowNetwork:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _network_of, (self.supply, self.tail, self.head, self.capacity, self.cost)

    @property
    def core(self) -> native.Network:
        """The native object, for use within this package."""
        return self._core

    def __repr__(self) -> str:
        return f"FlowNetwork({self.num_nodes} nodes, {self.num_arcs} arcs)"


def core_of(network: FlowNetwork) -> native.Network:
    """The native object behind a network; TypeError if it is not a FlowNetwork."""
    need_type("network", network, FlowNetwork, "a FlowNetwork")
    return network.core


def _network_of(supply: Int64Array, *arcs: Int64Array) -> FlowNetwork:
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(*arcs)
    return network


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
