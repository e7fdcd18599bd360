"""The arrivals and sizes of Omega's jobs. They rest on exponential variables of
shared_state.random, which are equal on every machine."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np

from shared_state.random import Stream
from shared_state.tasks import Int64


def poisson_times(stream: Stream, mean_us: float, end_us: int) -> Int64:
    """The times in [0, end_us) of a Poisson process: int64[n], ascending."""
    chunks = [np.zeros(0, np.int64)]
    reached = 0
    while reached < end_us:
        missing = int((end_us - reached) / mean_us) + 64
        gap_us = (stream.exponential(missing) * mean_us).astype(np.int64)
        chunks.append(reached + np.cumsum(gap_us))
        reached = int(chunks[-1][-1])
    times: Int64 = np.concatenate(chunks)
    return times[times < end_us]


def geometric(stream: Stream, n: int, mean: float) -> Int64:
    """Draw from the geometric distribution on 1, 2, ... with this mean, at least 1: int64[n]. It is
    an exponential variable rounded up."""
    if mean == 1:
        return np.ones(n, np.int64)
    context = Context(prec=28)
    stay = context.subtract(Decimal(1), context.divide(Decimal(1), Decimal(repr(mean))))
    scale = float(context.divide(Decimal(-1), stay.ln(context)))
    drawn: Int64 = np.maximum(np.ceil(stream.exponential(n) * scale).astype(np.int64), 1)
    return drawn
