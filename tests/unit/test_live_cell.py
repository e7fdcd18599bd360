"""The cell's runtime and its log: a killed cell comes back as it was, and so do restarted hosts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parsync.core.addresses import ARRIVALS, MASTER, WORKERS
from parsync.core.codec import CORE, decode, encode
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    MachinesChanged,
    SyncReply,
    SyncRequest,
    TasksAdopted,
    TasksEnded,
    TasksFinished,
    TasksStarted,
)
from parsync.metrics.record import Record
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.logs import CELL_LOG, Frame, read_cell_log
from parsync.runtime.live.steps import STALE, Step
from schedulers.interface import ChangeKind
from shared_state.errors import AgoraError
from shared_state.journal import JournalError, JournalWriter
from shared_state.transaction import Reason, Transaction
from tests.fixtures.live_runs import small_arm, small_workload

ASSEMBLY = Assembly.of(small_arm(), small_workload())
HOSTS = {0: (0, 2), 1: (1, 3)}
NAMED = tuple((host, f"schedulers-{host}", agents) for host, agents in HOSTS.items())


class Run:
    """A cell with its log in `directory`, as an actor would have it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / CELL_LOG
        self.records: list[Record] = []
        runtime = CellRuntime(
            CORE,
            ASSEMBLY.master(),
            hosts_of(HOSTS),
            len(ASSEMBLY.workload.tasks),
            self.records.append,
        )
        self.service = CellService(runtime, self.path, fsync=False)
        if self.service.origin_ns is None:
            self.service.start(123, NAMED)
        else:
            self.service.begin_epoch(runtime.now_us)

    def bytes_of(self, host: int, epoch: int, number: int, *events: Event) -> bytes:
        messages = tuple((MASTER, event) for event in events)
        return Step(host, epoch, number, messages).to_bytes(CORE)

    def step(
        self, host: int, epoch: int, number: int, *events: Event, at_us: int = 0
    ) -> list[tuple[int, Event]]:
        reply = self.service.step(self.bytes_of(host, epoch, number, *events), at_us)
        assert reply != STALE
        return [(address, decode(data)) for address, data in decode(reply)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def claim(agent: int, sequence: int, tasks: list[int], machines: list[int]) -> CommitRequest:
    n = len(tasks)
    transaction = Transaction(
        agent,
        sequence,
        np.array(tasks),
        np.array(machines, np.int32),
        np.ones((n, 1), np.int64),
        np.zeros(n, np.int64),
    )
    return CommitRequest(agent, transaction)


def test_replies_wait_for_their_host(run: Run) -> None:
    messages = run.step(0, 1, 1, claim(0, 1, [5, 6], [1, 2]), at_us=10)
    assert [(address, type(event)) for address, event in messages] == [(0, CommitReply)]
    (address, started), *rest = run.step(WORKERS, 1, 1, at_us=20)
    assert address == WORKERS and not rest and isinstance(started, TasksStarted)
    assert started.task.tolist() == [5, 6] and started.start_us == 10
    assert run.step(1, 1, 1) == []


def test_a_repeated_step_changes_nothing(run: Run) -> None:
    request = run.bytes_of(0, 1, 1, claim(0, 1, [5], [1]))
    first = run.service.step(request, 10)
    assert run.service.step(request, 99) == first
    assert run.service.runtime.master.cell.used.sum() == 1


@pytest.mark.parametrize("left", [b"", b"\1\2\3"], ids=["empty", "torn"])
def test_a_cell_killed_before_its_first_frame_starts_anew(tmp_path: Path, left: bytes) -> None:
    (tmp_path / CELL_LOG).write_bytes(left)
    run = Run(tmp_path)
    assert run.service.runtime.epoch == 0 and run.service.recovered_steps == 0
    run.step(0, 1, 1, claim(0, 1, [5], [1]))
    assert Run(tmp_path).service.recovered_steps == 1


def test_a_killed_cell_comes_back_with_state_replies_and_mail(run: Run, tmp_path: Path) -> None:
    request = run.bytes_of(0, 1, 1, claim(0, 1, [5, 6], [1, 1]), claim(2, 1, [7], [1]))
    reply = run.service.step(request, 1_000_000)
    state = run.service.runtime.master.cell.state_digest()
    again = Run(tmp_path)  # nothing of the first was closed: it was killed
    assert again.service.runtime.epoch == 1
    assert again.service.recovered_steps == 1
    assert again.service.origin_ns == 123
    assert again.service.runtime.master.cell.state_digest() == state
    assert again.service.step(request, 2_000_000) == reply
    started = [event.task.tolist() for _, event in again.step(WORKERS, 1, 1, at_us=2_000_000)]
    assert started == [[5, 6], [7]]
    ((_, synced),) = again.step(
        0, 1, 2, SyncRequest(0, np.array([0], np.int32), np.array([0]), False), at_us=2_000_000
    )
    assert isinstance(synced, SyncReply) and synced.epoch == 1


def test_a_replayed_cell_records_what_it_had_recorded(run: Run, tmp_path: Path) -> None:
    for number in range(1, 8):
        run.step(0, 1, number, claim(0, number, [number], [1]), at_us=number * 100_000)
    samples = [record for record in run.records if record.table == "cell"]
    replayed = [record for record in Run(tmp_path).records if record.table == "cell"]
    assert samples
    assert encode(tuple(tuple(r.columns.values()) for r in replayed[: len(samples)])) == encode(
        tuple(tuple(r.columns.values()) for r in samples)
    )


def test_a_step_half_written_never_happened(run: Run, tmp_path: Path) -> None:
    run.step(0, 1, 1, claim(0, 1, [5], [1]))
    whole = run.path.stat().st_size
    run.step(0, 1, 2, claim(0, 2, [6], [2]))
    with run.path.open("r+b") as file:
        file.truncate(whole + 20)
    again = Run(tmp_path)
    assert again.service.recovered_steps == 1
    messages = again.step(0, 1, 2, claim(0, 2, [6], [2]))
    assert isinstance(messages[0][1], CommitReply) and messages[0][1].result.reason.tolist() == [
        Reason.ACCEPTED
    ]


def test_a_restarted_host_is_told_what_runs_and_what_lost_its_place(run: Run) -> None:
    run.step(0, 1, 1, claim(0, 1, [5, 6], [1, 2]), claim(2, 1, [7], [2]))
    run.step(1, 1, 1, claim(1, 1, [8], [2]))
    run.step(ARRIVALS, 1, 1, MachinesChanged(np.array([2], np.int32), np.array([False])))
    messages = run.step(0, 2, 1)
    told = [(address, type(event), event.task.tolist()) for address, event in messages]
    assert told == [(0, TasksAdopted, [5]), (0, TasksEnded, [6]), (2, TasksEnded, [7])]
    assert all(
        event.change == ChangeKind.LOST for _, event in messages if isinstance(event, TasksEnded)
    )
    ((address, ended),) = run.step(1, 1, 2)
    assert address == 1 and isinstance(ended, TasksEnded) and ended.task.tolist() == [8]
    assert run.step(0, 2, 2) == []


def test_never_placed_counts_neither_what_ran_nor_what_lost_its_place(run: Run) -> None:
    messages = run.step(0, 1, 1, claim(0, 1, [5, 6, 7], [1, 2, 3]))
    assert isinstance(messages[0][1], CommitReply)
    allocation = messages[0][1].result.allocation[:1]
    run.step(WORKERS, 1, 1, TasksFinished(allocation, np.zeros(1, np.int32), np.zeros(1, np.int64)))
    run.step(ARRIVALS, 1, 1, MachinesChanged(np.array([2], np.int32), np.array([False])))
    assert np.flatnonzero(~run.service.runtime.never_placed()).tolist() == [5, 6, 7]


def test_a_steps_late_twin_from_an_earlier_epoch_is_not_logged(run: Run) -> None:
    run.step(0, 2, 1)
    assert run.service.step(run.bytes_of(0, 1, 1, claim(0, 1, [5], [1])), 10) == STALE
    frames = [frame[0] for frame in read_cell_log(run.path)]
    assert frames == [Frame.HEADER, Frame.EPOCH, Frame.STEP]


def test_a_step_that_the_log_does_not_hold_is_never_acknowledged(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.step(0, 1, 1, claim(0, 1, [5], [1]))

    def full(file: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    request = run.bytes_of(0, 1, 2, claim(0, 2, [6], [2]))
    with monkeypatch.context() as disk:
        disk.setattr("os.write", full)
        with pytest.raises(JournalError, match="No space left"):
            run.service.step(request, 20)
    for _ in range(2):
        with pytest.raises(JournalError, match="No space left"):
            run.service.step(request, 30)
    assert [frame[0] for frame in read_cell_log(run.path)] == [
        Frame.HEADER,
        Frame.EPOCH,
        Frame.STEP,
    ]


def test_another_log_is_refused(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / CELL_LOG, sync=False) as writer:
        writer.append(encode((7, 8)))
    with pytest.raises(AgoraError, match="not a cell's log"):
        list(read_cell_log(tmp_path / CELL_LOG))
