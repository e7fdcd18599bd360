"""Fits the weights of the flow scheduler's counted work to this machine: `python -m
tests.benchmarks.calibrate_flow_work`.

Cells of 100 to 12,477 machines (the Google trace's; the demo's has 2,000) live through rounds of
different kinds: all waiting tasks at once, 2 to 2,000 changes, nothing but time passing, machines
lost and back, a burst; half empty, nearly full and oversubscribed; preferences as arcs or as
aggregators; with preemption; with requests that differ. Every round is timed (processor time of
`plan`, the least of REPEATS equal histories) and counted (schedulers/flow/scheduler.py). Printed:
picoseconds per count as fitted (fitting.py), what they leave for each kind of round and each cell,
and the same for the weights in use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from experiments.workloads.synthetic import SyntheticOptions, generate
from schedulers.flow.scheduler import WEIGHTS_PS, FlowScheduler, RoundWork
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from shared_state.cell import Cell, Released
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import Transaction
from shared_state.view import ClusterView
from tests.benchmarks.bench_flow_round import csr
from tests.benchmarks.fitting import Samples
from tests.flow_world import LoadSpreadingOptions, QuincyOptions, build_load_spreading, build_quincy

REPEATS = 3
RACK = 40
BATCH = 100  # tasks of one job, as in the demo


@dataclass(frozen=True, slots=True)
class Situation:
    """A cell and how full it is. running, waiting: in per cent of the slots, as the scheduler
    begins. listed: preferences of a few machines and racks each (as the Google trace's tasks), not
    of large groups (as the demo's). mixed: two resources, requests differ."""

    name: str
    machines: int
    slots: int
    running: int
    waiting: int
    listed: bool = True
    preemption: bool = False
    mixed: bool = False
    spreading: bool = False


def situations() -> Iterator[Situation]:
    for machines, slots in ((100, 10), (500, 10), (2_000, 10), (12_477, 13)):
        for load, running, waiting in (("half", 40, 10), ("high", 90, 8), ("over", 80, 23)):
            yield Situation(f"{machines} {load}", machines, slots, running, waiting)
    yield Situation("2000 demo half", 2_000, 10, 48, 2, listed=False)
    yield Situation("2000 demo high", 2_000, 10, 93, 2, listed=False)
    yield Situation("2000 demo over", 2_000, 10, 95, 10, listed=False)
    yield Situation("2000 preemption", 2_000, 10, 0, 80, preemption=True)
    yield Situation("12477 preemption", 12_477, 13, 0, 88, preemption=True)
    yield Situation("500 mixed", 500, 10, 60, 20, mixed=True)
    yield Situation("12477 mixed", 12_477, 13, 80, 5, mixed=True)
    yield Situation("2000 spreading", 2_000, 10, 50, 20, spreading=True)


def listed_catalog(machines: int, sets: int, rng: np.random.Generator) -> PreferenceCatalog:
    """Up to 6 preferred machines and 4 racks each, costs by the size of the input."""
    degree = rng.integers(1, 7, sets)
    degree[0] = 0
    racks = -(-machines // RACK)
    machine_offsets, machine = csr(degree, machines, rng)
    rack_offsets, rack = csr(np.where(degree > 0, 4, 0), racks, rng)
    size = 10 + np.floor(55 * rng.exponential(1.0, sets)).astype(np.int64)
    of_machine = (
        np.repeat(size, np.diff(machine_offsets)) * rng.integers(0, 50, len(machine)) // 100
    )
    of_rack = np.repeat(size, np.diff(rack_offsets)) * rng.integers(50, 100, len(rack)) // 100
    return PreferenceCatalog(
        machine_offsets,
        machine % machines,
        of_machine,
        rack_offsets,
        rack,
        of_rack,
        2 * size,
        2 * size + 200,
    )


class World:
    """A cell that belongs to one flow scheduler.

    Attributes:
        spent_ns: The processor time of the last round's plan.
    """

    def __init__(self, situation: Situation, **options: Any) -> None:
        s = situation
        rng = np.random.default_rng(1)
        total = s.machines * s.slots * 2 + 20_000
        rack = (np.arange(s.machines) // RACK).astype(np.int32)
        dimensions = 2 if s.mixed else 1
        size = 100 if s.mixed else 1
        capacity = np.full((s.machines, dimensions), s.slots * size, np.int64)
        names = tuple(f"resource_{r}" for r in range(dimensions))
        self.spec = CellSpec(
            names, capacity, rack, np.zeros(s.machines, np.int64), np.full(dimensions, 1000)
        )
        if s.listed:
            catalog = listed_catalog(s.machines, total + 1, rng)
            preference = np.arange(1, total + 1)
        else:
            demo = SyntheticOptions(machines=s.machines, phase_s=1.0, load_percent=(50,))
            catalog = generate(demo, seed=1).catalog
            preference = rng.integers(0, catalog.sets, total // BATCH + 1).repeat(BATCH)[:total]
        request = np.full((total, dimensions), size, np.int64)
        if s.mixed:
            request = rng.integers(50, 151, (total, dimensions))
        none = np.full(total, -1, np.int64)
        zero = np.zeros(total, np.int64)
        row = np.arange(total)
        job = row // BATCH
        self.tasks = TaskBatch(
            row,
            job,
            request,
            zero.astype(np.int32),
            zero,
            preference.astype(np.int32),
            none,
            zero.astype(np.int8),
        )
        self.partitioning = Partitioning.by_topology(self.spec, 2)
        self.cell = Cell(self.spec, self.partitioning)
        self.view = ClusterView(self.spec, self.partitioning)
        self.slots = s.machines * s.slots
        running = self.slots * s.running // 100
        slot = rng.permutation(self.slots)[:running] // s.slots
        self.cell.load(
            row[:running], slot.astype(np.int32), request[:running], np.zeros(running, np.int32)
        )
        environment = SchedulerEnvironment("flow", self.spec, self.partitioning.offsets, catalog)
        self.scheduler: FlowScheduler
        if s.spreading:
            self.scheduler = build_load_spreading(LoadSpreadingOptions(), environment)
        else:
            self.scheduler = build_quincy(
                QuincyOptions(preemption=s.preemption, **options), environment
            )
        self.rng = rng
        self.now_us = self.rounds = self.spent_ns = 0
        self.next = running
        self.offered: list[TaskBatch] = []
        self.come(self.slots * s.waiting // 100)

    def come(self, count: int) -> None:
        tasks = self.tasks.take(slice(self.next, self.next + count))
        tasks.submit_us[:] = self.now_us
        self.next += count
        self.offered.append(tasks)

    def end(self, count: int) -> None:
        held = np.sort(self.cell.allocations().allocation)
        ended = self.rng.choice(held, min(count, len(held)), replace=False)
        self._tell(ChangeKind.FINISHED, self.cell.release(ended, None, self.now_us))

    def turn(self, machine: Int64, up: bool) -> None:
        lost = self.cell.set_machines(
            machine.astype(np.int32), np.full(len(machine), up), self.now_us
        )
        self._tell(ChangeKind.LOST, lost)
        self.offered.append(self.tasks.take(np.sort(lost.task)))

    def round(self) -> None:
        """A round, and all its claims granted."""
        for p in range(self.partitioning.count):
            self.view.apply(
                self.cell.delta_since(p, int(self.view.versions[p]), self.now_us, False)
            )
        batch = TaskBatch.concatenate([TaskBatch.empty(len(self.spec.dimensions)), *self.offered])
        self.offered = []
        key = stream_key(1, "flow", self.rounds)
        context = PlanContext(
            self.now_us, key, PartitionRanking.OPTIMISTIC, np.arange(2, dtype=np.int32)
        )
        begin_ns = time.thread_time_ns()
        plan = self.scheduler.plan(batch, self.view, context)
        self.spent_ns = time.thread_time_ns() - begin_ns
        self.rounds += 1
        victims = self.cell.describe(plan.evict)
        synced = np.zeros(len(plan.task), np.int64)
        evict = plan.evict if len(plan.evict) else None
        claims = Transaction(
            0, self.rounds, plan.task, plan.machine, plan.request, synced, evict=evict
        )
        ticket = self.view.claim(plan.machine, plan.request)
        result = self.cell.commit(claims, self.now_us)
        self.view.settle(ticket, result.reason, result.version)
        assert result.accepted.all()
        changes = TaskChanges(
            ChangeKind.COMMITTED, self.now_us, plan.task, plan.machine, result.allocation
        )
        self.scheduler.observe(changes)
        self._tell(ChangeKind.EVICTED, victims)
        self.offered.append(self.tasks.take(np.sort(victims.task)))
        self.now_us += 50_000

    def _tell(self, kind: ChangeKind, gone: Released) -> None:
        self.scheduler.observe(
            TaskChanges(kind, self.now_us, gone.task, gone.machine, gone.allocation)
        )


def history(situation: Situation) -> Iterator[tuple[str, int, RoundWork]]:
    """(kind of round, nanoseconds, counts) of a fixed sequence of rounds."""
    world = World(situation)
    for kind in rounds_of(world, situation):
        yield kind, world.spent_ns, world.scheduler.work


def rounds_of(world: World, situation: Situation) -> Iterator[str]:
    """Do a fixed sequence of rounds; yields the kind of each after it."""

    def done(kind: str) -> str:
        world.round()
        return kind

    yield done("first")
    yield done("second")
    for changes in (2, 20, 200, 2_000):
        if changes > world.slots // 4:
            break
        for _ in range(6):
            world.end(changes // 2)
            world.come(changes // 2)
            yield done(f"{changes} changes")
    for _ in range(3):
        world.now_us += 2_000_000
        yield done("time passes")
    for _ in range(2):
        machine = np.sort(
            world.rng.choice(situation.machines, max(1, situation.machines // 50), replace=False)
        )
        world.turn(machine, up=False)
        yield done("machines lost")
        world.turn(machine, up=True)
        yield done("machines back")
    world.end(world.slots // 10)
    yield done("many ended")
    world.come(world.slots // 10)
    yield done("burst")


def collect() -> Samples:
    kind: list[str] = []
    place: list[str] = []
    true_ps: list[int] = []
    counts: list[tuple[int, ...]] = []
    for situation in situations():
        repeats = [list(history(situation)) for _ in range(REPEATS)]
        for equal in zip(*repeats, strict=True):
            assert all(one[2] == equal[0][2] for one in equal), (
                "counts must not depend on the machine"
            )
            kind.append(equal[0][0])
            place.append(situation.name)
            true_ps.append(min(one[1] for one in equal) * 1000)
            counts.append(astuple(equal[0][2]))
        print(f"  {situation.name}: {len(repeats[0])} rounds", file=sys.stderr)
    return Samples(
        np.array(kind), np.array(place), np.array(true_ps, float), np.array(counts, float)
    )


if __name__ == "__main__":
    collect().report([field.name for field in fields(RoundWork)], np.array(astuple(WEIGHTS_PS)))
