"""Fig. 1 of ParSync: how many jobs and tasks arrive, and how long tasks run.

The paper's trace is not public. What stands in is the generated workload of section 6, whose
constants come from the paper: 40,000 tasks/s at 100 % load, run times of 5 s on average.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.model_runs.workload_counts import WorkloadRun
from experiments.reproduce.claims import Limits, ModelClaim, ModelsOfSeed
from experiments.reproduce.figure import ModelFigure, ModelResults, ReproduceScale
from experiments.reproduce.section6_runs import cell
from experiments.workload_config import WorkloadConfig

WORKLOAD = "Workload of section 6"
SHORT_S, US_PER_S = 10.0, 1e6
_PAPER_SHORT = 0.87
_DAY_S = 86_400
_WIDE_IN, _HIGH_IN = 9.2, 3.2
_NOT_PUBLIC = "The trace is not public, and the generated workload has no days."


def runs(scale: ReproduceScale) -> tuple[WorkloadRun, ...]:
    """The workload of section 6, counted."""
    return (WorkloadRun(WORKLOAD, WorkloadConfig.of("synthetic", cell(scale).synthetic)),)


def short_share(arrays: Arrays) -> float:
    """The share of tasks that run for less than 10 s away from preferred machines."""
    place = abs(arrays["run_time_end_s"] - SHORT_S).argmin()
    return float(arrays["shorter"][place] / arrays["tasks"].sum())


def arrivals(results: ModelResults) -> Figure:
    """Fig. 1a: jobs (solid) and tasks (dotted) that arrive, here per second."""
    arrays = results.first(WORKLOAD)
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
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


def run_times(results: ModelResults) -> Figure:
    """Fig. 1b: the distribution of the run times of tasks."""
    arrays = results.first(WORKLOAD)
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
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


def _per_day(name: str, runs: ModelsOfSeed) -> float:
    return float(runs[WORKLOAD][name].mean()) * _DAY_S


def _peak(runs: ModelsOfSeed) -> float:
    tasks = runs[WORKLOAD]["tasks"]
    return float(tasks.max() / tasks.mean())


def _tasks_per_job(runs: ModelsOfSeed) -> float:
    return float(runs[WORKLOAD]["tasks"].sum() / runs[WORKLOAD]["jobs"].sum())


FIGURES = (
    ModelFigure(
        "fig1a",
        "Jobs and tasks that arrive",
        "Fig. 1a, section 2",
        runs,
        (
            ModelClaim(
                "fig1a.jobs_per_day",
                "Fig. 1a, section 2",
                "3.34 to 4.36 million jobs are processed in a cluster each day.",
                "3.34 to 4.36 million",
                "jobs that arrive, in a day of the mean rate",
                Limits(3.34e6, 4.36e6),
                lambda runs: _per_day("jobs", runs),
                incomparable=_NOT_PUBLIC,
            ),
            ModelClaim(
                "fig1a.tasks_per_day",
                "Fig. 1a, section 2",
                "The number of tasks each day ranges from 3.1 to 4.4 billion.",
                "3.1 to 4.4 billion",
                "tasks that arrive, in a day of the mean rate",
                Limits(3.1e9, 4.4e9),
                lambda runs: _per_day("tasks", runs),
                incomparable=_NOT_PUBLIC,
            ),
            ModelClaim(
                "fig1a.peak",
                "section 2",
                "The average task submission rate is 40,000/s, and the peak is 61,000/s.",
                "1.53 times the average",
                "tasks of the busiest second over the mean",
                Limits(1.4, 1.7),
                _peak,
                incomparable=_NOT_PUBLIC,
            ),
            ModelClaim(
                "fig1a.tasks_per_job",
                "Fig. 1a, section 2",
                "A job consists of many tasks: about 1,000 by the two ranges of Fig. 1a.",
                "928 to 1,009",
                "tasks over jobs",
                Limits(700, 1_300),
                _tasks_per_job,
            ),
        ),
        draw=arrivals,
        notes=(
            "The paper's figure has a month of a production cluster, by day. The trace is not "
            "public. This one has the five phases of section 6, by second, from generated "
            "arrivals.",
            "The paper does not state how the workload of section 6 was sampled from its trace. "
            "The generated jobs fit the execution times of Table 1, not Fig. 1a.",
        ),
    ),
    ModelFigure(
        "fig1b",
        "How long tasks run",
        "Fig. 1b, section 2",
        runs,
        (
            ModelClaim(
                "fig1b.short_tasks",
                "Fig. 1b, section 2",
                "87 % of tasks are completed in less than 10 seconds.",
                "87 %",
                "share of tasks that run for less than 10 s away from preferred machines",
                Limits(0.84, 0.9),
                lambda runs: short_share(runs[WORKLOAD]),
            ),
        ),
        draw=run_times,
        notes=(
            "The generated run times are lognormal with a mean of 5 s. Their spread was chosen to "
            "fit this figure, so it is no independent check. The 87 % are all that the paper's "
            "text states of it.",
        ),
    ),
)
