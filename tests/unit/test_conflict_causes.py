"""Causes of the conflicts of hand-made commits: which applies, and which conflicts count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.metrics.kinds.conflicts import ConflictCauses, ConflictCauseWatch
from shared_state.observed_cell import CellObservers, ObservedCell
from shared_state.transaction import Reason
from tests.unit.test_regret import World

PREFERRED, OTHER = 0, 1  # machines of two slots; every task prefers the first
FIRST_PHASE_US, SECOND_PHASE_US = 100, 5_000


class Rivals(World):
    """The world of the tests of regret, whose cell is watched for conflicts instead."""

    def __init__(self, settle_us: int = 0) -> None:
        super().__init__()
        self.causes_watch = ConflictCauseWatch(self.workload, settle_us)
        self.master.cell = ObservedCell(self.master.cell, self.causes_watch)
        self.task = 0

    def claims(self, agent: int, machine: int, at_us: int, count: int = 1) -> Any:
        """The reasons of so many claims for a machine."""
        tasks = list(range(self.task, self.task + count))
        self.task += count
        return self.commit(tasks, [machine] * count, at_us, agent).reason

    @property
    def causes(self) -> tuple[float | None, ...]:
        """Same tick, quality, staleness."""
        return tuple(self.causes_watch.causes().model_dump().values())


def test_no_conflicts_have_no_causes() -> None:
    world = Rivals()
    world.claims(0, PREFERRED, 1_000, count=2)
    assert world.causes == (None, None, None)


@pytest.mark.parametrize(
    ("machine", "late_us", "expected"),
    [
        (PREFERRED, 0, (1, 0, 0)),
        (OTHER, 0, (1, 0, 0)),
        (PREFERRED, 1, (0, 1, 0)),
        (OTHER, 1, (0, 0, 1)),
    ],
)
def test_a_conflict_has_the_first_cause_that_applies(
    machine: int, late_us: int, expected: tuple[int, ...]
) -> None:
    world = Rivals()
    world.claims(0, machine, 1_000, count=2)
    assert world.claims(1, machine, 1_000 + late_us) == Reason.FULL
    assert world.causes == expected


def test_shares_are_of_all_conflicts() -> None:
    world = Rivals()
    world.claims(0, PREFERRED, 1_000, count=2)
    world.claims(0, OTHER, 1_000, count=2)
    world.claims(1, PREFERRED, 1_000)
    world.claims(1, PREFERRED, 2_000, count=4)
    world.claims(1, OTHER, 2_000, count=3)
    assert world.causes == (1 / 8, 4 / 8, 3 / 8)


def test_initial_tasks_are_rivals_that_came_long_ago() -> None:
    world = Rivals()
    loaded = np.arange(30, 34)
    machines = np.array([PREFERRED, PREFERRED, OTHER, OTHER], np.int32)
    owner = np.zeros(4, np.int32)
    world.master.cell.load(loaded, machines, world.table.request[loaded], owner)
    world.claims(1, PREFERRED, 1_000)
    world.claims(1, OTHER, 1_000)
    assert world.causes == (0, 1 / 2, 1 / 2)


def test_only_conflicts_of_settled_phases_count() -> None:
    world = Rivals(settle_us=500)
    world.claims(0, OTHER, 10, count=2)
    for at_us in (FIRST_PHASE_US, FIRST_PHASE_US + 499, SECOND_PHASE_US, SECOND_PHASE_US + 499):
        world.claims(1, OTHER, at_us)
    world.claims(1, OTHER, 8_000)  # the end of the last phase
    assert world.causes == (None, None, None)
    world.claims(1, OTHER, FIRST_PHASE_US + 500)
    assert world.causes == (0, 0, 1)


def test_several_observers_hear_the_same() -> None:
    world = Rivals()
    other = ConflictCauseWatch(world.workload, 0)
    world.master.cell = ObservedCell(world.master.cell, CellObservers(world.causes_watch, other))
    world.claims(0, PREFERRED, 1_000, count=3)
    assert other.causes() == world.causes_watch.causes() != ConflictCauses.of()
