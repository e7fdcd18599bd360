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
from parsync.core.addresses import MASTER
from parsync.core.codec import CORE
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.metrics.kinds.regret import RegretWatch
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.steps import Step
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.objective import UNPLACED, placement_cost
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver, CellObservers
from shared_state.transaction import Transaction
from tests.fixtures.overloaded_cell import arm, failing_workload, group
from tests.fixtures.watched_runs import WatchedRun, Witness
from tests.replay.test_virtual_runs import ARMS

SETTLE_US, SEED = 50_000, 3
PREEMPTING = arm(
    "state_aligned",
    group("flow", 1, options={"preemption": True}, commit_mode="all_or_nothing"),
    group(count=2),
)
COMPARED = ("aligned quality-first", "single partitions, freed at once", "omega", "mix with flow")


class Books(Witness):
    """What the cell looked like before each commit and at given instants, and everything the master
    was told."""

    def __init__(
        self, master: Any, workload: Workload, watch: RegretWatch, instants: tuple[int, ...]
    ) -> None:
        super().__init__(master, workload)
        self.workload, self.watch = workload, watch
        self.free: dict[tuple[int, int], np.ndarray] = {}
        self.answers: dict[tuple[int, int], tuple[Transaction, Any]] = {}
        self.told: list[tuple[int, Event]] = []
        self.instants = sorted(instants)
        self.cells: list[tuple[np.ndarray, dict[int, int], list[int]]] = []

    def room(self) -> np.ndarray:
        room = np.array([self.capacity[m] - self.used[m] for m in range(len(self.capacity))])
        room[sorted(self.down)] = 0
        return room

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        while self.instants and self.instants[0] <= now_us:
            arrived = (self.workload.arrival_us <= self.instants.pop(0)).sum()
            submitted = self.workload.arrival_rows[: self.workload.arrival_offsets[arrived]]
            waiting = [task for task in submitted.tolist() if task not in self.placed]
            self.cells.append((self.room(), dict(self.running.values()), waiting))
        self.told.append((now_us, event))
        if isinstance(event, events.CommitRequest):
            self.free[event.transaction.scheduler, event.transaction.sequence] = self.room()
        return super().handle(now_us, event)

    def commit(self, event: events.CommitRequest, answers: list[Event]) -> None:
        super().commit(event, answers)
        asked = event.transaction
        [reply] = [one for one in answers if isinstance(one, events.CommitReply)]
        self.answers[asked.scheduler, asked.sequence] = asked, reply.result

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
    watch = RegretWatch(workload, SETTLE_US, SEED)
    run = WatchedRun(config, workload, observer=watch)
    books = run.master = Books(run.master, workload, watch, instants)
    run.run(workload.end_us + 1_000_000, message_us)
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
        asked, result = books.answers[row.agent, row.sequence]
        task = asked.task
        got = np.where(result.reason == 0, asked.machine, UNPLACED)
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


@pytest.mark.parametrize("config", [ARMS["mix with flow"], PREEMPTING], ids=["mix", "evictions"])
def test_watching_changes_nothing_and_no_regret_is_negative(config: ArmConfig) -> None:
    workload = failing_workload()
    spec = config.seeded(3, 1000, 50_000, live=False)
    evicted: list[int] = []

    class Counting(CellObserver):
        def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
            if transaction.evict is not None:
                evicted.append(len(transaction.evict))

    bare = run_virtual(spec, workload, 5_000_000, lambda _: None, lambda _: None)
    watch = RegretWatch(workload, SETTLE_US, SEED)
    both = CellObservers(watch, Counting())
    assert bare == run_virtual(
        spec, workload, 5_000_000, lambda _: None, lambda _: None, observer=both
    )
    regret = watch.regret(workload.end_us)
    assert (sum(evicted) > 0) == (config is PREEMPTING)
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
