"""Events as bytes: msgpack with one extension type for events, whose arrays are packed together,
and one for other arrays (native/encoder.hpp, native/event_encoder.hpp).

An event is known by (kind, number): its protocol and its number there. There are two forms. The
wire form carries everything. The log form of a sync reply carries (partition, from, to) only,
because a replayed master makes the payload anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from typing import Any

import msgpack
import numpy as np

from parsync.core._native import Encoder, LogFrames, NativeEvent
from parsync.core.event import Event
from parsync.core.events import CORE_EVENTS
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest
from shared_state.packing import unpack_columns
from shared_state.transaction import CommitResult, PartitionDelta, decode_transaction

_ARRAY = 0
_EVENT = 1
_ALIGNMENT = 8  # of an array's data within its extension: native code takes no misaligned arrays
_DEEPEST = 4  # events within events: ours go two deep, and each level takes much of the C stack
_CELL = "cell"  # the kind of what is no event but part of one
_TRANSACTION = (_CELL, 1)
_PARTS: dict[tuple[str, int], type] = {(_CELL, 2): CommitResult, (_CELL, 3): PartitionDelta}


class Codec:
    """Encodes and decodes the events of the core and those of some protocols.

    Attributes:
        encode: A value or an event as bytes.
        log_frame: One entry of an event log, of (address, at_us, event): the log form of the event.

    Args:
        events: The event classes of the protocols.

    Raises:
        AgoraError: Two classes have the same kind and number.
    """

    def __init__(self, events: Iterable[type[Event]] = ()) -> None:
        self._classes: dict[tuple[str, int], type] = dict(_PARTS)
        for cls in (*CORE_EVENTS, *events):
            key = cls.kind, cls.number
            if self._classes.setdefault(key, cls) is not cls or key == _TRANSACTION:
                raise AgoraError(
                    f"protocol {cls.kind!r}: two events have the number {cls.number}: "
                    f"{self._classes[key].__name__} and {cls.__name__}"
                )
        self._fields = {
            cls: [field.name for field in fields(cls)] for cls in self._classes.values()
        }
        self._encoder = Encoder(np.ndarray, np.integer)
        for key, cls in self._classes.items():
            if key[0] != _CELL and not issubclass(cls, NativeEvent):
                self._encoder.add_class(cls, _EVENT, _prefix(key), self._fields[cls])
        # (methods of our own cost as much as a small event)
        self.encode = self._encoder.encode
        self.log_frame = self._encoder.log_entry
        # what decodes the extensions inside one at that depth
        self._hooks: tuple[Callable[[int, bytes], Any], ...] = (
            *(partial(self._decode_extension, depth=depth) for depth in range(1, _DEEPEST)),
            _refuse_extension,
        )

    def decode(self, data: bytes) -> Any:
        """The inverse of encode(). Arrays come back read-only, without a copy.

        Raises:
            AgoraError: An event is unknown, or nested deeper than any of ours.
        """
        hook = self._decode_extension
        return msgpack.unpackb(data, ext_hook=hook, use_list=False, strict_map_key=False)

    def log_digest(self) -> LogDigest:
        """A digest of a log's entries."""
        return LogDigest(self._encoder)

    def _decode_extension(self, code: int, data: bytes, depth: int = 0) -> Any:
        if code == _ARRAY:
            unpacker = msgpack.Unpacker()
            unpacker.feed(data)
            dtype, shape = unpacker.unpack()
            head = unpacker.tell()
            offset = head + -head % _ALIGNMENT
            return np.frombuffer(data, np.dtype(dtype), offset=offset).reshape(shape)
        if code != _EVENT:
            raise AgoraError(f"unknown extension {code}: written by another version?")
        unpacker = msgpack.Unpacker(
            ext_hook=self._hooks[depth], use_list=False, strict_map_key=False
        )
        unpacker.feed(data)
        key = unpacker.unpack(), unpacker.unpack()
        if key == _TRANSACTION:
            return decode_transaction(unpacker.unpack())
        cls = self._classes.get(key)
        if cls is None:
            raise AgoraError(f"unknown event {key[1]} of protocol {key[0]!r}: of another version?")
        where, plain, packed = unpacker.unpack()
        columns, scalars = iter(unpack_columns(packed)), iter(plain)
        values: list[Any] = [
            next(columns) if where >> position & 1 else next(scalars)
            for position in range(len(self._fields[cls]))
        ]
        return cls(*values)


def _prefix(key: tuple[str, int]) -> bytes:
    kind, number = key
    return bytes(msgpack.packb(kind) + msgpack.packb(number))


def _refuse_extension(code: int, data: bytes) -> Any:
    raise AgoraError(f"events nested more than {_DEEPEST} deep")


class LogDigest:
    """The EventDigest of a log's frames, for a log that nobody keeps: entries are hashed many at a
    time, without a bytes object each.

    Attributes:
        frames: The entries that wait to be hashed. Who appends to them calls hash_frames() now and
            then.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._digest = EventDigest()
        self.frames = LogFrames(encoder)

    def hash_frames(self) -> None:
        """Take in the entries that wait."""
        self._digest.update_framed(self.frames.take())

    def hexdigest(self) -> str:
        """The digest of all entries so far; more may follow."""
        self.hash_frames()
        return self._digest.hexdigest()


CORE = Codec()  # of plain values and the events that every protocol shares
encode, decode = CORE.encode, CORE.decode
