"""The live runtime's logs, written by a run without Ray on a hand-driven clock: they replay to
equal effects, and a changed log does not."""

from __future__ import annotations

import pickle
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from experiments.commands import replay
from parsync.core.addresses import MASTER, WORKERS
from parsync.core.codec import decode, encode
from parsync.protocols import registry as protocols
from parsync.protocols.spec import NoOptions
from parsync.runtime.arm_directory import ENDED_FILE, OLD_FILE, read_assembly, write_end
from parsync.runtime.live.logs import CELL_LOG, Frame, handled_log, log_ends
from parsync.spec.arm import ProtocolChoice
from shared_state.journal import JournalWriter, read_journal
from tests.fixtures.changed import changed
from tests.fixtures.commands import agora
from tests.fixtures.hand_driven_run import EPOCH, HEADER, NAMES, write_run
from tests.fixtures.live_runs import mixed_arm
from tests.fixtures.pickles import MakesAFile


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of one run in which the cell is killed once."""
    directory = tmp_path_factory.mktemp("whole")
    write_run(directory)
    return directory


@pytest.fixture
def directory(whole_run: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(whole_run, tmp_path / "log"))


def told(directory: Path, status: int) -> str:
    """What `agora replay` says of it, which ends with this status."""
    ended = agora("replay", directory)
    assert ended.returncode == status, ended
    return ended.stdout or ended.stderr


def test_every_log_replays(directory: Path) -> None:
    replayed = replay.replay(directory)
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.end is not None and replayed.end.stopped == ""
    assert replayed.epochs == 2 and set(replayed.events) == set(NAMES.values())
    assert replayed.events["coordinator"] == 3 and min(replayed.events.values()) == 3, (
        replayed.events
    )
    assert sum(replayed.events.values()) > 300
    assembly, _ = read_assembly(directory)
    assert replayed.counts is not None
    assert replayed.counts.accepted == replayed.counts.submitted == len(assembly.workload.tasks)
    assert told(directory, 0).startswith(f"{directory}: ok: ")


def test_a_protocol_with_a_participant_beside_the_cell_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lottery of examples/ shares the cell with a flow scheduler."""
    built_in = {**protocols.BUILT_IN, "lottery": "examples.protocols.lottery:SPEC"}
    monkeypatch.setattr(protocols, "_GROUP", replace(protocols._GROUP, built_in=built_in))
    arm = mixed_arm()
    lottery = changed(arm.groups[0], name="lottery", kind=None)
    lottery = changed(lottery, protocol=ProtocolChoice(kind="lottery", options=NoOptions()))
    write_run(tmp_path, changed(arm, groups=(lottery, arm.groups[1])))
    replayed = replay.replay(tmp_path)
    assert replayed.divergence is None and replayed.gaps == () and replayed.epochs == 2
    assembly, _ = read_assembly(tmp_path)
    assert replayed.counts is not None
    assert replayed.counts.accepted == replayed.counts.submitted == len(assembly.workload.tasks)
    path = handled_log(tmp_path, "schedulers-0", EPOCH)
    frames = list(read_journal(path))
    drawn = next(
        place
        for place, frame in enumerate(frames)
        if type(assembly.codec.decode(decode(frame)[0])[2]).__name__ == "Drawn"
    )
    write_log(path, frames[:drawn] + frames[drawn + 1 :])
    assert f"{path.name}: event " in told(tmp_path, 1)


def log_of(directory: Path, name: str) -> Path:
    return directory / CELL_LOG if name == "cell" else handled_log(directory, name, EPOCH)


def write_frames(path: Path, frames: list[bytes]) -> None:
    """Put another log in place of one."""
    path.unlink(missing_ok=True)
    with JournalWriter(path, sync=False) as writer:
        for frame in frames:
            writer.append(frame)


def write_log(path: Path, frames: list[bytes]) -> None:
    """Put another log in place of one, as if the run had ended with it."""
    write_frames(path, frames)
    write_end(path.parent, log_ends(path.parent), "")


def rewrite(path: Path, change: int, by: object) -> None:
    """Put another frame in place of one."""
    frames = list(read_journal(path))
    frames[change] = encode(by)
    write_log(path, frames)


def test_a_changed_step_is_the_first_divergence(directory: Path) -> None:
    path = directory / CELL_LOG
    frames = [decode(payload) for payload in read_journal(path)]
    busy = next(
        i
        for i, frame in enumerate(frames)
        if frame[0] == Frame.STEP and i > 50 and len(frame[2]) > 300
    )
    kind, at_us, request, digest = frames[busy]
    rewrite(path, busy, (kind, at_us + 1, request, digest))
    assert f"frame {busy}, at {at_us + 1} us" in told(directory, 1)


@pytest.mark.parametrize("name", sorted(NAMES.values()))
def test_other_effects_of_any_core_are_found(directory: Path, name: str) -> None:
    path = log_of(directory, name)
    frames = list(read_journal(path))
    place = min(40, len(frames) - 1)
    entry, _ = decode(frames[place])
    rewrite(path, place, (entry, b"another!"))
    assert f"{path.name}: event {place + 1}" in told(directory, 1)


@pytest.mark.parametrize("name", sorted(set(NAMES.values()) - {"coordinator"}))
def test_events_left_out_of_any_log_are_found(directory: Path, name: str) -> None:
    """A core that missed them is in another state, which shows sooner or later."""
    path = log_of(directory, name)
    frames = list(read_journal(path))
    write_log(path, frames[:2] + frames[len(frames) // 2 :])
    told(directory, 1)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "event 1: not an entry of an actor's log"),
        (encode(7), "event 1: not an entry of an actor's log"),
        (encode((encode((99, 0, 1)), b"")), "event 1: belongs to another actor's log"),
        (encode((encode((WORKERS, "0", 1)), b"")), "event 1: belongs to another actor's log"),
    ],
)
def test_what_is_not_an_actors_log_is_refused(directory: Path, frame: bytes, says: str) -> None:
    path = log_of(directory, "workers")
    write_log(path, [frame])
    assert f"{path.name}: {says}" in told(directory, 2)


def test_a_corrupt_log_is_refused_with_its_place(directory: Path) -> None:
    data = bytearray((directory / CELL_LOG).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (directory / CELL_LOG).write_bytes(data)
    assert "corrupt at byte" in told(directory, 2)


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
            "frame 0: lists the hosts of another run",
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
    directory: Path, frames: list[bytes], says: str
) -> None:
    write_log(directory / CELL_LOG, frames)
    said = told(directory, 2)
    assert f"{CELL_LOG}: {says}" in said and len(said.splitlines()) == 1


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    told(tmp_path, 2)


@pytest.mark.parametrize("name", sorted({*NAMES.values(), "cell"}))
def test_a_log_without_its_last_events_is_not_ok(directory: Path, name: str) -> None:
    """Cut at a frame's end it looks whole, and repeats as far as it goes."""
    path = log_of(directory, name)
    frames = list(read_journal(path))
    left = max(1, len(frames) // 2)
    write_frames(path, frames[:left])
    replayed = replay.replay(directory)
    assert replayed.divergence is None
    first, last = told(directory, 2).splitlines()
    cut_us = log_ends(directory)[path.name].last_us
    missing = f"{len(frames) - left:,} of its {len(frames):,} events are missing"
    assert f"{path.name}: {missing}, from {cut_us / 1e6:.6f} s of run time on" in first
    assert "incomplete; the part that could be checked was repeated: " in last


@pytest.mark.parametrize("name", sorted({*NAMES.values(), "cell"}))
def test_a_missing_log_is_not_ok(directory: Path, name: str) -> None:
    path = log_of(directory, name)
    events = sum(1 for _ in read_journal(path))
    path.unlink()
    assert f"{path.name} is missing: {events:,} events, from " in told(directory, 2)


def test_a_torn_log_is_not_ok(directory: Path) -> None:
    path = log_of(directory, "flow")
    path.write_bytes(path.read_bytes()[:-5])
    assert f"{path.name}: 1 of its " in told(directory, 2)


def test_a_log_that_is_another_than_at_the_end_is_not_ok(directory: Path) -> None:
    path = log_of(directory, "workers")
    frames = list(read_journal(path))
    write_frames(path, [*frames[:-1], encode((decode(frames[-1])[0], b"another!"))])
    assert f"{path.name}: differs from what it was when the arm ended" in told(directory, 2)


def test_a_log_with_more_events_and_a_log_too_many_are_not_ok(directory: Path) -> None:
    path = log_of(directory, "source")
    with JournalWriter(path, sync=False) as writer:
        writer.append(next(iter(read_journal(path))))
    shutil.copy(log_of(directory, "flow"), handled_log(directory, "flow", EPOCH + 1))
    out = told(directory, 2)
    assert f"{path.name}: 1 events more than" in out
    assert f"flow-{EPOCH + 1}.journal: no log of this arm" in out


def test_a_killed_arm_says_what_could_be_checked(directory: Path) -> None:
    (directory / ENDED_FILE).unlink()
    first, last = told(directory, 2).splitlines()
    assert "ended.json is missing: the arm was stopped or killed" in first
    assert "the part that could be checked was repeated: " in last and "of 5 other actors" in last
    log_of(directory, "flow").unlink()
    assert "flow has no log" in told(directory, 2)
    write_end(directory, log_ends(directory), "")  # as if there had never been one
    assert "flow has no log" in told(directory, 2)


def test_an_interrupted_arm_says_so(directory: Path) -> None:
    write_end(directory, log_ends(directory), "interrupted")
    first, last = told(directory, 2).splitlines()
    assert first.endswith("the arm ended early: interrupted")
    assert "the part that could be checked was repeated: " in last


def test_an_arm_file_that_was_changed_is_not_ok(directory: Path) -> None:
    path = directory / "arm.json"
    path.write_text(path.read_text().replace('"seed": 5', '"seed": 6'))
    assert "arm.json: differs from what it was when the arm ended" in told(directory, 2)


def nested(levels: int) -> bytes:
    """Events within events, deeper than the C stack."""
    data = b"\xc0"
    for _ in range(levels):
        data = msgpack.packb(msgpack.ExtType(2, b"\x93\x00\x91" + data + b"\xc4\x00"))
    return data


def many_of_one() -> bytes:
    """A column of 2^40 equal values in a few bytes."""
    column = struct.pack("<cBBxIQ", b"q", 0, 255, (1 << 32) - 1, 1)
    fields = msgpack.packb((1, (), column))
    return bytes(msgpack.packb(msgpack.ExtType(3, fields)))


FOREIGN = {
    "an unknown extension": msgpack.packb(msgpack.ExtType(77, b"")),
    "a timestamp": msgpack.packb(msgpack.Timestamp(1)),
    "an array of objects": msgpack.packb(
        msgpack.ExtType(0, msgpack.packb(("O", (1,))) + b"12345678")
    ),
    "a column too few": msgpack.packb(msgpack.ExtType(6, msgpack.packb((3, (), b"")))),
    "a transaction that is none": msgpack.packb(msgpack.ExtType(16, msgpack.packb(7))),
    "events within events": nested(2000),
    "a column without end": many_of_one(),
    "a number": encode(7),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["cell", "workers", "flow"])
def test_foreign_events_are_refused_in_one_line(directory: Path, name: str, kind: str) -> None:
    """As the events of an actor, and as those of a step."""
    event = FOREIGN[kind]
    if name == "cell":
        step = b"\x94\x00\x01\x01\x91\x92" + encode(MASTER) + event
        write_log(directory / CELL_LOG, [HEADER, encode((int(Frame.STEP), 1, step, b""))])
    else:
        address = WORKERS if name == "workers" else 2
        entry = b"\x93" + encode(address) + encode(5) + event
        write_log(log_of(directory, name), [encode((entry, b"12345678"))])
    (line,) = told(directory, 2).splitlines()
    assert "1: " in line and ".journal: " in line


def test_what_older_versions_pickled_is_not_read(directory: Path) -> None:
    payload = pickle.dumps(MakesAFile(directory / "executed"))
    for name in (OLD_FILE, "arm.json"):
        (directory / "arm.json").unlink(missing_ok=True)
        (directory / name).write_bytes(payload)
        (line,) = told(directory, 2).splitlines()
        assert name in line
        if name == OLD_FILE:
            assert "replaying it needs the version that made it" in line
    assert not (directory / "executed").exists()


def test_ctrl_c_ends_it_in_one_line(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "replay", interrupted)
    assert told(directory, 130) == "interrupted\n"
