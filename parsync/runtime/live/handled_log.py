"""The log of an actor's participants: every event handled, in order, and a digest of its effects.

The cell has a log of another kind (cell_log.py).

A frame is (address, at_us, event, digest) with the event in its log form: a sync reply is kept as
(epoch, ((partition, from, to), ...)) only, because a replay of the cell's log makes the payload
anew. The digest leaves out the rows of tables whose values are measured by the clock. Nobody
restarts from these logs, so nobody waits for the disk: they survive the process, up to its last
flush. Native code makes the frames (parsync/core/native/log_frames.hpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

from parsync.core.codec import Codec, decode
from parsync.metrics.tables import SCHEMAS, Tables, measured_tables
from shared_state.journal import JournalWriter, read_journal


def handled_log(directory: Path, name: str, epoch: int) -> Path:
    """The log of the actor `name` in this epoch."""
    return directory / f"{name}-{epoch}.journal"


def handled_logs(directory: Path, name: str) -> list[tuple[int, Path]]:
    """(epoch, log) of each epoch of the actor `name`, in order."""
    found = (
        (path.stem.removeprefix(f"{name}-"), path) for path in directory.glob(f"{name}-*.journal")
    )
    return sorted((int(epoch), path) for epoch, path in found if epoch.isdecimal())


def read_handled(codec: Codec, path: Path) -> Iterator[tuple[int, int, Any]]:
    """(address, at_us, event in its log form) of every event that is on record, in order. Errors as
    shared_state.journal.read_journal."""
    for payload in read_journal(path):
        entry, _ = decode(payload)
        yield codec.decode(entry)


def handled_at_us(payload: bytes) -> int | None:
    """Run time of a frame of an actor's log; None if it is none."""
    try:
        entry, _ = decode(payload)
        unpacker = msgpack.Unpacker()  # the event is left alone: its protocol may be unknown here
        unpacker.feed(entry)
        unpacker.read_array_header()
        _, at_us = unpacker.unpack(), unpacker.unpack()
    except Exception:  # whatever a damaged or foreign frame may decode to
        return None
    return at_us if type(at_us) is int else None


def handled_times_us(path: Path) -> Iterator[int]:
    """The times of all events that are on record, in order. Errors as read_handled."""
    for payload in read_journal(path):
        at_us = handled_at_us(payload)
        if at_us is not None:
            yield at_us


class HandledLog:
    """The log's frames on their way to the file; flush() once per tick.

    Attributes:
        frames: Where an actor's loop appends every event that was handled. It calls write() when
            many bytes wait.

    Args:
        codec: Of the arm.
        path: Of the log.
        tables: Of the arm.
    """

    def __init__(self, codec: Codec, path: Path, tables: Tables = SCHEMAS) -> None:
        self.frames = codec.handled_frames(measured_tables(tables))
        self._writer = JournalWriter(path, sync=False)

    def write(self) -> None:
        """Hand the frames that wait to the writer."""
        self._writer.append_frames(self.frames.take())

    def flush(self) -> None:
        """Write the frames to the file. Called once per tick."""
        self.write()
        self._writer.flush()

    def close(self) -> None:
        """Close the log, which is complete."""
        self.write()
        self._writer.close()
