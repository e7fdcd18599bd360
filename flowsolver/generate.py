"""Min-cost flow graphs for tests and benchmarks: the same for a seed on every machine.

Scheduling graphs show a cell at one moment, under the policies of Quincy and Firmament. Every task
(supply 1) may go to machines, directly or over aggregators, or wait at its job's unscheduled
aggregator. Machines and unscheduled aggregators lead to the sink. General networks are made in the
manner of NETGEN; those that are laid out on a grid are made in grid_networks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from flowsolver.arguments import Int64Array
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, MAX_NODES, FlowNetwork

_STEP = 0x9E3779B97F4A7C15  # of SplitMix64


class Draws:
    """Counter-based uniform 64-bit draws (SplitMix64), any number at a time.

    A stream starts at the generator's first output from the seed: streams of neighbouring seeds do
    not overlap.
    """

    def __init__(self, seed: int) -> None:
        self._base = _mixed(
            np.array([(seed * _STEP + 0xD1B54A32D192ED03) & (2**64 - 1)], dtype=np.uint64)
        )[0]
        self._count = 0

    def bits(self, size: int) -> NDArray[np.uint64]:
        """Random bits, uint64[size]."""
        with np.errstate(over="ignore"):
            z = (
                np.arange(self._count + 1, self._count + 1 + size, dtype=np.uint64)
                * np.uint64(_STEP)
                + self._base
            )
        self._count += size
        return _mixed(z)

    def below(self, limit: int | Int64Array, size: int) -> Int64Array:
        """Uniform integers in [0, limit), int64[size]; limit < 2**31, one or one per draw."""
        return (
            (self.bits(size) >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64) >> np.uint64(32)
        ).astype(np.int64)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class TaskGraph:
    """Tasks are the last nodes. Their arcs are the first ones of the network; those of a task are
    adjacent.
    """

    network: FlowNetwork
    tasks: int

    sink = 0

    @property
    def first_task(self) -> int:
        return self.network.num_nodes - self.tasks

    @cached_property
    def task_arc_begin(self) -> Int64Array:
        """The arcs of task i are task_arc_begin[i] .. task_arc_begin[i + 1]: int64[tasks + 1]."""
        tail = self.network.tail
        count = np.bincount(tail[tail >= self.first_task] - self.first_task, minlength=self.tasks)
        return np.concatenate([[0], np.cumsum(count)])


@dataclass(frozen=True)
class SchedulingGraph(TaskGraph):
    """Node ids: sink 0, cluster aggregator X 1, then racks, machines, unscheduled aggregators,
    tasks.
    """

    network: FlowNetwork
    racks: int
    machines: int
    jobs: int
    tasks: int
    slots_per_machine: int
    machines_per_rack: int

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


@dataclass(frozen=True)
class NetworkAwareGraph(TaskGraph):
    """Node ids: sink 0, then request aggregators, machines, unscheduled aggregators, tasks."""

    network: FlowNetwork
    requests: Int64Array  # MB/s that each aggregator stands for
    machines: int
    jobs: int
    tasks: int
    slots_per_machine: int
    used: Int64Array  # MB/s of each machine's link

    first_aggregator = 1

    @property
    def first_machine(self) -> int:
        return self.first_aggregator + self.requests.size

    @property
    def first_unscheduled(self) -> int:
        return self.first_machine + self.machines


_RUN_LIMIT_S = 600  # running tasks have run for less
_WAIT_LIMIT_S = 300  # pending ones have waited for less
_BYTES_PER_SLOT = 40
_UNSCHEDULED_EXTRA = 200  # how much dearer waiting is than the dearest machine
_JOB_SIZE_MIN, _JOB_SIZE_MAX, _JOB_SIZE_ALPHA = 10, 20_000, 1.14


def _check_size(tasks: int, slots: int, arcs_per_task: int, bytes_per_task: int) -> None:
    """Raise ValueError or MemoryError for a cell that is too large, before anything is made.

    Args:
        tasks: number of tasks.
        slots: number of slots.
        arcs_per_task: mean, approximate.
        bytes_per_task: measured, temporary arrays included.
    """
    if tasks * arcs_per_task > MAX_ARCS:
        raise ValueError(f"{tasks:,} tasks have more than the {MAX_ARCS:,} arcs that fit")
    need_memory(f"a cell of {tasks:,} tasks", tasks * bytes_per_task + slots * _BYTES_PER_SLOT)


def _job_sizes(draws: Draws, tasks: int) -> Int64Array:
    """The sizes of jobs that sum to `tasks`, from a truncated Pareto distribution."""
    sizes: list[int] = []
    left = tasks
    while left > 0:
        u = (int(draws.bits(1)[0]) >> 11) / 2.0**53
        sizes.append(
            min(left, _JOB_SIZE_MAX, int(_JOB_SIZE_MIN / (1 - u) ** (1 / _JOB_SIZE_ALPHA)))
        )
        left -= sizes[-1]
    return np.array(sizes, dtype=np.int64)


def _count_tasks(
    machines: int, slots_per_machine: int, percent_used: int, percent_pending: int
) -> tuple[int, int]:
    """The number of tasks, and how many of them run."""
    slots = machines * slots_per_machine
    tasks = slots * percent_used // 100
    return tasks, min(tasks - tasks * percent_pending // 100, slots)


def _choose_running(draws: Draws, tasks: int, running_count: int) -> np.ndarray:
    """Which tasks run: bool[tasks]. Half of the pending ones are the newest, the others random."""
    pending = tasks - running_count
    newest = pending // 2
    running = np.ones(tasks, dtype=bool)
    running[tasks - newest :] = False
    older = np.argsort(draws.bits(tasks - newest), kind="stable")[: pending - newest]
    running[older] = False
    return running


def _assign_slots(preferred: Int64Array, free: Int64Array, draws: Draws) -> Int64Array:
    """A machine for each task: the preferred one while it has a free slot, else any."""
    order = np.argsort(preferred, kind="stable")
    arrival = np.empty(preferred.size, dtype=np.int64)
    arrival[order] = _rank(preferred[order])
    place = np.where(arrival < free[preferred], preferred, -1)
    left = np.flatnonzero(place < 0)
    slots = np.repeat(
        np.arange(free.size), free - np.bincount(place[place >= 0], minlength=free.size)
    )
    place[left] = slots[np.argsort(draws.bits(slots.size), kind="stable")[: left.size]]
    return place


def _task_network(
    first_task: int, tasks: int, task: Int64Array, head: Int64Array, cost: Int64Array
) -> FlowNetwork:
    """A network with the sink as node 0, tasks as the last nodes, and an arc per row from its task.

    The arcs of a task are adjacent.
    """
    supply = np.zeros(first_task + tasks, dtype=np.int64)
    supply[first_task:] = 1
    supply[0] = -tasks
    order = np.argsort(task, kind="stable")
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(first_task + task[order], head[order], 1, cost[order])
    return network


def _add_arcs_to_sink(
    network: FlowNetwork, first_machine: int, machines: int, slots: int, job_sizes: Int64Array
) -> None:
    """Add arcs to the sink from the machines, and from the unscheduled aggregators, which follow
    them.
    """
    node = first_machine + np.arange(machines + job_sizes.size)
    room = np.concatenate([np.full(machines, slots, dtype=np.int64), job_sizes])
    network.add_arcs(node, np.zeros(node.size, dtype=np.int64), room, 0)


def _rank(sorted_keys: Int64Array) -> Int64Array:
    """The position of each entry within its run of equal keys."""
    index = np.arange(sorted_keys.size, dtype=np.int64)
    start = (
        np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])
        if sorted_keys.size
        else np.zeros(0, dtype=bool)
    )
    return index - np.maximum.accumulate(np.where(start, index, 0))


def _check_cell(
    machines: int, percent_used: int, percent_pending: int, slots_per_machine: int
) -> None:
    """Raise ValueError that names the field with an invalid value."""
    for name, value in (
        ("machines", machines),
        ("percent_used", percent_used),
        ("slots_per_machine", slots_per_machine),
    ):
        if value < 1:
            raise ValueError(f"{name} = {value}: must be at least 1")
    if not 0 <= percent_pending <= 100:
        raise ValueError(f"percent_pending = {percent_pending}: must be 0 to 100")


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
        _check_cell(self.machines, self.percent_used, self.percent_pending, self.slots_per_machine)
        for name in ("machines_per_rack", "skew"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")
        if self.replicas not in (1, 3):
            raise ValueError(f"replicas = {self.replicas}: must be 1 or 3")


def quincy_graph(options: GraphOptions, seed: int) -> SchedulingGraph:
    """A cell under the Quincy policy (SOSP 2009, figure 4; Firmament, OSDI 2016, figure 6b), its
    running tasks placed as an earlier run might have placed them.

    Shape: every task (supply 1) has arcs to the machines and racks that hold much of its input, to
    the cluster aggregator X, and to its job's unscheduled aggregator; X leads to the racks, racks
    to their machines, machines and unscheduled aggregators to the sink.

    Costs, for a task with input of size S, f of it on the machine and g in the rack: machine
    S(2(1-g) + (g-f)), rack S(2(1-g) + g), X 2S + 1, unscheduled X + 200 + waiting time + time run.
    A running task's arc to its machine is cheaper by the time run.
    """
    draws = Draws(seed)
    machines, per_rack = options.machines, options.machines_per_rack
    racks = -(-machines // per_rack)
    tasks, running_count = _count_tasks(
        machines, options.slots_per_machine, options.percent_used, options.percent_pending
    )
    _check_size(tasks, machines * options.slots_per_machine, 8, bytes_per_task=2_800)
    sizes_of_jobs = _job_sizes(draws, tasks)
    running = _choose_running(draws, tasks, running_count)
    first_rack = 2
    first_machine = first_rack + racks
    first_unscheduled = first_machine + machines
    first_task = first_unscheduled + sizes_of_jobs.size

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
            cluster_cost + _UNSCHEDULED_EXTRA + wait_s + run_s,
        ]
    )
    network = _task_network(first_task, tasks, task, head, cost)
    rack_of = np.arange(machines) // per_rack
    rack_slots = np.bincount(rack_of, minlength=racks) * options.slots_per_machine
    network.add_arcs(np.ones(racks, dtype=np.int64), first_rack + np.arange(racks), rack_slots, 0)
    network.add_arcs(
        first_rack + rack_of, first_machine + np.arange(machines), options.slots_per_machine, 0
    )
    _add_arcs_to_sink(network, first_machine, machines, options.slots_per_machine, sizes_of_jobs)
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
    best = _rank(all_task) < _PREFERENCE_LIMIT
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
    place[running] = _assign_slots(
        preferred[running], np.full(machines, options.slots_per_machine), draws
    )
    return place


def load_spreading_graph(
    machines: int, new_tasks: int, seed: int, slots_per_machine: int = 12
) -> SchedulingGraph:
    """A half-used cell in which one new job of `new_tasks` asks for the least loaded machines: the
    load-spreading policy (Firmament, OSDI 2016, figure 6a).

    X reaches machine m over one unit arc per free slot, the k-th at cost 10 * (occupied + k). There
    are no racks; running tasks have an arc of cost 0 to their machine.
    """
    _check_cell(machines, 50, 0, slots_per_machine)
    if new_tasks < 0:
        raise ValueError(f"new_tasks = {new_tasks}: must be at least 0")
    draws = Draws(seed)
    slots = machines * slots_per_machine
    used = slots // 2
    _check_size(used + new_tasks, slots, 3, bytes_per_task=300)
    place = _assign_slots(draws.below(machines, used), np.full(machines, slots_per_machine), draws)
    occupied = np.bincount(place, minlength=machines)
    first_machine, first_unscheduled = 2, 2 + machines
    first_task = first_unscheduled + 2
    tasks = used + new_tasks
    head = np.empty((tasks, 2), dtype=np.int64)
    head[:used, 0], head[used:, 0] = first_machine + place, 1
    head[:used, 1], head[used:, 1] = first_unscheduled, first_unscheduled + 1
    cost = np.empty((tasks, 2), dtype=np.int64)
    cost[:used], cost[used:] = (0, 20_000), (1, 5_000)
    network = _task_network(
        first_task, tasks, np.repeat(np.arange(tasks), 2), head.ravel(), cost.ravel()
    )
    free = slots_per_machine - occupied
    machine = np.repeat(np.arange(machines), free)
    network.add_arcs(
        np.ones(machine.size, dtype=np.int64),
        first_machine + machine,
        1,
        10 * (occupied[machine] + _rank(machine)),
    )
    _add_arcs_to_sink(
        network, first_machine, machines, slots_per_machine, np.array([used, new_tasks])
    )
    return SchedulingGraph(network, 0, machines, 2, tasks, slots_per_machine, 1)


_LINK_MB_S = 1250  # 10 Gbit/s
_REQUESTS_MB_S = np.array([25, 50, 100, 150, 300, 650])
_REQUEST_PERCENT = np.array([30, 25, 25, 12, 6, 2])
_PARALLEL_LIMIT = 10


def request_arcs(used: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Every arc from a request aggregator to a machine, as (aggregator, machine, cost).

    Aggregators are given by their index, machines by their index in `used`.
    """
    fitting = np.minimum(
        _PARALLEL_LIMIT, np.maximum(0, _LINK_MB_S - used)[None, :] // _REQUESTS_MB_S[:, None]
    )
    pair = np.repeat(np.arange(fitting.size), fitting.ravel())
    aggregator, machine = pair // used.size, pair % used.size
    return aggregator, machine, used[machine] + (_rank(pair) + 1) * _REQUESTS_MB_S[aggregator]


def network_aware_graph(
    machines: int,
    seed: int,
    percent_used: int = 90,
    percent_pending: int = 2,
    slots_per_machine: int = 12,
) -> NetworkAwareGraph:
    """A cell whose tasks run on random machines, and may request more than a link carries: the
    network-aware policy (Firmament, OSDI 2016, section 3.3 and figure 6c).

    Every task has an arc of cost 0 to the aggregator of the bandwidth it requests, and one to its
    job's unscheduled aggregator, at link + 200 + waiting time + time run, which no machine is as
    dear as. An aggregator leads to a machine over as many parallel unit arcs as tasks of its
    request fit in the spare bandwidth of the machine's link, at most 10; the k-th costs the request
    plus what is in use then, that is request + used + (k - 1) * request. A running task's arc to
    its machine costs what the machine's link carries, less the time the task has run.

    The set of arcs to a machine changes whenever its use does: `request_arcs` gives the set for any
    use. As in the paper, arcs of different aggregators share a machine's link without knowing of
    each other; only its slots bind them together.
    """
    _check_cell(machines, percent_used, percent_pending, slots_per_machine)
    draws = Draws(seed)
    tasks, running_count = _count_tasks(machines, slots_per_machine, percent_used, percent_pending)
    _check_size(tasks + machines, machines * slots_per_machine, 4, bytes_per_task=600)
    sizes = _job_sizes(draws, tasks)
    running = _choose_running(draws, tasks, running_count)
    kind = np.searchsorted(np.cumsum(_REQUEST_PERCENT), draws.below(100, tasks), side="right")
    run_s = np.where(running, draws.below(_RUN_LIMIT_S, tasks), 0)
    wait_s = np.where(running, 0, draws.below(_WAIT_LIMIT_S, tasks))
    place = np.full(tasks, -1, dtype=np.int64)
    place[running] = _assign_slots(
        draws.below(machines, running_count), np.full(machines, slots_per_machine), draws
    )
    asked = np.zeros(machines, dtype=np.int64)
    np.add.at(asked, place[running], _REQUESTS_MB_S[kind[running]])
    used = np.minimum(asked, _LINK_MB_S)

    first_aggregator = NetworkAwareGraph.first_aggregator
    first_machine = first_aggregator + _REQUESTS_MB_S.size
    first_unscheduled = first_machine + machines
    first_task = first_unscheduled + sizes.size
    ids = np.arange(tasks)
    task = np.concatenate([ids[running], ids, ids])
    head = np.concatenate(
        [
            first_machine + place[running],
            first_aggregator + kind,
            first_unscheduled + np.repeat(np.arange(sizes.size), sizes),
        ]
    )
    cost = np.concatenate(
        [
            np.maximum(0, used[place[running]] - run_s[running]),
            np.zeros(tasks, dtype=np.int64),
            _LINK_MB_S + _UNSCHEDULED_EXTRA + wait_s + run_s,
        ]
    )
    network = _task_network(first_task, tasks, task, head, cost)
    aggregator, machine, arc_cost = request_arcs(used)
    network.add_arcs(first_aggregator + aggregator, first_machine + machine, 1, arc_cost)
    _add_arcs_to_sink(network, first_machine, machines, slots_per_machine, sizes)
    return NetworkAwareGraph(
        network, _REQUESTS_MB_S, machines, sizes.size, tasks, slots_per_machine, used
    )


_DEALT_PERCENT = 60
_WIDTH_LIMIT = 2**31
_BYTES_PER_NODE, _BYTES_PER_ARC = 60, 160  # measured, the arrays in between included


@dataclass(frozen=True)
class NetgenOptions:
    """What to generate.

    Costs are uniform in min_cost .. max_cost, except max_cost on percent_max_cost of the skeleton
    arcs. percent_capacitated of the arcs have a capacity uniform in min_capacity .. max_capacity (a
    skeleton arc at least what its chain needs); the others have a capacity of all the supply.
    """

    nodes: int
    arcs: int
    sources: int
    sinks: int
    supply: int
    transshipment_sources: int = 0
    transshipment_sinks: int = 0
    min_cost: int = 1
    max_cost: int = 10_000
    percent_max_cost: int = 0
    percent_capacitated: int = 100
    min_capacity: int = 1
    max_capacity: int = 1_000

    def __post_init__(self) -> None:
        for name, low, high in (
            ("sources", 1, _WIDTH_LIMIT),
            ("sinks", 1, _WIDTH_LIMIT),
            ("nodes", self.sources + self.sinks, MAX_NODES),
            ("transshipment_sources", 0, self.sources),
            ("transshipment_sinks", 0, self.sinks),
            ("supply", max(self.sources, self.sinks), _WIDTH_LIMIT),
            ("arcs", self.nodes - 1, min(self._pairs(), MAX_ARCS)),
            ("percent_max_cost", 0, 100),
            ("percent_capacitated", 0, 100),
            ("max_cost", self.min_cost, self.min_cost + _WIDTH_LIMIT - 1),
            ("min_capacity", 0, _WIDTH_LIMIT),
            ("max_capacity", self.min_capacity, _WIDTH_LIMIT),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value}: must be {low} to {high}")

    @property
    def first_head(self) -> int:
        """The first node that may have arcs in."""
        return self.sources - self.transshipment_sources

    @property
    def last_tail(self) -> int:
        """The end of the nodes that may have arcs out."""
        return self.nodes - self.sinks + self.transshipment_sinks

    def _pairs(self) -> int:
        both = max(0, self.last_tail - self.first_head)
        return self.last_tail * (self.nodes - self.first_head) - both


@dataclass(frozen=True)
class _Skeleton:
    """Arcs, and the flow for which each must have capacity; int64[k]."""

    tail: Int64Array
    head: Int64Array
    need: Int64Array


def netgen_network(options: NetgenOptions, seed: int) -> FlowNetwork:
    """A feasible network of exactly options.arcs arcs, in the manner of NETGEN (Klingman, Napier,
    Stutz, Management Science 20, 1974).

    Nodes: sources, then nodes without supply, then sinks. A skeleton makes the network feasible:
    the nodes without supply are dealt out to one chain per source, 60 % of them in turn and the
    others at random; every chain sends its source's supply to sinks, by an arc from one of its
    nodes each, and all skeleton arcs have room for that. The other arcs join random pairs of nodes,
    no pair twice. Transshipment sources (the last ones) may have arcs in, transshipment sinks (the
    first ones) arcs out; other sources and sinks may not.

    Departure from NETGEN: which chain serves which sink, and how much, comes from laying supplies
    and demands side by side on one line, in random order of the sinks, so that every source and
    sink has its share of at least 1, and the skeleton at most nodes - 1 arcs.
    """
    need_memory(
        f"a network of {options.nodes:,} nodes and {options.arcs:,} arcs",
        options.nodes * _BYTES_PER_NODE + options.arcs * _BYTES_PER_ARC,
    )
    draws = Draws(seed)
    produced = _shares(draws, options.supply, options.sources)
    consumed = _shares(draws, options.supply, options.sinks)
    skeleton = _skeleton(draws, options, produced, consumed)
    built = skeleton.tail.size
    tail, head = _random_pairs(draws, options, skeleton)
    tail, head = np.concatenate([skeleton.tail, tail]), np.concatenate([skeleton.head, head])

    cost = options.min_cost + draws.below(options.max_cost - options.min_cost + 1, options.arcs)
    dear = draws.below(100, built) < options.percent_max_cost
    cost[:built][dear] = options.max_cost
    capacity = options.min_capacity + draws.below(
        options.max_capacity - options.min_capacity + 1, options.arcs
    )
    capacity[:built] = np.maximum(capacity[:built], skeleton.need)
    capacity[draws.below(100, options.arcs) >= options.percent_capacitated] = options.supply

    network = FlowNetwork()
    network.add_nodes(
        np.concatenate(
            [
                produced,
                np.zeros(options.nodes - options.sources - options.sinks, dtype=np.int64),
                -consumed,
            ]
        )
    )
    order = np.argsort(tail, kind="stable")
    network.add_arcs(tail[order], head[order], capacity[order], cost[order])
    return network


def _shares(draws: Draws, total: int, count: int) -> Int64Array:
    """Random shares, int64[count], each at least 1, of sum `total`."""
    equal = total // count
    kept = 1 + draws.below(equal, count)
    rest = equal - kept
    rest[-1] += total - equal * count
    np.add.at(kept, draws.below(count, count), rest)
    return kept


def _skeleton(
    draws: Draws, options: NetgenOptions, produced: Int64Array, consumed: Int64Array
) -> _Skeleton:
    sources, first_sink = options.sources, options.nodes - options.sinks
    between = first_sink - sources
    dealt = between * _DEALT_PERCENT // 100
    chain = np.concatenate(
        [np.arange(sources), np.arange(dealt) % sources, draws.below(sources, between - dealt)]
    )
    member = np.argsort(chain, kind="stable")  # sources have the least ids: each begins its chain
    length = np.bincount(chain, minlength=sources)
    begin = np.cumsum(length) - length
    follows = np.ones(first_sink, dtype=bool)
    follows[begin] = False
    at = np.flatnonzero(follows)

    sink_order = np.argsort(draws.bits(options.sinks), kind="stable")
    produced_to, consumed_to = np.cumsum(produced), np.cumsum(consumed[sink_order])
    cut = np.union1d(produced_to, consumed_to)
    serving, served = np.searchsorted(produced_to, cut), np.searchsorted(consumed_to, cut)
    through = member[begin[serving] + draws.below(length[serving], cut.size)]
    return _Skeleton(
        np.concatenate([member[at - 1], through]),
        np.concatenate([member[at], first_sink + sink_order[served]]),
        np.concatenate([produced[chain[member[at]]], np.diff(cut, prepend=0)]),
    )


def _random_pairs(
    draws: Draws, options: NetgenOptions, skeleton: _Skeleton
) -> tuple[Int64Array, Int64Array]:
    """The tail and head of the arcs beyond the skeleton, all distinct, also from the skeleton's."""
    tails, heads = options.last_tail, options.nodes - options.first_head
    taken = skeleton.tail * heads + skeleton.head - options.first_head
    wanted = options.arcs - taken.size
    chosen = np.zeros(0, dtype=np.int64)
    if 2 * options.arcs > tails * heads:  # dense: a choice among all there are
        pair = np.setdiff1d(np.arange(tails * heads), taken)
        pair = pair[pair // heads != pair % heads + options.first_head]
        chosen = pair[np.argsort(draws.bits(pair.size), kind="stable")[:wanted]]
    while chosen.size < wanted:
        count = 2 * (wanted - chosen.size)
        tail, head = draws.below(tails, count), draws.below(heads, count)
        pair = (tail * heads + head)[tail != head + options.first_head]
        pair = np.concatenate([chosen, pair[~np.isin(pair, taken)]])
        _, first = np.unique(pair, return_index=True)
        chosen = pair[np.sort(first)][:wanted]
    return chosen // heads, chosen % heads + options.first_head
