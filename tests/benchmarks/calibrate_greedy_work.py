"""Fits the weights of the greedy kinds' counted work to this machine: `python -m
tests.benchmarks.calibrate_greedy_work`.

Every kind under every ranking places batches of 10 and of 100 tasks, with and without preferences,
on cells of 2,000 to 100,000 machines at 50 and 95 %. The same by slot prices, except for weighted
sampling; the machines of a plan have changed when the next one begins. A patient scheduler places
as many while up to 10,000 tasks wait that are too large for their preferred machines. Time:
processor time of `plan`, the median of REPEATS.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from experiments.workloads.synthetic import SyntheticOptions, generate
from schedulers import registry
from schedulers.greedy.scheduler import (
    PATIENT_WEIGHTS_PS,
    PRICED_WEIGHTS_PS,
    WEIGHTS_PS,
    GreedyScheduler,
    PatientScheduler,
)
from schedulers.interface import PartitionRanking, PlanContext, SchedulerEnvironment
from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import PriceOptions
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, TaskBatch
from shared_state.view import ClusterView
from tests.benchmarks.bench_place import GivenPrices
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
FIRST = 1 << 20  # id of the first task of a batch; those that wait come before
REPEATS = 25
WARM_UP = 3
HIGHEST_PRICE = 1_000


def views() -> Iterator[tuple[str, int, ClusterView, SchedulerEnvironment]]:
    """(cell and load, slots of a machine, view, environment) of each situation."""
    for machines, slots, partitions in CELLS:
        options = SyntheticOptions(
            machines=machines, slots_per_machine=slots, phase_s=1.0, load_percent=(50,)
        )
        workload = generate(options, seed=1)
        partitioning = Partitioning.by_topology(workload.cell, partitions)
        environment = SchedulerEnvironment(
            "greedy", workload.cell, partitioning.offsets, workload.catalog
        )
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
            yield f"{machines} at {load} %", slots, view, environment


def context(turn: int, ranking: PartitionRanking, environment: SchedulerEnvironment) -> PlanContext:
    order = np.arange(len(environment.partition_offsets) - 1, dtype=np.int32)
    return PlanContext(0, stream_key(1, "calibration", turn), ranking, order)


def typical(
    spent_ns: Sequence[int], counts: Sequence[tuple[int, ...]]
) -> tuple[int, tuple[int, ...]]:
    """(picoseconds, counts) of the plans after the warm-up."""
    middle = np.median(np.array(counts[WARM_UP:]), axis=0).astype(np.int64)
    return int(np.median(spent_ns[WARM_UP:])) * 1000, tuple(middle.tolist())


def prices_of(cell: CellSpec) -> SlotPrices:
    """Prices that rise with the busy slots of a machine, up to its own highest."""
    slots = cell.capacity[:, 0]
    highest = np.random.default_rng(2).integers(0, HIGHEST_PRICE + 1, len(slots))
    level = np.arange(int(slots.max()))
    price = highest[:, None] * np.minimum(level + 1, slots[:, None]) // slots[:, None]
    return SlotPrices(price, slots.copy(), np.ones(1, np.int64))


def measure(by_price: bool) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """(kind, situation, picoseconds, counts) of each case."""
    kinds = [kind for kind in KINDS if not (by_price and kind == "weighted_sampling")]
    for where, _, view, environment in views():
        prices = prices_of(environment.cell)
        cases = product(kinds, PartitionRanking, (10, 100), (False, True))
        for kind, ranking, tasks, prefers in cases:
            spec = registry.get(kind)
            scheduler = spec.build(spec.parse_options({}), environment)
            assert isinstance(scheduler, GreedyScheduler)  # it counts its work
            if by_price:
                scheduler.place_by(PriceOptions(), GivenPrices(prices))
            spent_ns, counts = [], []
            for turn in range(WARM_UP + REPEATS):
                preference = 1 + turn % (environment.catalog.sets - 1) if prefers else 0
                batch = batch_of(FIRST, tasks, preference)
                begin_ns = time.thread_time_ns()
                plan = scheduler.plan(batch, view, context(turn, ranking, environment))
                spent_ns.append(time.thread_time_ns() - begin_ns)
                counts.append(scheduler.work)
                view.withdraw(view.claim(plan.machine, plan.request))
            preferring = "prefer" if prefers else "indifferent"
            yield kind, f"{where}, {preferring}", *typical(spent_ns, counts)


def measure_patient() -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """(tasks that wait, situation, picoseconds, counts) of each case."""
    spec = registry.get("load_spreading")
    for where, slots, view, environment in views():
        for waiting, tasks in product((0, 100, 1_000, 10_000), (10, 100)):
            spent_ns, counts = [], []
            for turn in range(WARM_UP + REPEATS):
                scheduler = spec.build(spec.parse_options({"patience_s": 1.0}), environment)
                assert isinstance(scheduler, PatientScheduler)
                large = batch_of(0, waiting, 1)
                large.request[:] = slots + 1
                plan_context = context(turn, PartitionRanking.OPTIMISTIC, environment)
                scheduler.plan(large, view, plan_context)
                preference = 2 + turn % (environment.catalog.sets - 2)
                batch = batch_of(FIRST, tasks, preference)
                begin_ns = time.thread_time_ns()
                scheduler.plan(batch, view, plan_context)
                spent_ns.append(time.thread_time_ns() - begin_ns)
                counts.append(scheduler.work)
            yield f"{waiting} wait", where, *typical(spent_ns, counts)


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


def report(
    title: str,
    cases: Iterator[tuple[str, str, int, tuple[int, ...]]],
    names: list[str],
    in_use: tuple[int, ...],
) -> None:
    print(f"== {title}")
    kind, situation, true_ps, counts = zip(*cases, strict=True)
    samples = Samples(
        np.array(kind), np.array(situation), np.array(true_ps, float), np.array(counts, float)
    )
    samples.report(names, np.array(in_use))


if __name__ == "__main__":
    counted = ["plans", "tasks", "looked at", "ranked"]
    report("greedy kinds", measure(False), counted, WEIGHTS_PS)
    report("greedy kinds by price", measure(True), counted, PRICED_WEIGHTS_PS)
    report("patient", measure_patient(), [*counted, "waiting"], PATIENT_WEIGHTS_PS)
