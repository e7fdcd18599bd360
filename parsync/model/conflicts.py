"""Expected scheduling conflicts of one round: Eqs. 1 to 4 of ParSync, section 4.1.

**Definitions.** A round begins with S_idle idle slots, which all schedulers know. Each of N
schedulers picks K of them for its K tasks: at random, independently of the others, never one slot
twice. X_i schedulers pick slot i. One of them gets it, the others conflict: Y_i = max(X_i - 1, 0).

| paper | here |
|---|---|
| N | `schedulers` |
| K | `tasks`, of each scheduler |
| S_idle | `idle_slots` |
| A | `factor` |
| E(Y_i), Eq. 1 | `conflicts_at_slot` |
| E(sum of Y_i), Eq. 2 | `expected_conflicts` |
| f(A), Eqs. 3 and 4 | `conflicts_with_more_schedulers` |
| not in the paper: the limit of f(A) | `conflicts_with_countless_schedulers` |

**Exactness.** Eqs. 1 and 2 are exact expectations, not approximations: the schedulers' picks of one
slot are independent, each with probability K / S_idle. The picks of different slots depend on each
other, but that does not change the expectation of their sum. K need not be a whole number: if
schedulers have K tasks on average, and those that have more are chosen without regard to others,
the probability of a pick is still K / S_idle.

**Corrections of the paper.**

- Eq. 1 needs sampling without replacement within a scheduler and K <= S_idle. The paper says
  neither. With replacement, X_i would count picks instead of schedulers.
- The sums of Eqs. 2 and 3 run to S_idle, not to S: slots that are taken are not picked.
- f(A) grows with A, as the paper says, but it is bounded by
  NK - S_idle + S_idle exp(-NK / S_idle). For N = 10, K = 2,000 and S_idle = 20,000 it grows from
  6,974 to at most 7,358. So Eq. 3 cannot explain the large effect of A in the paper's simulation,
  where schedulers work on stale states.

**Numerics.** N K - S + S (1 - K/S)^N cancels almost completely where conflicts are rare. Here it is
never computed in this form: small values come from the binomial series, all others from expm1 and
log1p. For whole N, results have a relative error below 1e-13.

This is analysis. A scheduler's decisions rest on integers and must not use numpy's exp or log,
whose last digits differ between processors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from parsync.model.parameters import Float64, check_at_most, check_broadcast, numbers

_SERIES_BELOW = 0.5  # mean picks of a slot; above, the closed form loses no digits
_LAST_TERM = 16  # its share of the sum is below 1e-17


def conflicts_at_slot(schedulers: ArrayLike, probability: ArrayLike) -> Float64:
    """The expected conflicts at one slot, E(Y_i) = N p - 1 + (1 - p)^N.

    Source: ParSync, Eq. 1, where p = K / S_idle is the same for all slots. The equation holds for a
    slot with a p of its own just as well.

    Args:
        schedulers: N >= 1.
        probability: p, that one scheduler picks the slot: from 0 to 1.

    Returns:
        Conflicts per round, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
    """
    n = numbers("schedulers", schedulers, at_least=1)
    p = numbers("probability", probability, at_least=0)
    check_at_most("probability", p, 1)
    check_broadcast(schedulers=n, probability=p)
    with np.errstate(divide="ignore"):  # log(0) of a slot that every scheduler picks
        return excess_picks(n * p, p, n * np.log1p(-p))


def expected_conflicts(schedulers: ArrayLike, tasks: ArrayLike, idle_slots: ArrayLike) -> Float64:
    """The expected conflicts of a round, N K - S_idle + S_idle (1 - K / S_idle)^N.

    Source: ParSync, Eq. 2, whose sum runs to S_idle, not to S.

    Args:
        schedulers: N >= 1.
        tasks: K of each scheduler, from 0 to `idle_slots`.
        idle_slots: S_idle >= 1.

    Returns:
        Conflicts per round, float64 of the broadcast shape: of the N K claims, those rejected.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
    """
    n, k, s = _round(schedulers, tasks, idle_slots)
    check_at_most("tasks", k, s, "idle_slots")
    return s * conflicts_at_slot(n, k / s)


def conflicts_with_more_schedulers(
    factor: ArrayLike, schedulers: ArrayLike, tasks: ArrayLike, idle_slots: ArrayLike
) -> Float64:
    """The expected conflicts of a round with A times as many schedulers for the same tasks, f(A).

    Source: ParSync, Eq. 3: Eq. 2 with A N schedulers that have K / A tasks each. Eq. 4 is the same
    in other symbols, C1 + C2 (1 - 1/x)^(x C3) with x = A S_idle / K.

    Args:
        factor: A >= 1. Any real number as in the paper; A N should be whole.
        schedulers: N >= 1.
        tasks: K of each of the N schedulers, from 0 to `factor` * `idle_slots`.
        idle_slots: S_idle >= 1.

    Returns:
        Conflicts per round, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
    """
    a = numbers("factor", factor, at_least=1)
    n, k, s = _round(schedulers, tasks, idle_slots)
    check_broadcast(factor=a, schedulers=n, tasks=k, idle_slots=s)
    check_at_most("tasks", k, a * s, "factor * idle_slots")
    return expected_conflicts(a * n, np.minimum(k / a, s), s)


def conflicts_with_countless_schedulers(
    schedulers: ArrayLike, tasks: ArrayLike, idle_slots: ArrayLike
) -> Float64:
    """What f(A) tends to, and stays below: N K - S_idle + S_idle exp(-N K / S_idle).

    Not in the paper, which says only that f(A) grows. (1 - 1/x)^x tends to 1/e as x grows.
    The limit is at most N / (N - 1) times f(1), and near to that where conflicts are rare.

    Args:
        schedulers: N >= 1.
        tasks: K >= 0 of each of the N schedulers; N K tasks in all.
        idle_slots: S_idle >= 1.

    Returns:
        Conflicts per round, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
    """
    n, k, s = _round(schedulers, tasks, idle_slots)
    picks = n * k / s
    return s * excess_picks(picks, np.zeros_like(picks), -picks)


def _round(
    schedulers: ArrayLike, tasks: ArrayLike, idle_slots: ArrayLike
) -> tuple[Float64, Float64, Float64]:
    n = numbers("schedulers", schedulers, at_least=1)
    k = numbers("tasks", tasks, at_least=0)
    s = numbers("idle_slots", idle_slots, at_least=1)
    check_broadcast(schedulers=n, tasks=k, idle_slots=s)
    return n, k, s


def excess_picks(picks: Float64, probability: Float64, log_unpicked: Float64) -> Float64:
    """E max(X - 1, 0) = E(X) - 1 + Pr(X = 0), where X is binomial, or Poisson as its limit.

    Args:
        picks: E(X) = N p >= p.
        probability: p; 0 for Poisson.
        log_unpicked: log Pr(X = 0).

    Returns:
        float64 of the broadcast shape. Nothing is checked.
    """
    picks, probability, log_unpicked = np.broadcast_arrays(picks, probability, log_unpicked)
    closed = np.where(picks > probability, picks + np.expm1(log_unpicked), 0.0)  # 0 where N = 1
    return np.where(picks < _SERIES_BELOW, _series(picks, probability), closed)


def _series(picks: Float64, probability: Float64) -> Float64:
    """The sum over j >= 2 of (-1)^j binomial(N, j) p^j, for small N p."""
    x = np.minimum(picks, _SERIES_BELOW)
    term = x * (x - probability) / 2
    total = term.copy()
    for j in range(2, _LAST_TERM):
        term = -term * (x - j * probability) / (j + 1)
        total += term
    return total
