"""The least cost at which a set of tasks could be placed: decisions are measured against it.

A min-cost flow on the workload's own costs (objective.py). Tasks that prefer and ask alike are one
node, machines that no task of the set lists are one arc (one per rack where racks are listed), so
the network is small however large the cell is:

    class --machine_cost--> machine --> sink          machines the class lists, as many tasks as fit
    class --rack_cost--> rack --> machine, sink       racks the class lists; to the sink: the room
                                                      of the rack's unlisted machines
    class --elsewhere_cost--> X --> rack, machine, sink
    class --unscheduled_cost--> sink

The flow is the optimum when all tasks ask for the same amount, none belongs to a gang, and no
catalog set lists a machine above its rack or a rack above elsewhere. Otherwise packing is hard and
the flow is a relaxation of it, so its cost is a lower bound and what is measured against it an
upper one: a machine takes as many tasks as fit it of the set's smallest requests, dimension by
dimension; gangs may be torn; the cheaper of two prices counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsolver import FlowNetwork, Status, solve
from flowsolver.solution import explain
from schedulers.flow.arrays import ranges
from schedulers.units import fits_somewhere
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, fits


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least possible cost, or a lower bound on it if not exact."""

    cost: int
    exact: bool


class BestPlacement:
    """Solves for one cell and catalog; keeps nothing from one call to the next."""

    def __init__(self, cell: CellSpec, catalog: PreferenceCatalog) -> None:
        self._catalog = catalog
        self._rack = cell.rack
        racks = int(cell.rack[-1]) + 1 if cell.machines else 0
        self._rack_begin = np.searchsorted(cell.rack, np.arange(racks + 1))
        self._ordered = _costs_are_ordered(catalog, cell.rack)

    def cost(self, room: Int64, preference: Int32, request: Int64) -> Optimum:
        """The best placement of tasks of sets preference int32[n] that ask for request int64[n, R],
        on room int64[M, R] (below 0: none).

        A task left waiting costs its unscheduled_cost. ValueError for costs beyond the solver's
        range (flowsolver.solution.explain).
        """
        count = len(preference)
        if count == 0:
            return Optimum(0, True)
        alike = bool((request == request[0]).all())
        if alike:
            slots = _slots_of_one(room, request[0])
            size = np.bincount(preference)
            sets, asked = np.flatnonzero(size), None
            size = size[sets]
        else:
            slots = _slots_of_smallest(room, request)
            first, size = _classes(preference, request)
            sets, asked = preference[first].astype(np.int64), request[first]
        network = self._network(room, np.minimum(slots, count), sets, size, asked)
        solution = solve(network)
        if solution.status is not Status.OPTIMAL:
            raise ValueError(f"least placement cost: {explain(network, solution)}")
        return Optimum(solution.cost, alike and self._ordered)

    def _network(
        self, room: Int64, slots: Int64, sets: Int64, size: Int64, asked: Int64 | None
    ) -> FlowNetwork:
        """The flow network of classes of sets int64[C] with size int64[C] tasks.

        Args:
            slots: int64[M], tasks that machines take.
            asked: int64[C, R], the requests if they differ.
        """
        catalog, rack = self._catalog, self._rack
        total = int(size.sum())
        everyone = np.arange(len(sets))
        tail, machine, machine_cost = _listed(
            sets, catalog.machine_offsets, catalog.machine, catalog.machine_cost
        )
        rack_tail, listed_rack, rack_cost = _listed(
            sets, catalog.rack_offsets, catalog.rack, catalog.rack_cost
        )
        usable = slots[machine] > 0
        has_place = np.ones(len(sets), np.bool_)  # fits some machine
        if asked is not None:
            usable &= fits(asked[tail], room[machine])
            has_place = fits_somewhere(asked, room)
        tail, machine, machine_cost = tail[usable], machine[usable], machine_cost[usable]
        usable = has_place[rack_tail]
        rack_tail, listed_rack, rack_cost = (
            rack_tail[usable],
            listed_rack[usable],
            rack_cost[usable],
        )
        placeable = everyone[has_place]

        node_of_machine, machines = _numbered(machine, len(slots))
        node_of_rack, racks = _numbered(listed_rack, len(self._rack_begin) - 1)
        first_machine = len(sets)
        first_rack = first_machine + len(machines)
        anywhere, sink = first_rack + len(racks), first_rack + len(racks) + 1

        # What machines without a node of their own hold, by rack with a node; the rest is X's.
        unlisted = slots.copy()
        unlisted[machines] = 0
        upto = np.concatenate([[0], np.cumsum(unlisted)])
        of_rack = upto[self._rack_begin[racks + 1]] - upto[self._rack_begin[racks]]
        above = node_of_rack[rack[machines]]  # the rack's node, -1: reached from X
        above = np.where(above < 0, anywhere, first_rack + above)

        network = FlowNetwork()
        network.add_nodes(np.concatenate([size, np.zeros(sink - len(sets), np.int64), [-total]]))
        network.add_arcs(tail, first_machine + node_of_machine[machine], size[tail], machine_cost)
        network.add_arcs(
            rack_tail, first_rack + node_of_rack[listed_rack], size[rack_tail], rack_cost
        )
        network.add_arcs(
            placeable, anywhere, size[placeable], catalog.elsewhere_cost[sets[placeable]]
        )
        network.add_arcs(everyone, sink, size, catalog.unscheduled_cost[sets])
        network.add_arcs(
            np.full(len(racks), anywhere), first_rack + np.arange(len(racks)), total, 0
        )
        network.add_arcs(first_rack + np.arange(len(racks)), sink, of_rack, 0)
        network.add_arcs(above, first_machine + np.arange(len(machines)), slots[machines], 0)
        network.add_arcs(first_machine + np.arange(len(machines)), sink, slots[machines], 0)
        network.add_arcs([anywhere], [sink], [int(upto[-1] - of_rack.sum())], 0)
        return network


def _slots_of_one(room: Int64, request: Int64) -> Int64:
    """How many of `request` (int64[R], not all 0) fit, int64[M]."""
    asked = request > 0
    slots: Int64 = np.maximum((room[:, asked] // request[asked]).min(axis=1), 0)
    return slots


def _slots_of_smallest(room: Int64, request: Int64) -> Int64:
    """A bound on the number of tasks that fit, whichever they are, int64[M]: in each dimension the
    k smallest requests must fit, and requests of 0 always do."""
    smallest = np.cumsum(np.sort(request, axis=0), axis=0)
    fit = [
        np.searchsorted(smallest[:, r], np.maximum(room[:, r], 0), side="right")
        for r in range(request.shape[1])
    ]
    slots: Int64 = np.minimum.reduce(fit).astype(np.int64)
    slots[(room <= 0).all(axis=1)] = 0
    return slots


def _classes(preference: Int32, request: Int64) -> tuple[NDArray[np.intp], Int64]:
    """Tasks of equal preference set and request: (a member of each class, its size)."""
    keys = [*request.T, preference]
    order = np.lexsort(keys)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = False
    for key in keys:
        in_order = key[order]
        begins[1:] |= in_order[1:] != in_order[:-1]
    begin = np.flatnonzero(begins)
    return order[begin], np.diff(np.append(begin, len(order)))


def _listed(sets: Int64, offsets: Int64, entry: Int32, cost: Int64) -> tuple[Int64, Int64, Int64]:
    """All entries of the classes' sets, as (class, what it lists, its cost)."""
    begin = offsets[sets]
    length = offsets[sets + 1] - begin
    place = ranges(begin, length)
    return np.repeat(np.arange(len(sets)), length), entry[place].astype(np.int64), cost[place]


def _numbered(items: Int64, most: int) -> tuple[Int64, Int64]:
    """The number of each possible item or -1, int64[most], and the distinct items, ascending."""
    number = np.full(most, -1, np.int64)
    number[items] = 0
    distinct = np.flatnonzero(number == 0)
    number[distinct] = np.arange(len(distinct))
    return number, distinct


def _costs_are_ordered(catalog: PreferenceCatalog, rack: Int32) -> bool:
    """Whether no listed machine costs more than its rack, and no listed rack more than elsewhere:
    then the cheapest path is the right price."""
    of_rack = np.repeat(np.arange(catalog.sets), np.diff(catalog.rack_offsets))
    if (catalog.rack_cost > catalog.elsewhere_cost[of_rack]).any():
        return False
    of_machine = np.repeat(np.arange(catalog.sets), np.diff(catalog.machine_offsets))
    otherwise = catalog.elsewhere_cost[of_machine]
    if len(of_rack):
        racks = int(rack[-1]) + 1
        listed = of_rack * racks + catalog.rack
        wanted = of_machine * racks + rack[catalog.machine]
        place = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
        otherwise = np.where(listed[place] == wanted, catalog.rack_cost[place], otherwise)
    return bool((catalog.machine_cost <= otherwise).all())
