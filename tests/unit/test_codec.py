"""Columns, transactions and events as bytes."""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.core import events
from parsync.core.codec import CORE, Codec, decode, encode
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event, Priority
from parsync.metrics.record import Record
from parsync.protocols.optimistic import events as optimistic_events
from shared_state._native import pack_columns, unpack_columns
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest, JournalWriter, read_journal
from shared_state.transaction import (
    CommitMode,
    CommitResult,
    ConflictCheck,
    PartitionDelta,
    Transaction,
)
from tests.fixtures.same import same


@dataclass(frozen=True, slots=True)
class Nest(Event):
    """An event of somebody's own protocol, with anything in it."""

    kind: ClassVar[str] = "nest"
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    inside: object


WITH_NESTS = Codec([Nest])
I64 = np.array([3, -1, 2**62], np.int64)
I32 = np.array([0, 5, 7], np.int32)
REQUEST = np.arange(6, dtype=np.int64).reshape(3, 2)
SEQNUM = np.array([1, 2, 2**32 - 1], np.uint32)
MODES = CommitMode.ALL_OR_NOTHING, ConflictCheck.SEQUENCE_NUMBER
TRANSACTION = Transaction(4, 9, I64, I32, REQUEST, I64, *MODES, I64, SEQNUM, None)
CHANGED = np.array([0, 9], np.uint16), np.array([[1], [-3]], np.int8), np.array([True, False])
DELTA = PartitionDelta(2, 0, 17, 1234, *CHANGED, None)
RESULT = CommitResult(9, np.array([0, 2, 1], np.int8), I64, I32, I64, I64, I64[:0])
EVENTS = [
    events.Started(3),
    events.TasksSubmitted(I64),
    events.SyncRequest(1, I32, I64, True),
    events.SyncReply(0, (DELTA, DELTA)),
    events.CommitRequest(1, TRANSACTION),
    events.CommitReply(1, 4, RESULT),
    events.DecisionDone(5, 1000),
    events.TasksStarted(77, I64, I64, I32, I32),
    events.TasksCancelled(I64),
    events.TasksFinished(I64, I32, I64),
    events.TasksEnded(4, I64, I64, I32, I64.reshape(3, 1), I64),
    events.TasksAdopted(I64, I64, I32),
    events.MachinesChanged(I32, np.array([True, False, True])),
    events.SampleDue(2),
    events.HeartbeatDue(),
    events.PhaseDue(1),
    events.ArrivalsDue(7),
    events.MachinesDue(0),
    events.ClaimsSettled(TRANSACTION, RESULT),
    events.AllocationsEnded(3, I64, I64, I32, I32),
    events.QuotaRoundDue(4),
    events.QuotaRequest(4),
    events.QuotaReport(2, 4, I64.reshape(3, 1), I64.reshape(1, 3)),
    events.QuotaGrant(4, I64.reshape(3, 1), I64.reshape(3, 1)),
    events.QuotaShares(4, I64.reshape(3, 1), I64.reshape(3, 1), I64.reshape(3, 1)),
    events.RunningRequest(2, I32, 9),
    events.RunningReply(I32, I64, I64, I32),
    events.CommitRequest(1, replace(TRANSACTION, holds=I64[:2])),
    events.HoldRequest(-5, 3, I32, I32, REQUEST),
    events.HoldReply(3, I64),
    events.HoldsReleased(I64),
    events.HoldsEnded(I64, REQUEST, 1),
    events.RoomFreed(I32),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_come_back_as_they_were(event: object) -> None:
    assert same(decode(encode(event)), event)
    assert encode(decode(encode(event))) == encode(event)


def test_every_event_is_tried_here_and_declares_its_number_and_priority() -> None:
    assert {type(event) for event in EVENTS} == set(events.CORE_EVENTS)
    for classes in (events.CORE_EVENTS, optimistic_events.EVENTS):
        assert all(isinstance(cls.priority, Priority) for cls in classes)
        assert len({cls.number for cls in classes}) == len(classes)
        assert len({cls.kind for cls in classes}) == 1


def test_log_form_of_a_sync_reply_leaves_the_payload_out() -> None:
    small = CORE.log_frame(3, 10, events.SyncReply(0, (DELTA,)))
    rows = np.arange(900, dtype=np.uint16), np.zeros((900, 1), np.int8), np.ones(900, bool)
    big = PartitionDelta(2, 0, 17, 1234, *rows, None)
    assert CORE.log_frame(3, 10, events.SyncReply(0, (big,))) == small
    other = PartitionDelta(2, 0, 18, 1234, DELTA.row, DELTA.used, DELTA.up, None)
    assert CORE.log_frame(3, 10, events.SyncReply(0, (other,))) != small


EDGES = [
    sign * 2**bits + off
    for bits in (0, 5, 7, 8, 15, 16, 31, 32, 63)
    for sign in (1, -1)
    for off in (-1, 0, 1)
]
INTS = st.sampled_from([edge for edge in EDGES if -(2**63) <= edge < 2**64]) | st.integers(
    -(2**63), 2**64 - 1
)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | INTS
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20)
    ),
    max_leaves=40,
)


@given(PLAIN)
def test_plain_values_are_encoded_as_msgpack_does(value: object) -> None:
    assert encode(value) == msgpack.packb(value)


@pytest.mark.parametrize("size", [15, 16, 31, 32, 255, 256, 65535, 65536])
def test_sizes_at_which_the_head_grows(size: int) -> None:
    for value in (b"x" * size, "x" * size, [1] * size, {str(k): k for k in range(size)}):
        assert encode(value) == msgpack.packb(value)
    assert same(decode(encode(np.arange(size))), np.arange(size))
    assert same(
        decode(encode(events.TasksSubmitted(np.arange(size)))),
        events.TasksSubmitted(np.arange(size)),
    )


@pytest.mark.parametrize("value", [np.int64(-7), np.uint8(200), Priority.COMMIT])
def test_integers_of_other_types_are_encoded_as_integers(value: int) -> None:
    assert encode(value) == encode(int(value))


def test_arrays_are_aligned_for_native_code() -> None:
    for values in (np.arange(3), np.arange(7, dtype=np.int8), np.arange(6.0).reshape(2, 3)):
        back = decode(encode((1, values)))[1]
        assert back.flags.aligned and same(back, values)


def test_the_log_digest_is_that_of_the_frames() -> None:
    log, digest = CORE.log_digest(), EventDigest()
    for round_number in range(3):
        for address, event in enumerate([*EVENTS, events.TasksSubmitted(np.arange(50_000))]):
            log.frames.append(address, round_number, event)
            digest.update(CORE.log_frame(address, round_number, event))
        assert log.hexdigest() == digest.hexdigest()
    with pytest.raises(TypeError, match="cannot encode"):
        log.frames.append(0, 9, Nest(object()))
    assert log.hexdigest() == digest.hexdigest(), "what cannot be encoded leaves no trace"


def test_unknown_codes_and_objects_are_refused() -> None:
    with pytest.raises(AgoraError, match="unknown extension 99"):
        decode(msgpack.packb(msgpack.ExtType(99, b"")))
    with pytest.raises(TypeError, match="cannot encode"):
        encode(object())
    with pytest.raises(TypeError, match="cannot encode"):
        encode({1, 2})
    for too_large in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError):
            encode(too_large)
    with pytest.raises(ValueError, match="cannot encode: expected arrays"):
        WITH_NESTS.encode(Nest(np.array([1.5])))


def nested(levels: int) -> bytes:
    """Nest(Nest(...))."""
    data = b"\xc0"
    for _ in range(levels):
        data = msgpack.packb(
            msgpack.ExtType(1, b"\xa4nest\x01" + b"\x93\x00\x91" + data + b"\xc4\x00")
        )
    return data


@pytest.mark.parametrize("levels", [5, 200, 5000])
def test_events_nested_deeper_than_any_of_ours_are_refused(levels: int) -> None:
    """Hundreds of them crashed the process: each level takes much of the C stack."""
    assert WITH_NESTS.decode(nested(3)) == Nest(Nest(Nest(None)))
    with pytest.raises(AgoraError, match="nested"):
        WITH_NESTS.decode(nested(levels))


@pytest.mark.parametrize("size", [0, 1, 124, 125, 126, 127, 128, 129, 253, 254, 255, 256, 5000])
def test_the_digest_of_effects_is_blake2b(size: int) -> None:
    digest, values = CORE.effects_digest(16), (b"x" * size, b"", TRANSACTION)
    for _ in range(2):
        for value in values:
            digest.add(value)
        data = encode(events.Started(size))
        assert digest.add_outgoing(7, events.Started(size)) == data
        hashed = b"".join(map(encode, values)) + encode((7, len(data))) + data
        assert digest.take() == hashlib.blake2b(hashed, digest_size=16).digest()


def test_an_event_is_logged_with_the_digest_of_its_effects(tmp_path: Path) -> None:
    rows = {"at_us": I64, "agent": I32}
    effects: list[Effect] = [
        Send(np.int64(3), EVENTS[1]),  # type: ignore[arg-type]  # an int to those who look
        SetTimer(-5, Nest("me")),
        Record("measured", rows),
        Record("rows", rows),
        StartDecision(9),
    ]
    logged = [(3, EVENTS[1]), (-5, Nest("me")), ("rows", tuple(rows.values())), 9]
    data = b"".join(map(WITH_NESTS.encode, logged))
    digest = hashlib.blake2b(data, digest_size=8).digest()
    frames = WITH_NESTS.handled_frames({"measured"})
    with JournalWriter(tmp_path / "log", sync=False) as writer:
        for at_us, event in enumerate(EVENTS):
            frames.append(4, at_us, event, effects)
            with pytest.raises(TypeError, match="cannot encode"):
                frames.append(4, at_us, event, [Send(3, object())])  # type: ignore[arg-type]
        writer.append_frames(frames.take())
    assert list(read_journal(tmp_path / "log")) == [
        encode((WITH_NESTS.log_frame(4, at_us, event), digest))
        for at_us, event in enumerate(EVENTS)
    ]


def of_another_type(event: Event, was: bytes, becomes: bytes) -> bytes:
    data = encode(event)
    assert data.count(was) == 1
    return data.replace(was, becomes)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (encode((1, 2))[:-1], "cut off"),
        (encode((1, 2)) + b"\xc0", "more than there should be"),
        (b"\xc1", "no value"),
        (b"\x91" * 5000 + b"\xc0", "nested too deep"),
        (b"\xdd\xff\xff\xff\xff", "cut off"),
        (b"\xa1\xff", "utf-8"),
        (of_another_type(events.Started(3), b"\x91\x03", b"\x91\xc0"), "expected epoch"),
        (of_another_type(events.Started(3), b"\x91\x03", b"\x90"), "cut off"),
        (of_another_type(events.TasksSubmitted(I64[:1]), b"q", b"i"), "task: expected an array"),
        (of_another_type(events.TasksSubmitted(I64[:1]), b"\x93\x01", b"\x93\x02"), "lacks"),
    ],
)
def test_bytes_that_are_no_value_are_refused(data: bytes, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        decode(data)


def test_events_of_python_classes_with_too_much_are_refused() -> None:
    data = WITH_NESTS.encode(Nest(7))
    assert data.count(b"\x91\x07") == 1 and WITH_NESTS.decode(data) == Nest(7)
    for fields in (b"\x92\x07\x08", b"\x92\x07\xc0"):
        grown = bytearray(data.replace(b"\x91\x07", fields))
        grown[grown.index(len(data) - 3)] += len(fields) - 2  # the bytes of the extension
        with pytest.raises(ValueError, match="a field too many"):
            WITH_NESTS.decode(bytes(grown))


def test_a_protocol_whose_name_is_no_text_is_unknown() -> None:
    data = WITH_NESTS.encode(Nest(7)).replace(b"nest", b"n\x80st")
    with pytest.raises(AgoraError, match="unknown event 1 of protocol"):
        WITH_NESTS.decode(data)


@given(st.sampled_from(EVENTS), st.data())
def test_no_damage_to_an_event_crashes(event: Event, draws: st.DataObject) -> None:
    data = bytearray(WITH_NESTS.encode(Nest((event, {"a": 1.5}, I32))))
    # (bytes below 16 would ask for columns of gigabytes, which are allowed)
    for _ in range(draws.draw(st.integers(1, 3))):
        data[draws.draw(st.integers(0, len(data) - 1))] = draws.draw(st.integers(16, 255))
    try:
        back = WITH_NESTS.decode(bytes(data))
    except (AgoraError, ValueError, TypeError):
        return
    WITH_NESTS.encode(back)


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray:
    dtype = np.dtype(draw(st.sampled_from("?bBhHiIqQ")))
    low, high = 0, 1
    if dtype != np.bool_:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    near = draw(st.integers(low, high))
    spread = draw(st.sampled_from([0, 100, 1 << 12, 1 << 30, 1 << 64]))
    value = st.integers(max(low, near - spread), min(high, near + spread))
    width = draw(st.integers(0, 3))
    values = draw(st.lists(value, max_size=12))
    if width:
        return np.array(values[: len(values) // width * width], dtype).reshape(-1, width)
    return np.array(values, dtype)


@given(st.lists(columns(), max_size=4))
def test_packed_columns_come_back(arrays: list[np.ndarray]) -> None:
    packed = pack_columns(*arrays)
    back = unpack_columns(packed)
    assert same(back, list(arrays))
    for cut in range(1, len(packed)):
        try:
            short = unpack_columns(packed[:cut])
        except ValueError:
            continue
        assert len(short) < len(arrays), "a cut between columns only"


@pytest.mark.parametrize(
    ("array", "packed_bytes"),
    [
        (np.full(1000, -7), 0),
        (np.arange(256) - 9, 256),
        (np.arange(257), 514),
        (np.array([0, 1 << 16]), 8),
        (np.array([-(1 << 63), 1 << 62]), 16),
    ],
)
def test_offsets_take_the_fewest_bytes(array: np.ndarray, packed_bytes: int) -> None:
    assert len(pack_columns(array)) == 16 + packed_bytes


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros((2, 2, 2), np.int64), np.zeros((2, 0), np.int64), 5, None],
)
def test_what_is_no_column_is_refused(array: object) -> None:
    with pytest.raises(ValueError, match="pack_columns: expected"):
        pack_columns(array)  # type: ignore[arg-type]


def test_a_column_of_more_values_than_memory_holds_is_refused() -> None:
    column = struct.pack("<cBBxIQ", b"q", 0, 255, (1 << 32) - 1, 1)
    with pytest.raises(ValueError, match="values"):
        unpack_columns(column)


def with_parts(change: Callable[[list[Any]], None]) -> bytes:
    """An encoded transaction whose parts after its kind and number were changed."""
    none = np.zeros(0, np.int64)
    transaction = Transaction(0, 1, none, none.astype(np.int32), none.reshape(0, 1), none)
    unpacker = msgpack.Unpacker()
    unpacker.feed(msgpack.unpackb(encode(transaction)).data)
    kind, number, parts = unpacker.unpack(), unpacker.unpack(), unpacker.unpack()
    assert (kind, number) == ("cell", 1)
    change(parts)
    return msgpack.packb(msgpack.ExtType(1, b"".join(map(msgpack.packb, (kind, number, parts)))))


@pytest.mark.parametrize("present", range(8))
def test_transactions_come_back(present: int) -> None:
    original = replace(
        TRANSACTION,
        commit_mode=CommitMode.ALL_OR_NOTHING if present & 1 else CommitMode.INCREMENTAL,
        conflict_check=ConflictCheck.SEQUENCE_NUMBER if present & 2 else ConflictCheck.RESOURCE_FIT,
        gang=I64 if present & 1 else None,
        seqnum=SEQNUM if present & 2 else None,
        evict=np.array([1 << 40, 5]) if present & 4 else None,
    )
    assert same(decode(encode(original)), original)


def put(at: int, value: Any) -> Callable[[list[Any]], None]:
    return lambda parts: parts.__setitem__(at, value)


@pytest.mark.parametrize(
    "change",
    [
        list.pop,
        lambda parts: parts.append(0),
        lambda parts: put(5, parts[5][:-1])(parts),
        lambda parts: put(5, parts[5] + pack_columns(np.zeros(0, np.int64)))(parts),
        lambda parts: put(5, pack_columns(np.zeros(0, np.int32)) + parts[5][16:])(parts),
        put(0, "none"),
        put(2, 7),
        put(3, -1),
        put(4, 1),
    ],
)
def test_a_malformed_transaction_is_refused(change: Callable[[list[Any]], None]) -> None:
    decode(with_parts(lambda parts: None))
    with pytest.raises(ValueError, match="encoded transaction: malformed"):
        decode(with_parts(change))
