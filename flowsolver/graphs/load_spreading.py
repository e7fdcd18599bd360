"""The load-spreading policy (Firmament, OSDI 2016, figure 6a)."""

from __future__ import annotations

import numpy as np

from flowsolver.graphs.cell import check_cell, fill, rank
from flowsolver.graphs.draws import Draws
from flowsolver.graphs.graph import SchedulingGraph
from flowsolver.network import FlowNetwork


def load_spreading_graph(machines: int, new_tasks: int, seed: int, slots_per_machine: int = 12) -> SchedulingGraph:
    """A half-used cell in which one new job of `new_tasks` asks for the least loaded machines.

    X reaches machine m over one unit arc per free slot, the k-th at cost 10 * (occupied + k). There are no racks; running
    tasks have an arc of cost 0 to their machine.
    """
    check_cell(machines, 50, 0, slots_per_machine)
    if new_tasks < 0:
        raise ValueError(f"new_tasks = {new_tasks}: must be at least 0")
    draws = Draws(seed)
    slots = machines * slots_per_machine
    used = slots // 2
    place = fill(draws.below(machines, used), np.full(machines, slots_per_machine), draws)
    occupied = np.bincount(place, minlength=machines)
    first_machine, first_unscheduled = 2, 2 + machines
    first_task = first_unscheduled + 2
    tasks = used + new_tasks
    network = FlowNetwork()
    supply = np.ones(first_task + tasks, dtype=np.int64)
    supply[:first_task] = 0
    supply[0] = -tasks
    network.add_nodes(supply)
    ids = first_task + np.arange(tasks)
    head = np.empty((tasks, 2), dtype=np.int64)
    head[:used, 0], head[used:, 0] = first_machine + place, 1
    head[:used, 1], head[used:, 1] = first_unscheduled, first_unscheduled + 1
    cost = np.empty((tasks, 2), dtype=np.int64)
    cost[:used], cost[used:] = (0, 20_000), (1, 5_000)
    network.add_arcs(np.repeat(ids, 2), head.ravel(), 1, cost.ravel())
    free = slots_per_machine - occupied
    machine = np.repeat(np.arange(machines), free)
    network.add_arcs(
        np.ones(machine.size, dtype=np.int64), first_machine + machine, 1, 10 * (occupied[machine] + rank(machine))
    )
    machine_ids = first_machine + np.arange(machines)
    network.add_arcs(machine_ids, np.zeros(machines, dtype=np.int64), slots_per_machine, 0)
    network.add_arcs(first_unscheduled + np.arange(2), np.zeros(2, dtype=np.int64), [used, new_tasks], 0)
    return SchedulingGraph(network, 0, machines, 2, tasks, slots_per_machine, 1)
