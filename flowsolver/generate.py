"""Scheduling graphs for tests and benchmarks, the same for a seed on every machine.

Shape (Quincy, SOSP 2009, figure 4; Firmament, OSDI 2016, figure 6): every task (supply 1) has arcs to the machines and racks
that hold much of its input, to the cluster aggregator X, and to its job's unscheduled aggregator; X leads to the racks,
racks to their machines, machines and unscheduled aggregators to the sink.

Costs, for a task with input of size S, f of it on the machine and g in the rack: machine S(2(1-g) + (g-f)), rack S(2(1-g) + g),
X 2S + 1, unscheduled X + 200 + waiting time + time run. A running task's arc to its machine is cheaper by the time run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from flowsolver.network import FlowNetwork, Int64Array

_PREFERENCE_LIMIT = 10
_PREFERENCE_PERCENT = 14
_RUN_LIMIT_S = 600
_WAIT_LIMIT_S = 300
_UNSCHEDULED_EXTRA = 200
_SIZE_LIMIT = 20_000
_STEP = 0x9E3779B97F4A7C15  # of SplitMix64
_JOB_SIZE_MIN, _JOB_SIZE_MAX, _JOB_SIZE_ALPHA = 10, 20_000, 1.14


@dataclass(frozen=True)
class GraphOptions:
    """What to generate.

    percent_used: tasks, running and pending, in percent of the slots; above 100 is an oversubscribed cell.
    percent_pending: of the tasks; 100 is a cold start. replicas: copies of each input block (3: two in one rack, one
    anywhere). skew: blocks fall on machine M * u**skew (scattered), so above 1 few machines hold most data.
    """

    machines: int
    percent_used: int = 90
    percent_pending: int = 2
    slots_per_machine: int = 12
    machines_per_rack: int = 40
    replicas: int = 3
    skew: int = 1

    def __post_init__(self) -> None:
        for name in ("machines", "percent_used", "slots_per_machine", "machines_per_rack", "skew"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")
        if not 0 <= self.percent_pending <= 100:
            raise ValueError(f"percent_pending = {self.percent_pending}: must be 0 to 100")
        if self.replicas not in (1, 3):
            raise ValueError(f"replicas = {self.replicas}: must be 1 or 3")


@dataclass(frozen=True)
class SchedulingGraph:
    """A network and what its nodes are. Node ids: sink 0, X 1, then racks, machines, unscheduled aggregators, tasks."""

    network: FlowNetwork
    racks: int
    machines: int
    jobs: int
    tasks: int
    slots_per_machine: int
    machines_per_rack: int

    sink = 0
    cluster = 1

    @property
    def first_rack(self) -> int:
        return 2

    @property
    def first_machine(self) -> int:
        return self.first_rack + self.racks

    @property
    def first_unscheduled(self) -> int:
        return self.first_machine + self.machines

    @property
    def first_task(self) -> int:
        return self.first_unscheduled + self.jobs

    @cached_property
    def task_arc_begin(self) -> Int64Array:
        """int64[tasks + 1]: arcs of task i are task_arc_begin[i] .. task_arc_begin[i + 1]; they come first in the network."""
        tail = self.network.tail
        count = np.bincount(tail[tail >= self.first_task] - self.first_task, minlength=self.tasks)
        return np.concatenate([[0], np.cumsum(count)])


class Draws:
    """Counter-based uniform 64-bit draws (SplitMix64), any number at a time.

    A stream starts at the generator's first output from the seed: streams of neighbouring seeds do not overlap.
    """

    def __init__(self, seed: int) -> None:
        self._base = _mixed(np.array([(seed * _STEP + 0xD1B54A32D192ED03) & (2**64 - 1)], dtype=np.uint64))[0]
        self._count = 0

    def bits(self, size: int) -> np.ndarray:
        """uint64[size]."""
        with np.errstate(over="ignore"):
            z = np.arange(self._count + 1, self._count + 1 + size, dtype=np.uint64) * np.uint64(_STEP) + self._base
        self._count += size
        return _mixed(z)

    def below(self, limit: int | Int64Array, size: int) -> Int64Array:
        """int64[size] in [0, limit), limit < 2**31, one or one per draw."""
        return ((self.bits(size) >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64) >> np.uint64(32)).astype(
            np.int64
        )


def _mixed(z: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def quincy_graph(options: GraphOptions, seed: int) -> SchedulingGraph:
    """A cell under the Quincy policy, its running tasks placed as an earlier run might have."""
    draws = Draws(seed)
    machines, per_rack = options.machines, options.machines_per_rack
    racks = -(-machines // per_rack)
    slots = machines * options.slots_per_machine
    tasks = slots * options.percent_used // 100
    running_count = min(tasks - tasks * options.percent_pending // 100, slots)
    job_sizes = _job_sizes(draws, tasks)
    running = _choose_running(draws, tasks, running_count)
    first_rack = 2
    first_machine = first_rack + racks
    first_unscheduled = first_machine + machines
    first_task = first_unscheduled + job_sizes.size

    blocks = _block_counts(draws, tasks)
    size = _sizes(draws, tasks) + blocks
    prefs = _preferences(draws, options, blocks, size, first_rack, first_machine)
    place = _place(draws, options, running, prefs, first_rack, first_machine)

    run_s = np.where(running, draws.below(_RUN_LIMIT_S, tasks), 0)
    wait_s = np.where(running, 0, draws.below(_WAIT_LIMIT_S, tasks))
    cluster_cost = 2 * size + 1

    ids = np.arange(tasks, dtype=np.int64)
    continues = prefs.target == first_machine + place[prefs.task]
    pref_cost = np.where(continues, np.maximum(0, prefs.cost - run_s[prefs.task]), prefs.cost)
    at_preferred = np.zeros(tasks, dtype=bool)
    at_preferred[prefs.task[continues]] = True
    elsewhere = ids[running & ~at_preferred]  # no data to speak of at their machine: the full transfer
    task = np.concatenate([prefs.task, elsewhere, ids, ids])
    head = np.concatenate(
        [
            prefs.target,
            first_machine + place[elsewhere],
            np.ones(tasks, dtype=np.int64),
            first_unscheduled + np.repeat(np.arange(job_sizes.size), job_sizes),
        ]
    )
    cost = np.concatenate(
        [
            pref_cost,
            np.maximum(0, 2 * size[elsewhere] - run_s[elsewhere]),
            cluster_cost,
            cluster_cost + _UNSCHEDULED_EXTRA + wait_s + run_s,
        ]
    )
    order = np.argsort(task, kind="stable")
    network = FlowNetwork()
    supply = np.zeros(first_task + tasks, dtype=np.int64)
    supply[first_task:] = 1
    supply[0] = -tasks
    network.add_nodes(supply)
    network.add_arcs(first_task + task[order], head[order], 1, cost[order])
    rack_of = np.arange(machines) // per_rack
    rack_slots = np.bincount(rack_of, minlength=racks) * options.slots_per_machine
    machine_ids = first_machine + np.arange(machines)
    network.add_arcs(np.ones(racks, dtype=np.int64), first_rack + np.arange(racks), rack_slots, 0)
    network.add_arcs(first_rack + rack_of, machine_ids, options.slots_per_machine, 0)
    network.add_arcs(machine_ids, np.zeros(machines, dtype=np.int64), options.slots_per_machine, 0)
    network.add_arcs(
        first_unscheduled + np.arange(job_sizes.size), np.zeros(job_sizes.size, dtype=np.int64), job_sizes, 0
    )
    return SchedulingGraph(
        network, racks, machines, job_sizes.size, tasks, options.slots_per_machine, options.machines_per_rack
    )


def contended_options(machines: int, percent_used: int = 90, percent_pending: int = 2) -> GraphOptions:
    """Popular data with one replica: thousands of machines have a positive price."""
    return GraphOptions(machines, percent_used, percent_pending, replicas=1, skew=3)


def load_spreading_graph(machines: int, new_tasks: int, seed: int, slots_per_machine: int = 12) -> SchedulingGraph:
    """A half-used cell in which one new job of `new_tasks` asks for the least loaded machines.

    X reaches machine m over one unit arc per free slot, the k-th at cost 10 * (occupied + k). There are no racks; running
    tasks have an arc of cost 0 to their machine.
    """
    draws = Draws(seed)
    slots = machines * slots_per_machine
    used = slots // 2
    place = _fill(draws.below(machines, used), np.full(machines, slots_per_machine), draws)
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
        np.ones(machine.size, dtype=np.int64), first_machine + machine, 1, 10 * (occupied[machine] + _rank(machine))
    )
    machine_ids = first_machine + np.arange(machines)
    network.add_arcs(machine_ids, np.zeros(machines, dtype=np.int64), slots_per_machine, 0)
    network.add_arcs(first_unscheduled + np.arange(2), np.zeros(2, dtype=np.int64), [used, new_tasks], 0)
    return SchedulingGraph(network, 0, machines, 2, tasks, slots_per_machine, 1)


@dataclass(frozen=True)
class _Preferences:
    """Preference arcs by task, cheapest first: task index, node id, cost, each int64[k]."""

    task: Int64Array
    target: Int64Array
    cost: Int64Array


def _job_sizes(draws: Draws, tasks: int) -> Int64Array:
    sizes: list[int] = []
    left = tasks
    while left > 0:
        u = (int(draws.bits(1)[0]) >> 11) / 2.0**53
        sizes.append(min(left, _JOB_SIZE_MAX, int(_JOB_SIZE_MIN / (1 - u) ** (1 / _JOB_SIZE_ALPHA))))
        left -= sizes[-1]
    return np.array(sizes, dtype=np.int64)


def _choose_running(draws: Draws, tasks: int, running_count: int) -> np.ndarray:
    """bool[tasks]: half of the pending ones are the newest, the others anywhere."""
    pending = tasks - running_count
    newest = pending // 2
    running = np.ones(tasks, dtype=bool)
    running[tasks - newest :] = False
    older = np.argsort(draws.bits(tasks - newest), kind="stable")[: pending - newest]
    running[older] = False
    return running


def _block_counts(draws: Draws, tasks: int) -> Int64Array:
    kind = draws.below(100, tasks)
    low = np.select([kind < 35, kind < 60, kind < 85], [1, 1, 2], 8)
    width = np.select([kind < 35, kind < 60, kind < 85], [1, 3, 7], 25)
    return low + draws.below(width, tasks)


def _sizes(draws: Draws, tasks: int) -> Int64Array:
    """Lognormal, median e^4 = 55, sigma 1.2, by a table of quantiles."""
    normal = NormalDist(4.0, 1.2)
    steps = 4096
    table = [min(_SIZE_LIMIT, int(2.718281828459045 ** normal.inv_cdf((i + 0.5) / steps))) for i in range(steps)]
    return np.array(table, dtype=np.int64)[draws.below(steps, tasks)]


def _preferences(
    draws: Draws, options: GraphOptions, blocks: Int64Array, size: Int64Array, first_rack: int, first_machine: int
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
            [task * machines + first, (task * machines + second)[extra2], (task * machines + third)[extra3]]
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
    best = _rank(all_task) < _PREFERENCE_LIMIT
    return _Preferences(all_task[best], target[best], cost[best])


def _place(
    draws: Draws, options: GraphOptions, running: np.ndarray, prefs: _Preferences, first_rack: int, first_machine: int
) -> Int64Array:
    """int64[tasks]: machine of each running task, -1 for the others.

    60 % ask for the best preferred machine, 25 % for some machine of the best preferred rack, the rest for any.
    """
    tasks, machines, per_rack = running.size, options.machines, options.machines_per_rack
    mood = draws.below(100, tasks)
    wish = draws.below(machines, tasks)
    to_machine = prefs.target >= first_machine
    for wanted, is_rack in ((mood < 60, False), ((mood >= 60) & (mood < 85), True)):
        rows = np.flatnonzero(to_machine != is_rack)
        task, at = np.unique(prefs.task[rows], return_index=True)
        target = prefs.target[rows[at]]
        chosen = wanted[task]
        task, target = task[chosen], target[chosen]
        if is_rack:
            low = (target - first_rack) * per_rack
            wish[task] = low + draws.below(np.minimum(per_rack, machines - low), task.size)
        else:
            wish[task] = target - first_machine
    place = np.full(tasks, -1, dtype=np.int64)
    place[running] = _fill(wish[running], np.full(machines, options.slots_per_machine), draws)
    return place


def _fill(wish: Int64Array, free: Int64Array, draws: Draws) -> Int64Array:
    """Machine for each task: the wished one while it has a free slot (first come), else any free slot."""
    order = np.argsort(wish, kind="stable")
    rank = np.empty(wish.size, dtype=np.int64)
    rank[order] = _rank(wish[order])
    place = np.where(rank < free[wish], wish, -1)
    left = np.flatnonzero(place < 0)
    slots = np.repeat(np.arange(free.size), free - np.bincount(place[place >= 0], minlength=free.size))
    place[left] = slots[np.argsort(draws.bits(slots.size), kind="stable")[: left.size]]
    return place


def _rank(sorted_keys: Int64Array) -> Int64Array:
    """Position of each entry within its run of equal keys."""
    index = np.arange(sorted_keys.size, dtype=np.int64)
    start = (
        np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]) if sorted_keys.size else np.zeros(0, dtype=bool)
    )
    return index - np.maximum.accumulate(np.where(start, index, 0))
