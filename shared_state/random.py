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

_WORD = (1 << 64) - 1


def stream_key(seed: int, name: str, sequence: int = 0) -> int:
    """The key (64 bits) of the stream `name` uses for its `sequence`-th purpose. Seed and sequence
    count modulo 2^64."""
    return int(_native.stream_key(seed & _WORD, name, sequence & _WORD))


def hash64(value: Int64, salt: int) -> NDArray[np.uint64]:
    """uint64[n], a well-spread hash of int64[n]; different salts (modulo 2^64) give unrelated
    hashes."""
    hashed: NDArray[np.uint64] = _native.hash64(np.ascontiguousarray(value, np.int64), salt & _WORD)
    return hashed


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[n], natural logarithms, the same bits on any machine. ValueError unless positive and
    finite."""
    result: NDArray[np.float64] = _native.log(np.ascontiguousarray(x, np.float64))
    return result


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[n], e^x, the same bits on any machine; 0 below -708, infinity above 709. ValueError
    for NaN."""
    result: NDArray[np.float64] = _native.exp(np.ascontiguousarray(x, np.float64))
    return result


class Stream:
    """A sequence of numbers, a pure function of its key and of the calls made so far. ValueError
    for a negative n."""

    def __init__(self, key: int) -> None:
        self._native = _native.Stream(key & _WORD)

    def integers(self, n: int, bound: int) -> Int64:
        """int64[n], exactly uniform on [0, bound). ValueError unless bound is in [1, 2^63)."""
        if not 1 <= bound < 1 << 63:
            raise ValueError(f"bound must lie in [1, 2^63): {bound}")
        result: Int64 = self._native.integers(n, bound)
        return result

    def uniform(self, n: int) -> NDArray[np.float64]:
        """float64[n], uniform multiples of 2^-53 in [0, 1)."""
        result: NDArray[np.float64] = self._native.uniform(n)
        return result

    def normal(self, n: int) -> NDArray[np.float64]:
        """float64[n], standard normal."""
        result: NDArray[np.float64] = self._native.normal(n)
        return result

    def exponential(self, n: int) -> NDArray[np.float64]:
        """float64[n], exponential with mean 1, above 0."""
        result: NDArray[np.float64] = self._native.exponential(n)
        return result

    def lognormal(self, n: int, mean_us: int, sigma: float) -> Int64:
        """int64[n], lognormal with this mean (of the distribution, not of its logarithm) and this
        sigma (of its logarithm), rounded, at least 1. ValueError unless mean_us >= 1 and sigma is
        in [0, 10]."""
        result: Int64 = self._native.lognormal(n, mean_us, sigma)
        return result

    def permutation(self, n: int) -> Int64:
        """int64[n], 0..n-1 in uniformly random order (Fisher-Yates)."""
        result: Int64 = self._native.permutation(n)
        return result
