"""Scoring schedulers against a plain oracle with the same random numbers: the same machines, plan
after plan, while tasks are accepted, rejected, finished and lost."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import ChangeKind, PartitionRanking, PlanContext
from schedulers.running_tasks import RunningTasks
from shared_state.random import stream_key
from shared_state.tasks import TaskBatch
from shared_state.transaction import PartitionDelta
from tests.fixtures.examples import examples
from tests.greedy_world import catalog_of, cell_of
from tests.scoring_world import Oracle, QueueOracle, Scoring, constrained, jobs_of

OPTIONS = [
    ("kubernetes", {}),
    ("kubernetes", {"percentage_of_nodes_to_score": 80}),
    ("swarmkit", {}),
    ("nomad", {}),
    ("nomad", {"algorithm": "spread"}),
    ("stranded", {"enough_machines": 4}),
    ("stranded", {"enough_machines": 100}),
]
ENDS = (ChangeKind.FINISHED, ChangeKind.LOST, ChangeKind.EVICTED)


class World:
    """A cell drawn at random."""

    def __init__(self, seed, machines, dimensions):
        self.rng = rng = np.random.default_rng(seed)
        self.machines, self.dimensions = machines, dimensions
        most = rng.choice([9, 9_000])  # on large machines few scores of Nomad are above 0
        self.spec = cell_of(rng.integers(0, most, (machines, dimensions)))
        self.used = rng.integers(0, 4, (machines, dimensions))
        self.up = rng.random(machines) < 0.9
        self.sets = [self.preferences() for _ in range(4)]
        self.constraints = {3, 4}
        self.catalog = constrained(catalog_of(*self.sets), self.constraints)
        self.first = 0

    def preferences(self):
        rng = self.rng
        listed = rng.choice(self.machines, rng.integers(0, self.machines), replace=False)
        racks = np.unique(rng.integers(0, self.spec.rack[-1] + 1, rng.integers(0, 3)))
        return (
            {int(row): int(rng.integers(0, 60)) for row in listed},
            {int(rack): int(rng.integers(60, 110)) for rack in racks},
        )

    def tasks(self):
        """A batch in which some tasks are alike, and some are gangs."""
        rng = self.rng
        n = int(rng.integers(1, 14))
        kinds = [
            (rng.integers(0, 4, self.dimensions), rng.integers(0, 3), rng.integers(0, 5))
            for _ in range(3)
        ]
        of = np.sort(rng.integers(0, 3, n)) if rng.random() < 0.6 else rng.integers(0, 3, n)
        request = np.array([kinds[k][0] for k in of]).reshape(n, self.dimensions)
        request[~request.any(axis=1), 0] = 1
        job = [kinds[k][1] for k in of]
        batch = jobs_of(
            request,
            job,
            [kinds[k][2] for k in of],
            np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), -1),
            [kinds[k][1] % 2 for k in of],
            self.first,
        )
        self.first += n
        return batch


@pytest.mark.parametrize(("kind", "options"), OPTIONS, ids=lambda value: str(value))
@examples(40)
@given(
    seed=st.integers(0, 2**32),
    machines=st.one_of(st.integers(2, 14), st.integers(100, 130)),
    dimensions=st.integers(1, 3),
)
def test_machines_are_those_of_the_rule(kind, options, seed, machines, dimensions):
    world = World(seed, machines, dimensions)
    rng = world.rng
    scoring = Scoring(kind, world.spec, world.used, world.up, world.catalog, **options)
    oracle = Oracle(kind, world.spec, world.sets, world.constraints, **options)
    tickets, waiting, now_us = {}, [], 0

    def tell(change, task, machine):
        scoring.tell(change, task, machine, now_us)
        oracle.tell(change, task, machine, now_us)

    for stream in range(6):
        now_us += int(rng.integers(0, 200_000_000))
        batch = world.tasks()
        before = scoring.view.free.copy()
        machine = scoring.plan(batch, stream, now_us)
        assert np.array_equal(scoring.view.free, before)
        assert machine.tolist() == oracle.plan(batch, before, stream, now_us)
        left = before.copy()
        placed = np.flatnonzero(machine >= 0)
        np.subtract.at(left, machine[placed], batch.request[placed])
        assert (left[machine[placed]] >= 0).all(where=batch.request[placed] > 0)
        for i in placed.tolist():
            task, row = int(batch.task[i]), int(machine[i])
            if rng.random() < 0.4:
                tell(ChangeKind.REJECTED, task, row)
                waiting.append(task)
                continue
            tickets[task] = scoring.view.claim(machine[i : i + 1], batch.request[i : i + 1]), row
            tell(ChangeKind.COMMITTED, task, row)
        for task in [task for task in tickets if rng.random() < 0.2]:
            ticket, row = tickets.pop(task)
            scoring.view.withdraw(ticket)
            tell(ENDS[rng.integers(0, 3)], task, row)


class SharedCell(World):
    """A crowded cell that a scheduler shares with others, whose tasks come and go; the scheduler's
    view is up to date whenever it plans."""

    def __init__(self, seed, machines, dimensions):
        super().__init__(seed, machines, dimensions)
        rng = self.rng
        self.spec = cell_of(rng.integers(2, 9, (machines, dimensions)))
        self.table = TaskBatch.empty(dimensions)
        self.runs = {}  # allocation -> (task, machine)
        self.allocations = self.version = 0
        for _ in range(2):
            self.start_others()

    def new_tasks(self, priorities):
        batch = self.tasks()
        priority = self.rng.choice(priorities, len(batch)).astype(np.int32)
        gang = np.where(batch.gang >= 0, batch.gang + 10 * self.first, -1)
        batch = replace(batch, priority=priority, gang=gang)
        self.table = TaskBatch.concatenate([self.table, batch])
        return batch.task.tolist()

    def run(self, task, machine):
        self.allocations += 1
        self.runs[self.allocations] = task, machine

    def free(self):
        used = np.zeros_like(self.spec.capacity)
        for task, machine in self.runs.values():
            used[machine] += self.table.request[task]
        return self.spec.limit - used

    def start_others(self):
        """Others' tasks start wherever they fit."""
        for task in self.new_tasks([0, 1, 2]):
            request = self.table.request[task]
            fit = np.all((self.free() >= request) | (request == 0), axis=1) & self.up
            if fit.any():
                self.run(task, int(self.rng.choice(np.flatnonzero(fit))))

    def change(self):
        """Some tasks end, others start, a machine may go or come. Returns the allocations gone."""
        rng = self.rng
        gone = [a for a in self.runs if rng.random() < 0.1]
        if rng.random() < 0.3:
            machine = int(rng.integers(0, self.machines))
            self.up[machine] = not self.up[machine]
            if not self.up[machine]:
                gone += [a for a, (_, on) in self.runs.items() if on == machine and a not in gone]
        for allocation in gone:
            del self.runs[allocation]
        if rng.random() < 0.5:
            self.start_others()
        return gone

    def show(self, view):
        used, rows = self.spec.limit - self.free(), np.arange(self.machines, dtype=np.uint32)
        before, self.version = self.version + 1, self.version + 1
        change = PartitionDelta(0, before, before + 1, 0, rows, used, self.up, None)
        view.apply(change)

    def running(self):
        allocation = np.array(sorted(self.runs), np.int64)
        places = [self.runs[a] for a in sorted(self.runs)]
        task = np.array([task for task, _ in places], np.int64)
        machine = np.array([machine for _, machine in places], np.int32)
        return RunningTasks.of(self.table, allocation, task, machine)


@pytest.mark.parametrize("preempts", [False, True])
@examples(60)
@given(
    seed=st.integers(0, 2**32),
    machines=st.one_of(st.integers(2, 10), st.just(110)),
    dimensions=st.integers(1, 2),
)
def test_kubernetes_queues_and_preempts_as_the_oracle(preempts, seed, machines, dimensions):
    world = SharedCell(seed, machines, dimensions)
    rng = world.rng
    share = {"min_candidate_nodes_percentage": 30, "min_candidate_nodes_absolute": 3}
    options = {"scheduling_queue": True, "priority_preemption": preempts, **share}
    scoring = Scoring("kubernetes", world.spec, None, None, world.catalog, **options)
    oracle = QueueOracle(world.spec, world.sets, world.constraints, preempts, 30, 3)
    again, own, now_us = [], set(), 0
    for stream in range(12):
        now_us += int(rng.choice([0, 400_000, 1_000_000, 7_000_000, 200_000_000]))
        ran = dict(world.runs)
        for allocation in world.change():
            task, machine = ran[allocation]
            if task in own:
                scoring.tell(ChangeKind.LOST, task, machine, now_us)
                oracle.tell(ChangeKind.LOST, task, machine, now_us)
                again.append(task)
        world.show(scoring.view)
        offered = [*again, *(world.new_tasks([1, 2, 3]) if rng.random() < 0.7 else [])]
        free, up = scoring.view.free.copy(), world.up.copy()
        context = PlanContext(
            now_us,
            stream_key(1, "scoring", stream),
            PartitionRanking.OPTIMISTIC,
            np.zeros(1, np.int32),
            world.running() if preempts else None,
        )
        plan = scoring.scheduler.plan(
            world.table.take(np.array(offered, np.intp)), scoring.view, context
        )
        assert np.array_equal(scoring.view.free, free)
        seen = [
            (a, machine, int(world.table.priority[task]), world.table.request[task].tolist())
            for a, (task, machine) in world.runs.items()
        ]
        claims, evicted, waiting, due_us = oracle.plan(
            world.table, offered, free, up, seen, stream, now_us
        )
        assert dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True)) == claims
        assert plan.evict.tolist() == evicted
        assert set(plan.pending.tolist()) == waiting
        assert plan.retry_at_us == due_us and (due_us is None or due_us > now_us)
        assert scoring.view.claims_in_flight == 0
        again = []
        accepted = {task for task in claims if rng.random() < 0.7}
        kept = {claims[task] for task in claims} - {claims[task] for task in accepted}
        for allocation in evicted:
            task, machine = world.runs[allocation]
            if machine in kept:
                continue
            del world.runs[allocation]
            if task in own:
                scoring.tell(ChangeKind.EVICTED, task, machine, now_us)
                oracle.tell(ChangeKind.EVICTED, task, machine, now_us)
                again.append(task)
        for task, machine in claims.items():
            kind = ChangeKind.COMMITTED if task in accepted else ChangeKind.REJECTED
            scoring.tell(kind, task, machine, now_us)
            oracle.tell(kind, task, machine, now_us)
            if task in accepted:
                world.run(task, machine)
                own.add(task)
            else:
                again.append(task)
        assert (world.free() >= 0).all()
