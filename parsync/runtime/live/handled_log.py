"""The log of an actor's cores but for the cell's: every event handled, in order, and a digest of
what it led to.

A frame is (address, at_us, event, digest) with the event in its log form: a sync reply is kept as
(epoch, ((partition, from, to), ...)) only, because a replay of the cell's log makes the payload
anew. The digest leaves out the measurements of solver rounds, which are wall time. Nobody restarts
from these logs, so nobody waits for the disk: they survive the process, up to its last flush.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsync.core.codec import decode, encode, log_frame
from parsync.core.events import Effect, Event, Record, Send, SetTimer
from shared_state.journal import JournalWriter, read_journal

DIGEST_BYTES = 8
_WALL_TIME_TABLES = ("rounds",)


def effects_digest(effects: list[Effect]) -> bytes:
    """blake2b-64 over the effects in order."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for effect in effects:
        if isinstance(effect, Send):
            digest.update(encode((effect.to, effect.event)))
        elif isinstance(effect, SetTimer):
            digest.update(encode((effect.at_us, int(effect.timer), effect.key)))
        elif isinstance(effect, Record):
            if effect.table not in _WALL_TIME_TABLES:
                digest.update(encode((effect.table, tuple(effect.columns.values()))))
        else:
            digest.update(encode(effect.decision))
    return digest.digest()


def handled_log(directory: Path, name: str, epoch: int) -> Path:
    """Where the actor `name` logs in its life `epoch`."""
    return directory / f"{name}-{epoch}.journal"


def handled_logs(directory: Path, name: str) -> list[tuple[int, Path]]:
    """(epoch, log) of each life of the actor `name`, in order."""
    found = (
        (path.stem.removeprefix(f"{name}-"), path) for path in directory.glob(f"{name}-*.journal")
    )
    return sorted((int(epoch), path) for epoch, path in found if epoch.isdecimal())


def read_handled(path: Path) -> Iterator[tuple[int, int, Any]]:
    """(address, at_us, event in its log form) of every event that is on record, in order. Errors as
    shared_state.journal.read_journal."""
    for payload in read_journal(path):
        entry, _ = decode(payload)
        yield decode(entry)


def handled_at_us(payload: bytes) -> int | None:
    """Run time of a frame of an actor's log; None if it is none."""
    try:
        entry, _ = decode(payload)
        _, at_us, _ = decode(entry)
    except Exception:  # whatever a damaged or foreign frame may decode to
        return None
    return at_us if type(at_us) is int else None


class HandledLog:
    """Appends frames; flush() once per tick."""

    def __init__(self, path: Path) -> None:
        self._writer = JournalWriter(path, sync=False)

    def handled(self, address: int, at_us: int, event: Event, effects: list[Effect]) -> None:
        """Log one event."""
        self._writer.append(encode((log_frame(address, at_us, event), effects_digest(effects))))

    def flush(self) -> None:
        """Hand the frames to the file."""
        self._writer.flush()

    def close(self) -> None:
        """The log is complete."""
        self._writer.close()
