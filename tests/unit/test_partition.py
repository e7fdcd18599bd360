"""Partitions: contiguous, along racks where there are enough of them, any number up to the
machines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec


def make_spec(rack_sizes: list[int]) -> CellSpec:
    rack = np.repeat(np.arange(len(rack_sizes), dtype=np.int32) * 3, rack_sizes)
    machines = len(rack)
    return CellSpec(
        ("slots",),
        np.ones((machines, 1), np.int64),
        rack,
        np.zeros(machines, np.int64),
        np.array([1000]),
    )


@pytest.mark.parametrize(
    ("racks", "partitions", "offsets"),
    [
        ([40] * 8, 4, [0, 80, 160, 240, 320]),
        ([3, 4, 3], 2, [0, 3, 10]),  # the nearest rack
        ([4, 3, 3], 2, [0, 4, 10]),
        ([5, 5], 3, [0, 3, 6, 10]),  # within racks
    ],
)
def test_cuts(racks: list[int], partitions: int, offsets: list[int]) -> None:
    assert Partitioning.by_topology(make_spec(racks), partitions).offsets.tolist() == offsets


@pytest.mark.parametrize("partitions", [0, -1, 11])
def test_numbers_out_of_range_are_refused(partitions: int) -> None:
    with pytest.raises(AgoraError, match="partitions: expected 1 to 10"):
        Partitioning.by_topology(make_spec([5, 5]), partitions)


@pytest.mark.parametrize("offsets", [[], [0], [1, 2], [0, 2, 2], [0, 3, 1], [[0, 1]]])
def test_malformed_offsets_are_refused(offsets: list[int]) -> None:
    with pytest.raises(AgoraError, match="partition offsets"):
        Partitioning(np.array(offsets, np.int64))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_every_partitioning_covers_the_cell(rack_sizes: list[int], data: st.DataObject) -> None:
    spec = make_spec(rack_sizes)
    partitions = data.draw(st.integers(1, spec.machines))
    made = Partitioning.by_topology(spec, partitions)
    sizes = np.diff(made.offsets)
    assert made.count == partitions and made.machines == spec.machines and (sizes > 0).all()
    rows = np.arange(spec.machines, dtype=np.int32)
    assert (
        made.of(rows).tolist()
        == np.repeat(np.arange(partitions), sizes).tolist()
        == made.of_each().tolist()
    )
    assert [rows[made.rows(p)].tolist() for p in range(partitions)] == [
        x.tolist() for x in np.split(rows, made.offsets[1:-1])
    ]
    if len(rack_sizes) >= partitions:
        inner = made.offsets[1:-1]
        assert (spec.rack[inner] != spec.rack[inner - 1]).all()
    else:
        assert sizes.max() - sizes.min() <= 1
