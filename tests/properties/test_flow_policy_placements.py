"""Each policy's placements are the cheapest by the costs that it states, found by exhaustive search
on small cells: over several rounds, with running tasks, rivals, rejections, and preemption."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_state.random import hash64, stream_key
from shared_state.tasks import Int64, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_policy_search import Round, Statement, Trial
from tests.flow_world import slot_cell

SECOND = 1_000_000
seeds = st.integers(0, 2**32)
slots = st.integers(1, 3)
machines = st.integers(1, 3)


class TrivialCosts(Statement):
    """2 placed, 5 waiting."""

    def place(self, now: Round) -> Int64:
        return super().place(now) + 2

    def wait(self, now: Round) -> Int64:
        return super().wait(now) + 5


class OctopusCosts(Statement):
    """1 and 100 for each task on the machine; a million waiting."""

    def place(self, now: Round) -> Int64:
        return super().place(now) + 1 + 100 * now.used

    def wait(self, now: Round) -> Int64:
        return super().wait(now) + 1_000_000


class RandomCosts(Statement):
    """Draws of task and machine."""

    def __init__(self, largest: int) -> None:
        self.half = largest // 2
        self.key = stream_key(0, "flow policy random")

    def draw(self, of: Int64, which: int, bound: int | Int64) -> Int64:
        number = (hash64(of, self.key + which) // np.uint64(1 << 33)).astype(np.int64)
        return number * bound // (1 << 31)

    def drawn_wait(self, now: Round) -> Int64:
        return self.half + 1 + self.draw(now.tasks.task, 2, self.half)

    def place(self, now: Round) -> Int64:
        via = self.draw(now.tasks.task, 0, self.drawn_wait(now))
        into = 1 + self.draw(np.arange(len(now.total)), 1, self.half)
        return via[:, None] + into

    def wait(self, now: Round) -> Int64:
        return self.drawn_wait(now) + now.waited(SECOND)


class SpreadCosts(Statement):
    """100 for the first task of a machine, 200 for the second, and so on; a million waiting."""

    def wait(self, now: Round) -> Int64:
        return super().wait(now) + 1_000_000 + now.waited(SECOND)

    def stay(self, now: Round) -> Int64:
        return -now.ran(SECOND)

    def together(self, now: Round, placed: Int64) -> Int64:
        end = now.used + placed
        return 100 * (end * (end + 1) // 2 - now.used * (now.used + 1) // 2).sum(axis=1)


class ShortestFirst(Statement):
    """r + 1 placed; waiting costs the most that r can be and the time waited, in tenths of a
    second, or the larger of r and the time waited. r is the mean run time of tasks of the same job
    that have ended, or of the same class, or a minute, as of when the task joined."""

    def __init__(self, may_wait: bool) -> None:
        self.may_wait = may_wait
        self.known: list[tuple[int, int, int]] = []  # job, class, time
        self.since: dict[int, int] = {}
        self.expected: dict[int, int] = {}

    def started(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        self.since.update(dict.fromkeys(tasks.task.tolist(), at_us))

    def ended(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        for i, task in enumerate(tasks.task.tolist()):
            ran_us = at_us - self.since[task]
            self.known.append((int(tasks.job[i]), int(tasks.task_class[i]), ran_us))

    def begin(self, now: Round) -> None:
        for i in np.flatnonzero(now.joined).tolist():
            job, of_class = int(now.tasks.job[i]), int(now.tasks.task_class[i])
            same = [us for j, _, us in self.known if j == job]
            same = same or [us for _, c, us in self.known if c == of_class]
            mean_us = sum(same) // len(same) if same else 60 * SECOND
            self.expected[int(now.tasks.task[i])] = mean_us // 100_000

    def run_time(self, now: Round) -> Int64:
        return np.array([self.expected[task] for task in now.tasks.task.tolist()], np.int64)

    def place(self, now: Round) -> Int64:
        return super().place(now) + self.run_time(now)[:, None] + 1

    def wait(self, now: Round) -> Int64:
        waited = now.waited(100_000)
        return np.maximum(waited, self.run_time(now)) if self.may_wait else 864_002 + waited

    def offset(self, now: Round) -> int:
        if not self.may_wait:
            return 0
        waited, run_time = now.waited(100_000), self.run_time(now)
        return int((waited - np.maximum(waited, run_time)).sum())


def trial(
    policy: str, statement: Statement, seed: int, cell: tuple[int, int], **options: object
) -> Trial:
    return Trial(slot_cell(cell[0], cell[1], 2), policy, options, statement, seed)


cells = st.tuples(machines, slots)


@examples(60)
@given(seeds, cells, st.booleans())
def test_trivial(seed: int, cell: tuple[int, int], preemption: bool) -> None:
    trial("trivial", TrivialCosts(), seed, cell, preemption=preemption).run(5)


@examples(60)
@given(seeds, cells, st.booleans())
def test_void(seed: int, cell: tuple[int, int], preemption: bool) -> None:
    trial("void", Statement(), seed, cell, preemption=preemption).run(4)


@examples(60)
@given(seeds, cells, st.booleans(), st.integers(2, 50))
def test_random(seed: int, cell: tuple[int, int], preemption: bool, largest: int) -> None:
    statement = RandomCosts(largest)
    trial("random", statement, seed, cell, preemption=preemption, largest_cost=largest).run(5)


@examples(60)
@given(seeds, cells, st.booleans())
def test_load_spreading(seed: int, cell: tuple[int, int], preemption: bool) -> None:
    trial("load_spreading", SpreadCosts(), seed, cell, preemption=preemption).run(5)


@examples(60)
@given(seeds, cells, st.booleans())
def test_octopus(seed: int, cell: tuple[int, int], preemption: bool) -> None:
    trial("octopus", OctopusCosts(), seed, cell, preemption=preemption).run(5)


@examples(60)
@given(seeds, cells, st.booleans())
def test_shortest_job_first(seed: int, cell: tuple[int, int], may_wait: bool) -> None:
    trial("shortest_job_first", ShortestFirst(may_wait), seed, cell, may_wait=may_wait).run(6)
