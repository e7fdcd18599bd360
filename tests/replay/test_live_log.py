"""The live runtime's logs, written by a run without Ray on a hand-driven clock: they replay to
equal effects, and a changed log does not."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import pytest

from parsync.core.codec import decode, encode
from parsync.core.events import ARRIVALS, COORDINATOR, MASTER, WORKERS, Participant
from parsync.runtime import replay
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.assembly_file import ASSEMBLY_FILE, read_assembly, write_assembly
from parsync.runtime.live.cell import CELL_LOG, CellService, CellStage, Frame, hosts_of
from parsync.runtime.live.handled_log import HandledLog, handled_log
from parsync.runtime.live.loop import to_master
from parsync.runtime.live.stage import Stage, ignore_record
from parsync.runtime.live.steps import StepClient
from shared_state.journal import JournalWriter, read_journal
from tests.fixtures.live_runs import mixed_arm, small_workload

HOSTS = {0: (0, 1), 1: (2,)}
NAMES = {
    0: "schedulers-0",
    1: "flow",
    WORKERS: "workers",
    ARRIVALS: "source",
    COORDINATOR: "coordinator",
}
LIFE = 7
TICK_US = 25_000
HEADER = encode(
    (int(Frame.HEADER), 1, tuple((host, NAMES[host], agents) for host, agents in HOSTS.items()))
)


class HandClock:
    us = 0

    def now_us(self) -> int:
        return self.us


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The logs of one run: two hosts, one of them a flow scheduler's, worker pool, source and
    coordinator step in turn; the cell is killed once."""
    assembly = Assembly.of(mixed_arm(), small_workload(phase_s=0.4, machines=60))
    write_assembly(tmp_path, assembly)
    clock = HandClock()

    def cell() -> CellService:
        stage = CellStage(
            assembly.master(), hosts_of(HOSTS), len(assembly.workload.tasks), ignore_record
        )
        return CellService(stage, tmp_path / CELL_LOG, fsync=False)

    service = cell()
    service.start(0, tuple((host, NAMES[host], agents) for host, agents in HOSTS.items()))
    cores: dict[int, dict[int, Participant]] = {
        host: {agent: assembly.agent(agent) for agent in agents} for host, agents in HOSTS.items()
    }
    cores[WORKERS] = {WORKERS: assembly.workers()}
    cores[ARRIVALS] = {ARRIVALS: assembly.arrivals()}
    cores[COORDINATOR] = {COORDINATOR: assembly.coordinator()}
    logs = {host: HandledLog(handled_log(tmp_path, NAMES[host], LIFE)) for host in cores}
    stages = {host: Stage(cores[host], clock, ignore_record, logs[host].handled) for host in cores}
    clients = {
        host: StepClient(host, LIFE, lambda request: service.step(request, clock.us))
        for host in cores
    }
    for stage in stages.values():
        stage.start()
    source, coordinator = stages.pop(ARRIVALS), stages.pop(COORDINATOR)
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
        coordinator.advance()
        announced = coordinator.take_outgoing(0)
        clients[COORDINATOR].step([send.event for send in announced if send.to == MASTER])
        for send in announced:
            if send.to != MASTER:
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


def test_every_log_replays(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replayed = replay.replay(directory)
    assert replayed.divergence is None
    assert replayed.lives == 2 and set(replayed.events) == set(NAMES.values())
    assert replayed.events["coordinator"] == 3 and min(replayed.events.values()) == 3, (
        replayed.events
    )
    assert sum(replayed.events.values()) > 300
    assert (
        replayed.counts.accepted
        == replayed.counts.submitted
        == len(read_assembly(directory).workload.tasks)
    )
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


def test_a_changed_step_is_the_first_divergence(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / CELL_LOG
    frames = [decode(payload) for payload in read_journal(path)]
    busy = next(
        i
        for i, frame in enumerate(frames)
        if frame[0] == Frame.STEP and i > 50 and len(frame[2]) > 300
    )
    kind, at_us, request, digest = frames[busy]
    rewrite(path, busy, (kind, at_us + 1, request, digest))
    assert replay.main([str(directory)]) == 1
    assert f"frame {busy}, at {at_us + 1} us" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(NAMES.values()))
def test_other_effects_of_any_core_are_found(
    directory: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = handled_log(directory, name, LIFE)
    frames = list(read_journal(path))
    place = min(40, len(frames) - 1)
    entry, _ = decode(frames[place])
    rewrite(path, place, (entry, b"another!"))
    assert replay.main([str(directory)]) == 1
    assert f"{path.name}: event {place + 1}" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(set(NAMES.values()) - {"coordinator"}))
def test_events_left_out_of_any_log_are_found(directory: Path, name: str) -> None:
    """A core that missed them is in another state, which shows sooner or later."""
    path = handled_log(directory, name, LIFE)
    frames = list(read_journal(path))
    path.unlink()
    with JournalWriter(path, sync=False) as writer:
        for frame in frames[:2] + frames[len(frames) // 2 :]:
            writer.append(frame)
    assert replay.main([str(directory)]) == 1


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "event 1: not one of an actor's log"),
        (encode(7), "event 1: not one of an actor's log"),
        (encode((encode((99, 0, 1)), b"")), "event 1: of another actor's log"),
        (encode((encode((WORKERS, "0", 1)), b"")), "event 1: of another actor's log"),
    ],
)
def test_what_is_not_an_actors_log_is_refused(
    directory: Path, frame: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = handled_log(directory, "workers", LIFE)
    path.unlink()
    with JournalWriter(path, sync=False) as writer:
        writer.append(frame)
    assert replay.main([str(directory)]) == 2
    assert f"{path.name}: {says}" in capsys.readouterr().err


def test_a_corrupt_log_is_refused_with_its_place(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    (directory / ASSEMBLY_FILE).write_bytes(
        hashlib.blake2b(payload, digest_size=16).digest() + payload
    )
    assert replay.main([str(directory)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("place", [0, 5, 500, -1])
def test_a_damaged_assembly_is_refused(
    directory: Path, place: int, capsys: pytest.CaptureFixture[str]
) -> None:
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
        (
            [encode((int(Frame.HEADER), 1, ((0, "schedulers-0", (0, 1, 9)),)))],
            "frame 0: the hosts of another run",
        ),
        ([HEADER, encode((int(Frame.STEP), 1))], "frame 1: not a cell's log"),
        ([HEADER, encode((int(Frame.STEP), 1, (), b""))], "frame 1: not a cell's log"),
        ([HEADER, encode((int(Frame.STEP), 1, encode(7), b""))], "frame 1: not a step"),
        (
            [HEADER, encode((int(Frame.STEP), 1, encode((0, "1", 2, ())), b""))],
            "frame 1: not a step",
        ),
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
