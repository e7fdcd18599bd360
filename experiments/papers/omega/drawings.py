"""Figs. 5, 6, 8, 9 and 12 to 14 of Omega, drawn in the paper's form (Schwarzkopf et al., EuroSys
2013)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.papers import plots
from experiments.papers.figure import Results
from experiments.papers.omega.claims import SLO_S
from experiments.papers.omega.runs import (
    ALL,
    BATCH,
    COMMITS,
    FINE_INCREMENTAL,
    LOADS,
    MULTI,
    RATES,
    RATES_OF_MANY,
    SCHEDULERS,
    SERVICE,
    SHARED,
    SINGLE,
    SPLIT,
    T_JOBS_OF_CONFLICTS_S,
    T_JOBS_S,
    at_load,
    at_rate,
    at_t_job,
)
from experiments.papers.plots import Line, Panel
from experiments.papers.statistics import (
    Points,
    Reader,
    figure,
    service_share,
    without_conflicts,
)
from experiments.summary_model import SeedFigures
from parsync.metrics.quantity import counted

_US_PER_S = 1e6
_NAMES = {ALL: "One scheduler for both", BATCH: "Batch", SERVICE: "Service"}
_CLASSES = (BATCH, SERVICE)
_LOOKS = {ALL: 2, BATCH: 0, SERVICE: 1}
_ARCHITECTURES = (SINGLE, MULTI, SHARED)


def _over_t_job(label: str, t_jobs_s: Sequence[float] = T_JOBS_S) -> Points:
    return [(t_job_s * _US_PER_S, at_t_job(label, t_job_s)) for t_job_s in t_jobs_s]


def _wait(name: str, points: Points, of_class: str, look: int) -> Line:
    """The mean wait of the jobs of a class."""
    key = f"job_wait_{of_class}_mean_us"

    def is_bound(run: SeedFigures) -> bool:
        return run.overall.is_bound(key)

    return Line(name, points, figure(key), look, is_bound=is_bound)


def _busyness(name: str, points: Points, group: str, look: int) -> Line:
    """The daily busyness of a group of schedulers."""
    read, deviation = (figure(f"busyness_{part}", group) for part in ("median", "mad"))
    return Line(name, points, read, look, deviation=deviation)


def _daily_conflicts(name: str, points: Points, of_class: str, look: int) -> Line:
    return Line(
        name,
        points,
        figure(f"{of_class}_conflict_fraction_median"),
        look,
        deviation=figure(f"{of_class}_conflict_fraction_mad"),
    )


def _waits(title: str, x_label: str, points: Points, x_axis: plots.Axis) -> Panel:
    """The mean waits of both classes, and the SLO."""
    return Panel(
        title,
        x_label,
        "Mean job wait time",
        [_wait(_NAMES[name], points, name, _LOOKS[name]) for name in _CLASSES],
        x_axis,
        plots.durations_y,
        level=SLO_S * _US_PER_S,
        level_name="SLO",
    )


def fig5(results: Results) -> Figure:
    """The wait of jobs over t_job, a panel for each architecture."""
    return plots.draw(
        results,
        [
            _waits(label, _t_job_of(label), _over_t_job(label), plots.durations_x)
            for label in _ARCHITECTURES
        ],
        same_y=True,
    )


def fig6(results: Results) -> Figure:
    """The busyness of schedulers over t_job, a panel for each architecture."""
    return plots.draw(
        results,
        [
            Panel(
                label,
                _t_job_of(label),
                "Busyness",
                [
                    _busyness(_NAMES[group], _over_t_job(label), group, _LOOKS[group])
                    for group in (_CLASSES if label == SHARED else (ALL,))
                ],
                plots.durations_x,
                plots.shares_y,
            )
            for label in _ARCHITECTURES
        ],
        same_y=True,
    )


def _t_job_of(label: str) -> str:
    return "t_job" if label == SINGLE else "t_job(service)"


def fig8(results: Results) -> Figure:
    """Wait and busyness over the rate of batch jobs."""
    points = [(rate, at_rate(1, rate)) for rate in RATES]
    x_label, x_axis = "Rate of batch jobs", plots.times_x(RATES)
    return plots.draw(
        results,
        [
            _waits("Job wait time", x_label, points, x_axis),
            Panel(
                "Scheduler busyness",
                x_label,
                "Busyness",
                [_busyness(_NAMES[group], points, group, _LOOKS[group]) for group in _CLASSES],
                x_axis,
                plots.shares_y,
            ),
        ],
    )


def fig9(results: Results) -> Figure:
    """Conflicts and busyness over the rate of batch jobs, a line for each number of schedulers."""
    lines = [
        (
            _batch_schedulers(schedulers),
            [(rate, at_rate(schedulers, rate)) for rate in RATES_OF_MANY],
        )
        for schedulers in SCHEDULERS
    ]
    x_label, x_axis = "Rate of batch jobs", plots.times_x(RATES_OF_MANY)
    return plots.draw(
        results,
        [
            Panel(
                "Conflicts of batch jobs",
                x_label,
                "Conflict fraction",
                [
                    _daily_conflicts(name, points, BATCH, look)
                    for look, (name, points) in enumerate(lines)
                ],
                x_axis,
                plots.from_zero_y,
            ),
            Panel(
                "Busyness of each batch scheduler",
                x_label,
                "Busyness",
                [_busyness(name, points, BATCH, look) for look, (name, points) in enumerate(lines)],
                x_axis,
                plots.shares_y,
            ),
        ],
    )


def _batch_schedulers(count: int) -> str:
    return counted(count, "batch scheduler")


def fig12(results: Results) -> Figure:
    """Wait, conflicts and busyness over t_job(service), and the busyness without conflicts."""
    points = _over_t_job(FINE_INCREMENTAL)
    ideal: list[Reader] = [_at_most_one(without_conflicts(t_job_s)) for t_job_s in T_JOBS_S]
    x_label, x_axis = "t_job(service)", plots.durations_x
    return plots.draw(
        results,
        [
            _waits("Job wait time", x_label, points, x_axis),
            Panel(
                "Conflicts",
                x_label,
                "Conflict fraction",
                [
                    _daily_conflicts(_NAMES[of_class], points, of_class, _LOOKS[of_class])
                    for of_class in _CLASSES
                ],
                x_axis,
                plots.from_zero_y,
            ),
            Panel(
                "Scheduler busyness",
                x_label,
                "Busyness",
                [
                    *(_busyness(_NAMES[group], points, group, _LOOKS[group]) for group in _CLASSES),
                    Line("Service, no conflicts", points, ideal, 3, dotted=True),
                ],
                x_axis,
                plots.shares_y,
            ),
        ],
    )


def _at_most_one(read: Reader) -> Reader:
    """A share of the time that cannot exceed all of it."""

    def limited(run: SeedFigures) -> float | None:
        found = read(run)
        return None if found is None else min(found, 1.0)

    return limited


def fig13(results: Results) -> Figure:
    """Busyness and wait over t_job of batch jobs, with one batch scheduler and with three."""
    lines = [
        (_batch_schedulers(schedulers), [(load, at_load(schedulers, load)) for load in LOADS])
        for schedulers in SPLIT
    ]
    x_label = "t_job(batch) / time between batch jobs"
    return plots.draw(
        results,
        [
            Panel(
                "Busyness of each batch scheduler",
                x_label,
                "Busyness",
                [_busyness(name, points, BATCH, look) for look, (name, points) in enumerate(lines)],
                plots.from_zero_x,
                plots.shares_y,
            ),
            Panel(
                "Wait of batch jobs",
                x_label,
                "Mean job wait time",
                [_wait(name, points, BATCH, look) for look, (name, points) in enumerate(lines)],
                plots.from_zero_x,
                plots.durations_y,
                level=SLO_S * _US_PER_S,
                level_name="SLO",
            ),
        ],
    )


def fig14(results: Results) -> Figure:
    """Busyness and conflicts over t_job of service jobs, a line for each way to commit."""

    def lines(read: Reader) -> list[Line]:
        return [
            Line(commits, _over_t_job(commits, T_JOBS_OF_CONFLICTS_S), read, look)
            for look, commits in enumerate(COMMITS)
        ]

    x_label = "t_job(service)"
    return plots.draw(
        results,
        [
            Panel(
                "Busyness of the service scheduler",
                x_label,
                "Busyness",
                lines(service_share),
                plots.durations_x,
                plots.shares_y,
            ),
            Panel(
                "Conflicts of service jobs",
                x_label,
                "Conflict fraction",
                lines(figure(f"{SERVICE}_conflict_fraction")),
                plots.durations_x,
                plots.logarithmic_y,
            ),
        ],
    )
