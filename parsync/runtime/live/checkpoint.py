"""Checkpoints: the newest state of the cell's runtime on disk, after which a restarted cell replays
only the rest of its log.

The log stays whole: it is the event log and what a replay is fed. The file is written beside it
under another name and renamed, so a crash leaves the one before. Little-endian:

    magic with the version, u32 parts; per part: u64 bytes, u32 crc32; u32 crc32 of all that; the
    parts

A file that is damaged, of another version or of another run, or ahead of the log, is named in
`problems` and not used: the log alone says everything, a restart only takes longer.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path

from parsync.core.codec import decode, encode
from shared_state.errors import AgoraError
from shared_state.journal import read_journal

MAGIC = b"agora live cell, checkpoint 3\n"
SUFFIX = ".checkpoint"
PARTIAL = ".partial"
WRITTEN_PER_LOGGED = 4
_COUNT = struct.Struct("<I")
_PART = struct.Struct("<QI")
_MAX_PARTS = 256


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a cell's runtime at one place in its log.

    Attributes:
        origin_ns: When the run's time begins, as in the log's header.
        log_end: Bytes of the log that the state includes.
        records_end: Bytes of the cell's record log that go with it.
        epochs: Begun so far.
        parts: CellRuntime.checkpoint().
    """

    origin_ns: int
    log_end: int
    records_end: int
    epochs: int
    parts: tuple[bytes, ...]


def write_checkpoint(path: Path, checkpoint: Checkpoint, sync: bool) -> int:
    """Replace the checkpoint at `path`, whole or not at all.

    Args:
        path: The file.
        checkpoint: Its new content.
        sync: Wait for the disk.

    Returns:
        The bytes written.

    Raises:
        AgoraError: The file cannot be written; the message names it.
    """
    about = encode(
        (checkpoint.origin_ns, checkpoint.log_end, checkpoint.records_end, checkpoint.epochs)
    )
    parts = (about, *checkpoint.parts)
    head = (
        MAGIC
        + _COUNT.pack(len(parts))
        + b"".join(_PART.pack(len(part), zlib.crc32(part)) for part in parts)
    )
    head += _COUNT.pack(zlib.crc32(head))
    unfinished = path.with_name(path.name + PARTIAL)
    try:
        with unfinished.open("wb", buffering=0) as file:
            for part in (head, *parts):
                left = memoryview(part)
                while left:
                    left = left[file.write(left) :]
            if sync:
                os.fsync(file.fileno())
        unfinished.replace(path)
        if sync:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise AgoraError(f"{path}: cannot write the checkpoint: {error.strerror}") from error
    return len(head) + sum(map(len, parts))


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file.

    Raises:
        AgoraError: The file, which the message names, cannot be read, is damaged, or is of another
            version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AgoraError(f"{path}: cannot read the checkpoint: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise AgoraError(f"{path}: not a checkpoint of this version")
    damaged = AgoraError(f"{path}: the checkpoint is damaged")
    try:
        (count,) = _COUNT.unpack_from(data, len(MAGIC))
        if not 1 <= count <= _MAX_PARTS:
            raise damaged
        at = len(MAGIC) + _COUNT.size
        sizes = [_PART.unpack_from(data, at + k * _PART.size) for k in range(count)]
        at += count * _PART.size
        if _COUNT.unpack_from(data, at)[0] != zlib.crc32(data[:at]):
            raise damaged
    except struct.error:
        raise damaged from None
    at += _COUNT.size
    parts: list[bytes] = []
    for size, checksum in sizes:
        part = data[at : at + size]
        at += size
        if len(part) != size or zlib.crc32(part) != checksum:
            raise damaged
        parts.append(part)
    if at != len(data):
        raise damaged
    origin_ns, log_end, records_end, epochs = decode(parts[0])
    return Checkpoint(origin_ns, log_end, records_end, epochs, tuple(parts[1:]))


class Checkpoints:
    """The checkpoint beside a cell's log: the one found, and those to come.

    A thread of its own writes checkpoints. A step of the cell pays only for taking the state.

    Args:
        journal: The cell's log.
        records: Its record log; None if it keeps none.
        every_bytes: The least growth of the log between two checkpoints. The growth is also at
            least a quarter of a checkpoint's size, so that checkpoints write at most four times
            what the log does.
        sync: Wait for the disk.

    Attributes:
        problems: Why a checkpoint was not used, or not written.
        records_end: Bytes of the record log that go with the checkpoint found. 0 without one: the
            replay makes all records again.
    """

    def __init__(self, journal: Path, records: Path | None, every_bytes: int, sync: bool) -> None:
        self.path = journal.with_suffix(SUFFIX)
        self.problems: list[str] = []
        self._journal = journal
        self._records = records
        self._every_bytes = every_bytes
        self._sync = sync
        self._writing: threading.Thread | None = None
        self._bytes = 0
        self._log_end = 0
        self.records_end = 0
        self._found = self._find()
        if self._found is not None:
            self.records_end = self._found.records_end
            self._log_end = self._found.log_end
            self._bytes = sum(map(len, self._found.parts))

    def take(self) -> Checkpoint | None:
        """Take the checkpoint found; None at the second call, or if there was none."""
        found, self._found = self._found, None
        return found

    def due(self, log_end: int) -> bool:
        """Whether a log of this many bytes has grown enough for the next checkpoint, and the last
        one is written."""
        if self._writing is not None and self._writing.is_alive():
            return False
        return log_end - self._log_end >= max(self._every_bytes, self._bytes // WRITTEN_PER_LOGGED)

    def write(self, checkpoint: Checkpoint) -> None:
        """Begin to write a checkpoint. After a failure the one before stays (see `problems`)."""
        self.wait()
        self._log_end = checkpoint.log_end
        self._writing = threading.Thread(
            target=self._write, args=(checkpoint,), name="checkpoint", daemon=True
        )
        self._writing.start()

    def wait(self) -> None:
        """Wait until the last one is written."""
        if self._writing is not None:
            self._writing.join()

    def close(self) -> None:
        """Remove the checkpoint: the run is over, and the cell will not be restarted."""
        self.wait()
        self.path.unlink(missing_ok=True)

    def _write(self, checkpoint: Checkpoint) -> None:
        try:
            self._bytes = write_checkpoint(self.path, checkpoint, self._sync)
        except AgoraError as error:
            self.problems.append(str(error))

    def _find(self) -> Checkpoint | None:
        if not self.path.exists() or not self._journal.exists():
            return None
        try:
            checkpoint = read_checkpoint(self.path)
        except AgoraError as error:
            self.problems.append(f"{error}; the whole log is replayed")
            return None
        header = next(read_journal(self._journal), None)
        origin_ns = None if header is None else decode(header)[1]
        if origin_ns != checkpoint.origin_ns:
            self.problems.append(
                f"{self.path}: the checkpoint is of another run; the whole log is replayed"
            )
            return None
        for log, end in (
            (self._journal, checkpoint.log_end),
            (self._records, checkpoint.records_end),
        ):
            if log is not None and (log.stat().st_size if log.exists() else 0) < end:
                self.problems.append(
                    f"{self.path}: the checkpoint is ahead of {log.name}; the whole log is replayed"
                )
                return None
        return checkpoint
