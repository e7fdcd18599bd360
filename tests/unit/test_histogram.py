"""Histograms: quantiles and distributions against the values themselves."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics import histogram
from tests.unit.metrics_oracle import near


@given(
    st.lists(st.integers(0, 1 << 39), min_size=1, max_size=200),
    st.floats(0.0, 1.0),
    st.integers(0, 50),
)
def test_histogram_quantiles_are_within_the_stated_resolution(
    values: list[int], fraction: float, beyond: int
) -> None:
    counts = np.bincount(histogram.bucket_of(np.array(values)), minlength=histogram.BUCKETS)
    ordered = sorted(values) + [math.inf] * beyond
    rank = max(math.ceil(fraction * len(ordered) - 1e-9), 1)
    exact = ordered[rank - 1]
    assert near(histogram.quantile(counts, fraction, beyond), None if exact == math.inf else exact)


def test_a_quantile_moves_with_the_data_within_a_bucket() -> None:
    """Two runs whose true medians differ by a tenth of a bucket must not look equal, nor a whole
    bucket apart."""
    values = np.arange(1_000_000, 1_004_000)  # buckets of 4,096 values here
    medians = []
    for shift in (0, 400):
        counts = np.bincount(histogram.bucket_of(values + shift), minlength=histogram.BUCKETS)
        medians.append(histogram.quantile(counts, 0.5))
    assert medians[0] is not None and medians[1] is not None
    assert medians[0] < medians[1] < medians[0] + 4096


def test_the_distribution_ends_at_the_committed_share() -> None:
    counts = np.bincount(histogram.bucket_of(np.arange(1, 3001)), minlength=histogram.BUCKETS)
    value, share = histogram.distribution(counts, beyond=1000, points=50)
    assert len(value) <= 52
    assert share[-1] == 0.75
    assert all(abs(s - v / 4000) < 0.02 for v, s in zip(value, share, strict=True))
