"""The machines' nodes of the flow graph, the arcs from them to the sink, and how slot prices enter
costs.

Without slot prices each machine has one arc to the sink, of cost 0. Slot prices put priced arcs
(SlotArcs) on the way into the machine, for all placements or for those elsewhere. A running task
enters behind them, as it pays for no slot:

    all placements            placement ---------> M ==price==> sink
    all, under preemption     placement -> E ==price==> M --0--> sink,  running -> M
    elsewhere                 rack ==price==> M --0--> sink,            preferred, running -> M
    elsewhere, several arcs   aggregator -> E ==price==> M --0--> sink, preferred, running -> M

Where a machine has only one arc for placements elsewhere (Policy.one_arc_elsewhere), the priced
arcs take the place of that arc, and no nodes E are needed.

A machine's n-th placement of a round pays the price of its n-th free slot. Prices never fall from
one slot to the next, so this cost is convex, and an arc per slot expresses it exactly. Slots of
equal price share an arc, a **segment** (native/flow_graph.hpp).

How slot prices become costs of the flow problem:

**tie.** The flow has the lowest total cost, and of all flows with that cost the lowest total price.
So all costs are multiplied by a scale that prices cannot outweigh. How large must it be? An optimal
flow is one that no simple cycle of the residual graph improves. If every simple cycle passes at
most k priced arcs forward and at most k backward, it changes the total price by at most k times the
highest price P. With a scale above k x P no cycle that lowers the price can raise the cost, and
none that raises the price can keep the cost from falling: the flow is optimal for (total cost,
total price) in lexicographic order. k does not depend on the number of tasks:

    all placements priced, no preemption     1: priced arcs end at the sink
    elsewhere only                           one per aggregator that leads there, and at most one
                                             per machine: of these, if aggregators may come
    all placements priced, under preemption  one per machine: a chain of migrations

Prices are rounded down to at most RESOLUTION steps, and fewer where k is large, so that costs keep
their range.

**paid.** The flow has the lowest total of 1000 x cost + weight x price, in lowest terms.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.flow.extraction import NO_SLOT_PRICES, PricedSlots
from schedulers.flow.policies.interface import (
    MAX_COST,
    UNBOUNDED,
    UNKNOWN_COST,
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    Policy,
    PolicyError,
    TaskArcs,
    TimePrice,
)
from schedulers.flow.solver_graph import NO_NODE, NO_ROW, SolverGraph
from schedulers.interface import TaskChanges
from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import ONE_PERMILLE, PriceMode, PriceOptions, PriceScope
from schedulers.units import units_in
from shared_state.errors import AgoraError
from shared_state.tasks import Int64, TaskBatch

# The highest price of a slot as a tie breaker. Finer differences of prices decide nothing: the
# emptier machine does. They would cost the solver a search for each step, most of it for noise.
RESOLUTION = (1 << 6) - 1
MAX_SCALE = 1 << 20  # coarser prices rather than a larger scale


class SlotState(NamedTuple):
    """Slots as a round finds them.

    Attributes:
        prices: What the next ones are worth.
        free: int64[M], in slots; the same array as the load's if a slot is a unit of the flow.
    """

    prices: SlotPrices
    free: Int64


class SlotPricing:
    """The rule by which a scheduler's slot prices become costs.

    Attributes:
        policy: The policy with its costs scaled.
        scale: By what.
        elsewhere_only: Whether placements on preferred machines have no price.
    """

    def __init__(
        self, options: PriceOptions, policy: Policy, machines: int, preemption: bool
    ) -> None:
        """
        Raises:
            AgoraError: The policy's costs, multiplied, leave the range of costs.
        """
        self.elsewhere_only = options.price_scope is PriceScope.ELSEWHERE
        if options.price_mode is PriceMode.PAID:
            common = gcd(ONE_PERMILLE, options.price_weight_permille)
            self.scale = ONE_PERMILLE // common
            self._weight: int | None = options.price_weight_permille // common
        else:
            in_cycle = 1
            if self.elsewhere_only and not policy.grows:
                aggregators = np.arange(policy.aggregators)
                in_cycle = int(np.count_nonzero(policy.is_elsewhere(aggregators)))
            elif self.elsewhere_only or preemption:
                in_cycle = machines
            in_cycle = max(1, min(in_cycle, machines))
            self._highest = max(1, min(RESOLUTION, (MAX_SCALE - 1) // in_cycle))
            self.scale = in_cycle * self._highest + 1
            self._weight = None
        largest = policy.largest_cost()
        if largest * self.scale > MAX_COST:
            raise AgoraError(
                f'price_mode = "{options.price_mode}": costs are multiplied by {self.scale}, so '
                f"{policy.name} takes costs up to {MAX_COST // self.scale}, got {largest}"
            )
        self.policy: Policy = Scaled(policy, self.scale) if self.scale > 1 else policy

    def in_costs(self, price: Int64) -> Int64:
        """Prices of slots as costs of the scaled policy, in the same order: int64[M, L], as in
        SlotPrices."""
        if self._weight is not None:
            return np.minimum(price, MAX_COST + 1) * self._weight
        too_high = int(price[:, -1].max(initial=0)) // (self._highest + 1)
        return price >> too_high.bit_length() if too_high else price


class Scaled(Policy):
    """Another policy with all its costs and prices of time multiplied by `scale`, which leaves room
    for slot prices below one unit of cost."""

    def __init__(self, policy: Policy, scale: int) -> None:
        self._policy = policy
        self._scale = scale
        self.observes_running = policy.observes_running
        self.grows = policy.grows
        self.patience_us = policy.patience_us
        self.patience_price = self._time_price(policy.patience_price)
        self.wait_price = self._time_price(policy.wait_price)
        self.progress_price = self._time_price(policy.progress_price)

    @property
    def name(self) -> str:
        return f"{self._policy.name}, its costs x {self._scale} for slot prices"

    @property
    def aggregators(self) -> int:
        return self._policy.aggregators

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = self._policy.aggregator_arcs(aggregator, load)
        return replace(arcs, cost=self._scaled(arcs.cost))

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        arcs = self._policy.task_arcs(tasks)
        return TaskArcs(arcs.row, arcs.head, self._scaled(arcs.cost))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return self._scaled(self._policy.unscheduled_cost(tasks))

    def overrides(self, method: str) -> bool:
        return self._policy.overrides(method)

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self._policy.observe(cell, now_us)

    def learn(self, changes: TaskChanges) -> None:
        self._policy.learn(changes)

    def stale_aggregators(self) -> Int64:
        return self._policy.stale_aggregators()

    def stale_tasks(self) -> Int64:
        return self._policy.stale_tasks()

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        return self._policy.waiting_group(tasks)

    def group_wait_cost(self, group: Int64) -> Int64:
        return self._scaled(self._policy.group_wait_cost(group))

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        return self._policy.waiting_bounds(group, tasks, load)

    def aggregator_name(self, aggregator: int) -> str:
        return self._policy.aggregator_name(aggregator)

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64 | None:
        cost = self._policy.machine_arc_cost(tail, level, machine, load)
        return None if cost is None else self._scaled(cost)

    def is_elsewhere(self, aggregator: Int64) -> NDArray[np.bool_]:
        return self._policy.is_elsewhere(aggregator)

    @property
    def one_arc_elsewhere(self) -> bool:
        return self._policy.one_arc_elsewhere

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        cost = self._policy.cost_anywhere(tasks)
        return np.where(cost == UNKNOWN_COST, cost, self._scaled(cost))

    def largest_cost(self) -> int:
        return self._policy.largest_cost() * self._scale

    def patient_wait_cost(self, tasks: TaskBatch) -> Int64:
        cost = self._policy.patient_wait_cost(tasks)
        return np.where(cost < 0, cost, self._scaled(cost))

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        return self._policy.machine_arc_capacity(level, machine, load)

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        return self._scaled(self._policy.running_arc_cost(tasks, machine))

    def _scaled(self, cost: Int64) -> Int64:
        """Costs times `scale`: those out of range stay out of range, and do not overflow into
        it. What is no array is left to the checks of what a policy answers."""
        if not isinstance(cost, np.ndarray) or not np.can_cast(cost.dtype, np.int64):
            return cost
        cost = np.clip(cost.astype(np.int64, copy=False), -MAX_COST - 1, MAX_COST + 1)
        return cost * self._scale

    def _time_price(self, price: TimePrice) -> TimePrice:
        return replace(price, cost=price.cost * self._scale)


class MachineArcs:
    """The ways of M machines to the sink.

    Attributes:
        node: int64[M], where running tasks enter, and placements for which nothing rises.
        unpriced: int64[M], where placements without a price enter.
        risen: What placements cost more than at first (raise_placements).
        entrance_of_preferred: int64[M], where tasks enter machines that they prefer.
        room: int64[M], how many units may flow through each machine.
        replaces_inner: Whether the priced arcs are arcs out of aggregators, in place of those that
            the policy asks for.
        slots: The priced arcs, if there are slot prices.
    """

    slots: SlotArcs | None

    def __init__(
        self,
        graph: SolverGraph,
        sink: int,
        machines: int,
        pricing: SlotPricing | None,
        preemption: bool,
        progress: bool,
    ) -> None:
        """
        Args:
            progress: Whether placements cost more with time (raise_placements).
        """
        self._graph = graph
        self._sink = sink
        self._elsewhere_only = pricing is not None and pricing.elsewhere_only
        self.replaces_inner = (
            pricing is not None
            and pricing.elsewhere_only
            and pricing.policy.one_arc_elsewhere
            # Priced arcs are opened once.
            and not pricing.policy.overrides("stale_aggregators")
            and not pricing.policy.overrides("machine_arc_cost")
        )
        self.node = graph.add_nodes(machines)
        self.risen = 0
        self._raised = np.zeros(0, np.int64)  # the arcs that cost more with time
        placed = self.node
        if progress:
            placed = graph.add_nodes(machines)
            unbounded, free = np.full(machines, UNBOUNDED), np.zeros(machines, np.int64)
            self._raised = graph.add_arcs(placed, self.node, unbounded, free)
        self._entrance = self.entrance_of_preferred = self.unpriced = placed
        self.room = zero = np.zeros(machines, np.int64)
        self._to_sink = np.zeros(0, np.int64)
        self.slots = None
        sinks = np.full(machines, sink)
        if pricing is not None and not (preemption or pricing.elsewhere_only):
            self.slots = SlotArcs(graph, pricing, self.node, sinks)
            return
        self._to_sink = graph.add_arcs(self.node, sinks, zero, zero)
        if pricing is not None and self.replaces_inner:
            self.slots = SlotArcs(graph, pricing, np.full(machines, NO_NODE), placed)
        elif pricing is not None:
            self._entrance = graph.add_nodes(machines)
            if not pricing.elsewhere_only:
                self.entrance_of_preferred = self._entrance
            self.slots = SlotArcs(graph, pricing, self._entrance, placed)

    def raise_placements(self, cost: int) -> None:
        """Let every placement cost so much more than at first.

        All paths into a machine but those of the tasks that run on it lead over one arc, so that
        their common price is one cost per machine, and not one per task.
        """
        if cost == self.risen or len(self._raised) == 0:
            return
        self.risen = cost
        self._graph.solver.set_cost(self._raised, np.full(len(self._raised), cost))
        self._graph.altered += len(self._raised)

    @property
    def entrance_of_priced(self) -> Int64:
        """int64[M], where placements enter machines that pay for their slots."""
        return self._entrance

    def is_priced(self, is_elsewhere: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which placements pay for their slots: bool[k].

        Args:
            is_elsewhere: bool[k], whether the arcs that take tasks there lead to machines that they
                do not prefer.
        """
        if self.slots is None:
            return np.zeros(len(is_elsewhere), bool)
        return is_elsewhere if self._elsewhere_only else np.ones(len(is_elsewhere), bool)

    def entrance(self, machine: Int64, is_elsewhere: NDArray[np.bool_]) -> Int64:
        """The nodes through which placements enter these machines: int64[k]. Both arguments have
        k entries; the second as in is_priced()."""
        if self._entrance is self.unpriced:
            return self.unpriced[machine]
        priced = self.is_priced(is_elsewhere)
        return np.where(priced, self._entrance[machine], self.unpriced[machine])

    def open(self, machine: Int64, tail: Int64, inner: Int64) -> None:
        """Let placements elsewhere enter these machines from these nodes, over priced arcs that
        stand for these rows of the arcs out of aggregators (int64[k] each).

        Called where replaces_inner, once for each machine.
        """
        if self.slots is not None:
            self.slots.open(machine, tail, inner)

    def set_load(self, load: MachineLoad, slots: SlotState | None) -> Int64:
        """Set capacities and slot prices, and return the machines whose room changed."""
        machine: Int64 = _native.differing(load.room, self.room)
        if self.slots is not None and slots is not None:
            self.slots.update(load, slots, machine)
        if len(machine):
            self.room = load.room
            if len(self._to_sink):
                self._graph.solver.set_capacity(self._to_sink[machine], self.room[machine])
                self._graph.altered += len(machine)
        return machine

    def priced(self, inner_is_priced: NDArray[np.bool_]) -> PricedSlots:
        """What slots cost as of the last set_load(), for the extraction."""
        if self.slots is None:
            return NO_SLOT_PRICES
        return self.slots.priced(not self._elsewhere_only, inner_is_priced)

    def potentials(self) -> tuple[Int64, int]:
        """The potentials of machines (int64[M]) and of the sink, of the last solve.

        A machine's less the sink's, if that is above 0, is by how much the round would have cost
        less with one more slot there, not counting the price of that slot.
        """
        potential = self._graph.solver.potential()
        machine = potential[self._entrance] - self.risen
        if self.slots is not None:
            machine = machine - self.slots.next_costs()
            if self._entrance is not self.node:
                # Of two full arcs in a row either may bear the worth of both.
                machine = np.maximum(machine, potential[self.node])
        return machine, int(potential[self._sink])


class SegmentArcs:
    """Parallel arcs from `tail` to `head` (nodes, int64[M] each): as many for a machine as
    it had segments open together. Machines whose tail is NO_NODE have none.

    inner: int64[M], the rows of the arcs out of aggregators that they stand for, or NO_ROW.
    """

    def __init__(self, graph: SolverGraph, tail: Int64, head: Int64, inner: Int64) -> None:
        self._graph = graph
        self._tail, self._head, self._inner = tail, head, inner
        self._arcs = _native.SegmentArcs(len(tail))

    def set(self, row: Int64, cost: Int64, slots: Int64, free: Int64, units: Int64) -> None:
        """Set the arcs of some machines, int64[k]; the solver hears of what differs. cost, slots,
        free, units: as in PricedSlots."""
        machine, capacity, machine_cost, *changes = self._arcs.set(
            cost, slots, free, units, row, cost.shape[1]
        )
        self._graph.change_arcs(*changes)
        if len(machine):
            arc = self._graph.add_inner_arcs(
                self._inner[machine],
                self._tail[machine],
                self._head[machine],
                capacity,
                machine_cost,
            )
            self._arcs.name(arc)


class SlotArcs:
    """The priced arcs from `tail` to `head` (nodes, int64[M] each). A machine whose tail is NO_NODE
    has none until it is opened.

    A slot that a running task of this scheduler holds may be vacated for another one. It costs as
    much as the dearest slot of the cell, so that no running task has to move because the slots of
    other machines are dear.
    """

    def __init__(self, graph: SolverGraph, pricing: SlotPricing, tail: Int64, head: Int64) -> None:
        self._pricing = pricing
        self._prices: SlotPrices | None = None
        self._cost = np.zeros((len(tail), 1), np.int64)  # of slots, by level
        self._dearest = 0
        self._tail, self._inner = tail, np.full(len(tail), NO_ROW, np.int64)
        self._has_closed = bool(np.any(tail == NO_NODE))
        self._segments = SegmentArcs(graph, tail, head, self._inner)
        self._vacated = SegmentArcs(graph, tail, head, self._inner)
        # As of the last update, int64[M]: units free and to be vacated, slots free.
        self._units = self._own = self._free = np.zeros(len(tail), np.int64)

    def open(self, machine: Int64, tail: Int64, inner: Int64) -> None:
        """Add the arcs of these machines: from which nodes, and for which rows of the arcs out of
        aggregators (int64[k] each)."""
        self._tail[machine], self._inner[machine] = tail, inner
        self._has_closed = bool(np.any(self._tail == NO_NODE))
        if self._prices is not None:
            self._set_free(machine, self._prices)
            self._set_vacated(machine)

    def update(self, load: MachineLoad, slots: SlotState, moved: Int64) -> None:
        """Bring the arcs up to date with the load of machines, and the prices of their slots.
        moved: int64[k], all machines whose room differs from that of the last update."""
        prices, is_new = slots.prices, slots.prices is not self._prices
        dearest_changed = False
        if is_new:
            before, self._dearest = self._dearest, self._set_prices(prices)
            dearest_changed = before != self._dearest
            row = np.arange(len(self._units))
        elif load.free is load.room is slots.free and self._free is self._units:
            row = moved
        else:
            row = np.flatnonzero((load.free != self._units) | (slots.free != self._free))
        self._units, self._free = load.free, slots.free
        self._set_free(row, prices)
        if load.room is not load.free:
            own = load.room - load.free
            stale = (own != self._own) | (dearest_changed & (own > 0))
            self._own = own
            self._set_vacated(np.flatnonzero(stale))

    def priced(self, direct: bool, inner: NDArray[np.bool_]) -> PricedSlots:
        """The slots as of the last update, with which arcs are priced (as in PricedSlots)."""
        slots = self._units if self._prices is None else self._prices.slots
        return PricedSlots(self._cost, slots, self._free, self._units, self._dearest, direct, inner)

    def next_costs(self) -> Int64:
        """The cost of the next slot of each machine as of the last update, int64[M]."""
        if self._prices is None:
            return np.zeros(len(self._free), np.int64)
        return self._at_level(np.arange(len(self._free)), self._prices.slots - self._free)

    def next_cost(self, machine: Int64, free: Int64) -> Int64:
        """The cost of the next slot of machines int64[k] with room int64[k, R]: int64[k]."""
        if self._prices is None:
            return np.zeros(len(machine), np.int64)
        busy = self._prices.slots[machine] - units_in(free, self._prices.unit)
        return self._at_level(machine, busy)

    def _set_free(self, row: Int64, prices: SlotPrices) -> None:
        row = self._opened(row)
        if len(row):
            self._segments.set(row, self._cost, prices.slots, self._free, self._units)

    def _set_vacated(self, row: Int64) -> None:
        row = self._opened(row)
        if len(row):
            own = self._own
            cost = np.full((len(own), 1), self._dearest)
            self._vacated.set(row, cost, own, own, own)

    def _opened(self, row: Int64) -> Int64:
        return row[self._tail[row] != NO_NODE] if self._has_closed else row

    def _at_level(self, machine: Int64, busy: Int64) -> Int64:
        cost: Int64 = self._cost[machine, np.clip(busy, 0, self._cost.shape[1] - 1)]
        return cost

    def _set_prices(self, prices: SlotPrices) -> int:
        """Take over new prices, and return the cost of the dearest slot."""
        self._prices = prices
        self._cost = self._pricing.in_costs(prices.price)
        dearest = int(self._cost[:, -1].max(initial=0))  # costs never fall along a row
        if dearest > MAX_COST:
            raise PolicyError(
                f"{self._pricing.policy.name}: an arc into a machine costs {dearest}; "
                f"at most {MAX_COST}"
            )
        return dearest
