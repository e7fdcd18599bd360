"""What the claims of ParSync's section 6 are judged by: numbers computed from a seed's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from experiments.papers.arithmetic import difference, over, quotient
from experiments.papers.claims import ArmsOfSeed
from parsync.metrics.summary import PhaseFigures

PHASES = (0, 1, 2, 3, 4)

Value = Callable[[ArmsOfSeed], float | None]


def in_phase(label: str, phase: int, key: str) -> Value:
    """A figure of one phase, or its lower bound where the arm left tasks waiting."""
    return lambda arms: _of(arms, label, phase, key)


def highest(label: str, key: str) -> Value:
    """The largest value of a figure over the phases."""
    return lambda arms: over(max, [_of(arms, label, phase, key) for phase in PHASES])


def least_ratio(
    label: str, others: Sequence[str], key: str, phases: Sequence[int] = PHASES
) -> Value:
    """The smallest ratio, over some phases and some other arms, of the others' figure to an arm's.

    Above 1: the arm's figure is lower than all others' in each of them.
    """

    def value(arms: ArmsOfSeed) -> float | None:
        return over(
            min,
            [
                quotient(_of(arms, other, phase, key), _of(arms, label, phase, key))
                for other in others
                for phase in phases
            ],
        )

    return value


def least_difference(label: str, other: str, key: str, phases: Sequence[int] = PHASES) -> Value:
    """The smallest difference, over some phases, of an arm's figure less another arm's."""

    def value(arms: ArmsOfSeed) -> float | None:
        return over(
            min,
            [
                difference(_of(arms, label, phase, key), _of(arms, other, phase, key))
                for phase in phases
            ],
        )

    return value


def largest_gap(one: str, other: str, key: str) -> Value:
    """The largest difference, in either direction, of two arms' figure over the phases."""

    def value(arms: ArmsOfSeed) -> float | None:
        gaps = [
            difference(_of(arms, one, phase, key), _of(arms, other, phase, key)) for phase in PHASES
        ]
        return over(max, [None if gap is None else abs(gap) for gap in gaps])

    return value


def least_growth(label: str, key: str, phases: Sequence[int]) -> Value:
    """The smallest ratio of a figure in a phase to the same in the phase before, over phases in
    order. Above 1: it grows from each to the next."""

    def value(arms: ArmsOfSeed) -> float | None:
        return over(
            min,
            [
                quotient(_of(arms, label, after, key), _of(arms, label, before, key))
                for before, after in pairwise(phases)
            ],
        )

    return value


def ratio(label: str, other: str, key: str, phase: int | None = None) -> Value:
    """The ratio of an arm's figure to another arm's: in a phase, or over all of them."""

    def value(arms: ArmsOfSeed) -> float | None:
        if phase is None:
            return quotient(arms[label].overall.value(key), arms[other].overall.value(key))
        return quotient(_of(arms, label, phase, key), _of(arms, other, phase, key))

    return value


def phase_ratio(label: str, key: str, phase: int, other_phase: int) -> Value:
    """The ratio of a figure in one phase to that in another."""
    return lambda arms: quotient(_of(arms, label, phase, key), _of(arms, label, other_phase, key))


def committed_share(label: str, settle_s: float, phases: Sequence[int] = PHASES) -> Value:
    """The smallest ratio over the phases of tasks committed per second to tasks submitted per
    second."""

    def value(arms: ArmsOfSeed) -> float | None:
        of = arms[label].phases
        return over(
            min,
            [
                quotient(of[phase].throughput_per_s, submitted_per_s(of[phase], settle_s))
                for phase in phases
            ],
        )

    return value


def backlog(label: str, phase: int, schedulers: int) -> Value:
    """Tasks that wait at the end of a phase, per scheduler."""

    def value(arms: ArmsOfSeed) -> float | None:
        waiting = _of(arms, label, phase, "backlog_end")
        return None if waiting is None else waiting / schedulers

    return value


def edge_conflicts(label: str) -> Value:
    """The lower of the conflict rates of the first and the last phase, over the highest of those
    between."""

    def value(arms: ArmsOfSeed) -> float | None:
        rates = [_of(arms, label, phase, "conflict_rate") for phase in PHASES]
        edge = over(min, [rates[0], rates[-1]])
        return quotient(edge, over(max, rates[1:-1]))

    return value


def submitted_per_s(phase: PhaseFigures, settle_s: float) -> float:
    """Tasks submitted per second in the part of a phase that counts."""
    return (phase.submitted or 0) / ((phase.end_us - phase.start_us) / 1e6 - settle_s)


def _of(arms: ArmsOfSeed, label: str, phase: int, key: str) -> float | None:
    return arms[label].phases[phase].value(key)
