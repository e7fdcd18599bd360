"""Events as bytes: msgpack with one extension type per event class, its arrays packed together, and
one for other arrays (native/encoder.hpp).

Two forms: the wire form carries everything; the log form of a sync reply carries (partition, from,
to) only, because a replayed master makes the payload anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import msgpack
import numpy as np

from parsync.core import events
from parsync.core._native import Encoder, Frames
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest
from shared_state.packing import unpack_columns
from shared_state.transaction import (
    CommitResult,
    PartitionDelta,
    Transaction,
    decode_transaction,
    encode_transaction,
)

_ARRAY = 0
_ALIGNMENT = 8  # of an array's data within its extension: native code takes no misaligned arrays
_HASHED_BYTES = 1 << 16  # at once, or a few more
_DEEPEST = 4  # events within events: ours go two deep, and each level takes much of the C stack
# Codes are part of the log's format: append, never reorder.
_CLASSES: tuple[type, ...] = (
    events.TimerFired,
    events.Started,
    events.TasksSubmitted,
    events.SyncRequest,
    events.SyncReply,
    events.CommitRequest,
    events.CommitReply,
    events.DecisionDone,
    events.TasksStarted,
    events.TasksCancelled,
    events.TasksFinished,
    events.TasksEnded,
    events.TasksAdopted,
    events.MachinesChanged,
    events.PhaseBegan,
    Transaction,
    CommitResult,
    PartitionDelta,
)
_CODE = {cls: code for code, cls in enumerate(_CLASSES, start=1)}
_FIELDS = {cls: [field.name for field in fields(cls)] for cls in _CLASSES}


def _make_encoder() -> Encoder:
    encoder = Encoder(np.ndarray, np.integer, np.ascontiguousarray)
    for cls, code in _CODE.items():
        if cls is not Transaction:
            encoder.add_class(cls, code, _FIELDS[cls])
    encoder.add_form(Transaction, _CODE[Transaction], encode_transaction)
    return encoder


_ENCODER = _make_encoder()
_encode = _ENCODER.encode


def _decode_extension(code: int, data: bytes, depth: int = 0) -> Any:
    if code == _ARRAY:
        unpacker = msgpack.Unpacker()
        unpacker.feed(data)
        dtype, shape = unpacker.unpack()
        head = unpacker.tell()
        return np.frombuffer(data, np.dtype(dtype), offset=head + -head % _ALIGNMENT).reshape(shape)
    if not 1 <= code <= len(_CLASSES):
        raise AgoraError(f"unknown event code {code}: written by a newer version?")
    cls = _CLASSES[code - 1]
    if cls is Transaction:
        return decode_transaction(msgpack.unpackb(data))
    where, plain, packed = msgpack.unpackb(
        data, ext_hook=_HOOKS[depth], use_list=False, strict_map_key=False
    )
    columns, scalars = iter(unpack_columns(packed)), iter(plain)
    values: list[Any] = [
        next(columns) if where >> position & 1 else next(scalars)
        for position in range(len(_FIELDS[cls]))
    ]
    if cls is events.TimerFired:
        return events.TimerFired(events.Timer(values[0]), values[1])
    return cls(*values)


def _refuse_extension(code: int, data: bytes) -> Any:
    raise AgoraError(f"events nested more than {_DEEPEST} deep")


# what decodes the extensions inside one at that depth
_HOOKS: tuple[Callable[[int, bytes], Any], ...] = (
    *(partial(_decode_extension, depth=depth) for depth in range(1, _DEEPEST)),
    _refuse_extension,
)


def encode(event: Any) -> bytes:
    """The wire form of an event (or of any tuple, number or array of them). Canonical: equal events
    give equal bytes."""
    return _encode(event)


def decode(data: bytes) -> Any:
    """Inverse of encode. Arrays come back read-only, without a copy. Raises AgoraError for an
    unknown event code, and for events nested deeper than any of ours."""
    return msgpack.unpackb(data, ext_hook=_decode_extension, use_list=False, strict_map_key=False)


def log_frame(address: int, at_us: int, event: Any) -> bytes:
    """One entry of an event log: (address, time, log form of the event)."""
    form = _log_form(event) if type(event) is events.SyncReply else event
    return _encode((address, at_us, form))


def _log_form(reply: events.SyncReply) -> Any:
    return (
        reply.epoch,
        tuple((delta.partition, delta.from_version, delta.to_version) for delta in reply.deltas),
    )


class LogDigest:
    """The EventDigest of a log's frames, for a log that nobody keeps: entries are hashed many at a
    time, without a bytes object each."""

    def __init__(self) -> None:
        self._digest = EventDigest()
        self._frames = Frames(_ENCODER)

    def update(self, address: int, at_us: int, event: Any) -> None:
        """Take in the entry log_frame would make."""
        form = _log_form(event) if type(event) is events.SyncReply else event
        if self._frames.append((address, at_us, form)) >= _HASHED_BYTES:
            self._digest.update_framed(self._frames.take())

    def hexdigest(self) -> str:
        """Of all entries so far; more may follow."""
        self._digest.update_framed(self._frames.take())
        return self._digest.hexdigest()
