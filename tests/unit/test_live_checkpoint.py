"""Checkpoints of a live cell: a restart takes up the newest whole one and replays the rest;
whatever is wrong with it, the log decides."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parsync.core.addresses import MASTER
from parsync.core.codec import CORE, encode
from parsync.core.events import CommitReply, CommitRequest, SyncRequest, TasksFinished
from parsync.runtime.assembly import Assembly
from parsync.runtime.live import checkpoint as module
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.checkpoint import (
    Checkpoint,
    Checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from parsync.runtime.live.logs import CELL_LOG, Recorder, records_log
from parsync.runtime.live.plan import CELL, LiveOptions, RunPlan, plan_run
from parsync.runtime.live.steps import Step
from shared_state.errors import AgoraError
from shared_state.transaction import Transaction
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

ARM, WORKLOAD = small_arm(), small_workload(machines=40)
ASSEMBLY = Assembly.of(ARM, WORKLOAD)
HOSTS = {0: (0, 2), 1: (1, 3)}
NAMED = tuple((host, f"schedulers-{host}", agents) for host, agents in HOSTS.items())
ORIGIN_NS = 123
EVERY_BYTES = 2048
CLAIMS = 7


def plan_of(directory: Path) -> RunPlan:
    return plan_run("test", ASSEMBLY, LiveOptions(directory))


class Cell:
    """One epoch of a cell that keeps its log, its records and checkpoints in `directory`, as the
    actor would."""

    def __init__(self, directory: Path, every_bytes: int = EVERY_BYTES) -> None:
        plan = plan_of(directory)
        log = directory / CELL_LOG
        records = records_log(directory, CELL)
        self.checkpoints = Checkpoints(log, records, every_bytes, sync=False)
        self.recorder = Recorder(
            plan, CELL, metrics_of(WORKLOAD, ARM)(), records, self.checkpoints.records_end
        )
        runtime = CellRuntime(
            CORE, ASSEMBLY.master(), hosts_of(HOSTS), len(WORKLOAD.tasks), self.recorder
        )
        self.service = CellService(runtime, log, False, self.checkpoints, self.recorder.mark)
        if self.service.origin_ns is None:
            self.service.start(ORIGIN_NS, NAMED)
        else:
            self.service.begin_epoch(runtime.now_us)

    def work(self, first: int, last: int) -> bytes:
        """Steps first..last of host 0: a claim, a sync, and the end of what was placed; the last
        reply."""
        reply = b""
        for number in range(first, last + 1):
            task = number * CLAIMS + np.arange(CLAIMS)
            zero = np.zeros(CLAIMS, np.int64)
            claims = Transaction(
                0, number, task, (task % 40).astype(np.int32), np.ones((CLAIMS, 1), np.int64), zero
            )
            sync = SyncRequest(2, np.array([number % 4], np.int32), np.array([0]), False)
            held = self.service.runtime.master.cell.allocations(0).allocation[:CLAIMS]
            ended = TasksFinished(
                held, np.zeros(len(held), np.int32), np.zeros(len(held), np.int64)
            )
            events = (CommitRequest(0, claims), sync, ended)
            step = Step(0, 1, number, tuple((MASTER, event) for event in events))
            reply = self.service.step(step.to_bytes(CORE), number * 40_000)
            self.checkpoints.wait()
        return reply

    def state(self) -> tuple[bytes, ...]:
        return self.service.runtime.checkpoint()


def without_checkpoint(directory: Path, until: int) -> Cell:
    """The same work in one epoch that makes none."""
    directory.mkdir()
    cell = Cell(directory, every_bytes=1 << 40)
    cell.work(1, until)
    return cell


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a cell killed after 60 steps left."""
    cell = Cell(tmp_path)
    cell.work(1, 60)
    assert cell.checkpoints.path.exists() and not cell.checkpoints.problems
    return tmp_path


def test_a_restart_replays_only_what_no_checkpoint_holds(killed: Path, tmp_path: Path) -> None:
    cell = Cell(killed)
    assert cell.service.recovered_steps == 60 and 0 < cell.service.replayed_steps < 60
    assert cell.service.runtime.epoch == 1
    alone = without_checkpoint(tmp_path / "alone", 60)
    alone.service.begin_epoch(alone.service.runtime.now_us)
    assert cell.state() == alone.state()
    assert cell.work(61, 90) == alone.work(61, 90)
    assert cell.state() == alone.state()


def test_the_step_before_the_kill_is_answered_from_memory(tmp_path: Path) -> None:
    cell = Cell(tmp_path, every_bytes=1)
    sync = SyncRequest(2, np.array([0], np.int32), np.array([0]), False)
    request = Step(0, 1, 1, ((MASTER, sync),)).to_bytes(CORE)
    reply = cell.service.step(request, 300_000)
    cell.checkpoints.wait()
    again = Cell(tmp_path)
    assert (again.service.recovered_steps, again.service.replayed_steps) == (1, 0)
    before = again.state()
    assert again.service.step(request, 400_000) == reply
    assert again.state() == before


def test_records_are_neither_lost_nor_twice(killed: Path, tmp_path: Path) -> None:
    again = Cell(killed)
    again.work(61, 80)
    alone = without_checkpoint(tmp_path / "alone", 60)
    alone.service.begin_epoch(alone.service.runtime.now_us)
    alone.work(61, 80)
    for cell in (again, alone):
        for record in cell.service.runtime.master.finish(4_000_000):
            cell.recorder(record)
    ours, theirs = again.recorder.metrics, alone.recorder.metrics
    ours.flush()
    theirs.flush()
    assert ours.count["ended_finished"].sum() == theirs.count["ended_finished"].sum() > 70
    assert ours.snapshot(5_000_000, ()) == theirs.snapshot(5_000_000, ())
    assert not list((tmp_path / "alone").glob("*.checkpoint"))


def test_killed_again_and_again(tmp_path: Path) -> None:
    for epoch in range(6):
        Cell(tmp_path).work(1 + 20 * epoch, 20 + 20 * epoch)
    last = Cell(tmp_path)
    assert last.service.runtime.epoch == 6 and last.service.recovered_steps == 120
    everything = Cell(tmp_path, every_bytes=1 << 40)
    everything.checkpoints.path.unlink()
    assert Cell(tmp_path).service.replayed_steps == 120


def test_a_kill_before_the_new_file_has_its_name_leaves_the_old_one(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = killed / "cell.checkpoint"
    before = read_checkpoint(path)

    def killed_here(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed_here)
        with pytest.raises(KeyboardInterrupt):
            write_checkpoint(path, Checkpoint(ORIGIN_NS, 1 << 40, 0, 9, (b"half",)), sync=False)
    assert (killed / "cell.checkpoint.partial").exists()
    assert read_checkpoint(path) == before
    cell = Cell(killed)
    assert cell.service.recovered_steps == 60 and 0 < cell.service.replayed_steps < 60
    cell.work(61, 120)
    assert not (killed / "cell.checkpoint.partial").exists()


@pytest.mark.parametrize("share", [0.0, 0.004, 0.3, 0.999])
@pytest.mark.parametrize("damage", ["flipped", "cut", "longer"])
def test_a_damaged_checkpoint_is_told_and_the_log_replayed(
    killed: Path, share: float, damage: str
) -> None:
    path = killed / "cell.checkpoint"
    data = bytearray(path.read_bytes())
    at = int(share * len(data))
    if damage == "flipped":
        data[at] ^= 1
    path.write_bytes({"flipped": data, "cut": data[:at], "longer": data + data[: at + 1]}[damage])
    cell = Cell(killed)
    assert cell.service.replayed_steps == cell.service.recovered_steps == 60
    (problem,) = cell.checkpoints.problems
    assert problem.startswith(str(path)) and problem.endswith("the whole log is replayed")
    cell.work(61, 90)
    assert Cell(killed).service.replayed_steps < 60


def of_another_run(folder: Path) -> None:
    path = folder / "cell.checkpoint"
    write_checkpoint(path, replace(read_checkpoint(path), origin_ns=7), sync=False)


def log_cut_short(folder: Path) -> None:
    end = read_checkpoint(folder / "cell.checkpoint").log_end
    os.truncate(folder / CELL_LOG, end - 1)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (log_cut_short, "ahead of cell.journal"),
        (lambda folder: (folder / "cell.records").unlink(), "ahead of cell.records"),
        (of_another_run, "of another run"),
    ],
)
def test_a_checkpoint_that_does_not_fit_the_logs_is_not_used(
    killed: Path, change: Callable[[Path], None], problem: str
) -> None:
    change(killed)
    cell = Cell(killed)
    assert 50 < cell.service.replayed_steps == cell.service.recovered_steps <= 60
    assert problem in cell.checkpoints.problems[0]


def test_a_checkpoint_of_another_workload_is_refused() -> None:
    assembly = Assembly.of(ARM, small_workload(machines=20))
    runtime = CellRuntime(
        CORE, assembly.master(), hosts_of(HOSTS), len(assembly.workload.tasks), lambda _: None
    )
    whole = CellRuntime(
        CORE, ASSEMBLY.master(), hosts_of(HOSTS), len(WORKLOAD.tasks), lambda _: None
    )
    with pytest.raises(AgoraError, match="of another workload"):
        runtime.restore(whole.checkpoint())


def test_a_full_disk_keeps_the_old_checkpoint_and_the_run(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = killed / "cell.checkpoint"
    before = path.read_bytes()
    checkpoints = Checkpoints(killed / CELL_LOG, None, 1, sync=True)
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "fsync", full)
        checkpoints.write(Checkpoint(ORIGIN_NS, 1, 0, 1, (b"state",)))
        checkpoints.wait()
    assert checkpoints.problems == [f"{path}: cannot write the checkpoint: No space left on device"]
    assert path.read_bytes() == before and not (killed / "cell.checkpoint.partial").exists()


def test_checkpoints_write_at_most_four_times_what_the_log_does(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / CELL_LOG, None, 100, sync=False)
    written = 0
    for log_end in range(0, 100_000, 50):
        if checkpoints.due(log_end):
            checkpoints.write(Checkpoint(ORIGIN_NS, log_end, 0, 1, (bytes(3000),)))
            checkpoints.wait()
            written += checkpoints.path.stat().st_size
            assert written <= 4 * (log_end + 1000)
    assert written > 200_000
    checkpoints.close()
    assert not checkpoints.path.exists()


def test_what_the_master_measured_and_has_not_handed_out_is_in_it(tmp_path: Path) -> None:
    cell = Cell(tmp_path, every_bytes=1)
    cell.work(1, 3)  # ends of tasks, before the first sample
    again = Cell(tmp_path)
    left = [runtime.master.finish(0) for runtime in (cell.service.runtime, again.service.runtime)]
    assert [record.table for record in left[0]] == ["ends"]
    assert encode(tuple(left[0][0].columns.values())) == encode(tuple(left[1][0].columns.values()))


def test_the_first_reply_after_a_restart_carries_the_new_epoch(killed: Path) -> None:
    cell = Cell(killed)
    reply = cell.work(61, 61)
    decoded = [module.decode(data) for _, data in module.decode(reply)]
    assert [event.epoch for event in decoded if isinstance(event, CommitReply)] == [1]
