"""Fig. 1, Eq. 2, Figs. 2 to 4 and section 5.1 of ParSync, by its models (models.toml).

Fig. 1 shows arrivals and run times of a trace that is not public. What stands in is the generated
workload of section 6, whose constants come from the paper: 40,000 tasks/s at 100 % load, run times
of 5 s on average. Eq. 2 is compared with simulated rounds. All else runs on the slot simulator
(studies/model_settings.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.statistics import Interval
from experiments.campaign.task import Arrays
from experiments.config.workload_config import WorkloadConfig
from experiments.figures import style
from experiments.papers.chapter import Chapter, PaperFigure, Results, Table, like
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.parsync.arms import cell
from experiments.papers.plots import utilisation_beside
from experiments.papers.statistics import (
    US_PER_S,
    Reader,
    difference,
    divided,
    growths,
    least,
    less,
    median_text,
    most,
    of,
    over,
    percent,
    quotient,
    quotient_of,
    ratio,
    spread,
)
from experiments.studies.extra_slots import draw as draw_extra_slots
from experiments.studies.model_runs import (
    SimulationRun,
    WorkloadRun,
    extra_slots,
    extra_slots_interval,
    number,
)
from experiments.studies.model_settings import (
    DIFF,
    EQ2_FACTORS,
    EQ2_TIMES,
    FIG2_FACTORS,
    FIG3_FACTORS,
    FIG4_PHASE_S,
    FIG4_STRATEGIES,
    GAP_S,
    PARTITIONS,
    RATE_PER_S,
    SAME,
    TAU_S,
    VARIANCE,
    ReproduceScale,
    default_settings,
    eq2_label,
    eq2_runs,
    fig2_runs,
    fig3_runs,
    fig4_runs,
    line_label,
    part,
    point_label,
)
from parsync.model.slot_settings import SyncMode

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
_WIDE_IN, _PANEL_IN = 9.2, 2.7

# Fig. 1: how many jobs and tasks arrive, and how long tasks run

WORKLOAD = "Workload of section 6"
SHORT_S = 10.0
_PAPER_SHORT = 0.87
_DAY_S = 86_400


def workload_runs(scale: ReproduceScale) -> tuple[WorkloadRun, ...]:
    """The workload of section 6, counted."""
    return (WorkloadRun(WORKLOAD, WorkloadConfig.of("synthetic", cell(scale).synthetic)),)


def short_share(arrays: Arrays) -> float:
    """The share of tasks that run for less than 10 s away from preferred machines."""
    place = abs(arrays["run_time_end_s"] - SHORT_S).argmin()
    return float(arrays["shorter"][place] / arrays["tasks"].sum())


def _per_day(name: str) -> Reader:
    return lambda arrays: float(arrays[name].mean()) * _DAY_S


def _fig1a(results: Results) -> Figure:
    """Jobs (solid) and tasks (dotted) that arrive, here per second."""
    arrays = results.first(WORKLOAD)
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _PANEL_IN + 0.5)
        beside = axes.twinx()
        for place, (panel, name) in enumerate(((axes, "jobs"), (beside, "tasks"))):
            panel.plot(
                range(len(arrays[name])),
                arrays[name],
                color=style.colour(place),
                linestyle="-:"[place],
                label=name,
            )
            panel.set_ylim(bottom=0)
            panel.set_ylabel(f"{name.capitalize()} per second")
        beside.grid(visible=False)
        axes.set_xlabel("Time (s)")
        figure.legend(loc="outside upper center", ncols=2)
    return figure


def _fig1b(results: Results) -> Figure:
    """The distribution of the run times of tasks."""
    arrays = results.first(WORKLOAD)
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _PANEL_IN + 0.5)
        share = arrays["shorter"] / arrays["tasks"].sum()
        axes.plot(arrays["run_time_end_s"] * US_PER_S, share, color=style.colour(0), label="ours")
        paper = {"color": style.colour(1), "label": "paper: 87 % in 10 s"}
        axes.plot(SHORT_S * US_PER_S, _PAPER_SHORT, "o", **paper)
        axes.set_xlim(0.1 * US_PER_S, 100 * US_PER_S)
        style.duration_axis(axes, "x", log=True)
        axes.set_ylim(0, 1.02)
        style.share_axis(axes)
        axes.set_xlabel("Run time of a task")
        axes.set_ylabel("Tasks that are shorter")
        style.legend(figure, axes)
    return figure


FIG1 = (
    CHAPTER.figure(
        "fig1a",
        workload_runs,
        {
            "jobs_per_day": of(_per_day("jobs"), WORKLOAD),
            "tasks_per_day": of(_per_day("tasks"), WORKLOAD),
            "peak": of(lambda run: float(run["tasks"].max() / run["tasks"].mean()), WORKLOAD),
            "tasks_per_job": of(
                lambda run: float(run["tasks"].sum() / run["jobs"].sum()), WORKLOAD
            ),
        },
        _fig1a,
    ),
    CHAPTER.figure("fig1b", workload_runs, {"short_tasks": of(short_share, WORKLOAD)}, _fig1b),
)


# Eq. 2: conflicts of a round, simulated and by the equation


def _mean(arrays: Arrays) -> float | None:
    """The mean conflicts of simulated rounds."""
    return number(arrays, "mean")


def _largest_deviation(runs: RunsOfSeed) -> float | None:
    """The largest deviation of simulated conflicts from Eq. 2, in standard errors."""
    return over(
        max,
        [
            abs(float(one["mean"]) - float(one["expected"])) / float(one["error"])
            for one in runs.values()
        ],
    )


def _eq2(results: Results) -> Figure:
    """Simulated conflicts of a round beside Eq. 2: over A, and over the idle slots."""
    with style.drawing(rows=1, columns=2) as (figure, panels):
        figure.set_size_inches(_WIDE_IN, _PANEL_IN + 0.6)
        for axes, values, labels, name in (
            (panels[0], EQ2_FACTORS, [eq2_label(one, 1) for one in EQ2_FACTORS], "A"),
            (panels[1], EQ2_TIMES, [eq2_label(1, one) for one in EQ2_TIMES], "Idle slots, times"),
        ):
            runs = [results.first(label) for label in labels]
            expected = [float(one["expected"]) for one in runs]
            axes.plot(values, expected, label="Eq. 2", **style.line_style(0))
            axes.errorbar(
                values,
                [float(one["mean"]) for one in runs],
                [2 * float(one["error"]) for one in runs],
                fmt="o",
                ms=4,
                color=style.colour(1),
                label="simulated, 2 standard errors",
            )
            axes.set_ylim(0, 1.15 * max(expected))
            axes.set_xlabel(name)
        style.equal_y(panels)
        panels[0].set_ylabel("Conflicts of a round")
        style.legend(figure, panels[0])
    return figure


_ONCE, _TWICE, _FOUR = (eq2_label(1, times) for times in (1, 2, 4))
EQ2 = CHAPTER.figure(
    "eq2",
    eq2_runs,
    {
        "exact": _largest_deviation,
        "never_zero": of(_mean, eq2_label(1, EQ2_TIMES[-1])),
        # between 2 and 4 times the slots there are twice as many further slots
        "slots_diminish": quotient_of(
            less(_mean, _ONCE, _TWICE), divided(less(_mean, _TWICE, _FOUR), 2)
        ),
        "grows_with_factor": least(growths(_mean, [eq2_label(one, 1) for one in EQ2_FACTORS])),
    },
    _eq2,
)


# Figs. 2 and 3: extra slots over one axis

_AXES = {
    "a": (RATE_PER_S, "task submission rate"),
    "b": (GAP_S, "synchronisation gap"),
    "c": (VARIANCE, "variance of slot scores"),
    "d": (PARTITIONS, "partitions of the master state"),
}
_LOAD_NOTES = {  # at the highest rate, the load is above the cell's slots
    "fig2": ("{rate}", "{no_values}", "{load}", "{factor}"),
    "fig3": ("{rate}", "{no_values}", "{load}", "{whole_view}"),
}
_FIG2_LINES = tuple(line_label(factor) for factor in FIG2_FACTORS)
_FIG3_LINES = tuple(line_label(factor, sync) for sync in (DIFF, SAME) for factor in FIG3_FACTORS)


def _line(runs: RunsOfSeed, axis: str, name: str) -> dict[float, Arrays]:
    """The searches of a line of Figs. 2 and 3 by the value of the axis, ascending."""
    start = point_label(name, axis, 0)[:-1]
    found = {
        float(label.removeprefix(start)): arrays
        for label, arrays in runs.items()
        if label.startswith(start)
    }
    return dict(sorted(found.items()))


def _shares(runs: RunsOfSeed, axis: str, name: str) -> dict[float, float | None]:
    """S_extra of the same, as shares of S; None where a search finds no answer."""
    return {
        value: quotient(extra_slots(arrays), float(arrays["slots"]))
        for value, arrays in _line(runs, axis, name).items()
    }


def _growth(axis: str, name: str) -> Value:
    """S_extra at the largest value of the axis less that at the least."""

    def value(runs: RunsOfSeed) -> float | None:
        shares = list(_shares(runs, axis, name).values())
        return difference(shares[-1], shares[0])

    return value


def _spread(axis: str, name: str) -> Value:
    """The largest difference of S_extra between values of the axis."""

    def value(runs: RunsOfSeed) -> float | None:
        return over(
            lambda shares: max(shares) - min(shares), list(_shares(runs, axis, name).values())
        )

    return value


def _saved_by_factor(axis: str) -> Value:
    """S_extra saved by the last doubling of A over that saved by the one before."""

    def value(runs: RunsOfSeed) -> float | None:
        lines = [_shares(runs, axis, name) for name in _FIG2_LINES]
        saved = [0.0, 0.0]
        for place in lines[0]:
            known = [share for line in lines if (share := line[place]) is not None]
            if len(known) == len(lines):
                for doubling, (before, after) in enumerate(pairwise(known)):
                    saved[doubling] += before - after
        return quotient(saved[1], saved[0]) if saved[0] > 0 else None

    return value


def _same_less_diff(axis: str, factor: int) -> Value:
    """The mean of S_extra under SameSyn less that under DiffSyn."""

    def value(runs: RunsOfSeed) -> float | None:
        same = _shares(runs, axis, line_label(factor, SAME))
        diff = _shares(runs, axis, line_label(factor, DIFF))
        both = [difference(same[one], diff[one]) for one in same]
        known = [one for one in both if one is not None]
        return float(np.mean(known)) if known else None

    return value


def _searches(results: Results, axis: str, lines: tuple[str, ...]) -> Figure:
    """S_extra over one axis, a line for each of several settings; seeds as an interval."""
    found: dict[str, dict[float, Interval]] = {}
    for name in lines:
        by_value = [_line(runs, axis, name) for runs in results.seeds]
        found[name] = {
            value: extra_slots_interval([of_seed[value] for of_seed in by_value])
            for value in by_value[0]
        }
    return draw_extra_slots(axis, found)


def _fig2(letter: str) -> PaperFigure:
    axis, name = _AXES[letter]
    first: dict[str, Value] = {"grows": _growth(axis, line_label(2))}
    if axis == PARTITIONS:
        first = {"minimal": most([_spread(axis, line) for line in _FIG2_LINES])}
    return CHAPTER.figure(
        "fig2",
        partial(fig2_runs, axis=axis),
        {**first, "factor_diminishes": _saved_by_factor(axis)},
        partial(_searches, axis=axis, lines=_FIG2_LINES),
        id=f"fig2{letter}",
        notes=_LOAD_NOTES["fig2"] if axis == RATE_PER_S else (),
        letter=letter,
        axis=name,
        symbol=axis[0],
    )


def _fig3(letter: str) -> PaperFigure:
    axis, name = _AXES[letter]
    return CHAPTER.figure(
        "fig3",
        partial(fig3_runs, axis=axis),
        {
            f"same_needs_more_a{factor}": like(
                "same_needs_more", _same_less_diff(axis, factor), factor=factor
            )
            for factor in FIG3_FACTORS
        },
        partial(_searches, axis=axis, lines=_FIG3_LINES),
        id=f"fig3{letter}",
        notes=_LOAD_NOTES["fig3"] if axis == RATE_PER_S else (),
        letter=letter,
        axis=name,
    )


# Fig. 4: two groups of schedulers in three phases, under each strategy

_A, _B = 0, 1  # the groups
_LAST_S = 5.0  # of a phase, for what holds at its end
_SETTLE_S = 10.0  # of a phase, left out of its means
_PAPER_SURGE_S = 4.7  # of group A under quality-first, at the end of phase 2


def _phase_mean(name: str, phase: int, group: int) -> Reader:
    """The mean of a group's medians in a phase, less its first seconds."""
    return lambda arrays: _over_time(arrays, name, group, _SETTLE_S, phase)


def _at_end(name: str, phase: int, group: int) -> Reader:
    """The mean of a group's medians in the last seconds of a phase."""
    return lambda arrays: _over_time(arrays, name, group, FIG4_PHASE_S - _LAST_S, phase)


def _utilisation(phase: int) -> Reader:
    """The mean utilisation in a phase, less its first seconds."""
    return lambda arrays: float(arrays["utilisation"][_bins(arrays, _SETTLE_S, phase)].mean())


def _over_time(arrays: Arrays, name: str, group: int, from_s: float, phase: int) -> float | None:
    medians = arrays[name][_bins(arrays, from_s, phase), group, 1]
    known = medians[~np.isnan(medians)]
    return float(known.mean()) if len(known) else None


def _bins(arrays: Arrays, from_s: float, phase: int) -> slice:
    """The bins of a phase that end later than this after its start."""
    start_s = phase * FIG4_PHASE_S
    times_s = [start_s + from_s, start_s + FIG4_PHASE_S]
    first, last = np.searchsorted(arrays["end_s"], times_s, side="right")
    return slice(int(first), int(last))


def _fig4(results: Results) -> Figure:
    """Score and delay over time under each strategy: medians and the 10th to 90th percentiles of
    groups A and B, with the utilisation."""
    with style.drawing(rows=len(FIG4_STRATEGIES), columns=2) as (figure, panels):
        figure.set_size_inches(_WIDE_IN, len(FIG4_STRATEGIES) * _PANEL_IN)
        for row, label in zip(panels, FIG4_STRATEGIES, strict=True):
            arrays = results.first(label)
            for axes, name, title in (
                (row[0], "score", "Slot score"),
                (row[1], "delay_s", "Delay (s)"),
            ):
                for group in (_B, _A):
                    low, median, high = arrays[name][:, group].T
                    colour = style.colour(group)
                    axes.plot(arrays["end_s"], median, color=colour, label=f"Group {'AB'[group]}")
                    axes.fill_between(
                        arrays["end_s"], low, high, color=colour, alpha=0.2, linewidth=0
                    )
                axes.set_title(label)
                axes.set_ylabel(title)
            row[1].set_ylim(bottom=0)
            _paper_value(row[1], label)
            utilisation_beside(row[1], arrays["end_s"], arrays["utilisation"])
        for column in panels.T:
            style.equal_y(column)
        for axes in panels[-1]:
            axes.set_xlabel("Time (s)")
        style.legend(figure, panels[0, 0])
    return figure


def _paper_value(axes: Axes, label: str) -> None:
    """What the paper states of the delay, as a dotted line."""
    quality, _, adaptive = FIG4_STRATEGIES
    value_s = {quality: _PAPER_SURGE_S, adaptive: TAU_S}.get(label)
    if value_s is not None:
        axes.axhline(value_s, color=style.INK, linestyle=":", linewidth=1)
        axes.annotate(
            f"paper: {value_s:g} s",
            (1, value_s),
            xytext=(0, 2),
            fontsize=8,
            textcoords="offset points",
        )


def _fig4_values() -> dict[str, Value]:
    quality, latency, adaptive = three = tuple(FIG4_STRATEGIES)
    delay, score = partial(_at_end, "delay_s"), partial(_phase_mean, "score")
    mean_delay = partial(_phase_mean, "delay_s")
    return {
        "phase1_alike": spread([of(mean_delay(0, _A), one) for one in three]),
        "phase1_scores_alike": spread([of(score(0, _A), one) for one in three]),
        "utilisation_phase1": of(_utilisation(0), quality),
        "utilisation_phase2": of(_utilisation(1), latency),
        "quality_first_surges": of(delay(1, _A), quality),
        "quality_first_b_stable": less(delay(1, _B), quality, quality, mean_delay(0, _B)),
        "quality_first_keeps_scores": less(score(1, _A), quality, quality, score(0, _A)),
        "latency_first_slightly_worse": most(
            [less(mean_delay(1, one), latency, latency, mean_delay(0, one)) for one in (_A, _B)]
        ),
        "adaptive_reaches_tau": of(delay(1, _A), adaptive),
        "adaptive_bounds_both": most([of(delay(2, one), adaptive) for one in (_A, _B)]),
        "adaptive_b_lower": ratio(delay(1, _B), adaptive, adaptive, delay(1, _A)),
        "adaptive_a_scores_lower": less(
            _at_end("score", 1, _A), adaptive, adaptive, _at_end("score", 1, _B)
        ),
        "quality_first_keeps_growing": least(
            [ratio(delay(2, one), quality, quality, delay(1, one)) for one in (_A, _B)]
        ),
        "latency_first_much_lower": least(
            [ratio(delay(2, g), one, latency) for one in (quality, adaptive) for g in (_A, _B)]
        ),
        "scores_worsen": most(
            [less(score(2, _A), one, one, score(1, _A)) for one in (latency, adaptive)]
        ),
    }


# Section 5.1: conflicts and delay in the two halves of the gap G. The paper gives numbers for
# G = 0.5 s and S_extra = 15,000. It states neither A, nor whether all schedulers synchronise at the
# same times, nor whether a scheduler sees the slots of its own tasks as soon as they end. These
# runs have A = 2 and all four combinations of the others.

EXTRA_SLOTS, FACTOR = 15_000, 2
WARM_UP_S = 10.0


@dataclass(frozen=True, slots=True)
class _Setting:
    """A combination of what the paper leaves open.

    Attributes:
        name: Of its claims.
        label: Of its run.
    """

    name: str
    label: str
    sync: SyncMode
    freed_at_once: bool


SETTINGS = (
    _Setting("aligned", "Aligned", SyncMode.STATE_ALIGNED, False),
    _Setting("aligned_own", "Aligned, own slots at once", SyncMode.STATE_ALIGNED, True),
    _Setting("staggered", "Staggered", SyncMode.STATE_STAGGERED, False),
    _Setting("staggered_own", "Staggered, own slots at once", SyncMode.STATE_STAGGERED, True),
)


def section51_runs(scale: ReproduceScale) -> tuple[SimulationRun, ...]:
    """The default setting of section 4.3 with S_extra = 15,000, once for each combination."""
    settings = replace(default_settings(scale, FACTOR), extra_slots=EXTRA_SLOTS // part(scale))
    return tuple(
        SimulationRun(one.label, replace(settings, sync=one.sync, freed_at_once=one.freed_at_once))
        for one in SETTINGS
    )


def conflict_rate(arrays: Arrays, half: int) -> float | None:
    """Conflicts per claim in a half of the gap, after the warm-up."""
    return quotient(
        _of_half(arrays, "slice_conflicts", half), _of_half(arrays, "slice_claims", half)
    )


def delay_share(arrays: Arrays, half: int) -> float | None:
    """The mean delay that conflicts cause a task committed in a half of the gap, over the sum of
    these means of both halves."""
    means = [
        quotient(
            _of_half(arrays, "slice_conflict_delay_s", one), _of_half(arrays, "slice_commits", one)
        )
        for one in (0, 1)
    ]
    return quotient(means[half], sum(mean for mean in means if mean is not None))


def growth(arrays: Arrays) -> float | None:
    """The conflict rate in the second half over that in the first."""
    return quotient(conflict_rate(arrays, 1), conflict_rate(arrays, 0))


def _of_half(arrays: Arrays, name: str, half: int) -> float:
    after = arrays["end_s"] > WARM_UP_S
    return float(np.sum(arrays[name][after, :, half]))


def _section51_table(results: Results) -> Table:
    """The four numbers of the paper beside ours."""
    readers: list[Reader] = [
        partial(read, half=half) for read in (conflict_rate, delay_share) for half in (0, 1)
    ]
    rows: list[tuple[str, ...]] = [("Paper", "48 %", "64 %", "23 %", "76 %")]
    rows += [
        (one.label, *(median_text(results, of(read, one.label), percent) for read in readers))
        for one in SETTINGS
    ]
    header = (
        "StateSync",
        *("conflict rate, 1st half of G", "2nd half"),
        *("share of delay, 1st half", "2nd half"),
    )
    return Table(
        header,
        tuple(rows),
        "Delay is the part that conflicts cause: beyond queueing and deciding each task once. "
        "Medians over the seeds.",
    )


_SECTION51_READERS: dict[str, Reader] = {
    "first_half": partial(conflict_rate, half=0),
    "second_half": partial(conflict_rate, half=1),
    "conflicts_grow": growth,
    "delay_in_second_half": partial(delay_share, half=1),
}
SECTION51 = CHAPTER.figure(
    "sec51",
    section51_runs,
    {
        f"{name}_{one.name}": like(
            name, of(read, one.label), how=one.label[0].lower() + one.label[1:]
        )
        for one in SETTINGS
        for name, read in _SECTION51_READERS.items()
    },
    table=_section51_table,
)


FIGURES = (
    *FIG1,
    EQ2,
    *map(_fig2, "abcd"),
    *map(_fig3, "abc"),
    CHAPTER.figure("fig4", fig4_runs, _fig4_values(), _fig4),
    SECTION51,
)
