"""The framed log: what a crash leaves is cut, what damage leaves is refused, a full disk is
said."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from shared_state.errors import AgoraError
from shared_state.journal import EventDigest, JournalError, JournalWriter, read_journal

FRAMES = [b"first", b"", b"x" * 3000, b"\0" * 12, b"last one"]
HEADER_BYTES = 12
STARTS = [sum(HEADER_BYTES + len(f) for f in FRAMES[:i]) for i in range(len(FRAMES) + 1)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "cell.log"
    with JournalWriter(path, sync=True) as writer:
        for frame in FRAMES:
            writer.append(frame)
    return path


def test_frames_come_back_in_order(log: Path) -> None:
    assert list(read_journal(log)) == FRAMES
    assert log.stat().st_size == STARTS[-1]


@pytest.mark.parametrize("size", range(STARTS[3], STARTS[-1]))
def test_a_log_cut_anywhere_keeps_its_whole_frames_and_continues(log: Path, size: int) -> None:
    os.truncate(log, size)
    whole = FRAMES[: sum(start <= size for start in STARTS[1:])]
    assert list(read_journal(log)) == whole
    with JournalWriter(log, sync=False) as writer:
        writer.append(b"next")
    assert list(read_journal(log)) == [*whole, b"next"]


def test_zeros_set_aside_after_the_last_frame_are_a_tail(log: Path) -> None:
    with log.open("ab") as file:
        file.write(bytes(5000))
    assert list(read_journal(log)) == FRAMES
    JournalWriter(log, sync=False).close()
    assert log.stat().st_size == STARTS[-1]


@pytest.mark.parametrize("at", [*range(STARTS[0], STARTS[2] + 40), STARTS[3] - 1])
def test_damage_before_the_tail_is_refused_with_file_and_offset(log: Path, at: int) -> None:
    data = bytearray(log.read_bytes())
    data[at] ^= 0x10
    log.write_bytes(data)
    frame = max(start for start in STARTS if start <= at)
    with pytest.raises(JournalError, match=rf"cell\.log: corrupt at byte {frame}:"):
        list(read_journal(log))
    with pytest.raises(JournalError, match=f"byte {frame}:"):
        JournalWriter(log, sync=False)
    assert log.read_bytes() == data


def test_a_damaged_last_frame_is_a_torn_tail(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    assert list(read_journal(log)) == FRAMES[:-1]


def test_nothing_reaches_the_file_before_a_flush_and_all_does_after(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writer = JournalWriter(path, sync=False)
    writer.append(b"a")
    assert list(read_journal(path)) == []
    writer.flush()
    assert list(read_journal(path)) == [b"a"]
    assert writer.end == path.stat().st_size
    writer.close()
    writer.close()


def test_a_disk_that_fills_is_said_and_leaves_whole_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    writer = JournalWriter(path, sync=False)
    writer.append(b"fits")
    writer.flush()
    real_write = os.write

    def short_write(file: int, data: memoryview) -> int:
        if len(data) > 100:
            return real_write(file, data[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", short_write)
    writer.append(b"y" * 150)
    with pytest.raises(
        AgoraError, match=r"log: cannot write the log at byte 116: No space left on device"
    ):
        writer.flush()
    monkeypatch.undo()
    writer.append(b"z")
    with pytest.raises(AgoraError, match="No space left on device; it ends at byte"):
        writer.flush()
    writer.close()
    assert list(read_journal(path)) == [b"fits"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_really_full_device_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writer = JournalWriter(path, sync=False)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._file)
    os.close(full)
    writer.append(b"frame")
    with pytest.raises(JournalError, match="No space left on device"):
        writer.flush()
    writer.close()


def test_an_unwritable_or_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="nowhere/log: cannot open"):
        JournalWriter(tmp_path / "nowhere" / "log", sync=False)
    with pytest.raises(JournalError, match="absent: cannot read"):
        list(read_journal(tmp_path / "absent"))


def test_the_digest_tells_frames_apart_and_not_how_they_were_gathered() -> None:
    def digest_of(frames: list[bytes], look_after: set[int]) -> bytes:
        digest = EventDigest()
        for i, frame in enumerate(frames):
            digest.update(frame)
            if i in look_after:
                digest.digest()
        return digest.digest()

    big = [b"q" * 40_000] * 5
    assert digest_of(big, set()) == digest_of(big, {0, 1, 3})
    assert len(digest_of(big, set())) == 16
    assert digest_of([b"ab", b"c"], set()) != digest_of([b"a", b"bc"], set())
    assert digest_of([b"a", b""], set()) != digest_of([b"a"], set())
