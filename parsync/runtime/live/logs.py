"""The logs of a live run: what is in them, and how they are written and read.

The log of the cell, `cell.journal`, has every step that the cell handled, in order. It is written
before a reply leaves. One frame is one step, whole or torn, so that a step is never half done.
Frames, all in the codec's form:

    (HEADER, origin_ns, ((host, name, agents), ...))  once, first
    (EPOCH, epoch, at_us, digest)                     the cell was started or restarted:
                                                      Started(epoch) was handled
    (STEP, at_us, step as received, digest)           a host's step was handled

digest: blake2b-128 over the effects in order, which is what a replay compares.

The log of every other actor, one per epoch, has every event that its participants handled, in
order. A frame is (address, at_us, event, digest of the effects) with the event in its log form: a
sync reply is kept as (epoch, ((partition, from, to), ...)) only, because a replay of the cell's log
makes the payload anew. The digest leaves out the rows of tables whose values are measured by the
clock. Nobody restarts from these logs, so nobody waits for the disk: they survive the process, up
to its last flush. Native code makes the frames (parsync/core/native/log_frames.hpp).

The log of an actor's measurements, `<part>.records`, recovers them when the actor is killed. A
frame holds the batches of one flush, ((table, columns), ...), so that after a kill an agent's
batches of one sample are there together or not at all. These logs are removed when the run is over
(remove_records).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgpack

from parsync.core.codec import Codec, decode, encode
from parsync.metrics.live_line import Snapshot
from parsync.metrics.record import Record
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.tables import SCHEMAS, Tables, measured_tables
from parsync.runtime.arm_directory import LogEnd, log_end, write_end
from parsync.runtime.live.plan import RunPlan
from parsync.runtime.records import RecordSink
from shared_state.errors import AgoraError
from shared_state.journal import JournalWriter, read_journal

CELL_LOG = "cell.journal"
_EVENTS = ".journal"
_RECORDS = ".records"

Batch = tuple[str, dict[str, Any]]  # table, columns


class Frame(IntEnum):
    """Part of the log's format: append, never reorder."""

    HEADER = 0
    EPOCH = 1
    STEP = 2


_FIELDS: dict[int, tuple[type, ...]] = {
    Frame.HEADER: (int, int, tuple),
    Frame.EPOCH: (int, int, int, bytes),
    Frame.STEP: (int, int, bytes, bytes),
}


def read_cell_log(path: Path) -> Iterator[tuple[Any, ...]]:
    """The frames of a cell's log, its header first. AgoraError naming the file and the frame if it
    is not one, or holds nothing."""
    number = -1
    for number, payload in enumerate(read_journal(path)):
        try:
            frame = decode(payload)
        except Exception as error:  # a foreign frame may hold anything
            raise AgoraError(f"{path}: frame {number} is not a cell's: {error}") from error
        fields = (
            _FIELDS.get(frame[0])
            if type(frame) is tuple and frame and type(frame[0]) is int
            else None
        )
        if (
            fields is None
            or tuple(map(type, frame)) != fields
            or (frame[0] == Frame.HEADER) != (number == 0)
        ):
            raise AgoraError(f"{path}: frame {number}: not a cell's log, or another version's")
        if number == 0 and not all(map(_is_host, frame[2])):
            raise AgoraError(f"{path}: frame {number}: not the hosts of a cell's log")
        yield frame
    if number < 0:
        raise AgoraError(f"{path}: holds nothing")


def frame_at_us(payload: bytes) -> int | None:
    """Run time of a frame of a cell's log; None if it has none, or is no such frame."""
    try:
        frame = decode(payload)
        at_us = frame[{Frame.EPOCH: 2, Frame.STEP: 1}[frame[0]]]
    except Exception:  # whatever a damaged or foreign frame may decode to
        return None
    return at_us if type(at_us) is int else None


def _is_host(entry: Any) -> bool:
    """Whether an entry is the (id, name, agents) of a scheduler host; the name is part of its own
    log's."""
    if type(entry) is not tuple or tuple(map(type, entry)) != (int, str, tuple):
        return False
    _, name, agents = entry
    return name.replace("-", "").isalnum() and all(type(agent) is int for agent in agents)


def handled_log(directory: Path, name: str, epoch: int) -> Path:
    """The log of the actor `name` in this epoch."""
    return directory / f"{name}-{epoch}{_EVENTS}"


def handled_logs(directory: Path, name: str) -> list[tuple[int, Path]]:
    """(epoch, log) of each epoch of the actor `name`, in order."""
    return _of_epochs(directory, name, _EVENTS)


def _of_epochs(directory: Path, name: str, suffix: str) -> list[tuple[int, Path]]:
    found = (
        (path.name.removeprefix(f"{name}-").removesuffix(suffix), path)
        for path in directory.glob(f"{name}-*{suffix}")
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


def log_ends(directory: Path) -> dict[str, LogEnd]:
    """What there is of every log of events, by file name. AgoraError naming one that is corrupt
    before its tail."""
    return {
        path.name: log_end(path, frame_at_us if path.name == CELL_LOG else handled_at_us)
        for path in sorted(directory.glob(f"*{_EVENTS}"))
    }


def write_log_ends(directory: Path, stopped: str, recovered: Sequence[str] = ()) -> tuple[str, str]:
    """Write down what each log is at the arm's end, for a replay to compare with.

    Args:
        stopped: Why the arm did not get to its end, "" if it did.
        recovered: The actors whose measurements were computed from logs.

    Returns:
        The digest of the cell's log ("" if there is none), and why this could not be written, "" if
        it could.
    """
    digest = ""
    try:
        logs = log_ends(directory)
        digest = logs[CELL_LOG].digest if CELL_LOG in logs else ""
        write_end(directory, logs, stopped, recovered)
    except AgoraError as error:
        return digest, str(error)
    return digest, ""


def records_log(directory: Path, part: str) -> Path:
    """The record log of `part`."""
    return directory / f"{part}{_RECORDS}"


def epoch_log(directory: Path, host: str, epoch: int) -> Path:
    """The record log of one epoch of a scheduler host."""
    return records_log(directory, f"{host}-{epoch}")


def epoch_logs(directory: Path, host: str) -> list[tuple[int, Path]]:
    """The record log of each epoch of a scheduler host, as (epoch, record log), in order."""
    return _of_epochs(directory, host, _RECORDS)


def read_records(path: Path) -> Iterator[Batch]:
    """The batches of a record log, in order. Errors as shared_state.journal.read_journal."""
    for payload in read_journal(path):
        yield from decode(payload)


def has_records(directory: Path) -> bool:
    """Whether there are record logs: a run has begun and is not over."""
    return any(directory.glob(f"*{_RECORDS}"))


def remove_records(directory: Path) -> None:
    """Remove the record logs of a run that is over: accumulators and Parquet hold the records."""
    for path in directory.glob(f"*{_RECORDS}"):
        path.unlink(missing_ok=True)


class Recorder:
    """Keeps one actor's measurements, in its accumulators and its Parquet parts.

    A Parquet part that was not closed cannot be read. So the batches also go to a log, if there is
    one. An existing log is read first.

    Args:
        plan: Of the run.
        part: The name of the Parquet parts.
        metrics: The accumulators, which know the tables of the run.
        log: The record log; None: the actor keeps none.
        until: Bytes of an existing log to read, None for all; the rest is cut off.
    """

    def __init__(
        self,
        plan: RunPlan,
        part: str,
        metrics: RunMetrics,
        log: Path | None = None,
        until: int | None = None,
    ) -> None:
        self.metrics = metrics
        self._sink = (
            None
            if plan.records_dir is None
            else RecordSink(Path(plan.records_dir), part, metrics.tables)
        )
        self._unflushed: list[Batch] = []
        self._log: JournalWriter | None = None
        if log is not None:
            if log.exists():
                if until is not None:
                    os.truncate(log, until)
                for table, columns in read_records(log):
                    self._add(table, columns)
            self._log = JournalWriter(log, plan.fsync)

    def __call__(self, record: Record) -> None:
        self._add(record.table, record.columns)
        if self._log is not None:
            self._unflushed.append((record.table, record.columns))

    def snapshot(self, at_us: int, agents: tuple[int, ...]) -> Snapshot:
        """The figures of these agents since the last call, for the live line."""
        return self.metrics.snapshot(at_us, agents)

    def flush(self) -> None:
        """Write everything recorded so far to the log, so that it survives this process."""
        if self._log is not None:
            if self._unflushed:
                self._log.append(encode(tuple(self._unflushed)))
                self._unflushed.clear()
            self._log.flush()

    def mark(self) -> int:
        """Flush. Returns the bytes of the log, which holds everything recorded so far."""
        assert self._log is not None
        self.flush()
        return self._log.end

    def close(self) -> None:
        """Close the Parquet parts and the log, which are complete even if a metric fails."""
        try:
            self.metrics.close()
        finally:
            if self._sink is not None:
                self._sink.close()
            if self._log is not None:
                self.flush()
                self._log.close()

    def _add(self, table: str, columns: dict[str, Any]) -> None:
        self.metrics.add(table, columns)
        if self._sink is not None:
            self._sink.add(table, columns)
