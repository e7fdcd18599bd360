"""Random streams keyed by (seed, name, sequence): the same numbers on any machine, in any order of
use.

Philox4x64-10 (Salmon et al., SC 2011) and elementary functions of our own (native/random.hpp):
decisions and workloads never rest on numpy's or libm's exp and log, whose last bits differ between
machines.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared_state import _native
from shared_state.tasks import Int64

WORD = (1 << 64) - 1


def stream_key(seed: int, name: str, sequence: int = 0) -> int:
    """The key (64 bits) of the stream `name` uses for its `sequence`-th purpose. Seed and sequence
    count modulo 2^64."""
    return int(_native.stream_key(seed & WORD, name, sequence & WORD))


def hash64(value: Int64, salt: int) -> NDArray[np.uint64]:
    """A well-spread hash uint64[n] of int64[n]; different salts (modulo 2^64) give unrelated
    hashes."""
    hashed: NDArray[np.uint64] = _native.hash64(np.ascontiguousarray(value, np.int64), salt & WORD)
    return hashed


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithms, float64[n], the same bits on any machine. Raises ValueError unless all
    values are positive and finite."""
    result: NDArray[np.float64] = _native.log(np.ascontiguousarray(x, np.float64))
    return result


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The powers e^x, float64[n], the same bits on any machine; 0 below -708, infinity above 709.
    Raises ValueError for NaN."""
    result: NDArray[np.float64] = _native.exp(np.ascontiguousarray(x, np.float64))
    return result


class Stream:
    """A sequence of numbers, a pure function of its key and of the calls made so far. ValueError
    for a negative n."""

    def __init__(self, key: int) -> None:
        self._native = _native.Stream(key & WORD)

    def integers(self, n: int, bound: int) -> Int64:
        """Draw integers exactly uniformly from [0, bound): int64[n]. Raises ValueError unless bound
        is in [1, 2^63)."""
        if not 1 <= bound < 1 << 63:
            raise ValueError(f"bound must lie in [1, 2^63): {bound}")
        result: Int64 = self._native.integers(n, bound)
        return result

    def uniform(self, n: int) -> NDArray[np.float64]:
        """Draw uniform multiples of 2^-53 in [0, 1): float64[n]."""
        result: NDArray[np.float64] = self._native.uniform(n)
        return result

    def normal(self, n: int) -> NDArray[np.float64]:
        """Draw from the standard normal distribution: float64[n]."""
        result: NDArray[np.float64] = self._native.normal(n)
        return result

    def exponential(self, n: int) -> NDArray[np.float64]:
        """Draw from the exponential distribution of mean 1, above 0: float64[n]."""
        result: NDArray[np.float64] = self._native.exponential(n)
        return result

    def lognormal(self, n: int, mean_us: int, sigma: float) -> Int64:
        """Draw from the lognormal distribution with this mean (of the distribution, not of its
        logarithm) and this sigma (of its logarithm), rounded, at least 1: int64[n]. Raises
        ValueError unless mean_us >= 1 and sigma is in [0, 10]."""
        result: Int64 = self._native.lognormal(n, mean_us, sigma)
        return result

    def permutation(self, n: int) -> Int64:
        """Draw a uniformly random order of 0..n-1 (Fisher-Yates): int64[n]."""
        result: Int64 = self._native.permutation(n)
        return result
