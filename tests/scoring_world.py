"""Small cells for scoring schedulers, and a plain oracle of their rules, for tests."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from schedulers import registry
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from shared_state.partition import Partitioning
from shared_state.random import Stream, exp, hash64, stream_key
from shared_state.tasks import NOWHERE_ELSE, PreferenceCatalog, TaskClass
from tests.greedy_world import tasks_of, view_of

FIVE_MINUTES_US = 300_000_000
KINDS = ("kubernetes", "swarmkit", "nomad", "stranded")


def constrained(catalog, sets):
    """The catalog with these sets made constraints."""
    elsewhere = catalog.elsewhere_cost.copy()
    elsewhere[list(sets)] = NOWHERE_ELSE
    return replace(catalog, elsewhere_cost=elsewhere)


def jobs_of(request, job=0, preference=0, gang=-1, task_class=TaskClass.BATCH, first=0):
    """Tasks with jobs, classes, and ids from `first` on."""
    tasks = tasks_of(request, preference, gang)
    n = len(tasks)
    return replace(
        tasks,
        task=first + np.arange(n),
        job=np.broadcast_to(np.array(job, np.int64), n).copy(),
        task_class=np.broadcast_to(np.array(task_class, np.int8), n).copy(),
    )


class Scoring:
    """One scheduler of a kind on one view of one partition, and what becomes of its tasks."""

    def __init__(self, kind, spec, used=None, up=None, catalog=None, **options):
        partitioning = Partitioning(np.array([0, spec.machines]))
        self.view = view_of(spec, partitioning, used, up)
        catalog = PreferenceCatalog.empty() if catalog is None else catalog
        found = registry.get(kind)
        environment = SchedulerEnvironment("scoring", spec, partitioning.offsets, catalog)
        self.scheduler = found.build(found.parse_options(options), environment)

    def plan(self, tasks, stream=0, now_us=0):
        """int32[n], a machine for each task; -1: none."""
        key = stream_key(1, "scoring", stream)
        order = np.zeros(1, np.int32)
        plan = self.scheduler.plan(
            tasks, self.view, PlanContext(now_us, key, PartitionRanking.OPTIMISTIC, order)
        )
        place = {int(task): at for at, task in enumerate(tasks.task.tolist())}
        machine = np.full(len(tasks), -1, np.int32)
        machine[[place[task] for task in plan.task.tolist()]] = plan.machine
        return machine

    def tell(self, kind, task, machine, at_us=0, adopted=None):
        task, machine = np.atleast_1d(task), np.atleast_1d(machine).astype(np.int32)
        changes = TaskChanges(kind, at_us, task.astype(np.int64), machine, task * 1, adopted)
        self.scheduler.observe(changes)


class Oracle:
    """The four rules as they are told, with nothing kept but what they remember.

    Args:
        kind: The rule's.
        spec: The cell.
        sets: ({machine: cost}, {rack: cost}) of each set after the empty one.
        constraints: The sets that are constraints.
        options: As the kind has them.
    """

    def __init__(self, kind, spec, sets, constraints, **options):
        self.kind, self.limit, self.rack = kind, spec.limit.tolist(), spec.rack.tolist()
        self.sets = [({}, {}), *sets]
        self.constraints = constraints
        self.options = options
        self.start = 0
        self.own = {}  # task -> (job, machine)
        self.failures = []  # (job, machine, time)
        self.avoided = defaultdict(list)

    # --- what becomes of tasks ---

    def tell(self, kind, task, machine, at_us=0):
        known = self.own.get(task)
        if kind is ChangeKind.COMMITTED:
            if known is not None:
                self.own[task] = (known[0], machine)
            return
        if kind in (ChangeKind.REJECTED, ChangeKind.LOST):
            if known is not None:
                self.failures.append((known[0], machine, at_us))
            self.avoided[task] = [*self.avoided[task], machine][-5:]
        if kind is ChangeKind.FINISHED:
            self.avoided.pop(task, None)
        self.own.pop(task, None)

    # --- a plan ---

    def plan(self, tasks, free, stream, now_us):
        self.tasks, self.free, self.now_us = tasks, free.tolist(), now_us
        self.stream = Stream(stream_key(1, "scoring", stream))
        self.classes, self.order = {}, Shuffled(range(len(self.free)), self.stream)
        machine = [-1] * len(tasks)
        for task in tasks.task.tolist():
            self.own.pop(task, None)
        jobs = [job for job, _ in self.own.values()]
        self.size = {
            job: jobs.count(job) + tasks.job.tolist().count(job) for job in tasks.job.tolist()
        }
        group = None
        for unit, gang in self.units():
            placed = []
            for i in unit:
                if self.group_of(i) != group:
                    group = self.group_of(i)
                    self.begin_group(i)
                row = getattr(self, self.kind)(i)
                if row is None:
                    break
                placed.append((i, row))
                machine[i] = row
                self.own[int(tasks.task[i])] = (int(tasks.job[i]), row)
                self.take(row, i, 1)
            if gang and len(placed) < len(unit):
                for i, row in placed:
                    machine[i] = -1
                    del self.own[int(tasks.task[i])]
                    self.take(row, i, -1)
                self.classes, group = {}, None
        return machine

    def units(self):
        gangs = self.tasks.gang.tolist()
        for i, gang in enumerate(gangs):
            if gang < 0:
                yield [i], False
            elif gangs.index(gang) == i:
                yield [j for j, other in enumerate(gangs) if other == gang], True

    def group_of(self, i):
        tasks = self.tasks
        return tasks.job[i], tasks.preference[i], tuple(tasks.request[i].tolist())

    def begin_group(self, i):
        self.preference = int(self.tasks.preference[i])
        machines, racks = self.sets[self.preference]
        required = self.preference in self.constraints
        listed = [*machines.values(), *racks.values()]
        without = max(listed, default=0) if required else 100

        def affinity(row):
            cost = machines.get(row, racks.get(self.rack[row]))
            if cost is None:
                return None if required else 0
            saved, most = without - cost, without - min(listed)
            return max(100 * saved // most, 1) if saved > 0 else 0

        self.affinity = [affinity(row) for row in range(len(self.free))]
        self.differs = bool(listed) and without > min(listed)
        self.rows = [row for row, weight in enumerate(self.affinity) if weight is not None]
        if self.kind == "swarmkit":
            self.salt = self.draw(1 << 62)
        if self.kind == "nomad":
            self.order, self.next = Shuffled(self.rows, self.stream), 0
        if self.kind == "stranded":
            key = (self.preference, tuple(self.tasks.request[i].tolist()))
            if key not in self.classes:
                start = self.order.drawn % len(self.free)
                order = Shuffled(self.rows, self.stream) if required else self.order
                self.classes[key] = [order, 0 if required else start, 0, []]
            self.of_class = self.classes[key]

    def draw(self, bound):
        return int(self.stream.integers(1, bound)[0])

    def take(self, row, i, sign):
        self.free[row] = [
            f - sign * int(r) for f, r in zip(self.free[row], self.request(i), strict=True)
        ]

    def request(self, i):
        return self.tasks.request[i].tolist()

    def passes(self, row, i):
        room = zip(self.free[row], self.request(i), strict=True)
        return self.affinity[row] is not None and all(r == 0 or f >= r for f, r in room)

    def left(self, row, request):
        """(left, limit) of each resource that the machine has."""
        each = zip(self.free[row], request, self.limit[row], strict=True)
        return [(f - r, limit) for f, r, limit in each if limit]

    # --- the rules ---

    def kubernetes(self, i):
        n = len(self.free)
        percentage = self.options.get("percentage_of_nodes_to_score", 0)
        percentage = percentage or max(50 - n // 125, 5)
        enough = n if n < 100 else max(n * percentage // 100, 100)
        passed = []
        for _ in range(n):
            if len(passed) == enough:
                break
            if self.passes(self.start, i):
                passed.append(self.start)
            self.start = (self.start + 1) % n
        if len(passed) < 2:
            return passed[0] if passed else None
        top = max(self.affinity[row] for row in passed)

        def score(row):
            left = self.left(row, self.request(i))
            least = [max(f, 0) * 100 // limit for f, limit in left]
            used = [min((limit - f) / limit, 1.0) for f, limit in left]
            deviation = 0.0
            if len(used) == 2:
                deviation = abs((used[0] - used[1]) / 2)
            elif len(used) > 2:
                mean = sum(used) / len(used)
                deviation = math.sqrt(sum((u - mean) * (u - mean) for u in used) / len(used))
            affinity = 100 * self.affinity[row] // top if top else 0
            return sum(least) // len(least) + int((1 - deviation) * 100) + 2 * affinity

        scores = [score(row) for row in passed]
        best = [row for row, one in zip(passed, scores, strict=True) if one == max(scores)]
        return best[0] if len(best) == 1 else best[self.draw(len(best))]

    def swarmkit(self, i):
        job = int(self.tasks.job[i])

        def rank(row):
            recent = [
                at_us
                for failed, machine, at_us in self.failures
                if (failed, machine) == (job, row) and self.now_us - at_us <= FIVE_MINUTES_US
            ]
            there = [of for of, machine in self.own.values() if machine == row]
            failures = len(recent) if len(recent) >= 5 else 0
            tie = int(hash64(np.array([row]), self.salt)[0])
            return failures, there.count(job), len(there), tie

        return min((row for row in self.rows if self.passes(row, i)), key=rank, default=None)

    def nomad(self, i):
        """The iterators of Nomad: shuffled source, limit with skips, highest score."""
        task, job = int(self.tasks.task[i]), int(self.tasks.job[i])
        limit = 2
        if self.tasks.task_class[i] == TaskClass.SERVICE:
            limit = max(2, math.ceil(math.log2(len(self.free))))
        if self.differs:
            limit = max(100, self.size[job])

        def score(row):
            left = self.left(row, self.request(i))
            powers = [
                float(exp(np.array([max(f, 0) / most * 2.302585092994046]))[0]) for f, most in left
            ]
            total = 2 * (sum(powers) / len(powers))
            fit = total - 2 if self.options.get("algorithm") == "spread" else 20 - total
            scores = [min(max(fit, 0.0), 18.0) / 18]
            beside = list(self.own.values()).count((job, row))
            if beside:
                scores.append(-(beside + 1) / self.size[job])
            if row in self.avoided[task]:
                scores.append(-1)
            if self.differs:
                scores.append(self.affinity[row] / 100)
            return sum(scores) / len(scores)

        def source():
            for _ in range(len(self.rows)):
                row = self.order[self.next]
                self.next = (self.next + 1) % len(self.rows)
                if self.passes(row, i):
                    yield score(row), row

        source, skipped, offered = source(), [], []
        while len(offered) < limit:
            option = next(source, None)
            while option is not None and option[0] <= 0 and len(skipped) < 3:
                skipped.append(option)
                option = next(source, None)
            if option is None:
                break
            offered.append(option)
        offered += skipped[: limit - len(offered)]  # where the source had too few others
        return max(offered, key=lambda option: option[0])[1] if offered else None

    def stranded(self, i):
        order, start, seen, candidates = self.of_class
        candidates[:] = [row for row in candidates if self.passes(row, i)]
        while seen < len(self.rows) and len(candidates) < self.options["enough_machines"]:
            row = order[(start + seen) % len(self.rows)]
            seen += 1
            if self.passes(row, i):
                candidates.append(row)
        self.of_class[2] = seen

        def key(row):
            def shares(request):
                return [int(max(f, 0) / limit * 2**20) for f, limit in self.left(row, request)]

            def unused(share):
                return sum(one - min(share) for one in share)

            request = self.request(i)
            before, after = shares([0] * len(request)), shares(request)
            return -self.affinity[row], (unused(after) - unused(before) + 512) >> 10, sum(after)

        return min(candidates, key=key, default=None)


class Shuffled:
    """Rows in an order that is drawn as it is read: each is swapped with one not drawn yet."""

    def __init__(self, rows, stream):
        self.rows, self.stream, self.drawn = list(rows), stream, 0

    def __getitem__(self, place):
        while self.drawn <= place:
            other = self.drawn + int(self.stream.integers(1, len(self.rows) - self.drawn)[0])
            self.rows[self.drawn], self.rows[other] = self.rows[other], self.rows[self.drawn]
            self.drawn += 1
        return self.rows[place]


SECOND_US = 1_000_000


class Waits:
    """A task in the queue of QueueOracle."""

    def __init__(self, attempts, since_us):
        self.attempts, self.since_us, self.unschedulable = attempts, since_us, False

    @property
    def due_us(self):
        if self.unschedulable:
            return self.since_us + FIVE_MINUTES_US
        backoff_us = min(SECOND_US * 2 ** (self.attempts - 1), 10 * SECOND_US)
        return self.since_us + (backoff_us if self.attempts else 0)


class QueueOracle(Oracle):
    """Kubernetes' scheduling queue with its defaults, and its priority preemption, task by task.

    Args:
        spec, sets, constraints, options: As of Oracle.
        preempts: Whether tasks of lower priority may be ended.
        percentage, at_least: How many machines are compared.
    """

    def __init__(self, spec, sets, constraints, preempts, percentage, at_least, **options):
        super().__init__("kubernetes", spec, sets, constraints, **options)
        self.preempts, self.percentage, self.at_least = preempts, percentage, at_least
        self.queue = {}  # by task, in the order in which they were offered
        self.attempts = {}  # failed ones of tasks whose claims are under way
        self.rejected = {}  # when
        self.nominated = {}  # task -> (machine, allocations that end)
        self.first_seen = {}
        self.seen = None

    def tell(self, kind, task, machine, at_us=0):
        failed = self.attempts.pop(task, 0)
        if kind is ChangeKind.REJECTED:
            self.rejected[task] = failed + 1, at_us

    def plan(self, table, offered, free, up, running, stream, now_us):
        """Returns {task: machine}, the allocations that end, the tasks offered that wait, and when
        the next is due.

        Args:
            table: Every task so far (row = id).
            offered: Their ids.
            free, up: What the view shows.
            running: (allocation, machine, priority, request) of each running task.
        """
        self.tasks, self.base, self.up, self.running = table, free.tolist(), up, running
        self.stream = Stream(stream_key(1, "scoring", stream))
        self.first_seen = {one[0]: self.first_seen.get(one[0], now_us) for one in running}
        self.claims, self.evicted, self.highest = {}, [], {}
        event = self.seen is not None and (free > self.seen).any()
        for waits in self.queue.values():
            if event or waits.since_us + FIVE_MINUTES_US <= now_us:
                waits.unschedulable = False
        for task in offered:
            self.queue[task] = Waits(*self.rejected.pop(task, (0, now_us)))
        tried = []
        for unit in self.active_units(now_us):
            tried += unit
            self.level = max(int(table.priority[task]) for task in unit)
            if table.gang[unit[0]] >= 0:
                self.try_gang(unit)
            else:
                self.try_one(unit[0])
        for task in tried:
            waits = self.queue[task]
            waits.attempts += 1
            waits.since_us, waits.unschedulable = now_us, task not in self.nominated
        for task in self.claims:
            self.attempts[task] = self.queue.pop(task).attempts - 1
        self.seen = free.copy()
        for task, row in self.claims.items():
            self.seen[row] -= table.request[task]
        due_us = [max(self.queue[task].due_us for task in unit) for unit in self.queued_units()]
        waiting = {task for task in offered if task in self.queue}
        return self.claims, self.evicted, waiting, min(due_us, default=None)

    def queued_units(self):
        gangs = defaultdict(list)
        for task in self.queue:
            gang = int(self.tasks.gang[task])
            gangs[gang if gang >= 0 else -1 - task].append(task)
        return gangs.values()

    def active_units(self, now_us):
        place = {task: at for at, task in enumerate(self.queue)}

        def key(unit):
            level = max(int(self.tasks.priority[task]) for task in unit)
            since_us = max(self.queue[task].since_us for task in unit)
            return -level, since_us, place[unit[0]]

        units = self.queued_units()
        active = [u for u in units if all(self.queue[t].due_us <= now_us for t in u)]
        return sorted(active, key=key)

    # --- attempts ---

    def search(self, task):
        self.free = self.visible()
        self.begin_group(task)
        return self.kubernetes(task)

    def try_gang(self, unit):
        for task in unit:
            row = self.search(task)
            if row is None:
                for other in unit:
                    self.claims.pop(other, None)
                return
            self.claims[task] = row

    def try_one(self, task):
        if task in self.nominated:
            row, victims = self.nominated.pop(task)
            chosen = self.victims_on(row, task, victims)
            if chosen is not None:
                self.claims[task] = row
                self.evicted += [one[0] for one in chosen]
                highest = [one[2] for one in chosen]
                self.highest[row] = max([*highest, self.highest.get(row, -1)])
                return
        row = self.search(task)
        if row is not None:
            self.claims[task] = row
        elif self.preempts and min((one[2] for one in self.running), default=99) < self.level:
            self.nominate(task)

    def visible(self):
        """What a task of this priority sees as free."""
        free = [list(row) for row in self.base]
        taken = list(self.claims.items())
        taken += [
            (task, row)
            for task, (row, _) in self.nominated.items()
            if self.tasks.priority[task] >= self.level
        ]
        for task, row in taken:
            free[row] = [f - r for f, r in zip(free[row], self.request(task), strict=True)]
        for row, highest in self.highest.items():
            if highest >= self.level:
                free[row] = [-(1 << 50)] * len(free[row])
        return free

    def victims_on(self, row, task, of=None):
        """Who has to end on a machine; None: the task does not fit even then."""
        lower = [one for one in self.running if one[1] == row and one[2] < self.level]
        gone = [one for one in lower if one[0] in self.evicted]
        lower = [one for one in lower if one not in gone and (of is None or one[0] in of)]
        lower.sort(key=lambda one: (-one[2], self.first_seen[one[0]], one[0]))

        def fits(victims):
            room = self.visible()[row]
            for one in [*gone, *victims]:
                room = [f + r for f, r in zip(room, one[3], strict=True)]
            return all(r == 0 or f >= r for f, r in zip(room, self.request(task), strict=True))

        if not self.up[row] or not fits(lower):
            return None
        victims = list(lower)
        for one in lower:
            if fits([other for other in victims if other is not one]):
                victims.remove(one)
        return victims

    def nominate(self, task):
        large = [
            row
            for row in range(len(self.base))
            if self.up[row]
            and self.affinity[row] is not None
            and all(
                r == 0 or most >= r
                for most, r in zip(self.limit[row], self.request(task), strict=True)
            )
        ]
        if not large:
            return
        wanted = min(max(len(large) * self.percentage // 100, self.at_least), len(large))
        start, candidates = self.draw(len(large)), []
        for turn in range(len(large)):
            row = large[(start + turn) % len(large)]
            victims = self.victims_on(row, task)
            if victims and len(candidates) < wanted:
                candidates.append((row, victims))

        def key(candidate):
            priorities = [one[2] for one in candidate[1]]
            began = [self.first_seen[one[0]] for one in candidate[1] if one[2] == max(priorities)]
            total = sum(priority + 2**31 for priority in priorities)
            return max(priorities), total, len(priorities), -min(began)

        if not candidates:
            return
        row, victims = min(candidates, key=key)
        for other, (there, _) in list(self.nominated.items()):
            if there == row and self.tasks.priority[other] < self.tasks.priority[task]:
                del self.nominated[other]
        self.nominated[task] = row, {one[0] for one in victims}
