"""Causes of conflicts against a model that remembers every claim."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics import _native
from schedulers.objective import native_columns, placement_cost
from shared_state.tasks import CellSpec, PreferenceCatalog
from shared_state.transaction import CommitResult, Reason, Transaction, is_conflict
from tests.fixtures.examples import examples

MACHINES, TASKS, SCHEDULERS = 3, 24, 3
CELL = CellSpec(
    ("slots",),
    np.ones((MACHINES, 1), np.int64),
    np.zeros(MACHINES, np.int32),
    np.zeros(MACHINES, np.int64),
    np.full(1, 1000, np.int64),
)
NONE, NONE32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
CATALOG = PreferenceCatalog(  # set 1 prefers the first two machines
    np.array([0, 0, 2]),
    np.array([0, 1], np.int32),
    np.array([1, 1]),
    np.zeros(3, np.int64),
    NONE32,
    NONE,
    np.array([0, 5]),
    np.array([9, 9]),
)
PREFERENCE = np.arange(TASKS, dtype=np.int32) % 2

Claims = list[tuple[int, int, int, int]]  # (task, machine, reason, rival)
CLAIMS = st.lists(
    st.tuples(
        st.integers(0, TASKS - 1),
        st.integers(0, MACHINES - 1),
        st.sampled_from([0, 0, 0, *map(int, Reason)]),
        st.integers(-1, SCHEDULERS - 1),
    ),
    max_size=6,
)
COMMITS = st.lists(
    st.tuples(st.integers(0, SCHEDULERS - 1), st.integers(0, 2), CLAIMS), max_size=25
)


class Model:
    """All claims that were accepted, in order."""

    def __init__(self) -> None:
        self.claims: list[tuple[int, int, int, int]] = []  # (machine, scheduler, task, at_us)
        self.counts = [0, 0, 0]

    def rival_claim(self, machine: int, rival: int) -> tuple[int, int] | None:
        """(task, at_us) of the rival's last claim, if it is the machine's last or the last that
        another than the last claimant made."""
        history = [claim for claim in self.claims if claim[0] == machine]
        others = [claim for claim in history if claim[1] != history[-1][1]]
        for claim in [*history[-1:], *others[-1:]]:
            if claim[1] == rival:
                return claim[2], claim[3]
        return None

    def commit(self, scheduler: int, now_us: int, claims: Claims, counted: bool) -> None:
        for task, machine, reason, rival in claims:
            if counted and is_conflict(np.array([reason]))[0]:
                found = self.rival_claim(machine, rival)
                cause = 2
                if found is not None and found[1] == now_us:
                    cause = 0
                elif found is not None and prefers(task, machine) and prefers(found[0], machine):
                    cause = 1
                self.counts[cause] += 1
        for task, machine, reason, _ in claims:
            if reason == Reason.ACCEPTED:
                self.claims.append((machine, scheduler, task, now_us))


def prefers(task: int, machine: int) -> bool:
    _, preferred = placement_cost(
        CATALOG, CELL.rack, PREFERENCE[[task]], np.array([machine], np.int32)
    )
    return bool(preferred[0])


@examples(200)
@given(initial=st.lists(st.integers(0, SCHEDULERS - 1), max_size=MACHINES), commits=COMMITS)
def test_causes_are_those_of_the_whole_history(
    initial: list[int], commits: list[tuple[int, int, Claims]]
) -> None:
    causes = _native.ConflictCauses(
        MACHINES, PREFERENCE, native_columns(CATALOG, CELL), [3, 20], [12, 30]
    )
    model = Model()
    machine = np.arange(len(initial), dtype=np.int32)
    task = machine.astype(np.int64)
    causes.on_load(
        task, machine, np.ones((len(task), 1), np.int64), np.array(initial, np.int32), task
    )
    model.claims = [(row, owner, row, -1) for row, owner in enumerate(initial)]
    now_us = 0
    for number, (scheduler, later_us, claims) in enumerate(commits):
        now_us += later_us
        task, rows, reason, rival = (
            np.array([claim[place] for claim in claims], np.int64) for place in range(4)
        )
        n = len(claims)
        transaction = Transaction(
            scheduler, number, task, rows.astype(np.int32), np.ones((n, 1), np.int64), task
        )
        result = CommitResult(
            number, reason.astype(np.int8), task, rival.astype(np.int32), task, task, NONE
        )
        causes.on_commit(transaction, result, now_us)
        model.commit(scheduler, now_us, claims, 3 <= now_us < 12 or 20 <= now_us < 30)
    assert list(causes.counts()) == model.counts
