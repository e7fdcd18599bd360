"""Greedy plans and view synchronisation on ParSync's cell: 200,000 slots, 20 schedulers, 20
partitions; peer: vectorised numpy.

A round is one plan of 100 tasks, or one delta, by the next of 20 schedulers in turn, so that no
view stays in the cache. Half of the slots are idle. The peer keeps plain arrays: it draws weighted
samples without replacement by exponential keys (Efraimidis and Spirakis,
2006) from the idle slots of a partition or of a preference set, and after a sync counts each
partition's idle slots and their weight anew.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from schedulers import registry
from schedulers.greedy.scheduler import GreedyScheduler
from schedulers.interface import PartitionRanking, PlanContext, Scheduler, SchedulerEnvironment
from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import PriceOptions
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView, StaticCellState

MACHINES, PARTITIONS, SCHEDULERS = 200_000, 20, 20
BATCH, SETS, LISTED = 100, 80, 2_500
CHANGED_PER_MILLE = 200
ROUNDS = 300
PRICES = 1_000  # different ones
TARGET_US = {"latency_first": 60, "quality_first, preferred machines": 150}
RANKINGS = {
    "latency_first": PartitionRanking.LATENCY_FIRST,
    "quality_first, preferred machines": PartitionRanking.QUALITY_FIRST,
    "freshest_preferred, preferred machines": PartitionRanking.FRESHEST_PREFERRED,
}
# by number of partitions: the whole cell at once, or one of twenty
SYNC_TARGET_US = {1: 2_000, PARTITIONS: 60}


class PaperCell:
    """The cell and one idle pattern per scheduler."""

    def __init__(self, partitions: int) -> None:
        rng = np.random.default_rng(1)
        score = np.exp(rng.normal(0, np.sqrt(2), MACHINES))
        self.spec = CellSpec(
            ("slots",),
            np.ones((MACHINES, 1), np.int64),
            np.arange(MACHINES, dtype=np.int32) // 40,
            (score * 1e6).astype(np.int64) + 1,
            np.array([1000]),
        )
        self.partitioning = Partitioning(np.arange(partitions + 1) * MACHINES // partitions)
        listed = [np.sort(rng.choice(MACHINES, LISTED, replace=False)) for _ in range(SETS)]
        none, nothing = np.zeros(0, np.int64), np.zeros(SETS + 2, np.int64)
        self.catalog = PreferenceCatalog(
            np.array([0, *(LISTED * k for k in range(SETS + 1))], np.int64),
            np.concatenate(listed).astype(np.int32),
            np.ones(LISTED * SETS, np.int64),
            nothing,
            none.astype(np.int32),
            none,
            np.array([0] + [10] * SETS),
            np.array([0] + [100] * SETS),
        )
        self.used = rng.integers(0, 2, (SCHEDULERS, MACHINES, 1)).astype(np.int8)

    def delta(self, partition: int, used: Any, row: Any, version: int) -> PartitionDelta:
        return PartitionDelta(
            partition, version - 1, version, version, row, used, np.ones(len(row), bool), None
        )


class Native:
    """Agora's views and schedulers."""

    def __init__(self, cell: PaperCell, kind: str) -> None:
        static_state = StaticCellState(cell.spec, cell.partitioning)
        self.views = [
            ClusterView(cell.spec, cell.partitioning, static_state=static_state)
            for _ in range(SCHEDULERS)
        ]
        for view, used in zip(self.views, cell.used, strict=True):
            for p in range(cell.partitioning.count):
                rows = cell.partitioning.rows(p)
                view.apply(
                    cell.delta(p, used[rows], np.arange(rows.stop - rows.start, dtype=np.uint32), 1)
                )
        environment = SchedulerEnvironment(
            "bench", cell.spec, cell.partitioning.offsets, cell.catalog
        )
        spec = registry.get(kind)
        self.schedulers: list[Scheduler] = [
            spec.build(spec.parse_options({}), environment) for _ in range(SCHEDULERS)
        ]
        self.order = np.arange(PARTITIONS, dtype=np.int32)

    def plan(
        self, scheduler: int, tasks: TaskBatch, ranking: PartitionRanking, stream: int
    ) -> Int32:
        context = PlanContext(0, stream, ranking, self.order)
        return self.schedulers[scheduler].plan(tasks, self.views[scheduler], context).machine

    def sync(self, scheduler: int, delta: PartitionDelta) -> None:
        self.views[scheduler].apply(delta)


class Numpy:
    """The peer: free slots per scheduler as one array, drawn from by exponential keys."""

    def __init__(self, cell: PaperCell, kind: str) -> None:
        self.limit = cell.spec.limit[:, 0]
        self.weight = cell.spec.slot_score.astype(float)
        self.free = [self.limit - used[:, 0] for used in cell.used]
        self.overlay = np.zeros(MACHINES, np.int64)
        self.offsets, self.catalog = cell.partitioning.offsets, cell.catalog
        self.count, self.sum = np.zeros(PARTITIONS, np.int64), np.zeros(PARTITIONS)
        self.rng = np.random.default_rng(1)

    def plan(
        self, scheduler: int, tasks: TaskBatch, ranking: PartitionRanking, stream: int
    ) -> Int32:
        free, n, preference = self.free[scheduler], len(tasks), tasks.preference[0]
        if ranking is PartitionRanking.LATENCY_FIRST:
            first = int(self.offsets[0])
            idle = np.flatnonzero(free[first : self.offsets[1]] > 0) + first
            keys = self.rng.exponential(size=len(idle)) / self.weight[idle]
        else:
            listed = self.catalog.machine[
                self.catalog.machine_offsets[preference] : self.catalog.machine_offsets[
                    preference + 1
                ]
            ]
            idle = listed[free[listed] > 0]
            keys = self.rng.random(len(idle))
        return idle[np.argpartition(keys, n)[:n]].astype(np.int32)

    def sync(self, scheduler: int, delta: PartitionDelta) -> None:
        first, end = self.offsets[delta.partition], self.offsets[delta.partition + 1]
        row = first + delta.row.astype(np.int64)
        free = self.free[scheduler]
        free[row] = np.where(delta.up, self.limit[row] - delta.used[:, 0] - self.overlay[row], -1)
        idle = free[first:end] > 0
        self.count[delta.partition] = np.count_nonzero(idle)
        self.sum[delta.partition] = self.weight[first:end] @ idle


def batch_of(preference: int) -> TaskBatch:
    zero = np.zeros(BATCH, np.int64)
    return TaskBatch(
        np.arange(BATCH, dtype=np.int64),
        zero,
        np.ones((BATCH, 1), np.int64),
        zero.astype(np.int32),
        zero,
        np.full(BATCH, preference, np.int32),
        zero - 1,
        zero.astype(np.int8),
    )


class ByPrice(Native):
    """Agora's views, and random schedulers that place by price: each machine has its own."""

    def __init__(self, cell: PaperCell, kind: str) -> None:
        super().__init__(cell, kind)
        price = np.random.default_rng(5).integers(0, PRICES, (MACHINES, 1))
        slots, unit = np.ones(MACHINES, np.int64), np.ones(1, np.int64)
        for scheduler in self.schedulers:
            assert isinstance(scheduler, GreedyScheduler)
            scheduler.place_by(PriceOptions(), GivenPrices(SlotPrices(price, slots, unit)))


class GivenPrices:
    """An estimator that costs nothing: the placing alone is measured."""

    operations = 0

    def __init__(self, prices: SlotPrices) -> None:
        self._prices = prices

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        pass

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        return self._prices


@pytest.mark.parametrize(
    "party", [pytest.param(Native, id="random"), pytest.param(ByPrice, id="by price")]
)
@pytest.mark.parametrize("case", list(RANKINGS))
def test_plan_by_price(benchmark: Any, case: str, party: Any) -> None:
    """A placement by price may cost 10 % more than a random one, and freshest-preferred no more
    than quality-first."""
    benchmark.group = f"place: 100 tasks at random or by price, 200,000 slots, {case}"
    cell = PaperCell(PARTITIONS)
    placer = party(cell, "random")
    ranking = RANKINGS[case]
    latency = ranking is PartitionRanking.LATENCY_FIRST

    def plan(turn: int) -> None:
        tasks = batch_of(0 if latency else 1 + turn % SETS)
        placer.plan(turn % SCHEDULERS, tasks, ranking, stream_key(1, "bench", turn))

    for turn in range(SCHEDULERS * SETS):  # what a scheduler keeps of a set is made once
        plan(turn)
    turns = itertools.count(1)
    benchmark.pedantic(plan, setup=lambda: ((next(turns),), {}), rounds=ROUNDS)


PARTIES = [pytest.param(Native, id="agora"), pytest.param(Numpy, id="numpy")]


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("case", list(TARGET_US))
def test_plan(benchmark: Any, case: str, party: Any) -> None:
    benchmark.group = f"place: 100 tasks by weight, 200,000 slots, {case}"
    cell = PaperCell(PARTITIONS)
    placer = party(cell, "weighted_sampling")
    ranking = RANKINGS[case]
    latency = ranking is PartitionRanking.LATENCY_FIRST
    turn = 0
    plans: list[tuple[int, Int32]] = []

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        nonlocal turn
        turn += 1
        tasks = batch_of(0 if latency else 1 + turn % SETS)
        return (turn % SCHEDULERS, tasks, ranking, stream_key(1, "bench", turn)), {}

    def run(scheduler: int, *rest: Any) -> None:
        plans.append((scheduler, placer.plan(scheduler, *rest)))

    benchmark.pedantic(run, setup=setup, rounds=ROUNDS)
    if party is Native:
        benchmark.extra_info.update(unit="us", target=TARGET_US[case])
    for scheduler, machine in plans:
        assert len(np.unique(machine)) == BATCH and not cell.used[scheduler, machine].any()


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("partitions", list(SYNC_TARGET_US))
def test_sync(benchmark: Any, partitions: int, party: Any) -> None:
    rows = MACHINES // partitions
    changed = rows * CHANGED_PER_MILLE // 1000
    benchmark.group = f"view: sync of {rows:,} rows, {changed:,} changed"
    cell = PaperCell(partitions)
    placer = party(cell, "random")
    rng = np.random.default_rng(2)
    turn = 0
    used = cell.used[:, :, 0]

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        nonlocal turn
        scheduler, partition = turn % SCHEDULERS, turn // SCHEDULERS % partitions
        version = 2 + turn // (SCHEDULERS * partitions)
        turn += 1
        row = np.sort(rng.choice(rows, changed, replace=False)).astype(np.uint32)
        machine = partition * rows + row
        used[scheduler, machine] ^= 1
        return (scheduler, cell.delta(partition, used[scheduler, machine, None], row, version)), {}

    benchmark.pedantic(placer.sync, setup=setup, rounds=ROUNDS if partitions > 1 else ROUNDS // 5)
    if party is Native:
        benchmark.extra_info.update(unit="us", target=SYNC_TARGET_US[partitions])


def test_the_peer_syncs_alike() -> None:
    cell = PaperCell(PARTITIONS)
    ours, theirs = Native(cell, "random"), Numpy(cell, "random")
    rng = np.random.default_rng(3)
    for scheduler in range(3):
        row = np.sort(rng.choice(MACHINES // PARTITIONS, 2_000, replace=False)).astype(np.uint32)
        delta = cell.delta(4, rng.integers(0, 2, (2_000, 1)).astype(np.int8), row, 2)
        ours.sync(scheduler, delta)
        theirs.sync(scheduler, delta)
        assert np.array_equal(ours.views[scheduler].free[:, 0], theirs.free[scheduler])
