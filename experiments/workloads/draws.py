"""Random draws that are equal on every machine.

Distributions are tables of integer weights, computed with `decimal`, whose results are correctly
rounded by specification. A draw is a random integer and a binary search; no floating-point power
or logarithm takes part. The arrivals and sizes of Omega's jobs rest on exponential variables of
shared_state.random, which are equal on every machine, too.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from shared_state.random import Stream
from shared_state.tasks import Int64

_CONTEXT = Context(prec=28, rounding=ROUND_HALF_EVEN)
_WEIGHT_ONE = 1 << 40


def power(base: int, exponent: float) -> Decimal:
    """The power base ** exponent, correctly rounded to 28 digits. The exponent counts as its
    shortest decimal form."""
    return _CONTEXT.power(Decimal(base), Decimal(repr(exponent)))


def exponential(exponent: float) -> Decimal:
    """The power e ** exponent, correctly rounded to 28 digits."""
    return _CONTEXT.exp(Decimal(repr(exponent)))


def _cumulative(weights: list[Decimal]) -> Int64:
    quantised = [
        max(1, int((weight * _WEIGHT_ONE).to_integral_value(ROUND_HALF_EVEN))) for weight in weights
    ]
    return np.cumsum(np.array(quantised, np.int64))


def zipf_table(ranks: int, exponent: float) -> Int64:
    """The cumulative weights int64[ranks] of Zipf's law: rank r has weight r ** -exponent."""
    return _cumulative([power(rank, -exponent) for rank in range(1, ranks + 1)])


def bounded_pareto_table(largest: int, alpha: float) -> Int64:
    """The cumulative weights int64[largest] of the sizes 1..largest: a Pareto variable of minimum
    1, rounded down, on condition that it is at most `largest`."""
    tail = [power(size, -alpha) for size in range(1, largest + 2)]
    return _cumulative([tail[size] - tail[size + 1] for size in range(largest)])


def draw(stream: Stream, cumulative: Int64, n: int) -> Int64:
    """Draw n positions of a table by its weights: int64[n] in [0, len(cumulative))."""
    position: Int64 = np.searchsorted(
        cumulative, stream.integers(n, int(cumulative[-1])), side="right"
    )
    return position


def draw_below(stream: Stream, bound: Int64) -> Int64:
    """Draw uniformly from [0, bound[i]) for each i: int64[n]. The bias is below bound / 2^62."""
    drawn: Int64 = stream.integers(len(bound), 1 << 62) % bound
    return drawn


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
