"""Fits the weights of the greedy kinds' counted work to this machine: `python -m
tests.benchmarks.calibrate_greedy_work`.

Every kind under every ranking places batches of 10 and of 100 tasks, with and without preferences,
on cells of 2,000 to 100,000 machines at 50 and 95 %. Time: processor time of `plan`, the median of
REPEATS.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from experiments.workloads.synthetic import SyntheticOptions, generate
from schedulers import registry
from schedulers.greedy.base import WEIGHTS_PS, GreedyScheduler
from schedulers.interface import PartitionRanking, PlanContext, SchedulerEnvironment
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import TaskBatch
from shared_state.view import ClusterView
from tests.benchmarks.fitting import Samples

CELLS = ((2_000, 10, 8), (12_477, 13, 8), (100_000, 1, 20))  # machines, slots, partitions
KINDS = (
    "random",
    "randomized_first_fit",
    "first_fit",
    "best_fit",
    "load_spreading",
    "weighted_sampling",
)
REPEATS = 25
WARM_UP = 3


def measure() -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """(kind, situation, picoseconds, counts) of each case."""
    for machines, slots, partitions in CELLS:
        options = SyntheticOptions(
            machines=machines, slots_per_machine=slots, phase_s=1.0, load_percent=(50,)
        )
        workload = generate(options, seed=1)
        partitioning = Partitioning.by_topology(workload.cell, partitions)
        environment = SchedulerEnvironment(
            "greedy", workload.cell, partitioning.offsets, workload.catalog
        )
        order = np.arange(partitions, dtype=np.int32)
        for load in (50, 95):
            cell = Cell(workload.cell, partitioning)
            running = machines * slots * load // 100
            machine = np.random.default_rng(1).permutation(machines * slots)[:running] // slots
            request = np.ones((running, 1), np.int64)
            cell.load(
                np.arange(running), machine.astype(np.int32), request, np.zeros(running, np.int32)
            )
            view = ClusterView(workload.cell, partitioning)
            for p in range(partitions):
                view.apply(cell.snapshot(p, 1, False))
            for kind in KINDS:
                spec = registry.get(kind)
                scheduler = spec.build(spec.parse_options({}), environment)
                assert isinstance(scheduler, GreedyScheduler)  # it counts its work
                for ranking in PartitionRanking:
                    for tasks in (10, 100):
                        for prefers in (False, True):
                            spent, counts = [], []
                            for turn in range(WARM_UP + REPEATS):
                                preference = (
                                    1 + turn % (workload.catalog.sets - 1) if prefers else 0
                                )
                                context = PlanContext(0, stream_key(1, kind, turn), ranking, order)
                                batch = batch_of(running, tasks, preference)
                                begin_ns = time.thread_time_ns()
                                scheduler.plan(batch, view, context)
                                spent.append(time.thread_time_ns() - begin_ns)
                                counts.append(scheduler.work)
                            typical = np.median(np.array(counts[WARM_UP:]), axis=0).astype(np.int64)
                            where = (
                                f"{machines} at {load} %, {'prefer' if prefers else 'indifferent'}"
                            )
                            yield (
                                kind,
                                where,
                                int(np.median(spent[WARM_UP:])) * 1000,
                                tuple(typical.tolist()),
                            )


def batch_of(first: int, tasks: int, preference: int) -> TaskBatch:
    zero = np.zeros(tasks, np.int64)
    return TaskBatch(
        first + np.arange(tasks),
        zero,
        np.ones((tasks, 1), np.int64),
        zero.astype(np.int32),
        zero,
        np.full(tasks, preference, np.int32),
        zero - 1,
        zero.astype(np.int8),
    )


if __name__ == "__main__":
    kind, situation, true_ps, counts = zip(*measure(), strict=True)
    samples = Samples(
        np.array(kind), np.array(situation), np.array(true_ps, float), np.array(counts, float)
    )
    samples.report(["plans", "tasks", "looked at", "ranked"], np.array(WEIGHTS_PS))
