"""Fits the weights of the scoring kinds' counted work to this machine: `python -m
tests.benchmarks.calibrate_scoring_work`.

Every kind places batches of 1, 10 and 100 tasks of two resources, with and without preferences, on
cells of 2,000 to 50,000 machines at 50 and 80 %. Time: processor time of `plan`, the median of
REPEATS. Each kind has weights of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

from schedulers.scoring.scheduler import WEIGHTS_PS, ScoringKind, ScoringScheduler
from tests.benchmarks.bench_score import Site, batch_of
from tests.benchmarks.calibrate_greedy_work import report, typical

CELLS = (2_000, 12_500, 50_000)  # machines
REPEATS = 25
WARM_UP = 3


def measure(kind: ScoringKind) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """(tasks, situation, picoseconds, counts) of each case."""
    for machines, load in product(CELLS, (0.5, 0.8)):
        site = Site(kind.name.lower(), machines, load)
        for tasks, preference in product((1, 10, 100), (0, 1)):
            spent_ns, counts = [], []
            for turn in range(WARM_UP + REPEATS):
                batch = batch_of(tasks, preference, turn)
                begin_ns = time.thread_time_ns()
                site.plan(turn, batch)
                spent_ns.append(time.thread_time_ns() - begin_ns)
                scheduler = site.schedulers[turn % len(site.schedulers)]
                assert isinstance(scheduler, ScoringScheduler)  # it counts its work
                counts.append(scheduler.work)
            preferring = "prefer" if preference else "indifferent"
            where = f"{machines} at {load:.0%}, {preferring}"
            yield f"{tasks} tasks", where, *typical(spent_ns, counts)


if __name__ == "__main__":
    for kind in ScoringKind:
        names = ["plans", "tasks", "filtered", "scored"]
        report(kind.name.lower(), measure(kind), names, WEIGHTS_PS[kind])
