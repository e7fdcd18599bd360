"""The log of a live cell: every step that it handled, in order.

The log is written before a reply leaves. One frame is one step, whole or torn, so that a step is
never half done. Frames, all in the codec's form:

    (HEADER, origin_ns, ((host, name, agents), ...))  once, first
    (EPOCH, epoch, at_us, digest)                     the cell was started or restarted:
                                                      Started(epoch) was handled
    (STEP, at_us, step as received, digest)           a host's step was handled

digest: blake2b-128 over the effects in order, which is what a replay compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

from parsync.core.codec import decode
from shared_state.errors import AgoraError
from shared_state.journal import read_journal

CELL_LOG = "cell.journal"


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
