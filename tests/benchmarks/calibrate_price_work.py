"""Compares the counted work of slot prices with the time that making them takes on this machine:
`python -m tests.benchmarks.calibrate_price_work [KIND ...]`.

Each kind makes its prices anew UPDATES times, for cells of 1,000 to 100,000 machines, with a few
large preference sets or many small ones, and 100 or 5,000 tasks offered before each update. Time:
processor time of update(). The sum of the counted work of a case should be near that of its time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.prices import registry
from schedulers.prices.interface import LearnsPotentials
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, PreferenceCatalog
from shared_state.view import ClusterView

CELLS = ((1_000, 16), (12_477, 13), (20_000, 16), (100_000, 1))  # machines, slots
SETS = ((20, 0.05), (20_000, 3))  # how many, and machines of each, or their part of the cell
OFFERED = (100, 5_000)
UPDATES = 12
PERIOD_US = 2_000_000


def cell_of(machines: int, slots: int) -> CellSpec:
    """A cell of like machines in racks of 40."""
    return CellSpec(
        ("slots",),
        np.full((machines, 1), slots, np.int64),
        (np.arange(machines) // 40).astype(np.int32),
        np.ones(machines, np.int64),
        np.full(1, 1000, np.int64),
    )


def catalog_of(machines: int, sets: int, size: int) -> PreferenceCatalog:
    """Sets of random machines, each `size`."""
    draws = np.random.default_rng(2)
    listed = [np.sort(draws.choice(machines, size, replace=False)) for _ in range(sets)]
    offsets = np.concatenate([[0], np.arange(sets + 1) * size]).astype(np.int64)
    elsewhere = np.repeat([0, 1000], [1, sets]).astype(np.int64)
    return PreferenceCatalog(
        offsets,
        np.concatenate(listed).astype(np.int32),
        np.zeros(sets * size, np.int64),
        np.zeros(sets + 2, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
        elsewhere,
        2 * elsewhere,
    )


def environments() -> Iterator[tuple[str, SchedulerEnvironment, ClusterView]]:
    """(what it is, environment, a view of the cell that is 90 % busy) of each cell and catalog."""
    for machines, slots in CELLS:
        spec = cell_of(machines, slots)
        partitioning = Partitioning.by_topology(spec, 8)
        view, cell = ClusterView(spec, partitioning), Cell(spec, partitioning)
        for p in range(8):
            view.apply(cell.delta_since(p, 0, 0, False))
        busy = np.random.default_rng(1).binomial(slots, 0.9, machines).astype(np.int64)
        view.claim(np.arange(machines, dtype=np.int32), busy[:, None])
        for sets, size in SETS:
            listed = int(size * machines) if size < 1 else int(size)
            catalog = catalog_of(machines, sets, listed)
            environment = SchedulerEnvironment("prices", spec, partitioning.offsets, catalog)
            yield f"{machines:7,} x {slots:2}, {sets:6,} sets", environment, view


def case(
    kind: str, environment: SchedulerEnvironment, view: ClusterView, offered: int
) -> tuple[float, float, float]:
    """Milliseconds of all updates: (as counted, taken, taken by the longest)."""
    spec = registry.get(kind)
    estimator = spec.build(spec.parse_options({}), environment)
    draws, counted, taken = np.random.default_rng(3), [], []
    for number in range(UPDATES):
        task = np.arange(number * offered, (number + 1) * offered)
        preference = draws.integers(1, environment.catalog.sets, offered).astype(np.int32)
        estimator.offered(task, preference, np.ones((offered, 1), np.int64))
        start = time.process_time()
        if isinstance(estimator, LearnsPotentials):
            worth = draws.integers(0, 2000, environment.cell.machines)
            start = time.process_time()
            estimator.learn_potentials(worth, 1000, number * PERIOD_US)
        estimator.update(view, number * PERIOD_US)
        taken.append((time.process_time() - start) * 1e3)
        counted.append(estimator.operations * PS_PER_OPERATION / 1e9)
    return sum(counted), sum(taken), max(taken)


def main(kinds: Sequence[str]) -> None:
    """Print a line for each kind, cell, catalog and number of tasks offered."""
    print(
        f"{'kind':11} {'cell':27} {'offered':>7}  {'counted':>9} {'taken':>9} {'ratio':>6}  longest"
    )
    for what, environment, view in environments():
        for kind in kinds:
            for offered in OFFERED:
                counted, taken, longest = case(kind, environment, view, offered)
                print(
                    f"{kind:11} {what:27} {offered:7}  {counted:6.2f} ms {taken:6.2f} ms "
                    f"{counted / taken:6.2f}  {longest:.2f} ms"
                )


if __name__ == "__main__":
    main(sys.argv[1:] or registry.kinds())
