"""A min-cost flow problem: nodes with supplies, arcs with capacities and costs."""

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

    Nodes and arcs are numbered from 0 in the order they are added. Arc a carries an integer flow 0
    <= x[a] <= capacity[a] at cost[a] per unit (any sign). supply[v] > 0 where flow starts, < 0
    where it ends; a feasible flow has outflow - inflow == supply at every node. Parallel arcs,
    self-loops, zero capacities and isolated nodes are fine.

    A capacity may be anything up to `flowsolver.UNBOUNDED` (int64's maximum). Those too large for
    the solver's sums mean "as much as can be useful": a cycle of negative cost over such arcs makes
    the status UNBOUNDED.

    Arguments named nodes or arcs take ids, int64[k], or a mask, bool[n] or bool[m]. A call with a
    bad id, length or value raises ValueError (TypeError for None) that names the field, and changes
    nothing. Networks can be copied (`copy.copy`: independent of the original) and pickled.
    """

    def __init__(self, core: native.Network | None = None) -> None:
        if core is not None:
            need_type("core", core, native.Network, "nothing: FlowNetwork() is an empty network")
        self._core = native.Network() if core is None else core

    def add_nodes(self, supply: ArrayLike) -> Int64Array:
        """Adds k nodes. `supply`: int64[k]. Returns their ids, int64[k]."""
        values = as_int64("supply", supply)
        first = self._core.add_nodes(values)
        return np.arange(first, first + values.size, dtype=np.int64)

    def add_arcs(
        self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike
    ) -> Int64Array:
        """Adds k arcs. `tail`, `head`: node ids int64[k]; `capacity` >= 0, `cost`: int64[k] or one
        value for all.

        Returns their ids, int64[k]. Raises ValueError naming field and index for an unknown node or
        a negative capacity; nothing is added then.
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
        """New capacities >= 0 of the arcs: int64[k], or one value for all."""
        ids = as_ids("arcs", arcs, lambda: self.num_arcs)
        self._core.set_capacity(ids, broadcast("capacity", capacity, ids.size))

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """New costs of the arcs: int64[k], or one value for all."""
        ids = as_ids("arcs", arcs, lambda: self.num_arcs)
        self._core.set_cost(ids, broadcast("cost", cost, ids.size))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """New supplies of the nodes: int64[k], or one value for all."""
        ids = as_ids("nodes", nodes, lambda: self.num_nodes)
        self._core.set_supply(ids, broadcast("supply", supply, ids.size))

    @property
    def num_nodes(self) -> int:
        """Number of nodes; their ids are 0 .. num_nodes - 1."""
        return self._core.num_nodes

    @property
    def num_arcs(self) -> int:
        """Number of arcs; their ids are 0 .. num_arcs - 1."""
        return self._core.num_arcs

    @property
    def tail(self) -> Int64Array:
        """Node each arc leaves: int64[m], a copy."""
        return self._core.tail()

    @property
    def head(self) -> Int64Array:
        """Node each arc enters: int64[m], a copy."""
        return self._core.head()

    @property
    def capacity(self) -> Int64Array:
        """Most units each arc can carry: int64[m], a copy; `set_capacity` changes it."""
        return self._core.capacity()

    @property
    def cost(self) -> Int64Array:
        """Cost per unit of each arc: int64[m], a copy; `set_cost` changes it."""
        return self._core.cost()

    @property
    def supply(self) -> Int64Array:
        """Units that start (> 0) or end (< 0) at each node: int64[n], a copy; `set_supply` changes
        it."""
        return self._core.supply()

    def __copy__(self) -> FlowNetwork:
        return FlowNetwork(self._core.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> FlowNetwork:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _network_of, (self.supply, self.tail, self.head, self.capacity, self.cost)

    @property
    def core(self) -> native.Network:
        """The native object, for this package."""
        return self._core

    def __repr__(self) -> str:
        return f"FlowNetwork({self.num_nodes} nodes, {self.num_arcs} arcs)"


def core_of(network: FlowNetwork) -> native.Network:
    """The native object behind a network. Raises TypeError for anything else."""
    need_type("network", network, FlowNetwork, "a FlowNetwork")
    return network.core


def _network_of(supply: Int64Array, *arcs: Int64Array) -> FlowNetwork:
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(*arcs)
    return network
