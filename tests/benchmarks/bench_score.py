"""Plans of the scoring kinds on 12,500 machines, a cell of the size of that of Google's 2011 trace;
peer: the greedy kind load_spreading on the same tasks and views.

A round is one plan of 100 tasks of a job, two resources, by the next of eight schedulers in turn,
so that no view stays in the cache. Half of each machine is used on average. Tasks have no
preferences, or a set that lists 1,250 machines at two costs and four racks.

Whole runs: committed tasks per second of processor time where each task is a round
(`round_tasks = 1`), four schedulers on the demo's cell of 2,000 machines; the same peer.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

from experiments.config.presets import demo_scale, optimistic
from experiments.workloads.synthetic import generate
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig
from schedulers import registry
from schedulers.interface import PartitionRanking, PlanContext, Scheduler, SchedulerEnvironment
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import NO_GANG, CellSpec, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView, StaticCellState

MACHINES, RACK, PARTITIONS, SCHEDULERS = 12_500, 50, 8, 8
BATCH, LISTED, ROUNDS, WARM_UP = 100, 1_250, 200, 16
CAPACITY = np.array([16_000, 65_536])  # millicores and MiB
REQUEST = np.array([500, 2_048])
PEER = "load_spreading"
KINDS = ("kubernetes", "swarmkit", "nomad", "stranded")


class Site:
    """Schedulers of a kind, each with its own view of the cell."""

    def __init__(self, kind: str, machines: int = MACHINES, load: float = 0.5) -> None:
        rng = np.random.default_rng(1)
        spec = CellSpec(
            ("cpu_milli", "mem_mib"),
            np.tile(CAPACITY, (machines, 1)),
            np.arange(machines, dtype=np.int32) // RACK,
            np.zeros(machines, np.int64),
            np.array([1000, 1000]),
        )
        partitioning = Partitioning.by_topology(spec, PARTITIONS)
        cell = Cell(spec, partitioning)
        share = np.clip(rng.normal(load, 0.25, (machines, 2)), 0, 0.98)
        used = (share * CAPACITY).astype(np.int64) + 1
        none = np.zeros(machines, np.int32)
        cell.load(np.arange(machines), np.arange(machines, dtype=np.int32), used, none)
        listed = np.sort(rng.choice(machines, LISTED, replace=False)).astype(np.int32)
        of_sets = np.array([0, 0, LISTED]), np.array([0, 0, 4])
        catalog = PreferenceCatalog(
            of_sets[0],
            listed,
            (np.arange(LISTED) % 2) * 10,
            of_sets[1],
            np.arange(4, dtype=np.int32) * 7,
            np.full(4, 50),
            np.array([0, 100]),
            np.array([0, 1_000]),
        )
        static_state = StaticCellState(spec, partitioning)
        found = registry.get(kind)
        self.views, self.schedulers = [], list[Scheduler]()
        for number in range(SCHEDULERS):
            view = ClusterView(spec, partitioning, static_state=static_state)
            for p in range(PARTITIONS):
                view.apply(cell.snapshot(p, 1, False))
            self.views.append(view)
            environment = SchedulerEnvironment(
                f"bench-{number}", spec, partitioning.offsets, catalog
            )
            self.schedulers.append(found.build(found.parse_options({}), environment))
        self.order = np.arange(PARTITIONS, dtype=np.int32)

    def plan(self, turn: int, tasks: TaskBatch) -> None:
        """Plan a batch, and forget the plan."""
        context = PlanContext(
            turn, stream_key(1, "bench", turn), PartitionRanking.OPTIMISTIC, self.order
        )
        number = turn % SCHEDULERS
        self.schedulers[number].plan(tasks, self.views[number], context)


def batch_of(tasks: int, preference: int, turn: int) -> TaskBatch:
    """Tasks of one job; ids and jobs come back after a while, as in a run tasks end."""
    zero = np.zeros(tasks, np.int64)
    return TaskBatch(
        turn % 160 * tasks + np.arange(tasks),
        zero + turn % 160,
        np.tile(REQUEST, (tasks, 1)),
        zero.astype(np.int32),
        zero,
        np.full(tasks, preference, np.int32),
        zero + NO_GANG,
        zero.astype(np.int8),
    )


@pytest.mark.parametrize("party", ["agora", PEER])
@pytest.mark.parametrize("preference", [0, 1], ids=["no preferences", "preferences"])
@pytest.mark.parametrize("kind", KINDS)
def test_score(benchmark: Any, kind: str, preference: int, party: str) -> None:
    prefers = "preferences" if preference else "no preferences"
    benchmark.group = f"score: {kind}, tasks/s in batches of {BATCH}, 12,500 machines, {prefers}"
    site = Site(kind if party == "agora" else party)
    for turn in range(WARM_UP):
        site.plan(turn, batch_of(BATCH, preference, turn))
    turns = itertools.count(WARM_UP)

    def setup() -> tuple[tuple[int, TaskBatch], dict[str, Any]]:
        turn = next(turns)
        return (turn, batch_of(BATCH, preference, turn)), {}

    benchmark.pedantic(site.plan, setup=setup, rounds=ROUNDS)
    if party == "agora":
        benchmark.extra_info.update(unit="tasks/s", amount=BATCH)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("kind", [*KINDS, PEER])
def test_one_by_one(benchmark: Any, kind: str) -> None:
    benchmark.group = f"score: {kind}, whole runs, a task per round, tasks/s"
    scale = demo_scale(quick=False)
    workload = generate(scale.synthetic.model_copy(update={"phase_s": 1.5}), 1)
    protocol = optimistic("state_aligned", 0.1, round_tasks=1)
    decision = scale.equal_capacity(4)
    group = GroupConfig(name=kind, kind=kind, count=4, protocol=protocol, decision=decision)
    spec = ArmConfig(name=kind, partitions=8, groups=(group,)).seeded(1, 1000, 100_000, live=False)

    def run() -> None:
        assert run_virtual(spec, workload, 10_000_000, lambda _: None, lambda _: None).drained

    benchmark.pedantic(run, rounds=3)
    benchmark.extra_info.update(unit="tasks/s", amount=len(workload.tasks))
