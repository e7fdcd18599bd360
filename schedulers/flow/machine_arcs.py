"""The machines' nodes of the flow graph, and the arcs from them to the sink.

Without slot prices each machine has one arc to the sink, of cost 0. Slot prices put priced arcs
(slot_arcs.py) on the way into the machine, for all placements or for those elsewhere. A running
task enters behind them, as it pays for no slot:

    all placements            placement ---------> M ==price==> sink
    all, under preemption     placement -> E ==price==> M --0--> sink,  running -> M
    elsewhere                 rack ==price==> M --0--> sink,            preferred, running -> M
    elsewhere, several arcs   aggregator -> E ==price==> M --0--> sink, preferred, running -> M

Where a machine has only one arc for placements elsewhere (Policy.one_arc_elsewhere), the priced
arcs take the place of that arc, and no nodes E are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.arrays import differing
from schedulers.flow.extraction import NO_SLOT_PRICES, PricedSlots
from schedulers.flow.policies.policy import MachineLoad
from schedulers.flow.slot_arcs import SlotArcs
from schedulers.flow.slot_pricing import SlotPricing, SlotState
from schedulers.flow.solver_graph import SolverGraph
from schedulers.flow.task_table import NO_NODE
from shared_state.tasks import Int64


class MachineArcs:
    """The ways of M machines to the sink.

    Attributes:
        node: int64[M], where running tasks enter, and placements without a price.
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
    ) -> None:
        self._graph = graph
        self._sink = sink
        self._elsewhere_only = pricing is not None and pricing.elsewhere_only
        self.replaces_inner = (
            pricing is not None and pricing.elsewhere_only and pricing.policy.one_arc_elsewhere
        )
        self.node = self._entrance = self.entrance_of_preferred = graph.add_nodes(machines)
        self.room = zero = np.zeros(machines, np.int64)
        self._to_sink = np.zeros(0, np.int64)
        self.slots = None
        sinks = np.full(machines, sink)
        if pricing is not None and not (preemption or pricing.elsewhere_only):
            self.slots = SlotArcs(graph, pricing, self.node, sinks)
            return
        self._to_sink = graph.add_arcs(self.node, sinks, zero, zero)
        if pricing is not None and self.replaces_inner:
            self.slots = SlotArcs(graph, pricing, np.full(machines, NO_NODE), self.node)
        elif pricing is not None:
            self._entrance = graph.add_nodes(machines)
            if not pricing.elsewhere_only:
                self.entrance_of_preferred = self._entrance
            self.slots = SlotArcs(graph, pricing, self._entrance, self.node)

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
        if self._entrance is self.node:
            return self.node[machine]
        return np.where(self.is_priced(is_elsewhere), self._entrance[machine], self.node[machine])

    def open(self, machine: Int64, tail: Int64, inner: Int64) -> None:
        """Let placements elsewhere enter these machines from these nodes, over priced arcs that
        stand for these rows of the arcs out of aggregators (int64[k] each).

        Called where replaces_inner, once for each machine.
        """
        if self.slots is not None:
            self.slots.open(machine, tail, inner)

    def set_load(self, load: MachineLoad, slots: SlotState | None) -> Int64:
        """Set capacities and slot prices, and return the machines whose room changed."""
        machine = differing(load.room, self.room)
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
        machine = potential[self._entrance]
        if self.slots is not None:
            machine = machine - self.slots.next_costs()
            if self._entrance is not self.node:
                # Of two full arcs in a row either may bear the worth of both.
                machine = np.maximum(machine, potential[self.node])
        return machine, int(potential[self._sink])
