"""The load-spreading policy (Firmament, OSDI 2016, figure 6a)."""

from __future__ import annotations

import numpy as np

from flowsolver.graphs.cell import (
    add_arcs_to_sink,
    assign_slots,
    check_cell,
    check_size,
    rank,
    task_network,
)
from flowsolver.graphs.draws import Draws
from flowsolver.graphs.graph import SchedulingGraph


def load_spreading_graph(
    machines: int, new_tasks: int, seed: int, slots_per_machine: int = 12
) -> SchedulingGraph:
    """A half-used cell in which one new job of `new_tasks` asks for the least loaded machines.

    X reaches machine m over one unit arc per free slot, the k-th at cost 10 * (occupied + k). There
    are no racks; running tasks have an arc of cost 0 to their machine.
    """
    check_cell(machines, 50, 0, slots_per_machine)
    if new_tasks < 0:
        raise ValueError(f"new_tasks = {new_tasks}: must be at least 0")
    draws = Draws(seed)
    slots = machines * slots_per_machine
    used = slots // 2
    check_size(used + new_tasks, slots, 3, bytes_per_task=300)
    place = assign_slots(draws.below(machines, used), np.full(machines, slots_per_machine), draws)
    occupied = np.bincount(place, minlength=machines)
    first_machine, first_unscheduled = 2, 2 + machines
    first_task = first_unscheduled + 2
    tasks = used + new_tasks
    head = np.empty((tasks, 2), dtype=np.int64)
    head[:used, 0], head[used:, 0] = first_machine + place, 1
    head[:used, 1], head[used:, 1] = first_unscheduled, first_unscheduled + 1
    cost = np.empty((tasks, 2), dtype=np.int64)
    cost[:used], cost[used:] = (0, 20_000), (1, 5_000)
    network = task_network(
        first_task, tasks, np.repeat(np.arange(tasks), 2), head.ravel(), cost.ravel()
    )
    free = slots_per_machine - occupied
    machine = np.repeat(np.arange(machines), free)
    network.add_arcs(
        np.ones(machine.size, dtype=np.int64),
        first_machine + machine,
        1,
        10 * (occupied[machine] + rank(machine)),
    )
    add_arcs_to_sink(
        network, first_machine, machines, slots_per_machine, np.array([used, new_tasks])
    )
    return SchedulingGraph(network, 0, machines, 2, tasks, slots_per_machine, 1)
