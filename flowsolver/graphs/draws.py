"""Uniform draws that are the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flowsolver.arguments import Int64Array

_STEP = 0x9E3779B97F4A7C15  # of SplitMix64


class Draws:
    """Counter-based uniform 64-bit draws (SplitMix64), any number at a time.

    A stream starts at the generator's first output from the seed: streams of neighbouring seeds do
    not overlap.
    """

    def __init__(self, seed: int) -> None:
        self._base = _mixed(
            np.array([(seed * _STEP + 0xD1B54A32D192ED03) & (2**64 - 1)], dtype=np.uint64)
        )[0]
        self._count = 0

    def bits(self, size: int) -> NDArray[np.uint64]:
        """Random bits, uint64[size]."""
        with np.errstate(over="ignore"):
            z = (
                np.arange(self._count + 1, self._count + 1 + size, dtype=np.uint64)
                * np.uint64(_STEP)
                + self._base
            )
        self._count += size
        return _mixed(z)

    def below(self, limit: int | Int64Array, size: int) -> Int64Array:
        """Uniform integers in [0, limit), int64[size]; limit < 2**31, one or one per draw."""
        return (
            (self.bits(size) >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64) >> np.uint64(32)
        ).astype(np.int64)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
