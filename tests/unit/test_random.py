"""Streams: known answers, an independent Philox, exact uniformity, distributions against their
theory at fixed seeds."""

import hashlib
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from shared_state import _native
from shared_state.random import Stream, exp, hash64, log, stream_key

# Random123's known-answer file (philox4x64, 10 rounds, counter 0 and key 0).
PHILOX_ZERO = (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)


def test_philox_known_answer():
    assert _native.philox(0, 0) == PHILOX_ZERO


@pytest.mark.parametrize("key", [0, 1, 0x9E3779B97F4A7C15, (1 << 64) - 1])
def test_stream_is_numpys_philox(key):
    # numpy increments before use
    theirs = np.random.Philox(key=key, counter=(1 << 256) - 1).random_raw(1000)
    ours = Stream(key).uniform(1000)
    assert np.array_equal(ours, (theirs >> np.uint64(11)) * 2.0**-53)


def test_keys_are_pinned_and_distinct():
    assert stream_key(1, "agent/3", 7) == 0xDA75ED3FA80FDE2D
    keys = {
        stream_key(seed, name, sequence)
        for seed in range(-2, 10)
        for name in ("", "a", "b", "ab", "ba", "agent/1", "agent/11")
        for sequence in range(50)
    }
    assert len(keys) == 12 * 7 * 50
    assert stream_key(-1, "a") == stream_key((1 << 64) - 1, "a")


def test_bounded_integers_are_exactly_uniform():
    """A bound of 3 * 2^61 makes a plain multiply-high give every third value twice as often;
    rejection must not."""
    values = Stream(5).integers(30_000, 3 << 61)
    assert stats.chisquare(np.bincount(values % 3, minlength=3)).pvalue > 1e-3
    for bound in (1, 2, 7, 1000):
        counts = np.bincount(Stream(bound).integers(50_000, bound), minlength=bound)
        assert len(counts) == bound
        assert bound == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_uniform_and_exponential():
    assert stats.kstest(Stream(11).uniform(100_000), "uniform").pvalue > 1e-3
    exponential = Stream(12).exponential(100_000)
    assert exponential.min() > 0
    assert stats.kstest(exponential, "expon").pvalue > 1e-3


def test_normal():
    values = Stream(13).normal(100_000)
    assert stats.kstest(values, "norm").pvalue > 1e-3
    # The same function of the same uniforms as the standard library's independent AS 241.
    uniform = (
        np.random.Philox(key=13, counter=(1 << 256) - 1).random_raw(2000) >> np.uint64(12)
    ).astype(float)
    expected = [statistics.NormalDist().inv_cdf(p) for p in (uniform + 0.5) * 2.0**-52]
    assert np.allclose(values[:2000], expected, rtol=1e-13, atol=1e-15)


def test_lognormal_has_the_stated_mean_and_spread():
    """ParSync's task durations: mean 5 s, sigma 1.18; 88 % under 10 s (section 4.3)."""
    values = Stream(14).lognormal(200_000, 5_000_000, 1.18)
    assert abs(values.mean() / 5e6 - 1) < 4 * math.sqrt((math.exp(1.18**2) - 1) / 200_000)
    assert abs(np.log(values).std() / 1.18 - 1) < 0.01
    assert abs((values < 10_000_000).mean() - 0.88) < 0.01
    assert Stream(1).lognormal(3, 7, 0.0).tolist() == [7, 7, 7]
    assert Stream(1).lognormal(1000, 1, 3.0).min() == 1


def test_log_and_exp_are_within_an_ulp_or_two():
    x = np.concatenate(
        [
            np.exp(Stream(15).uniform(20_000) * 1400 - 700),
            [5e-324, 2.2e-308, 1.0, 0.5, 2.0, 1.7e308],
        ]
    )
    assert (np.abs(log(x) - np.log(x)) <= 2 * np.spacing(np.abs(np.log(x)))).all()
    y = Stream(16).uniform(20_000) * 1400 - 700
    assert (np.abs(exp(y) - np.exp(y)) <= 2 * np.spacing(np.exp(y))).all()
    assert exp(np.array([0.0, -1000.0, 1000.0])).tolist() == [1.0, 0.0, math.inf]


def test_elementary_functions_are_pinned():
    """The very bits, as on every machine: a digest of a thousand values of each."""
    x = Stream(17).uniform(1000) * 20 + 1e-3
    bits = b"".join(
        v.tobytes()
        for v in (log(x), exp(x - 10), Stream(18).normal(1000), Stream(19).exponential(1000))
    )
    assert hashlib.blake2b(bits, digest_size=8).hexdigest() == "12accc26444c0700"


def test_permutation_is_uniform():
    counts: dict[tuple[int, ...], int] = {}
    stream = Stream(20)
    for _ in range(12_000):
        order = tuple(stream.permutation(4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    assert sorted(stream.permutation(1000).tolist()) == list(range(1000))
    assert len(stream.permutation(0)) == 0


def test_hash64_spreads_and_salts():
    rows = np.arange(100_000, dtype=np.int64)
    hashed = hash64(rows, 3)
    assert len(np.unique(hashed)) == len(rows)
    assert stats.chisquare(np.bincount((hashed % np.uint64(64)).astype(int))).pvalue > 1e-3
    flipped = np.unpackbits((hashed ^ hash64(rows, 4)).view(np.uint8)).mean()
    assert abs(flipped - 0.5) < 0.001
    assert hash64(np.array([-5, 0, 5], np.int64), 1).tolist() == [
        15699356660858286423,
        8478439144037988929,
        12935627295412047660,
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.integers(3, 0),
        lambda s: s.integers(3, 1 << 63),
        lambda s: s.uniform(-1),
        lambda s: s.permutation(-1),
        lambda s: s.lognormal(3, 0, 1.0),
        lambda s: s.lognormal(3, 5, -1.0),
        lambda s: s.lognormal(3, 5, math.nan),
        lambda s: log(np.array([0.0])),
        lambda s: log(np.array([math.inf])),
        lambda s: exp(np.array([math.nan])),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError):
        call(Stream(1))
