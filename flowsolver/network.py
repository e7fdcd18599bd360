"""A min-cost flow problem: nodes with supplies, arcs with capacities and costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowsolver import _flowsolver as native

Int64Array = NDArray[np.int64]
INT64 = np.dtype(np.int64)


def as_int64(name: str, values: ArrayLike) -> Int64Array:
    """`values` as a contiguous one-dimensional int64 array; a scalar becomes one entry.

    Raises ValueError naming the field when the values are not integers or do not fit.
    """
    array = np.asarray(values)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.dtype == INT64 and array.ndim == 1 and array.flags.c_contiguous:
        return array  # nearly always: single changes are made in a few microseconds
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected 1")
    if array.dtype.kind not in "iub":
        raise ValueError(f"{name} holds {array.dtype}, expected integers of at most 64 bits")
    if array.dtype == np.uint64 and (array > np.uint64(np.iinfo(np.int64).max)).any():
        raise ValueError(f"{name} has a value beyond int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def broadcast(name: str, values: ArrayLike, length: int) -> Int64Array:
    """As `as_int64`, a single value repeated to `length`."""
    array = as_int64(name, values)
    return np.full(length, array[0], dtype=np.int64) if array.size == 1 and length != 1 else array


class FlowNetwork:
    """A directed graph for `flowsolver.solve` and `flowsolver.IncrementalSolver`.

    Nodes and arcs are numbered from 0 in the order they are added. Arc a carries an integer flow 0
    <= x[a] <= capacity[a] at cost[a] per unit (any sign). supply[v] > 0 where flow starts, < 0
    where it ends; a feasible flow has outflow - inflow == supply at every node. Parallel arcs,
    self-loops, zero capacities and isolated nodes are fine.
    """

    def __init__(self, core: native.Network | None = None) -> None:
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

    @property
    def num_nodes(self) -> int:
        return self._core.num_nodes

    @property
    def num_arcs(self) -> int:
        return self._core.num_arcs

    @property
    def tail(self) -> Int64Array:
        """int64[m], a copy; like the four below."""
        return self._core.tail()

    @property
    def head(self) -> Int64Array:
        return self._core.head()

    @property
    def capacity(self) -> Int64Array:
        return self._core.capacity()

    @property
    def cost(self) -> Int64Array:
        return self._core.cost()

    @property
    def supply(self) -> Int64Array:
        """int64[n], a copy."""
        return self._core.supply()

    @property
    def core(self) -> native.Network:
        """The native object, for this package."""
        return self._core

    def __repr__(self) -> str:
        return f"FlowNetwork({self.num_nodes} nodes, {self.num_arcs} arcs)"
