"""The Quincy policy (SOSP 2009, figure 4; Firmament, OSDI 2016, figure 6b).

Shape: every task (supply 1) has arcs to the machines and racks
that hold much of its input, to the cluster aggregator X, and to its job's unscheduled aggregator; X
leads to the racks, racks to their machines, machines and unscheduled aggregators to the sink.

Costs, for a task with input of size S, f of it on the machine and g in the rack: machine S(2(1-g) +
(g-f)), rack S(2(1-g) + g), X 2S + 1, unscheduled X + 200 + waiting time + time run. A running
task's arc to its machine is cheaper by the time run.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.graphs.cell import (
    RUN_LIMIT_S,
    UNSCHEDULED_EXTRA,
    WAIT_LIMIT_S,
    add_arcs_to_sink,
    assign_slots,
    check_cell,
    check_size,
    choose_running,
    count_tasks,
    job_sizes,
    rank,
    task_network,
)
from flowsolver.graphs.draws import Draws
from flowsolver.graphs.graph import SchedulingGraph

_PREFERENCE_LIMIT = 10
_PREFERENCE_PERCENT = 14
_SIZE_LIMIT = 20_000


@dataclass(frozen=True)
class GraphOptions:
    """What to generate.

    Args:
        machines: number of machines.
        percent_used: tasks, running and pending, in percent of the slots; above 100 the cell is
            oversubscribed.
        percent_pending: pending tasks in percent of all tasks; 100 is a cold start.
        slots_per_machine: slots of each machine.
        machines_per_rack: machines of each rack.
        replicas: copies of each input block, 1 or 3 (two in one rack, one anywhere).
        skew: blocks are on machine M * u**skew (scattered), so that above 1 few machines have most
            of the data.
    """

    machines: int
    percent_used: int = 90
    percent_pending: int = 2
    slots_per_machine: int = 12
    machines_per_rack: int = 40
    replicas: int = 3
    skew: int = 1

    def __post_init__(self) -> None:
        check_cell(self.machines, self.percent_used, self.percent_pending, self.slots_per_machine)
        for name in ("machines_per_rack", "skew"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")
        if self.replicas not in (1, 3):
            raise ValueError(f"replicas = {self.replicas}: must be 1 or 3")


def quincy_graph(options: GraphOptions, seed: int) -> SchedulingGraph:
    """A cell under the Quincy policy, its running tasks placed as an earlier run might have placed
    them.
    """
    draws = Draws(seed)
    machines, per_rack = options.machines, options.machines_per_rack
    racks = -(-machines // per_rack)
    tasks, running_count = count_tasks(
        machines, options.slots_per_machine, options.percent_used, options.percent_pending
    )
    check_size(tasks, machines * options.slots_per_machine, 8, bytes_per_task=2_800)
    sizes_of_jobs = job_sizes(draws, tasks)
    running = choose_running(draws, tasks, running_count)
    first_rack = 2
    first_machine = first_rack + racks
    first_unscheduled = first_machine + machines
    first_task = first_unscheduled + sizes_of_jobs.size

    blocks = _block_counts(draws, tasks)
    size = _sizes(draws, tasks) + blocks
    prefs = _preferences(draws, options, blocks, size, first_rack, first_machine)
    place = _place(draws, options, running, prefs, first_rack, first_machine)

    run_s = np.where(running, draws.below(RUN_LIMIT_S, tasks), 0)
    wait_s = np.where(running, 0, draws.below(WAIT_LIMIT_S, tasks))
    cluster_cost = 2 * size + 1

    ids = np.arange(tasks, dtype=np.int64)
    continues = prefs.target == first_machine + place[prefs.task]
    pref_cost = np.where(continues, np.maximum(0, prefs.cost - run_s[prefs.task]), prefs.cost)
    at_preferred = np.zeros(tasks, dtype=bool)
    at_preferred[prefs.task[continues]] = True
    elsewhere = ids[
        running & ~at_preferred
    ]  # no data to speak of at their machine: the full transfer
    task = np.concatenate([prefs.task, elsewhere, ids, ids])
    head = np.concatenate(
        [
            prefs.target,
            first_machine + place[elsewhere],
            np.ones(tasks, dtype=np.int64),
            first_unscheduled + np.repeat(np.arange(sizes_of_jobs.size), sizes_of_jobs),
        ]
    )
    cost = np.concatenate(
        [
            pref_cost,
            np.maximum(0, 2 * size[elsewhere] - run_s[elsewhere]),
            cluster_cost,
            cluster_cost + UNSCHEDULED_EXTRA + wait_s + run_s,
        ]
    )
    network = task_network(first_task, tasks, task, head, cost)
    rack_of = np.arange(machines) // per_rack
    rack_slots = np.bincount(rack_of, minlength=racks) * options.slots_per_machine
    network.add_arcs(np.ones(racks, dtype=np.int64), first_rack + np.arange(racks), rack_slots, 0)
    network.add_arcs(
        first_rack + rack_of, first_machine + np.arange(machines), options.slots_per_machine, 0
    )
    add_arcs_to_sink(network, first_machine, machines, options.slots_per_machine, sizes_of_jobs)
    return SchedulingGraph(
        network,
        racks,
        machines,
        sizes_of_jobs.size,
        tasks,
        options.slots_per_machine,
        options.machines_per_rack,
    )


def contended_options(
    machines: int, percent_used: int = 90, percent_pending: int = 2
) -> GraphOptions:
    """Popular data with one replica, so that thousands of machines have a positive price."""
    return GraphOptions(machines, percent_used, percent_pending, replicas=1, skew=3)


@dataclass(frozen=True)
class _Preferences:
    """Preference arcs by task, cheapest first: task index, node id, cost, int64[k] each."""

    task: Int64Array
    target: Int64Array
    cost: Int64Array


def _block_counts(draws: Draws, tasks: int) -> Int64Array:
    kind = draws.below(100, tasks)
    low = np.select([kind < 35, kind < 60, kind < 85], [1, 1, 2], 8)
    width = np.select([kind < 35, kind < 60, kind < 85], [1, 3, 7], 25)
    return low + draws.below(width, tasks)


def _sizes(draws: Draws, tasks: int) -> Int64Array:
    """Lognormal, median e^4 = 55, sigma 1.2, by a table of quantiles."""
    normal = NormalDist(4.0, 1.2)
    steps = 4096
    table = [
        min(_SIZE_LIMIT, int(2.718281828459045 ** normal.inv_cdf((i + 0.5) / steps)))
        for i in range(steps)
    ]
    return np.array(table, dtype=np.int64)[draws.below(steps, tasks)]


def _preferences(
    draws: Draws,
    options: GraphOptions,
    blocks: Int64Array,
    size: Int64Array,
    first_rack: int,
    first_machine: int,
) -> _Preferences:
    machines, per_rack = options.machines, options.machines_per_rack
    racks = -(-machines // per_rack)
    task = np.repeat(np.arange(blocks.size), blocks)
    count = task.size
    spot = (draws.bits(count) >> np.uint64(43)).astype(np.int64)  # 21 bits: machines * spot fits
    for _ in range(options.skew - 1):
        spot = spot * (draws.bits(count) >> np.uint64(43)).astype(np.int64) >> 21
    first = machines * spot >> 21
    if options.skew > 1:
        first = first * 2654435761 % machines
    home = first // per_rack
    if options.replicas == 3:
        rack_size = np.minimum(per_rack, machines - home * per_rack)
        second = home * per_rack + draws.below(rack_size, count)
        third = draws.below(machines, count)
        away = third // per_rack != home
        extra2, extra3 = second != first, (third != first) & (third != second)
        on_machine = np.concatenate(
            [
                task * machines + first,
                (task * machines + second)[extra2],
                (task * machines + third)[extra3],
            ]
        )
        in_rack = np.concatenate([task * racks + home, (task * racks + third // per_rack)[away]])
    else:
        on_machine, in_rack = task * machines + first, task * racks + home
    rack_key, rack_blocks = np.unique(in_rack, return_counts=True)
    machine_key, machine_blocks = np.unique(on_machine, return_counts=True)
    rack_task, machine_task = rack_key // racks, machine_key // machines
    machine = machine_key % machines
    in_its_rack = rack_blocks[np.searchsorted(rack_key, machine_task * racks + machine // per_rack)]
    all_task = np.concatenate([machine_task, rack_task])
    target = np.concatenate([first_machine + machine, first_rack + rack_key % racks])
    k = blocks[all_task]
    held = np.concatenate([machine_blocks, rack_blocks])
    saved = np.concatenate([machine_blocks + in_its_rack, rack_blocks])
    cost = (2 * size[all_task] * (2 * k - saved) + k) // (2 * k)
    keep = 100 * held >= _PREFERENCE_PERCENT * k
    all_task, target, cost = all_task[keep], target[keep], cost[keep]
    order = np.lexsort((target, cost, all_task))
    all_task, target, cost = all_task[order], target[order], cost[order]
    best = rank(all_task) < _PREFERENCE_LIMIT
    return _Preferences(all_task[best], target[best], cost[best])


def _place(
    draws: Draws,
    options: GraphOptions,
    running: np.ndarray,
    prefs: _Preferences,
    first_rack: int,
    first_machine: int,
) -> Int64Array:
    """The machine of each running task, int64[tasks]; -1 for the others."""
    tasks, machines, per_rack = running.size, options.machines, options.machines_per_rack
    mood = draws.below(100, tasks)
    preferred = draws.below(machines, tasks)
    to_machine = prefs.target >= first_machine
    for wanted, is_rack in ((mood < 60, False), ((mood >= 60) & (mood < 85), True)):
        rows = np.flatnonzero(to_machine != is_rack)
        task, at = np.unique(prefs.task[rows], return_index=True)
        target = prefs.target[rows[at]]
        chosen = wanted[task]
        task, target = task[chosen], target[chosen]
        if is_rack:
            low = (target - first_rack) * per_rack
            preferred[task] = low + draws.below(np.minimum(per_rack, machines - low), task.size)
        else:
            preferred[task] = target - first_machine
    place = np.full(tasks, -1, dtype=np.int64)
    place[running] = assign_slots(
        preferred[running], np.full(machines, options.slots_per_machine), draws
    )
    return place
