"""Columns and transactions as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.codec import decode, encode
from shared_state.packing import pack_columns, unpack_columns
from shared_state.transaction import (
    CommitMode,
    ConflictCheck,
    Transaction,
)

DTYPES = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
]


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    low, high = (
        (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    )
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
    assert len(back) == len(arrays)
    for mine, original in zip(back, arrays, strict=True):
        assert (
            mine.dtype == original.dtype
            and mine.shape == original.shape
            and (mine == original).all()
        )
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
    [
        np.zeros(3),
        np.zeros((2, 2, 2), np.int64),
        np.zeros((2, 0), np.int64),
        5,
        None,
    ],
)
def test_what_is_no_column_is_refused(array: object) -> None:
    with pytest.raises(ValueError, match="pack_columns: expected"):
        pack_columns(array)  # type: ignore[arg-type]


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
    original = Transaction(
        scheduler=3,
        sequence=17,
        task=np.arange(5) + 1_000_000,
        machine=np.array([5, 4, 3, 2, 1], np.int32),
        request=np.arange(10).reshape(5, 2),
        synced_us=np.full(5, 123_456_789),
        commit_mode=CommitMode.ALL_OR_NOTHING if present & 1 else CommitMode.INCREMENTAL,
        conflict_check=ConflictCheck.SEQUENCE_NUMBER if present & 2 else ConflictCheck.RESOURCE_FIT,
        gang=np.array([-1, 1, 1, 2, 2]) if present & 1 else None,
        seqnum=np.array([9, 8, 7, 6, (1 << 32) - 1], np.uint32) if present & 2 else None,
        evict=np.array([1 << 40, 5]) if present & 4 else None,
    )
    back = decode(encode(original))
    assert type(back.commit_mode) is CommitMode and type(back.conflict_check) is ConflictCheck
    for field in fields(Transaction):
        mine, other = getattr(back, field.name), getattr(original, field.name)
        if isinstance(other, np.ndarray):
            assert mine.dtype == other.dtype and mine.shape == other.shape and (mine == other).all()
        else:
            assert mine == other


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
