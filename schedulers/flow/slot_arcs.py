"""The arcs on which placements pay for the slots of machines.

A machine's n-th placement of a round pays the price of its n-th free slot. Prices never fall from
one slot to the next, so this cost is convex, and an arc per slot expresses it exactly. Slots of
equal price share an arc, a **segment**. Segments stand for fixed levels of occupancy: when a
machine's load moves by a slot, one capacity changes and no cost.

Levels count slots as the estimator does, capacities count units of the flow. Where the two differ
in size, the free units are spread evenly over the free slots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.arrays import rank_within
from schedulers.flow.extraction import SlotSegments
from schedulers.flow.policies.policy import MachineLoad
from schedulers.flow.policy_checks import check_costs
from schedulers.flow.slot_pricing import SlotPricing, SlotState
from schedulers.flow.solver_graph import SolverGraph
from schedulers.flow.task_table import NO_ARC
from schedulers.prices.interface import SlotPrices
from schedulers.units import units_in
from shared_state.tasks import Int64

NO_LEVEL = 1 << 31  # where a segment would begin that a machine does not have


class ArcGrid:
    """Parallel arcs from `tail` to `head` (nodes, int64[M] each), up to S per pair, of which only
    those exist that were open once.

    Attributes:
        capacity: int64[M, S].
        cost: int64[M, S], read where the arc is open.
    """

    def __init__(self, graph: SolverGraph, tail: Int64, head: Int64) -> None:
        self._graph = graph
        self._tail, self._head = tail, head
        self._arc = np.full((len(tail), 0), NO_ARC, np.int64)
        self.capacity = np.zeros((len(tail), 0), np.int64)
        self.cost = np.zeros((len(tail), 0), np.int64)

    def widen(self, width: int) -> None:
        """Make room for this many arcs per pair."""
        more = width - self._arc.shape[1]
        if more > 0:
            self._arc = np.pad(self._arc, ((0, 0), (0, more)), constant_values=NO_ARC)
            self.capacity = np.pad(self.capacity, ((0, 0), (0, more)))
            self.cost = np.pad(self.cost, ((0, 0), (0, more)))

    def set(self, row: Int64, capacity: Int64, cost: Int64) -> None:
        """Set the arcs of these rows (int64[k], each once) to capacities and costs, int64[k, S].

        The solver hears of what differs.
        """
        is_open = capacity > 0
        known = self._arc[row] != NO_ARC
        other_capacity = known & (capacity != self.capacity[row])
        other_cost = known & is_open & (cost != self.cost[row])
        new, column = np.nonzero(is_open & ~known)
        solver = self._graph.solver
        arc = self._arc[row]
        if other_capacity.any():
            solver.set_capacity(arc[other_capacity], capacity[other_capacity])
        if other_cost.any():
            solver.set_cost(arc[other_cost], cost[other_cost])
        self._graph.altered += int(np.count_nonzero(other_capacity) + np.count_nonzero(other_cost))
        if len(new):
            self._arc[row[new], column] = self._graph.add_arcs(
                self._tail[row[new]],
                self._head[row[new]],
                capacity[new, column],
                cost[new, column],
            )
        self.capacity[row] = capacity
        self.cost[row] = np.where(is_open, cost, self.cost[row])


class SlotArcs:
    """The priced arcs from `tail` to `head` (nodes, int64[M] each).

    A slot that a running task of this scheduler holds may be vacated for another one. It costs as
    much as the dearest slot of the cell, so that no running task has to move because the slots of
    other machines are dear.
    """

    def __init__(self, graph: SolverGraph, pricing: SlotPricing, tail: Int64, head: Int64) -> None:
        machines = len(tail)
        self._pricing = pricing
        self._prices: SlotPrices | None = None
        self._level_cost = np.zeros((machines, 0), np.int64)
        self._begin = np.zeros((machines, 0), np.int64)  # the level at which segments begin
        self._cost = np.zeros((machines, 0), np.int64)  # of segments
        self._segments = ArcGrid(graph, tail, head)
        self._first = np.zeros(machines, np.int64)
        self._dearest = 0
        self._vacated = ArcGrid(graph, tail, head)
        self._vacated.widen(1)
        # As of the last update, int64[M]: units free and to be vacated, slots free.
        self._units = self._own = self._free = np.zeros(machines, np.int64)
        self._slots = self._units

    def update(self, load: MachineLoad, slots: SlotState) -> None:
        """Bring the arcs up to date with the load of machines and the prices of their slots."""
        stale = load.free != self._units
        if not (slots.free is load.free and self._free is self._units):
            stale |= slots.free != self._free
        self._units, self._free = load.free, slots.free
        dearer = False
        if slots.prices is not self._prices:
            stale |= slots.prices.slots != self._slots
            self._prices, self._slots = slots.prices, slots.prices.slots
            stale[self._set_prices(slots.prices.price)] = True
            dearest = int(self._level_cost.max(initial=0))
            dearer, self._dearest = dearest != self._dearest, dearest
        row = np.flatnonzero(stale)
        if len(row):
            capacity = self._capacities(row)
            self._segments.set(row, capacity, self._cost[row])
            self._first[row] = np.argmax(capacity > 0, axis=1)
        if load.room is not load.free:
            own = load.room - load.free
            before, self._own = self._own, own
            vacant = np.flatnonzero((before != own) | (dearer & (own > 0)))
            cost = np.full((len(vacant), 1), self._dearest)
            self._vacated.set(vacant, own[vacant, None], cost)

    def segments(self, direct: bool, inner: NDArray[np.bool_]) -> SlotSegments:
        """The segments as of the last update, with which arcs are priced (as in SlotSegments)."""
        capacity = self._segments.capacity
        return SlotSegments(self._first, self._cost, capacity, self._dearest, direct, inner)

    def next_cost(self, machine: Int64, free: Int64) -> Int64:
        """The cost of the next slot of machines with this room: int64[k].

        Args:
            machine: int64[k].
            free: int64[k, R].
        """
        if self._prices is None:
            return np.zeros(len(machine), np.int64)
        level = self._prices.slots[machine] - units_in(free, self._prices.unit)
        cost: Int64 = self._level_cost[machine, np.clip(level, 0, self._level_cost.shape[1] - 1)]
        return cost

    def _set_prices(self, price: Int64) -> Int64:
        """Make segments of the prices, and return the machines whose segments changed."""
        cost = self._pricing.in_costs(price)
        check_costs(self._pricing.policy, cost, "into a machine")
        before, self._level_cost = self._level_cost, cost
        if before.shape != cost.shape:
            row = np.arange(len(cost))
        else:
            row = np.flatnonzero(np.any(before != cost, axis=1))
        at, level = np.nonzero(cost[row, 1:] != cost[row, :-1])
        number = rank_within(at) + 1
        width = max(1, int(number.max(initial=0)) + 1)
        more = width - self._cost.shape[1]
        if more > 0:
            self._begin = np.pad(self._begin, ((0, 0), (0, more)), constant_values=NO_LEVEL)
            self._cost = np.pad(self._cost, ((0, 0), (0, more)))
            self._segments.widen(width)
        self._begin[row] = NO_LEVEL
        self._begin[row, 0] = 0
        self._begin[row[at], number] = level + 1
        self._cost[row, 0] = cost[row, 0]
        self._cost[row[at], number] = cost[row[at], level + 1]
        return row

    def _capacities(self, row: Int64) -> Int64:
        """How many of the free units of these machines (int64[k]) have the level of each segment:
        int64[k, S]."""
        units, free = self._units[row, None], self._free[row, None]
        busy = np.maximum(self._slots[row, None] - free, 0)
        # A segment begins with the first unit of its level or above.
        first = -((busy - self._begin[row]) * units // np.maximum(free, 1))
        bounds = np.concatenate([np.clip(first, 0, units), units], axis=1)
        return np.diff(bounds, axis=1)
