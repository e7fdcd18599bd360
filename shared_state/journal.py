"""A framed log on disk, and the digest of a log's frames.

Frame: u32 length of the payload, u32 crc32 of the payload, u32 crc32 of these 8 bytes, payload;
little-endian. A crash can tear only the
tail: reading stops there and opening for writing cuts it. Damage before the tail is refused; the
header's own checksum is there to tell a damaged length from a torn tail.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from shared_state.errors import AgoraError

MAX_FRAME_BYTES = 1 << 30
DIGEST_BYTES = 16

_FRONT = struct.Struct("<II")
_HEADER = struct.Struct("<III")
BUFFER_BYTES = 1 << 16
_READ_BYTES = 1 << 22


class JournalError(AgoraError):
    """A log that cannot be read or written. The message names the file and, where there is one, the
    byte offset."""


class JournalWriter:
    """Appends frames to a log; after flush() they are the file's (with `sync`, the disk's).

    An existing log is continued after its last whole frame. When a write fails (a full disk) the
    file is cut back to the frames of the last flush that succeeded and the writer takes no more.

    Args:
        whole: Bytes at the log's start that are known to be whole frames, and not read again.

    Raises:
        JournalError: An existing log is corrupt before its tail.
    """

    def __init__(self, path: Path | str, sync: bool, whole: int = 0) -> None:
        self._path = Path(path)
        self._sync = sync
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._failure = ""  # why the writer takes no more
        end = _whole_frames_end(self._path, whole) if self._path.exists() else 0
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
        except OSError as error:
            raise JournalError(
                f"{self._path}: cannot open the log for writing: {error.strerror}"
            ) from error
        self._end = end

    @property
    def end(self) -> int:
        """Bytes of the log that are flushed."""
        return self._end

    def append(self, payload: bytes) -> None:
        """Add a frame. It reaches the file with the next flush(), or earlier when much has
        gathered."""
        size = len(payload)
        if size > MAX_FRAME_BYTES:
            raise JournalError(
                f"{self._path}: a frame of {size} bytes; at most {MAX_FRAME_BYTES} are allowed"
            )
        front = _FRONT.pack(size, zlib.crc32(payload))
        self._pending += (front, zlib.crc32(front).to_bytes(4, "little"), payload)
        self._pending_bytes += _HEADER.size + size
        if self._pending_bytes >= BUFFER_BYTES:
            self._write()

    def append_frames(self, frames: bytes) -> None:
        """Add frames that native code has made (parsync/core/native/log_frames.hpp)."""
        self._pending.append(frames)
        self._pending_bytes += len(frames)
        if self._pending_bytes >= BUFFER_BYTES:
            self._write()

    def flush(self) -> None:
        """Hand all frames to the file; with `sync` wait until they are on the disk. JournalError if
        they do not fit there."""
        self._write()
        if self._sync:
            try:
                os.fdatasync(self._file)
            except OSError as error:
                self._failure = f"cannot sync the log at byte {self._end}: {error.strerror}"
                raise JournalError(f"{self._path}: {self._failure}") from error

    def close(self) -> None:
        """Flush and close. Idempotent."""
        if self._file < 0:
            return
        try:
            if not self._failure:
                self.flush()
        finally:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self) -> None:
        if self._failure:
            raise JournalError(f"{self._path}: {self._failure}; it ends at byte {self._end} since")
        if not self._pending:
            return
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        self._pending_bytes = 0
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            self._failure = f"cannot write the log at byte {self._end + written}: {error.strerror}"
            with contextlib.suppress(OSError):  # what is left otherwise is a torn tail
                os.ftruncate(self._file, self._end)
            raise JournalError(f"{self._path}: {self._failure}") from error
        self._end += written


def read_journal(path: Path | str, start: int = 0) -> Iterator[bytes]:
    """The payloads of a log's whole frames, in order, from the frame at byte `start` on.
    JournalError naming file and offset if it is corrupt before its tail.

    A frame is a torn tail if the file ends inside it, or if it is the last and its checksum is
    wrong, or if nothing but zero bytes follows its start (space a file system had set aside).
    """
    for _, payload in _frames(Path(path), start):
        yield payload


def _whole_frames_end(path: Path, end: int) -> int:
    for start, payload in _frames(path, end):
        end = start + _HEADER.size + len(payload)
    return end


def _frames(path: Path, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, payload) of each whole frame from the one at `offset` on."""
    try:
        with path.open("rb", buffering=_READ_BYTES) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            while size - offset >= _HEADER.size:
                header = file.read(_HEADER.size)
                length, checksum, header_checksum = _HEADER.unpack(header)
                if zlib.crc32(header[: _FRONT.size]) != header_checksum:
                    if _rest_is_zero(header, file):
                        return
                    raise JournalError(
                        f"{path}: corrupt at byte {offset}: "
                        "the checksum of the frame's header is wrong"
                    )
                end = offset + _HEADER.size + length
                if end > size:
                    return
                payload = file.read(length)
                if zlib.crc32(payload) != checksum:
                    if end == size:
                        return
                    raise JournalError(
                        f"{path}: corrupt at byte {offset}: the checksum of the frame is wrong"
                    )
                yield offset, payload
                offset = end
    except OSError as error:
        raise JournalError(f"{path}: cannot read the log: {error.strerror}") from error


def _rest_is_zero(chunk: bytes, file: BinaryIO) -> bool:
    while chunk:
        if any(chunk):
            return False
        chunk = file.read(_READ_BYTES)
    return True


class EventDigest:
    """The blake2b-128 digest of a log's payloads, each preceded by its length (u32), so that it
    tells where frames begin.

    Frames are gathered before they are hashed: one call per 64 KiB instead of one per frame.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def update(self, payload: bytes) -> None:
        """Take in one frame's payload."""
        self._pending += (len(payload).to_bytes(4, "little"), payload)
        self._pending_bytes += len(payload)
        if self._pending_bytes >= BUFFER_BYTES:
            self._hash_pending()

    def update_framed(self, frames: bytes) -> None:
        """Take in any number of whole payloads, each preceded by its length (u32,
        little-endian)."""
        self._hash_pending()
        self._hash.update(frames)

    def digest(self) -> bytes:
        """16 bytes; more frames may follow."""
        self._hash_pending()
        return self._hash.digest()

    def hexdigest(self) -> str:
        return self.digest().hex()

    def _hash_pending(self) -> None:
        self._hash.update(b"".join(self._pending))
        self._pending.clear()
        self._pending_bytes = 0
