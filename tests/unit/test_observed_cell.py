"""The observer of a cell hears of every call. That observing changes no answer, replays show."""

from __future__ import annotations

from typing import Any

import numpy as np

from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver, ObservedCell
from shared_state.partition import Partitioning
from shared_state.transaction import Transaction
from tests.greedy_world import cell_of


class Recording(CellObserver):
    """The name of each call and what the first machine held then."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith(("on_", "before_")):
            return super().__getattribute__(name)
        return lambda cell, *_: self.heard.append((name, int(cell.used[0, 0])))


def claims(task: int, machine: int) -> Transaction:
    one = np.ones((1, 1), np.int64)
    return Transaction(
        0, 1, np.array([task]), np.array([machine], np.int32), one, np.zeros(1, np.int64)
    )


def test_an_observer_hears_of_every_call_before_and_after_it() -> None:
    spec = cell_of([2, 2])
    cell = Cell(spec, Partitioning.by_topology(spec, 1))
    observer = Recording()
    observed = ObservedCell(cell, observer)
    machine, one = np.zeros(1, np.int32), np.ones((1, 1), np.int64)
    observed.load(np.array([7]), machine, one, machine)
    result = observed.commit(claims(8, 0), 10)
    observed.delta_since(0, 0, 11, False)
    observed.release(result.allocation, None, 12)
    observed.set_machines(machine, np.array([False]), 13)
    assert observer.heard == [
        ("on_attach", 0),
        ("before_change", 0),
        ("on_load", 1),
        ("before_change", 1),
        ("before_commit", 1),
        ("on_commit", 2),
        ("on_delta", 2),
        ("before_change", 2),
        ("on_release", 1),
        ("before_change", 1),
        ("on_machines", 0),
    ]
    assert cell.state_digest() == observed.state_digest(), "both stand for one state"
