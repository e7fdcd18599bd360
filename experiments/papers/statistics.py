"""What the claims of Omega's sections 4 and 5 are judged by: numbers computed from a seed's
figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

from experiments.papers.arithmetic import difference, over, quotient
from experiments.papers.claims import ArmsOfSeed
from experiments.papers.omega.runs import ALL, BATCH, SERVICE, T_TASK_S
from experiments.summary_model import SeedFigures

Reader = Callable[[SeedFigures], float | None]
Value = Callable[[ArmsOfSeed], float | None]
Points = Sequence[tuple[float, str]]  # a parameter, and the label of the run with it


def figure(key: str, group: str | None = None) -> Reader:
    """A figure of a run, or of one group of its schedulers; its lower bound where it leaves out too
    much."""

    def read(run: SeedFigures) -> float | None:
        if group is None:
            return run.overall.value(key)
        (found,) = (one.overall for one in run.groups if one.name == group)
        return found.value(key)

    return read


BATCH_WAIT, SERVICE_WAIT = (figure(f"job_wait_{name}_mean_us") for name in (BATCH, SERVICE))
ALL_BUSY, BATCH_BUSY, SERVICE_BUSY = (
    figure("busyness_median", group) for group in (ALL, BATCH, SERVICE)
)
BATCH_CONFLICTS, SERVICE_CONFLICTS = (
    figure(f"{name}_conflict_fraction") for name in (BATCH, SERVICE)
)
DAILY_BATCH_CONFLICTS, DAILY_SERVICE_CONFLICTS = (
    figure(f"{name}_conflict_fraction_median") for name in (BATCH, SERVICE)
)


def service_share(run: SeedFigures) -> float | None:
    """The share of the time that was spent on attempts of service jobs, with and without
    conflicts."""
    parts = [run.overall.value(f"service_{part}_share") for part in ("useful", "wasted")]
    return over(sum, parts)


def wasted_part(run: SeedFigures) -> float | None:
    """The part of the time spent on attempts of service jobs that went into attempts with a
    conflict."""
    return quotient(run.overall.value("service_wasted_share"), service_share(run))


def without_conflicts(t_job_s: float) -> Reader:
    """The share of the time that the service scheduler would spend if no attempt had to be
    repeated: Fig. 12c's approximation.

    Args:
        t_job_s: Of service jobs.
    """

    def read(run: SeedFigures) -> float | None:
        (service,) = (one.overall for one in run.groups if one.name == SERVICE)
        if service.jobs is None or service.submitted is None:
            return None
        decided_s = service.jobs * t_job_s + service.submitted * T_TASK_S
        return decided_s / sum((phase.end_us - phase.start_us) / 1e6 for phase in run.phases)

    return read


def given_up(run: SeedFigures) -> float:
    """Tasks that were given up."""
    return run.totals.abandoned


def of(read: Reader, label: str) -> Value:
    """What is read of one run."""
    return lambda arms: read(arms[label])


def of_s(read: Reader, label: str) -> Value:
    """What is read of one run in microseconds, in seconds."""
    return lambda arms: quotient(read(arms[label]), 1e6)


def ratio(read: Reader, label: str, other: str, read_other: Reader | None = None) -> Value:
    """What is read of a run over what is read, or read otherwise, of another one."""
    whole = read if read_other is None else read_other
    return lambda arms: quotient(read(arms[label]), whole(arms[other]))


def less(read: Reader, label: str, other: str) -> Value:
    """What is read of a run less the same of another run."""
    return lambda arms: difference(read(arms[label]), read(arms[other]))


def least(values: Sequence[Value]) -> Value:
    """The least of some values."""
    return lambda arms: over(min, [value(arms) for value in values])


def most(values: Sequence[Value]) -> Value:
    """The largest of some values."""
    return lambda arms: over(max, [value(arms) for value in values])


def furthest_from_one(ratios: Sequence[Value]) -> Value:
    """Of some ratios the one that is furthest from 1, by its logarithm."""

    def value(arms: ArmsOfSeed) -> float | None:
        found = [one(arms) for one in ratios]
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
    above, before_above = less(read, label, base), less(read, before, base)
    return lambda arms: quotient(above(arms), before_above(arms))


def crossing(read: Reader, points: Points, level: float) -> Value:
    """The parameter at which what is read first reaches a level, linear between the points.

    Args:
        points: Ascending.

    Returns:
        A value that is None if the level is not reached, or is exceeded at the first point.
    """

    def value(arms: ArmsOfSeed) -> float | None:
        found = [(x, read(arms[label])) for x, label in points]
        for (x, below), (next_x, above) in pairwise(found):
            if below is None or above is None or below > level:
                return None
            if above >= level:
                return x + (next_x - x) * (level - below) / (above - below) if above > below else x
        return None

    return value


def crossings_ratio(read: Reader, points: Points, others: Points, level: float) -> Value:
    """The parameter at which some runs reach a level, over that of other runs."""
    one, other = crossing(read, points, level), crossing(read, others, level)
    return lambda arms: quotient(one(arms), other(arms))
