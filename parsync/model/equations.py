"""ParSync's equations: conflicts (section 4.1), conflicts where slots are preferred, and staleness
(section 5.1). This is analysis. A scheduler's decisions rest on integers and must not use numpy's
exp or log, whose last digits differ between processors.

Parameters are numbers or arrays of them, which are broadcast together. Results are float64 of the
broadcast shape. A parameter out of its range, or shapes that cannot be broadcast together, are an
AgoraError that names them.

**Expected conflicts of one round, Eqs. 1 to 4.** A round begins with S_idle idle slots, which all
schedulers know. Each of N schedulers picks K of them for its K tasks: at random, independently of
the others, never one slot twice. X_i schedulers pick slot i. One of them gets it, the others
conflict: Y_i = max(X_i - 1, 0).

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

**Weighted slots, which Eqs. 1 to 4 leave out.** Section 4.2 [A1] of the paper says that preferred
machines cause more conflicts than the equations expect; its simulator (section 4.3) draws slots by
weights that come from their scores. The model here does the same: a scheduler draws its K slots one
by one, without replacement, each with a probability proportional to the weights of the slots that
it has left.

Eq. 1 holds for every slot with the probability p_i that a scheduler picks it, so that the conflicts
of a round are the sum of N p_i - 1 + (1 - p_i)^N. This is convex in p_i, and the p_i sum up to K:
unequal weights never give fewer conflicts than Eq. 2, and equal ones give Eq. 2.

The p_i have no closed form. Each slot may be given an exponential clock with its weight as rate:
the first K slots to ring are such a draw (Efraimidis and Spirakis, 2006). With many slots, the
K-th rings at nearly the same time t in every draw, so p_i = 1 - exp(-w_i t), with t such that the
p_i sum up to K (Rosén, 1972). For equal weights this is exact. Otherwise its error falls as there
are more slots: it is about 0.3 % of the conflicts at 50 slots, and below 0.1 % from 300 slots
on.

Slots of equal weight are counted together, in classes.

**Staleness of a synchronised view.** The staleness of a partition is the time since its latest
synchronisation; the average staleness of a view is the mean over its partitions. A view that is
refreshed in B equal blocks, one every G / B, has blocks of the ages 0, G/B, ..., (B-1) G/B right
after a synchronisation, whose mean is G (B-1) / 2B. Until the next one it grows by G/B, to G (B+1)
/ 2B. Over time it is uniform between
the two: its mean is G/2 for every B, its variance G^2 / 12 B^2.

| sync policy | blocks B |
|---|---|
| StateSync, aligned or staggered | 1 |
| DiffSyn and SameSyn in blocks of P/N partitions (section 5.1) | N |
| DiffSyn, one partition at a time (supplement A.3) | P |

The paper derives the bounds for B = 1 and 2, and says that they close in on G/2. If P is no
multiple of N, blocks differ by one partition, and the bounds move by less than G / P.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared_state.errors import AgoraError

Float64 = NDArray[np.float64]


_SERIES_BELOW = 0.5  # mean picks of a slot; above, the closed form loses no digits
_LAST_TERM = 16  # its share of the sum is below 1e-17
MOST_VARIANCE = 1000.0  # beyond it weights leave the range of floating-point numbers
_MOST_STEPS = 10_000  # of Newton's method, which takes a few dozen
_DEVIATIONS, _CLASSES = 8.0, 401  # of the normal distribution; more do not change any digit shown


def conflicts_at_slot(schedulers: ArrayLike, probability: ArrayLike) -> Float64:
    """The expected conflicts at one slot, E(Y_i) = N p - 1 + (1 - p)^N.

    Source: ParSync, Eq. 1, where p = K / S_idle is the same for all slots. The equation holds for a
    slot with a p of its own just as well.

    Args:
        schedulers: N >= 1.
        probability: p, that one scheduler picks the slot: from 0 to 1.
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
        Conflicts per round: of the N K claims, those rejected.
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


def score_classes(variance: float, slots: float) -> tuple[Float64, Float64]:
    """The slots of a cell whose scores are normal, with exp(score) as weight, in classes.

    Source: ParSync section 4.3, with a mean that cancels out. The paper does not say how a weight
    comes from a score; if it were the score itself, about 10, the variance would hardly matter.

    Args:
        variance: V of the scores, from 0 to 1,000.
        slots: S_idle, expected number or share of the idle slots.

    Returns:
        (weights, slots) for expected_weighted_conflicts, float64 [classes] both.
    """
    v = numbers("variance", variance, at_least=0)
    check_at_most("variance", v, MOST_VARIANCE)
    number = numbers("slots", slots, at_least=0)
    z = np.linspace(-_DEVIATIONS, _DEVIATIONS, _CLASSES)
    density = np.exp(-z * z / 2)
    weights: Float64 = np.exp(np.sqrt(v) * z)
    return weights, number * (density / density.sum())


def pick_probabilities(tasks: ArrayLike, weights: ArrayLike, slots: ArrayLike) -> Float64:
    """The probability that a scheduler picks a slot, for a slot of each class.

    Args:
        tasks: K, from 0 to the number of slots; any shape.
        weights: Of a slot of each class, positive, [classes].
        slots: How many idle slots there are of each class: [..., classes], where the leading axes
            are broadcast with `tasks`. Expected numbers need not be whole.

    Returns:
        float64 [..., classes]; its sum over classes, times `slots`, is K.
    """
    k, w, s = _draw(tasks, weights, slots)
    in_all = s.sum(axis=-1)
    check_at_most("tasks", k, in_all, "the sum of slots")
    k, in_all = np.broadcast_arrays(k, in_all)
    rate = w / w.max()
    is_all = k == in_all
    time = _drawing_time(np.where(is_all, 0.0, k), rate, s)
    return np.where(is_all[..., None], 1.0, -np.expm1(-time[..., None] * rate))


def expected_weighted_conflicts(
    schedulers: ArrayLike, tasks: ArrayLike, weights: ArrayLike, slots: ArrayLike
) -> Float64:
    """The expected conflicts of a round in which slots are drawn by weight.

    Source: ParSync, Eq. 1 for each slot with its own probability; see the text above.

    Args:
        schedulers: N >= 1; broadcast with `tasks`.
        tasks, weights, slots: As for pick_probabilities.
    """
    n = numbers("schedulers", schedulers, at_least=1)
    probability = pick_probabilities(tasks, weights, slots)
    check_broadcast(schedulers=n, tasks=probability[..., 0])
    at_slot = conflicts_at_slot(n[..., None], probability)
    total: Float64 = (at_slot * np.asarray(slots, np.float64)).sum(axis=-1)
    return total


def weighted_conflicts_with_countless_schedulers(
    schedulers: ArrayLike, tasks: ArrayLike, weights: ArrayLike, slots: ArrayLike
) -> Float64:
    """What the conflicts tend to as more and more schedulers share the same N K tasks.

    As conflicts_with_countless_schedulers, for slots drawn by weight: each of the N K tasks has a
    scheduler of its own, and picks a slot with a probability proportional to its weight.

    Args:
        schedulers: N >= 1; broadcast with `tasks`.
        tasks, weights, slots: As for pick_probabilities, but `tasks` has no upper limit.
    """
    n = numbers("schedulers", schedulers, at_least=1)
    k, w, s = _draw(tasks, weights, slots)
    check_broadcast(schedulers=n, tasks=k, slots=s[..., 0])
    picks = (n * k / (s * w).sum(axis=-1))[..., None] * w
    total: Float64 = (s * excess_picks(picks, np.zeros_like(picks), -picks)).sum(axis=-1)
    return total


def _draw(
    tasks: ArrayLike, weights: ArrayLike, slots: ArrayLike
) -> tuple[Float64, Float64, Float64]:
    """K, the weights and the slots of a draw, checked."""
    k = numbers("tasks", tasks, at_least=0)
    w = numbers("weights", weights, at_least=0)
    s = numbers("slots", slots, at_least=0)
    if w.ndim != 1 or s.ndim == 0 or s.shape[-1] != len(w):
        raise AgoraError(
            f"weights, slots: expected [classes] and [..., classes], got {w.shape} and {s.shape}"
        )
    if not w.all():
        raise AgoraError("weights: expected numbers above 0, got 0")
    if not s.sum(axis=-1).all():
        raise AgoraError("slots: expected some, got 0")
    check_broadcast(tasks=k, slots=s[..., 0])
    return k, w, s


def _drawing_time(tasks: Float64, rate: Float64, slots: Float64) -> Float64:
    """The t at which the sum of slots * (1 - exp(-rate t)) is `tasks`, which is below all slots.

    The sum is concave in t: Newton's method from 0 comes from below and never overshoots.
    """
    t: Float64 = np.zeros(tasks.shape)
    for _ in range(_MOST_STEPS):
        exponent = -rate * t[..., None]
        missing = tasks + (slots * np.expm1(exponent)).sum(axis=-1)
        slope = (slots * rate * np.exp(exponent)).sum(axis=-1)
        step = np.maximum(missing / slope, 0.0)
        t = t + step
        if (step <= 1e-13 * t).all():
            return t
    raise AgoraError("weights: too far apart for so many tasks")


def average_staleness_bounds_us(gap_us: ArrayLike, blocks: ArrayLike) -> tuple[Float64, Float64]:
    """The least and the largest average staleness of a view, (G (B-1) / 2B, G (B+1) / 2B).

    Args:
        gap_us: The synchronisation gap G >= 0.
        blocks: B >= 1, in which the view is refreshed one after another; see the table above.

    Returns:
        (low, high) in microseconds.
    """
    gap = numbers("gap_us", gap_us, at_least=0)
    number = numbers("blocks", blocks, at_least=1)
    check_broadcast(gap_us=gap, blocks=number)
    return gap * (number - 1) / (2 * number), gap * (number + 1) / (2 * number)


def numbers(name: str, values: ArrayLike, at_least: float) -> Float64:
    """Return the values as float64, of their shape.

    Args:
        name: The parameter's name, for the error.
        values: A number or an array of them.
        at_least: The least that is allowed.

    Raises:
        AgoraError: A value is no number, not finite or too small.
    """
    given: NDArray[Any] = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise AgoraError(f"{name}: expected numbers, got {_brief(values)}")
    array: Float64 = given.astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= at_least))
    if wrong.any():
        got = array[wrong].flat[0]
        raise AgoraError(f"{name}: expected finite numbers from {at_least:g} on, got {got:g}")
    return array


def check_at_most(name: str, values: Float64, limits: ArrayLike, limit_name: str = "") -> None:
    """Raise AgoraError if a value is above its limit. The two are broadcast together."""
    values, limits = np.broadcast_arrays(values, limits)
    wrong = values > limits
    if wrong.any():
        got, limit = values[wrong].flat[0], limits[wrong].flat[0]
        source = f" ({limit_name})" if limit_name else ""
        raise AgoraError(f"{name}: expected at most {limit:g}{source}, got {got:g}")


def check_broadcast(**parameters: Float64) -> None:
    """Raise AgoraError if parameters have shapes that cannot be broadcast together."""
    try:
        np.broadcast_shapes(*(array.shape for array in parameters.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in parameters.items())
        raise AgoraError(f"shapes cannot be broadcast together: {shapes}") from None


def _brief(values: ArrayLike) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."
