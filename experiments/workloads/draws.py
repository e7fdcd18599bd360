"""Random draws that are equal on every machine: integer weight tables and searches, no
floating-point power or logarithm.

The tables come from `decimal`, whose results are correctly rounded by specification; drawing is an
integer and a binary search.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from shared_state.random import Stream
from shared_state.tasks import Int64

_CONTEXT = Context(prec=28, rounding=ROUND_HALF_EVEN)
_WEIGHT_ONE = 1 << 40


def power(base: int, exponent: float) -> Decimal:
    """base ** exponent, correctly rounded to 28 digits (`exponent` is taken by its shortest decimal
    form)."""
    return _CONTEXT.power(Decimal(base), Decimal(repr(exponent)))


def exponential(exponent: float) -> Decimal:
    """e ** exponent, correctly rounded to 28 digits."""
    return _CONTEXT.exp(Decimal(repr(exponent)))


def _cumulative(weights: list[Decimal]) -> Int64:
    quantised = [
        max(1, int((weight * _WEIGHT_ONE).to_integral_value(ROUND_HALF_EVEN))) for weight in weights
    ]
    return np.cumsum(np.array(quantised, np.int64))


def zipf_table(ranks: int, exponent: float) -> Int64:
    """int64[ranks], cumulative weights of ranks 1..ranks with weight rank ** -exponent."""
    return _cumulative([power(rank, -exponent) for rank in range(1, ranks + 1)])


def bounded_pareto_table(largest: int, alpha: float) -> Int64:
    """int64[largest], cumulative weights of the sizes 1..largest: a Pareto variable of minimum 1,
    rounded down, given it is <= largest."""
    tail = [power(size, -alpha) for size in range(1, largest + 2)]
    return _cumulative([tail[size] - tail[size + 1] for size in range(largest)])


def draw(stream: Stream, cumulative: Int64, n: int) -> Int64:
    """int64[n] in [0, len(cumulative)): positions drawn by the table's weights."""
    position: Int64 = np.searchsorted(
        cumulative, stream.integers(n, int(cumulative[-1])), side="right"
    )
    return position


def draw_below(stream: Stream, bound: Int64) -> Int64:
    """int64[n]: uniform in [0, bound[i]). The bias is below bound / 2^62."""
    drawn: Int64 = stream.integers(len(bound), 1 << 62) % bound
    return drawn
