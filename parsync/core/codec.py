"""Events as bytes: msgpack with one extension type for events, whose arrays are packed together,
and one for other arrays (native/python_codec.hpp, native/event.hpp).

An event is known by (kind, number): its protocol and its number there. There are two forms. The
wire form carries everything. The log form of a sync reply carries (partition, from, to) only,
because a replayed master makes the payload anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import fields
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from parsync.core._native import (
    Decoder,
    EffectsDigest,
    Encoder,
    EventEffectsDigest,
    HandledFrames,
    LogFrames,
    NativeEvent,
)
from parsync.core.event import Event
from parsync.core.events import CORE_EVENTS
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest
from shared_state.transaction import CommitResult, PartitionDelta, Transaction

_EVENT = 1  # the code of an event's extension
_ALIGNMENT = 8  # of an array's data within its extension: native code takes no misaligned arrays
# what is no event but part of one
_PARTS = {("cell", 1): Transaction, ("cell", 2): CommitResult, ("cell", 3): PartitionDelta}


class Codec:
    """Encodes and decodes the events of the core and those of some protocols.

    Attributes:
        encode: A value or an event as bytes.
        log_frame: One entry of an event log, of (address, at_us, event): the log form of the event.
        decode: The inverse of encode, with tuples for sequences. Arrays come back read-only. Raises
            AgoraError if an event is unknown, or nested deeper than any of ours, and ValueError if
            the bytes are not such.

    Args:
        events: The event classes of the protocols.

    Raises:
        AgoraError: Two classes have the same kind and number.
    """

    def __init__(self, events: Iterable[type[Event]] = ()) -> None:
        classes: dict[tuple[str, int], type] = dict(_PARTS)
        self._encoder = Encoder(np.ndarray, np.integer)
        decoder = Decoder(_array)
        for cls in (*CORE_EVENTS, *events):
            key = cls.kind, cls.number
            if classes.setdefault(key, cls) is not cls:
                raise AgoraError(
                    f"protocol {cls.kind!r}: two events have the number {cls.number}: "
                    f"{classes[key].__name__} and {cls.__name__}"
                )
            names = [field.name for field in fields(classes[key])]
            decoder.add_class(cls, *key, len(names))
            if not issubclass(cls, NativeEvent):
                self._encoder.add_class(cls, _EVENT, _prefix(key), names)
        # (methods of our own cost as much as a small event)
        self.encode = self._encoder.encode
        self.log_frame = self._encoder.log_entry
        self.decode = decoder.decode

    def log_digest(self) -> LogDigest:
        """A digest of a log's entries."""
        return LogDigest(self._encoder)

    def effects_digest(self, digest_bytes: int) -> EffectsDigest:
        """A blake2b over encoded values, in order."""
        return EffectsDigest(self._encoder, digest_bytes)

    def event_effects_digest(self, measured: Set[str]) -> EventEffectsDigest:
        """Digests of the effects of one event each. The rows of `measured` tables are left out."""
        return EventEffectsDigest(self._encoder, measured)

    def handled_frames(self, measured: Set[str]) -> HandledFrames:
        """The frames of an actor's log. The rows of `measured` tables are left out of digests."""
        return HandledFrames(self._encoder, measured)


def _prefix(key: tuple[str, int]) -> bytes:
    kind, number = key
    return bytes(msgpack.packb(kind) + msgpack.packb(number))


def _array(data: bytes) -> NDArray[Any]:
    """The array in an extension, read-only, without a copy. ValueError if it holds none."""
    try:
        unpacker = msgpack.Unpacker()
        unpacker.feed(data)
        dtype, shape = unpacker.unpack()
        head = unpacker.tell()
        offset = head + -head % _ALIGNMENT
        return np.frombuffer(data, np.dtype(dtype), offset=offset).reshape(shape)
    except Exception as error:
        raise ValueError("an array: malformed") from error


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
