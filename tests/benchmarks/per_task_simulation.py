"""The peer of the virtual runtime: the same flow of tasks as an event simulation usually has it,
with an object on a heap for every task's every step.

A task arrives at its scheduler, waits for its turn, is decided, takes a random free slot, ends.
What makes ParSync ParSync is left out: views, syncs, conflicts, preferences, measurements but for
the list of delays. So its speed is an upper bound of what one event per task can reach in Python.
"""

from __future__ import annotations

import heapq
import random
from collections import deque

from parsync.workload.workload import Workload

ARRIVED, DECIDED, ENDED = range(3)


def simulate(
    workload: Workload, agent_of_task: list[int], agents: int, task_us: int, seed: int
) -> list[int]:
    """Runs until every task is placed and every end due by then has come. Returns the scheduling
    delays (us), in the order of placement.

    agent_of_task: by task id; tasks arrive in the order of workload.arrival_rows. task_us: decision
    time of a task.
    """
    arrival_us = workload.tasks.submit_us[workload.arrival_rows].tolist()
    rows = workload.arrival_rows.tolist()
    duration_us = workload.duration_us.tolist()
    free = [
        machine
        for machine, slots in enumerate(workload.cell.capacity[:, 0].tolist())
        for _ in range(slots)
    ]
    choose = random.Random(seed).random
    waiting: list[deque[tuple[int, int]]] = [deque() for _ in range(agents)]
    deciding = [False] * agents
    delays: list[int] = []
    # at_us, sequence, step, what: place in rows, scheduler or machine
    heap = [(arrival_us[0], 0, ARRIVED, 0)]
    arrived = sequence = 0
    while heap and len(delays) < len(rows):
        now_us, _, step, what = heapq.heappop(heap)
        sequence += 1
        if step == ARRIVED:
            agent = agent_of_task[rows[what]]
            waiting[agent].append((now_us, rows[what]))
            if not deciding[agent]:
                deciding[agent] = True
                heapq.heappush(heap, (now_us + task_us, sequence, DECIDED, agent))
            arrived += 1
            if arrived < len(rows):
                sequence += 1
                heapq.heappush(heap, (arrival_us[arrived], sequence, ARRIVED, arrived))
        elif step == DECIDED:
            if free:
                place = int(choose() * len(free))
                machine = free[place]
                free[place] = free[-1]
                free.pop()
                submit_us, task = waiting[what].popleft()
                delays.append(now_us - submit_us)
                heapq.heappush(heap, (now_us + duration_us[task], sequence, ENDED, machine))
            deciding[what] = bool(waiting[what])
            if deciding[what]:
                sequence += 1
                heapq.heappush(heap, (now_us + task_us, sequence, DECIDED, what))
        else:
            free.append(what)
    return delays
