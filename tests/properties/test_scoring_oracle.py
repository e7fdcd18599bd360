"""Scoring schedulers against a plain oracle with the same random numbers: the same machines, plan
after plan, while tasks are accepted, rejected, finished and lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import ChangeKind
from tests.fixtures.examples import examples
from tests.greedy_world import catalog_of, cell_of
from tests.scoring_world import Oracle, Scoring, constrained, jobs_of

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
