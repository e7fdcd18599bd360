"""The fluid problem as a maximum flow: as many tasks as possible on preferred machines.

It applies where a preferred place saves the same for all tasks, and all sets have the same run
times. A plan with the most tasks on preferred machines is then also the cheapest, and the one that
holds the fewest slots, so the cell can do the work if it can with this plan.

Flow goes from sets to the classes of machines that they list, in integer parts of a slot. A unit
that finds no preferred machine costs 1, so the least cost is what the maximum flow leaves over, and
the potentials are a minimum cut: a slot of a class is worth what it saves, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsolver import FlowNetwork, Status, solve
from schedulers.prices.fluid_classes import Float64, FluidClasses, Plan

_US = 1e-6
_PARTS = 1 << 20  # of a slot, one unit of flow
_LARGEST = 1 << 58  # of all supplies together
_MOST_STEPS = 100
_STEP = 1e-9  # of the load: a smaller one ends the search


@dataclass(frozen=True, slots=True, eq=False)
class _Flow:
    """A maximum flow.

    Attributes:
        preferred_per_s: float64[S], tasks of each set that get a preferred machine.
        is_cut: bool[C], whether a class is in the minimum cut: more slots there would help.
        is_placed: bool[S], whether a further task of each set would get a preferred machine, in
            place of none.
    """

    preferred_per_s: Float64
    is_cut: NDArray[np.bool_]
    is_placed: NDArray[np.bool_]


def preferred_flow(classes: FluidClasses, saving: float) -> Plan:
    """The plan with the most tasks on preferred machines.

    Args:
        classes: The small problem; all sets that list machines have the same run times.
        saving: By how much a preferred place is cheaper than any other.
    """
    flow = _solve(classes, classes.rate_per_s)
    preferred = flow.preferred_per_s
    length_s = float(classes.preferred_us[classes.entry_set].max(initial=0.0)) * _US
    all_elsewhere = float(classes.rate_per_s @ classes.elsewhere_cost)
    return Plan(
        preferred_per_s=preferred,
        busy_slots=_busy_slots(classes, classes.rate_per_s, preferred),
        cost_per_s=all_elsewhere - saving * float(preferred.sum()),
        class_price=np.where(flow.is_cut, saving / length_s if length_s else 0.0, 0.0),
        rack_price=np.zeros(0),
        cell_price=0.0,
    )


def highest_flow_load(classes: FluidClasses, capacity: float) -> float:
    """The largest factor by which all rates can be multiplied so that the cell can do the work.

    By Newton's method, from above: the slots that the best plan holds are a convex, piecewise
    linear function of the factor, and the minimum cut tells its slope.

    Args:
        classes: The small problem, as preferred_flow takes it, of more work than the cell can do.
        capacity: Slots of the whole cell that its tasks may hold.
    """
    load = 1.0
    for _ in range(_MOST_STEPS):
        rate = classes.rate_per_s * load
        flow = _solve(classes, rate)
        excess = _busy_slots(classes, rate, flow.preferred_per_s) - capacity
        further = np.where(flow.is_placed, classes.preferred_us, classes.elsewhere_us)
        step = excess / float(classes.rate_per_s @ further * _US)
        load = max(0.0, load - step)
        if step <= _STEP:
            break
    return load


def _solve(classes: FluidClasses, rate_per_s: Float64) -> _Flow:
    """The maximum flow for some rates of the sets."""
    sets, count = len(rate_per_s), len(classes.capacity)
    asks = np.zeros(sets, np.bool_)
    asks[classes.entry_set] = True
    work = np.where(asks, rate_per_s * classes.preferred_us * _US, 0.0)
    largest = float(work.sum()) + float(classes.capacity.sum()) + 1.0
    parts = float(min(_PARTS, _LARGEST / largest))
    supply = np.rint(work * parts).astype(np.int64)
    network = FlowNetwork()
    nodes = network.add_nodes(np.concatenate([supply, np.zeros(count + 1, np.int64)]))
    set_node, class_node, sink = nodes[:sets], nodes[sets : sets + count], nodes[-1]
    network.set_supply(nodes[-1:], -supply.sum(keepdims=True))
    from_set = classes.entry_set
    kept = network.add_arcs(
        set_node[from_set], class_node[classes.entry_class], supply[from_set], 0
    )
    room = np.rint(classes.capacity * parts).astype(np.int64)
    network.add_arcs(class_node, np.full(count, sink), room, 0)
    network.add_arcs(set_node, np.full(sets, sink), supply, 1)
    solution = solve(network)
    if solution.status is not Status.OPTIMAL:
        raise ArithmeticError(f"the fluid problem's maximum flow ended {solution.status.name}")
    units = np.bincount(from_set, solution.flow[kept], minlength=sets)
    share = np.divide(units, supply, out=np.ones(sets), where=supply > 0)
    above_sink = solution.potential - solution.potential[sink]
    return _Flow(
        preferred_per_s=np.where(asks, rate_per_s * np.minimum(share, 1.0), 0.0),
        is_cut=above_sink[class_node] > 0,
        is_placed=asks & (above_sink[set_node] <= 0),
    )


def _busy_slots(classes: FluidClasses, rate_per_s: Float64, preferred_per_s: Float64) -> float:
    left = rate_per_s - preferred_per_s
    return float(preferred_per_s @ classes.preferred_us + left @ classes.elsewhere_us) * _US
