"""The live runtime's logs, written by a run without Ray on a hand-driven clock: they replay to equal effects, and a changed log does not."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import pytest

from parsync.core.codec import decode, encode
from parsync.core.events import ARRIVALS, MASTER, WORKERS
from parsync.runtime import replay
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.assembly_file import ASSEMBLY_FILE, read_assembly, write_assembly
from parsync.runtime.live.cell import CELL_LOG, CellService, CellStage, Frame, hosts_of
from parsync.runtime.live.handled_log import HandledLog
from parsync.runtime.live.loop import to_master
from parsync.runtime.live.stage import Stage, ignore_record
from parsync.runtime.live.steps import StepClient
from shared_state.journal import JournalWriter, read_journal
from tests.fixtures.live_runs import mixed_arm, small_workload

HOSTS = {0: (0, 1), 1: (2,)}
NAMES = {0: "schedulers-0", 1: "flow"}
TICK_US = 25_000
HEADER = encode((int(Frame.HEADER), 1, tuple((host, NAMES[host], agents) for host, agents in HOSTS.items())))


class HandClock:
    us = 0

    def now_us(self) -> int:
        return self.us


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The logs of one run: two hosts, one of them a flow scheduler's, stepping in turn; the cell is killed once."""
    assembly = Assembly.of(mixed_arm(), small_workload(phase_s=0.4, machines=60))
    write_assembly(tmp_path, assembly)
    clock = HandClock()

    def cell() -> CellService:
        stage = CellStage(assembly.master(), hosts_of(HOSTS), len(assembly.workload.tasks), ignore_record)
        return CellService(stage, tmp_path / CELL_LOG, fsync=False)

    service = cell()
    service.start(0, tuple((host, NAMES[host], agents) for host, agents in HOSTS.items()))
    logs = {host: HandledLog(tmp_path / f"{NAMES[host]}-7.journal", fsync=False) for host in HOSTS}
    stages = {
        host: Stage({agent: assembly.agent(agent) for agent in agents}, clock, ignore_record, logs[host].handled)
        for host, agents in HOSTS.items()
    }
    stages[WORKERS] = Stage({WORKERS: assembly.workers()}, clock, ignore_record)
    source = Stage({ARRIVALS: assembly.arrivals()}, clock, ignore_record)
    clients = {host: StepClient(host, 7, lambda request: service.step(request, clock.us)) for host in stages}
    for stage in (*stages.values(), source):
        stage.start()
    host_of = {agent: host for host, agents in HOSTS.items() for agent in agents}
    for tick in range(60):
        clock.us = tick * TICK_US
        if tick == 20:
            service = cell()
            service.begin_life(clock.us)
        source.advance()
        for send in source.take_outgoing(0):
            assert send.to != MASTER
            stages[host_of[send.to]].deliver(send.to, send.event)
        for host, stage in stages.items():
            stage.advance()
            for address, event in clients[host].step(to_master(stage.take_outgoing(tick))):
                stage.deliver(address, event)
            stage.advance()
    service.close()
    for log in logs.values():
        log.close()
    return tmp_path


def test_the_logs_of_cell_and_agents_replay(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replayed = replay.replay(directory)
    assert replayed.divergence is None
    assert replayed.lives == 2 and replayed.agent_events > 100
    assert replayed.counts.accepted == replayed.counts.submitted == len(read_assembly(directory).workload.tasks)
    assert replay.main([str(directory)]) == 0
    assert capsys.readouterr().out.startswith("ok: ")


def rewrite(path: Path, change: int, by: object) -> None:
    """Put another frame in place of one."""
    frames = list(read_journal(path))
    frames[change] = encode(by)
    path.unlink()
    with JournalWriter(path, sync=False) as writer:
        for frame in frames:
            writer.append(frame)


def test_a_changed_step_is_the_first_divergence(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / CELL_LOG
    frames = [decode(payload) for payload in read_journal(path)]
    busy = next(i for i, frame in enumerate(frames) if frame[0] == Frame.STEP and i > 50 and len(frame[2]) > 300)
    kind, at_us, request, digest = frames[busy]
    rewrite(path, busy, (kind, at_us + 1, request, digest))
    assert replay.main([str(directory)]) == 1
    assert f"frame {busy}, at {at_us + 1} us" in capsys.readouterr().out


def test_a_changed_agent_event_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / "schedulers-0-7.journal"
    entry, _ = decode(list(read_journal(path))[40])
    rewrite(path, 40, (entry, b"another!"))
    assert replay.main([str(directory)]) == 1
    assert "schedulers-0-7.journal: event 41" in capsys.readouterr().out


def test_a_corrupt_log_is_refused_with_its_place(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((directory / CELL_LOG).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (directory / CELL_LOG).write_bytes(data)
    assert replay.main([str(directory)]) == 2
    assert "corrupt at byte" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"", "Ran out of input"),
        (b"not a pickle", "cannot read"),
        (pickle.dumps(pytest.fail), "has no place in it"),
        (pickle.dumps({}), "not what a run was made of"),
    ],
)
def test_what_is_not_an_assembly_is_refused(
    directory: Path, payload: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / ASSEMBLY_FILE).write_bytes(hashlib.blake2b(payload, digest_size=16).digest() + payload)
    assert replay.main([str(directory)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("place", [0, 5, 500, -1])
def test_a_damaged_assembly_is_refused(directory: Path, place: int, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((directory / ASSEMBLY_FILE).read_bytes())
    data[place] ^= 0x55
    (directory / ASSEMBLY_FILE).write_bytes(data)
    assert replay.main([str(directory)]) == 2
    assert f"{ASSEMBLY_FILE}: damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ([], "holds nothing"),
        ([b"no codec"], "frame 0 is not a cell's"),
        ([encode(())], "frame 0: not a cell's log"),
        ([encode((int(Frame.HEADER), 1))], "frame 0: not a cell's log"),
        ([encode((int(Frame.HEADER), 1, 7))], "frame 0: not a cell's log"),
        ([encode((int(Frame.HEADER), 1, (7,)))], "frame 0: not the hosts"),
        ([encode((int(Frame.HEADER), 1, ((0, "flow", 2),)))], "frame 0: not the hosts"),
        ([encode((int(Frame.HEADER), 1, ((0, "/", (0, 1, 2)),)))], "frame 0: not the hosts"),
        ([encode((int(Frame.HEADER), 1, ((0, "schedulers-0", (0, 1, 9)),)))], "frame 0: the hosts of another run"),
        ([HEADER, encode((int(Frame.STEP), 1))], "frame 1: not a cell's log"),
        ([HEADER, encode((int(Frame.STEP), 1, (), b""))], "frame 1: not a cell's log"),
        ([HEADER, encode((int(Frame.STEP), 1, encode(7), b""))], "frame 1: not a step"),
        ([HEADER, encode((int(Frame.STEP), 1, encode((0, "1", 2, ())), b""))], "frame 1: not a step"),
        ([HEADER, encode((99, 1, 2, 3))], "frame 1: not a cell's log"),
    ],
)
def test_what_is_not_a_cells_log_is_refused(
    directory: Path, frames: list[bytes], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / CELL_LOG).unlink()
    with JournalWriter(directory / CELL_LOG, sync=False) as writer:
        for frame in frames:
            writer.append(frame)
    assert replay.main([str(directory)]) == 2
    said = capsys.readouterr().err
    assert f"{CELL_LOG}: {says}" in said and len(said.splitlines()) == 1


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    assert replay.main([str(tmp_path)]) == 2
