"""Sparrow's probing beside queueing theory, beside its own simulations, over the probe ratio and
beside runs without waiting (Ousterhout et al., SOSP 2013; figures.toml). The settings are in
settings.py.

At both scales the cells of all figures but `closed_forms` are the same. At paper scale there are
more draws and longer runs, and `closed_forms` has four times the machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers import plots
from experiments.papers.chapter import Chapter, Like, Results, Table, like
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.plots import Line, Panel
from experiments.papers.sparrow.settings import (
    BATCH,
    CANCELLATION,
    CENTRAL,
    LATE,
    PER_TASK,
    PROTOCOLS,
    RANDOM,
    SimulationRun,
    SingleTaskRun,
    SweepRun,
    lost_share,
    simulation_run,
    single_task_run,
    sweep_run,
    theory_length,
)
from experiments.papers.statistics import (
    Reader,
    furthest_from_one,
    least,
    mean_of,
    median_text,
    most,
    of,
    quotient,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale
from parsync.model.queueing import least_work, shortest_queue

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
SMOKE, PAPER = ReproduceScale.SMOKE, ReproduceScale.PAPER
RESPONSE, LONGEST = mean_of("response_ms"), mean_of("longest_ms")

# Queueing theory

LOADS, JUDGED = (0.3, 0.5, 0.7, 0.8, 0.9), (0.5, 0.8, 0.9)
FORMS = {"late": least_work, "least_queue": shortest_queue}
PROBES = {"late": (1, 2, 3, 4), "least_queue": (2, 3, 4)}
_TITLES = {"late": "Late binding: least work of d", "least_queue": "Least queue of d"}
_MACHINES = {SMOKE: 500, PAPER: 2_000}
_SMOKE_LENGTH, _SMOKE_LENGTH_OF_ONE_PROBE = (100, 300, 1), (500, 500, 1)


def at_load(binding: str, d: int, load: float) -> str:
    """The label of a run of `closed_forms`."""
    return f"{binding}, d = {d}, load {load:g}"


def closed_form_runs(scale: ReproduceScale) -> tuple[SingleTaskRun, ...]:
    """Both bindings over d and the load."""
    machines = _MACHINES[scale]
    runs = []
    for binding, probes in PROBES.items():
        for d in probes:
            for load in LOADS:
                length = _SMOKE_LENGTH_OF_ONE_PROBE if d == 1 else _SMOKE_LENGTH
                if scale is PAPER:
                    length = theory_length(load, d)
                label = at_load(binding, d, load)
                runs.append(single_task_run(label, load, d, binding, machines, length))
    return tuple(runs)


MEAN = mean_of("mean")


def half_width(arrays: Arrays) -> float:
    """The half-width of the mean over all draws, in parts of the mean."""
    widths = arrays["half_width"]
    return float(np.sqrt((widths**2).sum()) / len(widths)) / MEAN(arrays)


def _over(label: str, form: float) -> Value:
    return lambda runs: MEAN(runs[label]) / form


def _over_form(binding: str, d: int) -> Like:
    """The ratio of a mean response to the closed form that is furthest from 1."""

    forms = " / ".join(f"{FORMS[binding](load, d):.3f}" for load in JUDGED)
    value = furthest_from_one(
        [_over(at_load(binding, d, load), FORMS[binding](load, d)) for load in JUDGED]
    )
    return like(binding, value, d=d, forms=forms)


_CLOSED_FORM_CLAIMS: dict[str, Value | Like] = {
    **{
        f"{binding}_d{d}": _over_form(binding, d)
        for binding, probes in PROBES.items()
        for d in probes
    },
    "precise": most(
        [
            of(half_width, at_load(binding, d, load))
            for binding, probes in PROBES.items()
            for d in probes
            for load in JUDGED
        ]
    ),
    "late_least": most(
        [
            ratio(MEAN, at_load("late", d, load), at_load("least_queue", d, load))
            for d in PROBES["least_queue"]
            for load in JUDGED
        ]
    ),
}


def _draw_closed_forms(results: Results) -> Figure:
    """Mean responses over the load, a panel for each binding: closed forms and runs."""
    with style.drawing(rows=1, columns=2) as (figure, made):
        figure.set_size_inches(9.6, 4.2)
        made[1].sharey(made[0])
        smooth = np.linspace(0.02, 0.93, 92)
        for axes, (binding, form) in zip(made, FORMS.items(), strict=True):
            for d in PROBES["late"]:
                look = d - 1
                if d not in PROBES[binding]:
                    continue
                values = [form(float(load), d) for load in smooth]
                axes.plot(smooth, values, label=f"d = {d}", **style.line_style(look))
                for load in LOADS:
                    runs = results.of(at_load(binding, d, load))
                    mean = float(np.median([MEAN(run) for run in runs]))
                    error = mean * max(half_width(run) for run in runs)
                    axes.errorbar(
                        load,
                        mean,
                        yerr=error,
                        fmt=style.marker(look),
                        color=style.colour(look),
                        capsize=2.5,
                        markersize=4.5,
                        linewidth=1,
                    )
            axes.set_title(_TITLES[binding])
            axes.set_xlabel("Load")
            plots.logarithmic_y(axes)
            axes.set_yticks([1, 1.5, 2, 3, 5, 10])
            axes.set_yticks([], minor=True)
            axes.set_ylim(0.95, 13)
            style.share_axis(axes, "x")
        made[0].set_ylabel("Mean response (mean run times)")
        style.legend(figure, made[0])
    return figure


def _closed_form_table(results: Results) -> Table:
    """Each run beside its closed form."""
    rows = []
    for binding, probes in PROBES.items():
        for d in probes:
            for load in LOADS:
                label, form = at_load(binding, d, load), FORMS[binding](load, d)
                texts = (
                    median_text(results, of(MEAN, label), "{:.3f}".format),
                    f"{form:.3f}",
                    median_text(results, _over(label, form), "{:.4f}".format),
                    median_text(results, of(half_width, label), "{:.2%}".format),
                )
                rows.append((label, *texts))
    header = ("", "mean response", "closed form", "ratio", "half-width")
    return Table(header, tuple(rows), "Responses in mean run times.")


# Sparrow's own simulations

# Mean responses of its simulator in ms, seed 1
RECORDED_MS: dict[tuple[str, float], float] = {
    (CENTRAL, 0.5): 518.2,
    (LATE, 0.5): 521.1,
    (BATCH, 0.5): 520.0,
    (CENTRAL, 0.8): 518.2,
    (LATE, 0.8): 521.1,
    (CANCELLATION, 0.8): 520.8,
    (BATCH, 0.8): 524.6,
    (PER_TASK, 0.8): 529.8,
    (RANDOM, 0.8): 632.5,
    (CENTRAL, 0.9): 517.9,
    (LATE, 0.9): 530.7,
    (BATCH, 0.9): 539.9,
}
# the same at a load of 0.8 where all tasks of a job are equally long, the slowest first
RECORDED_EQUAL_MS = {RANDOM: 493.3, PER_TASK: 195.0, BATCH: 139.5, LATE: 107.4, CENTRAL: 102.0}
LONGEST_OF_100_MS = 100 * sum(1 / k for k in range(1, 101))
_DRAWS, _EQUAL_DRAWS = {SMOKE: 2, PAPER: 10}, {SMOKE: 8, PAPER: 40}
_KEYS = {
    RANDOM: "random",
    PER_TASK: "per_task",
    BATCH: "batch",
    LATE: "late",
    CANCELLATION: "cancellation",
    CENTRAL: "central",
}


def independent(protocol: str, load: float) -> str:
    """The label of a run with independent tasks."""
    return f"{protocol}, load {load:g}"


def equal(protocol: str) -> str:
    """The label of a run with equally long tasks, at a load of 0.8."""
    return f"{protocol}, equally long tasks"


def simulation_runs(scale: ReproduceScale) -> tuple[SimulationRun, ...]:
    """What Sparrow's simulator was run with."""
    return (
        *(
            simulation_run(independent(name, load), name, load, draws=_DRAWS[scale])
            for name, load in RECORDED_MS
        ),
        *(
            simulation_run(equal(name), name, 0.8, equally_long=True, draws=_EQUAL_DRAWS[scale])
            for name in RECORDED_EQUAL_MS
        ),
    )


def _independent(protocol: str) -> Like:
    loads = [load for name, load in RECORDED_MS if name == protocol]

    def over_recorded(load: float) -> Value:
        label, recorded = independent(protocol, load), RECORDED_MS[protocol, load]
        return lambda runs: RESPONSE(runs[label]) / recorded

    return like(
        "independent",
        furthest_from_one([over_recorded(load) for load in loads]),
        protocol=protocol,
        recorded=" / ".join(f"{RECORDED_MS[protocol, load]:g}" for load in loads),
        loads=" / ".join(f"{load:g}" for load in loads),
    )


def outside(values: np.ndarray, recorded: float) -> float:
    """How far a number is outside the range of some values, as a share of it; 0: within."""
    beyond = max(0.0, float(values.min()) - recorded, recorded - float(values.max()))
    return beyond / recorded


def _equally_long(protocol: str) -> Like:
    recorded, label = RECORDED_EQUAL_MS[protocol], equal(protocol)

    def value(runs: RunsOfSeed) -> float:
        return outside(runs[label]["response_ms"], recorded)

    return like("equally_long", value, protocol=protocol, recorded=f"{recorded:g}")


def _equal_ratio(protocol: str, other: str) -> Value:
    return ratio(RESPONSE, equal(protocol), equal(other))


_ORDER = tuple(RECORDED_EQUAL_MS)
_SIMULATION_CLAIMS: dict[str, Value | Like] = {
    **{f"independent_{key}": _independent(name) for name, key in _KEYS.items()},
    **{f"equal_{_KEYS[name]}": _equally_long(name) for name in RECORDED_EQUAL_MS},
    "order": least([_equal_ratio(slow, fast) for slow, fast in pairwise(_ORDER)]),
    "longest": lambda runs: quotient(LONGEST(runs[independent(LATE, 0.8)]), LONGEST_OF_100_MS),
    "published_random": _equal_ratio(RANDOM, PER_TASK),
    "published_per_task": _equal_ratio(PER_TASK, CENTRAL),
    "published_batch": _equal_ratio(BATCH, PER_TASK),
}


def _draw_simulation(results: Results) -> Figure:
    """Mean responses at a load of 0.8, a row for each protocol: ours with their range, and those of
    Sparrow's simulator."""
    with style.drawing(rows=1, columns=2) as (figure, made):
        figure.set_size_inches(9.6, 3.6)
        rows = {
            "Independent tasks": {
                name: (independent(name, 0.8), RECORDED_MS[name, 0.8]) for name in PROTOCOLS
            },
            "Equally long tasks of a job": {
                name: (equal(name), recorded) for name, recorded in RECORDED_EQUAL_MS.items()
            },
        }
        for axes, (title, of_title) in zip(made, rows.items(), strict=True):
            for place, (label, recorded) in enumerate(of_title.values()):
                _range_and_mark(axes, results, place, label, recorded)
            axes.set_yticks(range(len(of_title)), list(of_title))
            axes.set_ylim(len(of_title) - 0.5, -0.5)
            axes.set_xscale("log")
            axes.set_title(title)
            axes.set_xlabel("Mean response of jobs (ms)")
        _plain_ticks(made[0], (500, 550, 600, 650, 700))
        _plain_ticks(made[1], (100, 150, 200, 300, 500))
        style.legend(figure, made[0])
    return figure


_NAMES = ("Here: mean and range of the draws", "Sparrow’s simulator, one seed")


def _range_and_mark(axes: Axes, results: Results, place: int, label: str, recorded: float) -> None:
    values = np.concatenate([run["response_ms"] for run in results.of(label)])
    here, theirs = _NAMES if place == 0 else (None, None)
    axes.plot((values.min(), values.max()), (place, place), color=style.colour(0), linewidth=1.4)
    axes.plot(
        values.mean(), place, style.marker(0), color=style.colour(0), markersize=5, label=here
    )
    axes.plot(
        recorded,
        place,
        style.marker(3),
        markerfacecolor="none",
        markeredgecolor=style.colour(1),
        markeredgewidth=1.4,
        markersize=8,
        linestyle="none",
        label=theirs,
    )


def _plain_ticks(axes: Axes, values: Sequence[float]) -> None:
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def _simulation_table(results: Results) -> Table:
    """Every run beside what was recorded."""
    recorded = {independent(*key): ms for key, ms in RECORDED_MS.items()}
    recorded |= {equal(name): ms for name, ms in RECORDED_EQUAL_MS.items()}
    rows = []
    for run in results.runs:
        values = np.concatenate([one["response_ms"] for one in results.of(run.label)])
        rows.append(
            (
                run.label,
                f"{values.mean():.1f}",
                f"{values.min():.1f} to {values.max():.1f}",
                f"{recorded[run.label]:.1f}",
                median_text(results, of(LONGEST, run.label), "{:.1f}".format),
                median_text(results, of(mean_of("asked"), run.label), "{:.2f}".format),
            )
        )
    header = (
        *("", "mean response, ms", "range of the draws", "Sparrow’s simulator"),
        *("mean longest task, ms", "questions per task"),
    )
    return Table(header, tuple(rows))


# The probe ratio

RATIOS = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0, 4.0)
SWEEP_LOADS = (0.8, 0.9)
LOST_RATIOS, LOST_TIMES_MS = (1, 2, 3), (5, 10, 20, 50, 100)
_SWEEP_JOBS, _LOST_JOBS = {SMOKE: 10_000, PAPER: 60_000}, {SMOKE: 2_000, PAPER: 10_000}
_LOST_LOAD, _TASK_MS = 0.5, 100
_WITH, _WITHOUT = "with cancellation", "without"


def at_ratio(d: float, load: float) -> str:
    """The label of a run over the probe ratio."""
    return f"d = {d:g}, load {load:g}"


def asking(d: int, task_ms: int, cancels: str) -> str:
    """The label of a run over the run time of tasks."""
    return f"d = {d}, tasks of {task_ms} ms, {cancels}"


def probe_ratio_runs(scale: ReproduceScale) -> tuple[SweepRun, ...]:
    """Over the probe ratio at two loads, and over the run time of tasks at three ratios."""
    over_ratio = (
        sweep_run(at_ratio(d, load), d, load, _TASK_MS, _SWEEP_JOBS[scale])
        for load in SWEEP_LOADS
        for d in RATIOS
    )
    over_time = (
        sweep_run(
            asking(d, task_ms, cancels),
            d,
            _LOST_LOAD,
            task_ms,
            _LOST_JOBS[scale],
            cancellation=cancels == _WITH,
        )
        for cancels in (_WITHOUT, _WITH)
        for d in LOST_RATIOS
        for task_ms in LOST_TIMES_MS
    )
    return (*over_ratio, *over_time)


def _lost_over_formula(cancels: str) -> list[Value]:
    def over_formula(d: int, task_ms: int) -> Value:
        return lambda runs: LOST(runs[asking(d, task_ms, cancels)]) / lost_share(d, task_ms)

    return [over_formula(d, task_ms) for d in LOST_RATIOS for task_ms in LOST_TIMES_MS]


LOST = mean_of("lost")


def _gain_at_two(load: float) -> Value:
    """What d = 2 gains over d = 1, as a share of what d = 3 gains over it."""

    def value(runs: RunsOfSeed) -> float | None:
        one, two, three = (RESPONSE(runs[at_ratio(d, load)]) for d in (1.0, 2.0, 3.0))
        return quotient(one - two, one - three)

    return value


_PROBE_RATIO_CLAIMS: dict[str, Value] = {
    "lost": furthest_from_one(_lost_over_formula(_WITHOUT)),
    "lost_with_cancellation": most(_lost_over_formula(_WITH)),
    "recommended": most(
        [ratio(RESPONSE, at_ratio(2.0, load), at_ratio(1.05, load)) for load in SWEEP_LOADS]
    ),
    "saturates": least([_gain_at_two(load) for load in SWEEP_LOADS]),
    "messages_cost": ratio(RESPONSE, at_ratio(3.0, 0.9), at_ratio(2.0, 0.9)),
}


def _draw_probe_ratio(results: Results) -> Figure:
    """Responses and messages over the probe ratio, and lost slot time over the run time."""

    def over_ratio(read: Reader) -> list[Line]:
        return [
            Line(f"Load {load:g}", [(d, at_ratio(d, load)) for d in RATIOS], read, look)
            for look, load in enumerate(SWEEP_LOADS)
        ]

    lost = []
    for look, d in enumerate(LOST_RATIOS, start=2):
        for cancels, dotted in ((_WITH, False), (_WITHOUT, True)):
            name = "d RTT / (t + d RTT)" if dotted else f"Tasks with d = {d}"
            points = [(float(time), asking(d, time, cancels)) for time in LOST_TIMES_MS]
            formula = [_constant(lost_share(d, time)) for time in LOST_TIMES_MS]
            lost.append(Line(name, points, formula if dotted else LOST, look, dotted=dotted))
    return plots.draw(
        results,
        [
            Panel(
                "Tasks of 100 ms",
                "Probes per task",
                "Mean response of jobs (ms)",
                over_ratio(RESPONSE),
                _ratios_x,
                _responses_y,
            ),
            Panel(
                "Tasks of 100 ms",
                "Probes per task",
                "Messages per task",
                over_ratio(mean_of("messages")),
                _ratios_x,
                plots.from_zero_y,
            ),
            Panel(
                "With cancellation, load 0.5",
                "Run time of tasks (ms)",
                "Slot time lost to questions",
                lost,
                _times_x,
                _shares_y,
            ),
        ],
    )


def _constant(value: float) -> Reader:
    return lambda _: value


def _ratios_x(axes: Axes) -> None:
    axes.set_xlim(0.9, 4.1)


def _responses_y(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.set_ylim(bottom=95)
    axes.set_yticks([100, 120, 150, 200, 300], ["100", "120", "150", "200", "300"])
    axes.set_yticks([], minor=True)


def _times_x(axes: Axes) -> None:
    axes.set_xscale("log")
    _plain_ticks(axes, LOST_TIMES_MS)


def _shares_y(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    style.share_axis(axes)


def _probe_ratio_table(results: Results) -> Table:
    """The runs over the probe ratio."""
    rows = tuple(
        (
            at_ratio(d, load),
            median_text(results, of(RESPONSE, at_ratio(d, load)), "{:.1f}".format),
            median_text(results, of(mean_of("messages"), at_ratio(d, load)), "{:.2f}".format),
            median_text(results, of(LOST, at_ratio(d, load)), "{:.2%}".format),
        )
        for load in SWEEP_LOADS
        for d in RATIOS
    )
    header = ("", "mean response, ms", "messages per task", "slot time lost to questions")
    return Table(header, rows, "Tasks of 100 ms, with cancellation.")


# Responses over those of a run without waiting

IDEAL_LOADS = (0.5, 0.8, 0.9)
_TWO = {load: at_ratio(2.0, load) for load in SWEEP_LOADS}


def ideal_runs(scale: ReproduceScale) -> tuple[SimulationRun | SweepRun, ...]:
    """Those of the other figures with two probes and late binding, and the central queue."""
    wanted = {
        *(independent(name, load) for load in IDEAL_LOADS for name in (LATE, CENTRAL)),
        *(equal(name) for name in (LATE, CENTRAL)),
        *_TWO.values(),
    }
    runs: tuple[SimulationRun | SweepRun, ...] = (
        *simulation_runs(scale),
        *probe_ratio_runs(scale),
    )
    return tuple(run for run in runs if run.label in wanted)


def _over_longest(arrays: Arrays) -> float:
    return RESPONSE(arrays) / LONGEST(arrays)


def _over_run_time(arrays: Arrays) -> float:
    return RESPONSE(arrays) / _TASK_MS


_OVER_IDEAL: dict[str, Value] = {
    **{
        f"Sparrow’s simulations, independent tasks, load {load:g}": of(
            _over_longest, independent(LATE, load)
        )
        for load in IDEAL_LOADS
    },
    "Sparrow’s simulations, equally long tasks, load 0.8": of(_over_longest, equal(LATE)),
    **{
        f"10 tasks of 100 ms on 800 slots, load {load:g}": of(_over_run_time, label)
        for load, label in _TWO.items()
    },
}
_IDEAL_CLAIMS: dict[str, Value] = {
    "within_12_percent": most(list(_OVER_IDEAL.values())),
    "within_5_percent": most(
        [
            *(
                ratio(RESPONSE, independent(LATE, load), independent(CENTRAL, load))
                for load in IDEAL_LOADS
            ),
            _equal_ratio(LATE, CENTRAL),
        ]
    ),
}


def _ideal_table(results: Results) -> Table:
    """A row for each workload."""
    rows = tuple(
        (name, median_text(results, value, "{:.3f}".format), "1.12 (other jobs)")
        for name, value in _OVER_IDEAL.items()
    )
    return Table(("", "response over that without waiting", "paper"), rows)


def _numbers(values: Sequence[float]) -> str:
    """Some numbers in words, such as "0.5, 0.8 and 0.9"."""
    texts = [f"{value:g}" for value in values]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


FIGURES = (
    CHAPTER.figure(
        "closed_forms",
        closed_form_runs,
        _CLOSED_FORM_CLAIMS,
        _draw_closed_forms,
        _closed_form_table,
        machines=f"{_MACHINES[PAPER]:,} (smoke scale: {_MACHINES[SMOKE]:,})",
        loads=_numbers(JUDGED),
    ),
    CHAPTER.figure(
        "simulation",
        simulation_runs,
        _SIMULATION_CLAIMS,
        _draw_simulation,
        _simulation_table,
        draws=f"{_DRAWS[PAPER]} (smoke scale: {_DRAWS[SMOKE]})",
        equal_draws=f"{_EQUAL_DRAWS[PAPER]} (smoke scale: {_EQUAL_DRAWS[SMOKE]})",
    ),
    CHAPTER.figure(
        "probe_ratio",
        probe_ratio_runs,
        _PROBE_RATIO_CLAIMS,
        _draw_probe_ratio,
        _probe_ratio_table,
        ds=_numbers(LOST_RATIOS),
        times=_numbers(LOST_TIMES_MS),
    ),
    CHAPTER.figure("ideal", ideal_runs, _IDEAL_CLAIMS, table=_ideal_table),
)
