"""Expected conflicts when schedulers prefer some slots: what ParSync's Eqs. 1 to 4 leave out.

Section 4.2 [A1] of the paper says that preferred machines cause more conflicts than the equations
expect; its simulator (section 4.3) draws slots by weights that come from their scores. The model
here does the same: a scheduler draws its K slots one by one, without replacement, each with a
probability proportional to the weights of the slots that it has left.

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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from parsync.model.conflicts import conflicts_at_slot, excess_picks
from parsync.model.parameters import Float64, check_at_most, check_broadcast, numbers
from shared_state.errors import AgoraError

MOST_VARIANCE = 1000.0  # beyond it weights leave the range of floating-point numbers
_MOST_STEPS = 10_000  # of Newton's method, which takes a few dozen
_DEVIATIONS, _CLASSES = 8.0, 401  # of the normal distribution; more do not change any digit shown


def score_classes(variance: float, slots: float) -> tuple[Float64, Float64]:
    """The slots of a cell whose scores are normal, with exp(score) as weight, in classes.

    Source: ParSync section 4.3, with a mean that cancels out. The paper does not say how a weight
    comes from a score; if it were the score itself, about 10, the variance would hardly matter.

    Args:
        variance: V of the scores, from 0 to 1,000.
        slots: S_idle, expected number or share of the idle slots.

    Returns:
        (weights, slots) for expected_weighted_conflicts, float64 [classes] both.

    Raises:
        AgoraError: A parameter is out of its range.
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

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
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

    Returns:
        Conflicts per round, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
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

    Returns:
        Conflicts per round, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
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
