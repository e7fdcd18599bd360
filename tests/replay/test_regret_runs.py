"""Regret of whole runs against books kept in plain dictionaries and scipy's assignment; the same
from the cell's log as from the run itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from experiments.analysis.cell_watch import observe_log
from parsync.core import events
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.codec import CORE
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.master import MasterCore
from parsync.core.participant import Participant
from parsync.metrics.regret import RegretWatch
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.steps import Step
from parsync.runtime.virtual.run import VirtualRuntime, run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.objective import UNPLACED, placement_cost
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver, CellObservers, ObservedCell
from shared_state.transaction import Transaction
from tests.fixtures.overloaded_cell import arm, failing_workload, group
from tests.replay.test_virtual_runs import ARMS, Witness

SETTLE_US, SEED = 50_000, 3
PREEMPTING = arm(
    "state_aligned",
    group("quincy", 1, options={"preemption": True}, commit_mode="all_or_nothing"),
    group(count=2),
)
COMPARED = ("aligned quality-first", "single partitions, freed at once", "omega", "mix with flow")


class Books(Witness):
    """What the cell looked like before each commit and at given instants, and everything the master
    was told."""

    def __init__(self, workload: Workload, instants: tuple[int, ...]) -> None:
        self.watch = RegretWatch(workload, SETTLE_US, SEED)
        self.workload = workload
        self.free: dict[tuple[int, int], np.ndarray] = {}
        self.answers: dict[tuple[int, int], tuple[events.CommitRequest, Any]] = {}
        self.told: list[tuple[int, Event]] = []
        self.instants = sorted(instants)
        self.cells: list[tuple[np.ndarray, dict[int, int], list[int]]] = []

    def attach(self, master: MasterCore) -> None:
        """Stand before this master, its cell observed by the watch."""
        master.cell = ObservedCell(master.cell, self.watch)
        super().__init__(master, self.workload)

    def room(self) -> np.ndarray:
        room = np.array([self.capacity[m] - self.used[m] for m in range(len(self.capacity))])
        room[sorted(self.down)] = 0
        return room

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        while self.instants and self.instants[0] <= now_us:
            submitted = self.workload.arrival_rows[
                : self.workload.arrival_offsets[
                    (self.workload.arrival_us <= self.instants.pop(0)).sum()
                ]
            ]
            waiting = [task for task in submitted.tolist() if task not in self.placed]
            self.cells.append((self.room(), dict(self.running.values()), waiting))
        self.told.append((now_us, event))
        if isinstance(event, events.CommitRequest):
            self.free[event.transaction.scheduler, event.transaction.sequence] = self.room()
        return super().handle(now_us, event)

    def commit(self, event: events.CommitRequest, effects: list[Effect]) -> None:
        super().commit(event, effects)
        reply = next(
            e.event
            for e in effects
            if isinstance(e, Send) and isinstance(e.event, events.CommitReply)
        )
        self.answers[event.transaction.scheduler, event.transaction.sequence] = (
            event,
            reply.result,
        )

    def cost(self, task: list[int] | np.ndarray, machine: list[int] | np.ndarray) -> np.ndarray:
        preference = self.workload.tasks.preference[np.array(task, np.int64)]
        return placement_cost(
            self.workload.catalog, self.workload.cell.rack, preference, np.array(machine, np.int32)
        )[0]

    def least(self, task: list[int] | np.ndarray, room: np.ndarray) -> int:
        if not len(task):
            return 0
        column = np.concatenate(
            [np.repeat(np.arange(len(room)), room), np.full(len(task), UNPLACED)]
        )
        cost = self.cost(np.repeat(task, len(column)), np.tile(column, len(task))).reshape(
            len(task), -1
        )
        return int(cost[linear_sum_assignment(cost)].sum())


def watched(
    config: ArmConfig, workload: Workload, instants: tuple[int, ...] = (), message_us: int = 0
) -> Books:
    books = Books(workload, instants)
    assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
    books.attach(assembly.master())
    agents = {index: assembly.agent(index) for index in range(assembly.arm.agents)}
    participants: dict[int, Participant] = {
        **agents,
        MASTER: books,
        WORKERS: assembly.workers(),
        COORDINATOR: assembly.coordinator(),
        ARRIVALS: assembly.arrivals(),
    }
    runtime = VirtualRuntime(participants, agents, lambda _: None, assembly.codec, message_us)
    runtime.run_until(workload.end_us + 1_000_000)
    return books


@pytest.mark.parametrize("name", COMPARED)
def test_regret_is_what_the_books_say(name: str) -> None:
    workload = failing_workload()
    message_us = 700 if name == "omega" else 0
    first = watched(ARMS[name], workload, message_us=message_us).watch.regret(workload.end_us)
    books = watched(ARMS[name], workload, tuple(row.at_us for row in first.system), message_us)
    regret = books.watch.regret(workload.end_us)
    assert regret == first
    phases = len(workload.phases)
    assert len(regret.decision) <= phases * books.watch.batches_per_phase
    assert len(regret.system) == phases * books.watch.instants_per_phase == len(books.cells)
    for row in regret.decision:
        event, result = books.answers[row.agent, row.sequence]
        task = event.transaction.task
        got = np.where(result.reason == 0, event.transaction.machine, UNPLACED)
        least = books.least(task, books.free[row.agent, row.sequence])
        assert row.regret == books.cost(task, got).sum() - least >= 0
        assert row.exact and row.tasks == len(task)
        assert row.losers == np.count_nonzero(result.reason)
    for row, (room, running, waiting) in zip(regret.system, books.cells, strict=True):
        runs = int(books.cost(list(running), list(running.values())).sum())
        waits = int(books.cost(waiting, [UNPLACED] * len(waiting)).sum())
        assert (row.running, row.waiting, row.cost) == (
            len(running),
            len(waiting),
            runs + waits,
        )
        staying = runs + books.least(waiting, room)
        held = room.copy()
        np.add.at(held, list(running.values()), 1)
        moving = books.least([*running, *waiting], held)
        assert row.without_migration == runs + waits - staying >= 0
        assert row.with_migration == runs + waits - moving >= row.without_migration
    assert sum(row.regret for row in regret.decision) > 0
    assert sum(row.with_migration for row in regret.system) > 0


@pytest.mark.parametrize("name", ARMS)
def test_watching_changes_nothing(name: str) -> None:
    workload = failing_workload()
    spec = ARMS[name].seeded(3, 1000, 50_000, live=False)
    bare = run_virtual(spec, workload, 5_000_000, lambda _: None, lambda _: None)
    watch = RegretWatch(workload, SETTLE_US, SEED)
    seen = run_virtual(spec, workload, 5_000_000, lambda _: None, lambda _: None, observer=watch)
    assert seen == bare
    regret = watch.regret(workload.end_us)
    assert all(row.regret >= 0 for row in regret.decision)
    assert all(row.with_migration >= row.without_migration >= 0 for row in regret.system)


def test_evictions_never_make_it_negative() -> None:
    workload = failing_workload()
    spec = PREEMPTING.seeded(3, 1000, 50_000, live=False)
    evictions = []

    class Counting(CellObserver):
        def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
            if transaction.evict is not None:
                evictions.append(len(transaction.evict))

    watch = RegretWatch(workload, SETTLE_US, SEED)
    both = CellObservers(watch, Counting())
    run_virtual(spec, workload, 5_000_000, lambda _: None, lambda _: None, observer=both)
    regret = watch.regret(workload.end_us)
    assert sum(evictions) > 0, "else this test shows nothing"
    assert regret.decision and all(row.regret >= 0 for row in regret.decision)
    assert all(row.with_migration >= row.without_migration >= 0 for row in regret.system)


def test_the_log_of_a_cell_tells_the_same(tmp_path: Path) -> None:
    """A cell that lived twice: its log holds both epochs, and requests to sync, which the reader
    leaves out."""
    workload, config = failing_workload(), ARMS["parsync adaptive"]
    books = watched(config, workload)
    assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
    agents = tuple(range(assembly.arm.agents))
    log = tmp_path / CELL_LOG

    def service() -> CellService:
        runtime = CellRuntime(
            CORE, assembly.master(), hosts_of({0: agents}), len(workload.tasks), lambda _: None
        )
        return CellService(runtime, log, fsync=False)

    cell = service()
    cell.start(0, ((0, "schedulers-0", agents),))
    told = [
        entry for entry in books.told if not isinstance(entry[1], events.Started | events.SampleDue)
    ]
    for number, (at_us, event) in enumerate(told, start=1):
        if number == len(told) // 2:
            cell.close()
            cell = service()
            cell.begin_epoch(at_us)
        cell.step(Step(0, 1, number, ((MASTER, event),)).to_bytes(CORE), at_us)
    cell.close()
    again = RegretWatch(workload, SETTLE_US, SEED)
    observe_log(assembly, log, again)
    assert again.regret(workload.end_us) == books.watch.regret(workload.end_us)
