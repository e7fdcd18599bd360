"""The end of a live run: what each log was is written down beside the logs, or the run says that it
could not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsync.core.codec import encode
from parsync.runtime.arm_directory import ENDED_FILE, read_end, write_assembly
from parsync.runtime.live.logs import CELL_LOG, Frame, write_log_ends
from shared_state.journal import EventDigest, JournalWriter
from tests.fixtures.live_runs import small_arm, small_workload

FRAMES = [
    encode((int(Frame.HEADER), 1, ())),
    encode((int(Frame.EPOCH), 0, 250, b"")),
    encode((int(Frame.STEP), 1500, b"", b"")),
]


def write_log(directory: Path) -> str:
    digest = EventDigest()
    with JournalWriter(directory / CELL_LOG, sync=False) as log:
        for frame in FRAMES:
            log.append(frame)
            digest.update(frame)
    return digest.hexdigest()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_assembly(tmp_path, small_arm(), small_workload(0.1))
    return tmp_path


def test_every_log_is_written_down(directory: Path) -> None:
    digest = write_log(directory)
    assert write_log_ends(directory, "") == (digest, "")
    end = read_end(directory)
    assert end is not None and end.stopped == "" and set(end.logs) == {CELL_LOG}
    log = end.logs[CELL_LOG]
    assert (log.events, log.digest, log.first_us, log.last_us) == (3, digest, 250, 1500)


def test_an_arm_that_ended_early_says_why(directory: Path) -> None:
    assert write_log_ends(directory, "workers: its process is gone") == ("", "")
    end = read_end(directory)
    assert end is not None and end.stopped == "workers: its process is gone" and not end.logs


def test_a_disk_that_takes_no_more_is_told(directory: Path) -> None:
    digest = write_log(directory)
    (directory / (ENDED_FILE + ".partial")).symlink_to("/dev/full")
    told, problem = write_log_ends(directory, "")
    assert told == digest and f"{ENDED_FILE}: cannot write it: No space left on device" in problem
    assert read_end(directory) is None


def test_a_corrupt_log_is_told(directory: Path) -> None:
    write_log(directory)
    data = bytearray((directory / CELL_LOG).read_bytes())
    data[15] ^= 0xFF
    (directory / CELL_LOG).write_bytes(data)
    digest, problem = write_log_ends(directory, "")
    assert digest == "" and "cell.journal: corrupt at byte 0" in problem
