"""What is said of Quincy's overheads and of its four variants (figures.toml).

Both are runs of the flow scheduler with the options of the kind `quincy` (../flow_rounds.py): cost
scaling from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers.chapter import Chapter, Results, Table
from experiments.papers.claims import Value
from experiments.papers.firmament.cells import NS_PER_S, box, cost_s, median_s, shown, whole_table
from experiments.papers.flow_rounds import US_PER_S, CellRun, Options, Setting, SteadyRun, World
from experiments.papers.statistics import Reader, least, most, of, quotient_of, ratio
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.input_data import InputReplicas
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int64

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
MS_PER_S = 1000

# Overheads

SMALL, LARGE, LARGE_INCREMENTAL = "250 machines", "2,500 machines", "2,500 machines, incremental"
JOB_TASKS = 110  # so 10 and 100 jobs
_SLOTS, _ASKED_PERMILLE = 4, 1_100
_ROUNDS = {ReproduceScale.SMOKE: 60, ReproduceScale.PAPER: 300}


def overhead_runs(scale: ReproduceScale) -> tuple[SteadyRun, ...]:
    """Quincy on both cells, and its incremental form on the larger one. Both scales have the same
    cells, and more rounds at paper scale."""
    rounds = _ROUNDS[scale]
    incremental: Options = {"algorithm": [{"name": "cost_scaling"}]}
    runs = []
    for label, machines, options in (
        (SMALL, 250, {}),
        (LARGE, 2_500, {}),
        (LARGE_INCREMENTAL, 2_500, incremental),
    ):
        setting = Setting(machines, _SLOTS, _ASKED_PERMILLE, "quincy", options, JOB_TASKS)
        runs.append(SteadyRun(label, setting, rounds, cost_s(setting, rounds), step_s=1))
    return tuple(runs)


def highest_s(arrays: Arrays) -> float:
    """The highest time of the solver."""
    return float(arrays["solve_ns"].max()) / NS_PER_S


def _ms(read: Reader, label: str) -> Value:
    return lambda runs: MS_PER_S * (read(runs[label]) or 0.0)


OVERHEAD_CLAIMS: dict[str, Value] = {
    "typical_250": _ms(median_s, SMALL),
    "highest_250": _ms(highest_s, SMALL),
    "highest_2500": _ms(highest_s, LARGE),
    "growth": ratio(highest_s, LARGE, SMALL),
    "spread": ratio(highest_s, SMALL, SMALL, median_s),
    "incremental": ratio(median_s, LARGE, LARGE_INCREMENTAL),
}


def _overheads(results: Results) -> Figure:
    """The times of the rounds' solves as boxes."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(9.2, 4.2)
        for place, run in enumerate(results.runs):
            times = np.concatenate([one["solve_ns"] for one in results.of(run.label)])
            box(axes, place, US_PER_S * times / NS_PER_S)
        axes.set_xticks(range(len(results.runs)), [run.label for run in results.runs])
        axes.set_xlim(-0.6, len(results.runs) - 0.4)
        axes.grid(visible=False, axis="x")
        style.duration_axis(axes, "y", log=True)
        axes.set_ylabel("Time of the solver (processor)")
    return figure


# The four variants

VARIANTS: dict[str, Options] = {
    "Neither": {"preemption": False, "fair_share": False},
    "Preemption": {"preemption": True, "fair_share": False},
    "Fair shares": {"preemption": False, "fair_share": True},
    "Fair shares and preemption": {"preemption": True, "fair_share": True},
}
NEITHER, PREEMPTION, FAIR, BOTH = VARIANTS
_STEP_S = 10
_LONGEST_US = 3_600 * US_PER_S
_LOAD_PERMILLE = 1_200
_MACHINES = {ReproduceScale.SMOKE: 50, ReproduceScale.PAPER: 250}
_TASKS_PER_SLOT = 8


@dataclass(frozen=True)
class JobsRun(CellRun):
    """Jobs that arrive in an empty cell while it is too small for them, until all have ended.
    `rounds` is not used: as many as that takes.

    Attributes:
        tasks: How many arrive.
    """

    tasks: int = 1

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """Of each job, int64[jobs]: took_us, from arrival to the end of its last task; alone_us,
        what it would take alone: its longest task, or all of them on all slots. One number each:
        read_gb, input read from other machines by all starts of tasks; input_gb, of the tasks;
        preempted, wasted_us, starts that were ended and what they had run; rounds.
        """
        world = World(self.setting, self.tasks, seed, fill=False)
        return _History(world, seed).until_all_ended()


class _History:
    """What becomes of the jobs of a world in which no task runs yet."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        tasks = len(world.tasks)
        slots = world.setting.machines * world.setting.slots
        self._run_us = np.minimum(world.run_us, _LONGEST_US)
        self._first = np.flatnonzero(np.diff(world.tasks.job, prepend=-1))
        self._work_us = np.add.reduceat(self._run_us, self._first)
        longest = np.maximum.reduceat(self._run_us, self._first)
        self.alone_us = np.maximum(longest, self._work_us // slots)
        span_us = int(self._work_us.sum()) * 1000 // (slots * _LOAD_PERMILLE)
        stream = Stream(stream_key(seed, "quincy/arrivals"))
        self._begin_us = world.now_us + np.sort(stream.integers(len(self._first), span_us))
        self._job_of = np.repeat(np.arange(len(self._first)), np.diff(self._first, append=tasks))
        self._started_us = np.full(tasks, -1, np.int64)
        self._ended_us = np.full(tasks, -1, np.int64)
        self._on = np.full(tasks, -1, np.int64)
        self._input = InputReplicas(world.catalog, world.spec.rack)
        self._read_gb = self._preempted = self._wasted_us = 0

    def until_all_ended(self) -> dict[str, NDArray[Any]]:
        """Live round by round (JobsRun.measure)."""
        world, arrived, rounds = self._world, 0, 0
        while (self._ended_us < 0).any():
            world.now_us += _STEP_S * US_PER_S
            self._end()
            due = int(np.searchsorted(self._begin_us, world.now_us, side="right"))
            last = len(self._job_of) if due == len(self._first) else int(self._first[due])
            if last > arrived:
                world.arrive(last - arrived)
                arrived = last
            world.round()
            self._see()
            rounds += 1
        last_us = np.maximum.reduceat(self._ended_us, self._first)
        return {
            "took_us": last_us - self._begin_us,
            "alone_us": self.alone_us,
            "read_gb": np.array(self._read_gb),
            "input_gb": np.array(int(self._gb(np.arange(len(self._on)), 0)[1].sum())),
            "preempted": np.array(self._preempted),
            "wasted_us": np.array(self._wasted_us),
            "rounds": np.array(rounds),
        }

    def _end(self) -> None:
        """Tasks that have run for their time end; a task ends when it has, within a round."""
        running = np.flatnonzero(self._on >= 0)
        end_us = self._started_us[running] + self._run_us[running]
        over = running[end_us <= self._world.now_us]
        if len(over):
            self._ended_us[over] = self._started_us[over] + self._run_us[over]
            self._on[over] = -1
            self._world.end(self._world.allocations_of(over))

    def _see(self) -> None:
        """What the round has changed: tasks that started, and starts that it ended."""
        places = self._world.places()
        gone = (self._on >= 0) & (places != self._on)
        self._preempted += int(gone.sum())
        self._wasted_us += int((self._world.now_us - self._started_us[gone]).sum())
        begun = np.flatnonzero((places >= 0) & (places != self._on))
        self._started_us[begun] = self._world.now_us
        self._on = places
        local, whole = self._gb(begun, places[begun])
        self._read_gb += int((whole - local).sum())

    def _gb(self, task: Int64, machine: Int64 | int) -> tuple[Int64, Int64]:
        """The input of tasks on these machines, and in all, in GB."""
        on = np.broadcast_to(np.asarray(machine, np.int32), len(task))
        preference = self._world.tasks.preference[task]
        on_machine, _, in_all = self._input.local_gb(preference, np.ascontiguousarray(on))
        return on_machine, in_all


def variant_runs(scale: ReproduceScale) -> tuple[JobsRun, ...]:
    """The same jobs under each variant."""
    runs = []
    for label, options in VARIANTS.items():
        setting = Setting(_MACHINES[scale], _SLOTS, 0, "quincy", options)
        tasks = setting.machines * _SLOTS * _TASKS_PER_SLOT
        runs.append(JobsRun(label, setting, 0, tasks * 0.02, tasks))
    return tuple(runs)


def unfairness(arrays: Arrays) -> float:
    """The coefficient of variation of the jobs' slow-downs."""
    slowdown = arrays["took_us"] / arrays["alone_us"]
    return float(slowdown.std() / slowdown.mean())


def job_time_s(arrays: Arrays) -> float:
    """The mean time of a job."""
    return float(arrays["took_us"].mean()) / US_PER_S


def read_gb(arrays: Arrays) -> float:
    """The input read from other machines."""
    return float(arrays["read_gb"])


def _over_best(read: Reader) -> Value:
    return quotient_of(of(read, BOTH), least([of(read, name) for name in VARIANTS if name != BOTH]))


VARIANT_CLAIMS: dict[str, Value] = {
    "fairest": _over_best(unfairness),
    "shortest": _over_best(job_time_s),
    "least_data": _over_best(read_gb),
    "fair_shares_fairer": most(
        [ratio(unfairness, FAIR, NEITHER), ratio(unfairness, BOTH, PREEMPTION)]
    ),
    "preemption_helps": ratio(unfairness, BOTH, FAIR),
}
_MEASURES = (
    ("Unfairness", unfairness),
    ("Mean job time (s)", job_time_s),
    ("Data read from other machines (GB)", read_gb),
)


def _variants(results: Results) -> Figure:
    """A bar for each variant, in a panel for each measure: less is better."""
    with style.drawing(rows=1, columns=len(_MEASURES)) as (figure, made):
        figure.set_size_inches(9.6, 3.9)
        for axes, (title, read) in zip(made, _MEASURES, strict=True):
            for place, name in enumerate(VARIANTS):
                value = np.median([read(run) for run in results.of(name)])
                axes.bar(place, value, color=style.colour(place), label=name, width=0.7)
            axes.set_xticks([])
            axes.set_ylim(bottom=0)
            axes.set_title(title)
        handles, names = made[0].get_legend_handles_labels()
        style.legend_of(figure, list(zip(handles, names, strict=True)))
    return figure


def variant_table(results: Results) -> Table:
    """The numbers of the variants, of the first seed."""
    rows = []
    for name in VARIANTS:
        arrays = results.first(name)
        slowdown = arrays["took_us"] / arrays["alone_us"]
        rows.append(
            (
                name,
                f"{unfairness(arrays):.3f}",
                f"{job_time_s(arrays):,.0f}",
                f"{np.median(slowdown):.2f}",
                f"{np.quantile(slowdown, 0.95):.2f}",
                f"{read_gb(arrays):,.0f} of {int(arrays['input_gb']):,}",
                f"{int(arrays['preempted']):,}",
                f"{arrays['wasted_us'] / US_PER_S / 3600:,.1f}",
            )
        )
    header = (
        *("", "unfairness", "mean job time, s", "slow-down, median", "95 %"),
        *("GB read, of input", "preempted or moved", "hours of work lost"),
    )
    jobs = len(results.first(NEITHER)["took_us"])
    return Table(header, tuple(rows), f"First seed, {jobs:,} jobs.")


FIGURES = (
    CHAPTER.figure(
        "overheads",
        overhead_runs,
        OVERHEAD_CLAIMS,
        _overheads,
        whole_table,
        headline={
            "spread": shown(OVERHEAD_CLAIMS["spread"]),
            "incremental": shown(ratio(median_s, LARGE_INCREMENTAL, LARGE)),
        },
    ),
    CHAPTER.figure(
        "variants",
        variant_runs,
        VARIANT_CLAIMS,
        _variants,
        variant_table,
        headline={
            name: shown(VARIANT_CLAIMS[name]) for name in ("fairest", "shortest", "least_data")
        },
    ),
)
