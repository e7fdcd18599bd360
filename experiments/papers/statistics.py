"""The named parts that statistics of claims are made of. What is not known makes the result so.

A reader reads a number of one run. A value is computed of a seed's runs, by their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log
from typing import Any

from experiments.analysis.statistics import median_interval
from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.task import Arrays
from experiments.papers.chapter import Results
from experiments.papers.claims import RunsOfSeed, Value

Reader = Callable[[Any], float | None]
Points = Sequence[tuple[float, str]]  # a parameter, and the label of the run with it
US_PER_S = 1e6


def over(
    choose: Callable[[Sequence[float]], float], values: Sequence[float | None]
) -> float | None:
    """What is chosen among some values, such as the least; None if one of them is not known."""
    known = [value for value in values if value is not None]
    return choose(known) if known and len(known) == len(values) else None


def quotient(part: float | None, whole: float | None) -> float | None:
    """part / whole; None where there is no whole."""
    return None if part is None or not whole else part / whole


def difference(one: float | None, other: float | None) -> float | None:
    """one - other."""
    return None if one is None or other is None else one - other


def overall(key: str, group: str | None = None) -> Reader:
    """A figure of a whole run, or of one group of its schedulers; its lower bound where it leaves
    out too much."""

    def read(run: SeedFigures) -> float | None:
        if group is None:
            return run.overall.value(key)
        (found,) = (one.overall for one in run.groups if one.name == group)
        return found.value(key)

    return read


def in_phase(phase: int, key: str) -> Reader:
    """A figure of one phase of a run, or its lower bound where the arm left tasks waiting."""

    def read(run: SeedFigures) -> float | None:
        return run.phases[phase].value(key)

    return read


def mean_of(name: str) -> Callable[[Arrays], float]:
    """A reader: the mean over the draws of a number that a DrawnRun keeps."""
    return lambda arrays: float(arrays[name].mean())


def of(read: Reader, label: str) -> Value:
    """What is read of one run."""
    return lambda runs: read(runs[label])


def divided(value: Value, by: float) -> Value:
    """A value over a number."""
    return lambda runs: quotient(value(runs), by)


def of_s(read: Reader, label: str) -> Value:
    """What is read of one run in microseconds, in seconds."""
    return divided(of(read, label), US_PER_S)


def ratio(read: Reader, label: str, other: str, read_other: Reader | None = None) -> Value:
    """What is read of a run over what is read, or read otherwise, of another one."""
    return quotient_of(of(read, label), of(read if read_other is None else read_other, other))


def less(read: Reader, label: str, other: str, read_other: Reader | None = None) -> Value:
    """What is read of a run less what is read, or read otherwise, of another run."""
    whole = read if read_other is None else read_other
    return lambda runs: difference(read(runs[label]), whole(runs[other]))


def quotient_of(one: Value, other: Value) -> Value:
    """One value over another."""
    return lambda runs: quotient(one(runs), other(runs))


def least(values: Sequence[Value]) -> Value:
    """The least of some values."""
    return lambda runs: over(min, [value(runs) for value in values])


def most(values: Sequence[Value]) -> Value:
    """The largest of some values."""
    return lambda runs: over(max, [value(runs) for value in values])


def size(value: Value) -> Value:
    """A value without its sign."""
    return lambda runs: over(lambda known: abs(known[0]), [value(runs)])


def spread(values: Sequence[Value]) -> Value:
    """The largest of some values less the least."""
    return lambda runs: difference(most(values)(runs), least(values)(runs))


def furthest_from_one(ratios: Sequence[Value]) -> Value:
    """Of some ratios the one that is furthest from 1, by its logarithm."""

    def value(runs: RunsOfSeed) -> float | None:
        found = [one(runs) for one in ratios]
        if any(one is not None and one <= 0 for one in found):
            return 0.0
        return over(lambda known: max(known, key=lambda one: abs(log(one))), found)

    return value


def growths(read: Reader, labels: Sequence[str]) -> list[Value]:
    """The ratio of what is read of each run to that of the run before."""
    return [ratio(read, after, before) for before, after in pairwise(labels)]


def growth_above(read: Reader, label: str, before: str, base: str) -> Value:
    """How many times as far a run is above a base as another run is: 10 if what is read is a + b x,
    x is ten times as large, and the base has nearly no x."""
    return quotient_of(less(read, label, base), less(read, before, base))


def crossing(read: Reader, points: Points, level: float) -> Value:
    """The parameter at which what is read first reaches a level, linear between the points.

    Args:
        points: Ascending.

    Returns:
        A value that is None if the level is not reached, or is exceeded at the first point.
    """

    def value(runs: RunsOfSeed) -> float | None:
        found = [(x, read(runs[label])) for x, label in points]
        for (x, below), (next_x, above) in pairwise(found):
            if below is None or above is None or below > level:
                return None
            if above >= level:
                return x + (next_x - x) * (level - below) / (above - below) if above > below else x
        return None

    return value


def median_text(results: Results, value: Value, text: Callable[[float], str]) -> str:
    """The median of a value over the seeds, as text for a table."""
    median = median_interval([value(runs) for runs in results.seeds]).estimate
    return "not known" if median is None else text(median)


def figure_text(
    results: Results, label: str, phase: int | None, key: str, text: Callable[[float], str]
) -> str:
    """The median of a run's figure over the seeds, as text for a table; marked if it is a lower
    bound.

    Args:
        phase: None: of the whole run.
    """
    scopes = [run.overall if phase is None else run.phases[phase] for run in results.of(label)]
    median = median_interval([one.value(key) for one in scopes]).estimate
    if median is None:
        return "not known"
    return ("≥ " if any(one.is_bound(key) for one in scopes) else "") + text(median)


def percent(share: float) -> str:
    """A share as text, such as "12.5 %"."""
    return f"{100 * share:.1f} %"
