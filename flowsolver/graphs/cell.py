"""Shared by the cells of all policies: jobs, running tasks and their machines, arcs of tasks, arcs
to the sink.
"""

from __future__ import annotations

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.graphs.draws import Draws
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, FlowNetwork

RUN_LIMIT_S = 600  # running tasks have run for less
WAIT_LIMIT_S = 300  # pending ones have waited for less
_BYTES_PER_SLOT = 40
UNSCHEDULED_EXTRA = 200  # how much dearer waiting is than the dearest machine
_JOB_SIZE_MIN, _JOB_SIZE_MAX, _JOB_SIZE_ALPHA = 10, 20_000, 1.14


def check_size(tasks: int, slots: int, arcs_per_task: int, bytes_per_task: int) -> None:
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


def job_sizes(draws: Draws, tasks: int) -> Int64Array:
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


def count_tasks(
    machines: int, slots_per_machine: int, percent_used: int, percent_pending: int
) -> tuple[int, int]:
    """The number of tasks, and how many of them run."""
    slots = machines * slots_per_machine
    tasks = slots * percent_used // 100
    return tasks, min(tasks - tasks * percent_pending // 100, slots)


def choose_running(draws: Draws, tasks: int, running_count: int) -> np.ndarray:
    """Which tasks run: bool[tasks]. Half of the pending ones are the newest, the others random."""
    pending = tasks - running_count
    newest = pending // 2
    running = np.ones(tasks, dtype=bool)
    running[tasks - newest :] = False
    older = np.argsort(draws.bits(tasks - newest), kind="stable")[: pending - newest]
    running[older] = False
    return running


def assign_slots(preferred: Int64Array, free: Int64Array, draws: Draws) -> Int64Array:
    """A machine for each task: the preferred one while it has a free slot, else any."""
    order = np.argsort(preferred, kind="stable")
    arrival = np.empty(preferred.size, dtype=np.int64)
    arrival[order] = rank(preferred[order])
    place = np.where(arrival < free[preferred], preferred, -1)
    left = np.flatnonzero(place < 0)
    slots = np.repeat(
        np.arange(free.size), free - np.bincount(place[place >= 0], minlength=free.size)
    )
    place[left] = slots[np.argsort(draws.bits(slots.size), kind="stable")[: left.size]]
    return place


def task_network(
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


def add_arcs_to_sink(
    network: FlowNetwork, first_machine: int, machines: int, slots: int, job_sizes: Int64Array
) -> None:
    """Add arcs to the sink from the machines, and from the unscheduled aggregators, which follow
    them.
    """
    node = first_machine + np.arange(machines + job_sizes.size)
    room = np.concatenate([np.full(machines, slots, dtype=np.int64), job_sizes])
    network.add_arcs(node, np.zeros(node.size, dtype=np.int64), room, 0)


def rank(sorted_keys: Int64Array) -> Int64Array:
    """The position of each entry within its run of equal keys."""
    index = np.arange(sorted_keys.size, dtype=np.int64)
    start = (
        np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])
        if sorted_keys.size
        else np.zeros(0, dtype=bool)
    )
    return index - np.maximum.accumulate(np.where(start, index, 0))


def check_cell(
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
