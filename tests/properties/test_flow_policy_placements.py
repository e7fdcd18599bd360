"""Each policy's placements are the cheapest by the costs that it states, found by exhaustive search
on small cells: over several rounds, with running tasks, rivals, rejections, and preemption."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_state.random import hash64, stream_key
from shared_state.tasks import CellSpec, Int64, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_policy_search import Round, Statement, Trial
from tests.flow_world import catalog_of, cell_of, slot_cell

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
    that have ended, or of the same class, or `unknown`, as of when the task joined.

    A running task pays -r less the time that it has run, with r as of when it was first seen to
    run. What the others' costs are raised by if they may wait is not part of its own."""

    def __init__(self, may_wait: bool, unknown: int, price: int) -> None:
        self.may_wait = may_wait
        self.unknown = unknown
        self.price = price  # of a tenth of a second of waiting
        self.expected_since: dict[int, tuple[int, int]] = {}  # of running ones: since when, r
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
            self.expected[int(now.tasks.task[i])] = self.mean(now, i)
        for i in np.flatnonzero(now.machine >= 0).tolist():
            task, since_us = int(now.tasks.task[i]), int(now.since_us[i])
            if self.expected_since.get(task, (-1, 0))[0] != since_us:
                self.expected_since[task] = since_us, self.mean(now, i)

    def mean(self, now: Round, i: int) -> int:
        job, of_class = int(now.tasks.job[i]), int(now.tasks.task_class[i])
        same = [us for j, _, us in self.known if j == job]
        same = same or [us for _, c, us in self.known if c == of_class]
        return sum(same) // len(same) // 100_000 if same else self.unknown

    def run_time(self, now: Round) -> Int64:
        return np.array([self.expected[task] for task in now.tasks.task.tolist()], np.int64)

    def early(self, now: Round) -> Int64:
        """What a task that has not waited for as long as it will run pays more, if it may wait."""
        waited = self.price * now.waited(100_000)
        more = np.maximum(waited, self.run_time(now)) - waited
        return more if self.may_wait else more * 0

    def place(self, now: Round) -> Int64:
        early = np.where(now.machine >= 0, self.early(now), 0)
        return super().place(now) + (self.run_time(now) + 1 - early)[:, None]

    def wait(self, now: Round) -> Int64:
        waited = self.price * now.waited(100_000)
        if not self.may_wait:
            return 864_002 + waited
        return waited + np.where(now.machine >= 0, 0, self.early(now))

    def stay(self, now: Round) -> Int64:
        expected = [self.expected_since.get(one, (0, 0))[1] for one in now.tasks.task.tolist()]
        return -np.array(expected, np.int64) - now.ran(100_000)

    def offset(self, now: Round) -> int:
        return -int(self.early(now)[now.machine < 0].sum())


CLASSES = ("sheep", "rabbit", "devil")  # of batch, service and MapReduce tasks
DISTURBS = {  # a running task, and the one that is placed beside it
    ("turtle", "turtle"): 50,
    ("turtle", "sheep"): 50,
    ("turtle", "rabbit"): 50,
    ("turtle", "devil"): 50,
    ("sheep", "turtle"): 10,
    ("sheep", "sheep"): 50,
    ("sheep", "rabbit"): 100,
    ("sheep", "devil"): 200,
    ("rabbit", "turtle"): 10,
    ("rabbit", "sheep"): 50,
    ("rabbit", "rabbit"): 200,
    ("rabbit", "devil"): 1000,
    ("devil", "turtle"): 10,
    ("devil", "sheep"): 200,
    ("devil", "rabbit"): 1000,
    ("devil", "devil"): 200,
}


def classes(tasks: TaskBatch) -> list[str]:
    return [CLASSES[one] for one in tasks.task_class.tolist()]


class CocoCosts(Statement):
    """Shares of machines in thousandths, and penalties of the tasks that run there."""

    def place(self, now: Round) -> Int64:
        cost = super().place(now)
        running = list(zip(classes(now.running), now.running_on.tolist(), strict=True))
        largest = now.limit.max(axis=0).tolist()
        for i, of_class in enumerate(classes(now.tasks)):
            for m in range(len(now.total)):
                penalty = sum(DISTURBS[other, of_class] for other, on in running if on == m)
                cost[i, m] = penalty // max(int(now.total[m]), 1)
                for r, limit in enumerate(now.limit[m].tolist()):
                    cost[i, m] += 1000 * (limit - int(now.left[m, r])) // limit
                    cost[i, m] += 1000 * int(now.tasks.request[i, r]) // largest[r]
        return cost

    def wait(self, now: Round) -> Int64:
        smallest = now.limit.min(axis=0)
        full = 1000 * now.limit.shape[1] + 2
        return full + (1000 * now.tasks.request // smallest).sum(axis=1) + now.waited(100_000)

    def stay(self, now: Round) -> Int64:
        return -now.ran(SECOND)


class EnergyCosts(Statement):
    """Services: 100 times the part of the machine that is used. Others: 20 watts, and 100 to wake a
    machine."""

    def place(self, now: Round) -> Int64:
        cost = super().place(now)
        for i, task_class in enumerate(now.tasks.task_class.tolist()):
            for m, (used, total) in enumerate(
                zip(now.used.tolist(), now.total.tolist(), strict=True)
            ):
                power = 20 if used else 120
                cost[i, m] = 100 * used // max(total, 1) if task_class == 1 else power
        return cost

    def wait(self, now: Round) -> Int64:
        return super().wait(now) + 60 + now.waited(SECOND)

    def stay(self, now: Round) -> Int64:
        return -now.ran(SECOND)


Company = tuple[tuple[str, int], ...]


class WhareCosts(Statement):
    """What run times were like: on such machines, and beside such tasks."""

    def __init__(self, machine_type: list[int]) -> None:
        self.machine_type = machine_type
        self.last: Round | None = None
        self.since: dict[int, int] = {}
        self.known: list[tuple[str, int, Company, int]] = []
        self.joined_at: dict[int, int] = {}

    def company(self, now: Round, machine: int, without: int) -> Company:
        beside = [
            of_class
            for task, of_class, on in zip(
                now.running.task.tolist(),
                classes(now.running),
                now.running_on.tolist(),
                strict=True,
            )
            if on == machine and task != without
        ]
        return tuple(sorted((one, beside.count(one)) for one in set(beside)))

    def started(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        self.since.update(dict.fromkeys(tasks.task.tolist(), at_us))

    def ended(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        assert self.last is not None
        for task, of_class, on in zip(
            tasks.task.tolist(), classes(tasks), machine.tolist(), strict=True
        ):
            company = self.company(self.last, on, task)
            ran_us = at_us - self.since[task]
            self.known.append((of_class, self.machine_type[on], company, ran_us))

    def mean(self, of_class: str, kind: int | None = None, company: Company | None = None) -> int:
        """0 if nothing is known."""
        ran = [
            us
            for c, k, beside, us in self.known
            if c == of_class and kind in (None, k) and company in (None, beside)
        ]
        return sum(ran) // len(ran) if ran else 0

    def best(self, of_class: str) -> tuple[int, int]:
        psi = [self.mean(of_class, k) for c, k, _, _ in self.known if c == of_class]
        xi = [self.mean(of_class, k, beside) for c, k, beside, _ in self.known if c == of_class]
        return min(psi, default=1), min(xi, default=1)

    def begin(self, now: Round) -> None:
        self.last = now
        for i in np.flatnonzero(now.joined).tolist():
            of_class = classes(now.tasks)[i]
            mean = self.mean(of_class)
            average = 100 * mean // self.best(of_class)[0] if mean else 100
            self.joined_at[int(now.tasks.task[i])] = 49 + average

    def place(self, now: Round) -> Int64:
        cost = super().place(now)
        for i, of_class in enumerate(classes(now.tasks)):
            best_psi, best_xi = self.best(of_class)
            for m, kind in enumerate(self.machine_type):
                cost[i, m] = 100 * self.mean(of_class, kind) // best_psi
                beside = self.mean(of_class, kind, self.company(now, m, -1))
                if beside:
                    cost[i, m] = min(int(cost[i, m]), 100 * beside // best_xi)
        return cost

    def wait(self, now: Round) -> Int64:
        base = [self.joined_at[task] for task in now.tasks.task.tolist()]
        return np.array(base, np.int64) + now.waited(100_000)

    def stay(self, now: Round) -> Int64:
        return -now.ran(SECOND)


SETS: list[dict[str, dict[int, int] | int]] = [
    {"machine": {0: 1, 1: 3}, "rack": {0: 5}, "elsewhere": 9, "unscheduled": 4},
    {"machine": {2: 0}, "rack": {1: 2}, "elsewhere": 7, "unscheduled": 20},
]
NOWHERE: dict[str, dict[int, int] | int] = {
    "machine": {},
    "rack": {},
    "elsewhere": 0,
    "unscheduled": 0,
}


class QuincyCosts(Statement):
    """The costs of preference sets, with margins."""

    def __init__(
        self,
        place_margin: int,
        stay_margin: int,
        progress: int,
        may_wait: bool,
        wait_cost: int,
    ) -> None:
        self.place_margin = place_margin + (0 if may_wait else 9)
        self.stay_margin = stay_margin
        self.progress = progress
        self.wait_cost = wait_cost

    def place(self, now: Round) -> Int64:
        cost = super().place(now)
        for i, number in enumerate(now.tasks.preference.tolist()):
            sets = [NOWHERE, *SETS][number]
            rack, machine = sets["rack"], sets["machine"]
            assert isinstance(rack, dict) and isinstance(machine, dict)
            for m in range(len(now.total)):
                cost[i, m] = machine.get(m, rack.get(m // 2, sets["elsewhere"]))
        return cost

    def wait(self, now: Round) -> Int64:
        base = [[NOWHERE, *SETS][k]["unscheduled"] for k in now.tasks.preference.tolist()]
        waited = self.wait_cost * now.waited(SECOND)
        return np.array(base, np.int64) + self.place_margin + waited

    def stay(self, now: Round) -> Int64:
        at = self.place(now)[np.arange(len(now.tasks)), np.maximum(now.machine, 0)]
        return at - self.stay_margin - self.progress * now.ran(SECOND)


def dealt(tasks: dict[int, int], places: int) -> dict[int, int]:
    """Places, dealt one by one to each job in turn that can use one more."""
    share = dict.fromkeys(tasks, 0)
    while places and any(share[job] < tasks[job] for job in tasks):
        for job in sorted(tasks):
            if places and share[job] < tasks[job]:
                share[job] += 1
                places -= 1
    return share


class FairCosts(QuincyCosts):
    """Quincy's costs, and a fair share for each job: as many tasks of it run, under preemption;
    without, no more are placed than it lacks."""

    preemption = False

    def allows(self, now: Round, choice: Int64) -> NDArray[np.bool_]:
        here, running = now.tasks.job.tolist(), now.running.job.tolist()
        apart = [] if self.preemption else running
        demand = {job: (here + apart).count(job) for job in {*here, *apart}}
        share = dealt(demand, int(now.room.sum()) + len(apart))
        allowed = np.ones(len(choice), bool)
        for job in set(here):
            waits = (choice[:, now.tasks.job == job] == len(now.total)).sum(axis=1)
            if self.preemption:
                allowed &= waits == here.count(job) - share[job]
            else:
                lacks = max(share[job] - apart.count(job), 0)
                allowed &= waits >= max(here.count(job) - lacks, 0)
        return allowed


class GangCosts(QuincyCosts):
    """Quincy's costs; gangs for which there is room are placed whole, and no others."""

    def allows(self, now: Round, choice: Int64) -> NDArray[np.bool_]:
        gang, submit = now.tasks.gang.tolist(), now.tasks.submit_us.tolist()
        runs = set(now.running.gang.tolist())
        first = {one: us for one, us in zip(gang, submit, strict=True) if one >= 0}
        left = int(now.room.sum())
        allowed = np.ones(len(choice), bool)
        for one in sorted(first, key=lambda g: (g not in runs, first[g], g)):
            waits = choice[:, now.tasks.gang == one] == len(now.total)
            admitted = gang.count(one) <= left
            left -= gang.count(one) if admitted else 0
            allowed &= ~waits.any(axis=1) if admitted else waits.all(axis=1)
        return allowed


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
@given(seeds, cells, st.booleans(), st.booleans(), st.sampled_from([2, 30, 600]), st.integers(1, 9))
def test_shortest_job_first(
    seed: int, cell: tuple[int, int], may_wait: bool, preemption: bool, unknown: int, price: int
) -> None:
    shortest_trial(seed, cell, may_wait, preemption, unknown, price).run(8)


def shortest_trial(
    seed: int, cell: tuple[int, int], may_wait: bool, preemption: bool, unknown: int, price: int
) -> Trial:
    """unknown: the run time, in tenths of a second, that is expected of tasks like no other."""
    options = {"may_wait": may_wait, "preemption": preemption, "wait_cost": price}
    options["unknown_s"] = unknown / 10
    statement = ShortestFirst(may_wait, unknown, price)
    return trial("shortest_job_first", statement, seed, cell, **options)


@st.composite
def cells_of_two_resources(draw: st.DrawFn) -> CellSpec:
    """Machines for a few tasks that ask for (2, 3), with a little to spare."""
    size = st.integers(2, 7), st.integers(3, 10)
    return cell_of(np.array(draw(st.lists(st.tuples(*size), min_size=1, max_size=3)), np.int64))


@examples(60)
@given(seeds, cells_of_two_resources(), st.booleans())
def test_coco(seed: int, spec: CellSpec, preemption: bool) -> None:
    options = {"preemption": preemption}
    Trial(spec, "coco", options, CocoCosts(), seed, np.array([2, 3])).run(5)


@examples(60)
@given(seeds, cells, st.booleans())
def test_energy_aware(seed: int, cell: tuple[int, int], preemption: bool) -> None:
    options = {"preemption": preemption, "unscheduled_cost": 60}
    trial("energy_aware", EnergyCosts(), seed, cell, **options).run(5)


@examples(60)
@given(seeds, st.lists(st.integers(2, 3), min_size=1, max_size=2), st.booleans())
def test_whare_map(seed: int, sizes: list[int], preemption: bool) -> None:
    spec = cell_of(np.array(sizes, np.int64)[:, None])
    statement = WhareCosts(sizes)
    Trial(spec, "whare_map", {"preemption": preemption}, statement, seed).run(16)


Margins = tuple[int, int, int, bool, int]
small = st.integers(0, 3)
margins = st.tuples(small, small, st.integers(0, 2), st.booleans(), st.integers(0, 2))


def quincy_trial(
    statement: QuincyCosts,
    seed: int,
    cell: tuple[int, int],
    with_margins: Margins,
    gangs: bool = False,
    **options: object,
) -> Trial:
    """Of a cell with two racks: both sets list machines and racks that there are."""
    place_margin, stay_margin, progress, may_wait, wait_cost = with_margins
    options |= {
        "place_margin": place_margin,
        "stay_margin": stay_margin,
        "progress_cost": progress,
        "may_wait": may_wait,
        "wait_cost": wait_cost,
    }
    spec = slot_cell(3, 1 + cell[1] // 3, 2)
    return Trial(spec, "quincy", options, statement, seed, gangs=gangs, catalog=catalog_of(SETS))


@examples(60)
@given(seeds, cells, margins, st.booleans())
def test_quincy_with_margins(
    seed: int, cell: tuple[int, int], with_margins: Margins, preemption: bool
) -> None:
    statement = QuincyCosts(*with_margins)
    quincy_trial(statement, seed, cell, with_margins, preemption=preemption).run(5)


@examples(60)
@given(seeds, cells, margins, st.booleans())
def test_quincy_with_fair_shares(
    seed: int, cell: tuple[int, int], with_margins: Margins, preemption: bool
) -> None:
    statement = FairCosts(*with_margins)
    statement.preemption = preemption
    options = {"preemption": preemption, "fair_share": True}
    quincy_trial(statement, seed, cell, with_margins, **options).run(9)


@examples(60)
@given(seeds, cells, margins, st.booleans())
def test_quincy_with_gangs_that_are_admitted(
    seed: int, cell: tuple[int, int], with_margins: Margins, preemption: bool
) -> None:
    statement = GangCosts(*with_margins)
    options = {"preemption": preemption, "admit_gangs": True}
    quincy_trial(statement, seed, cell, with_margins, gangs=True, **options).run(12)


def test_what_the_searches_compare_does_happen() -> None:
    """Tasks are placed, wait, and are preempted, and gangs are among them."""
    free = (1, 0, 0, False, 1)  # without a margin, running tasks move for as little as that
    cases: dict[str, Callable[[int], Trial]] = {
        "shortest": lambda seed: shortest_trial(seed, (2, 1), seed % 2 > 0, True, 2, 9),
        "spread": lambda seed: trial("load_spreading", SpreadCosts(), seed, (2, 1)),
        "quincy": lambda seed: quincy_trial(
            QuincyCosts(*free), seed, (3, 1), free, preemption=True
        ),
        "gangs": lambda seed: quincy_trial(
            GangCosts(*free), seed, (3, 1), free, gangs=True, admit_gangs=True
        ),
    }
    placed, preempted, waiting = (dict.fromkeys(cases, 0) for _ in range(3))
    for name, case in cases.items():
        for seed in range(8):
            one = case(seed)
            one.run(6)
            placed[name] += one.placed
            preempted[name] += one.preempted
            waiting[name] += len(one.waiting)
    assert min(placed.values()) > 20 and min(waiting.values()) > 0
    assert preempted["quincy"] > 0 and preempted["shortest"] > 0 and preempted["spread"] == 0
