"""Sparrow on a sample of the Google trace, beside what the public simulator of Hawk and Eagle
(EPFL) prints for the same jobs (google.toml).

The jobs are those of part 0 of the 2011 trace, which is not part of Agora: it is read below
$AGORA_TRACES. A task counts if it was first submitted from 600 s on, where the trace begins, and
its first attempt ended within the part; its run time is that attempt's, rounded up to whole
seconds, which is what the simulator reads. Of these jobs 3,000 are drawn with replacement and
submitted as a Poisson process. The draws are those of Python's Mersenne Twister with seed 1, as
they were for the simulator, so that both have the same jobs at the same microsecond under every
seed: seeds change which machines are probed, and nothing else.

Other assumptions are the simulator's: 4,000 one-slot machines, hops of 0.5 ms, no cancellation, and
machines drawn with replacement unless it says otherwise.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.config.flags import TRACES
from experiments.figures import style
from experiments.papers.chapter import Chapter, Like, Results, Table, like
from experiments.papers.claims import Value
from experiments.papers.sparrow.runs import (
    HOP_S,
    US_PER_S,
    JobsRun,
    Ran,
    jobs_workload,
    probing_group,
)
from experiments.papers.sparrow.settings import TASK_S
from experiments.papers.statistics import (
    furthest_from_one,
    least,
    less,
    mean_of,
    median_text,
    of,
    quotient,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.csv_columns import read_columns
from experiments.workloads.google2011_tables import (
    TASK_COLUMNS,
    TRACE_START_US,
    TaskEvent,
    is_end,
)
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
MACHINES, JOBS = 4_000, 3_000
SHORT_S = 500  # the longest mean run time of a short job
SHORT, LONG = "short", "long"
PERCENTILES = (50, 90, 99)
_DRAWN_WITH_SEED = 1
_PART_0 = "google2011/task_events/part-00000-of-00500.csv"
_COLUMNS_OF_A_ROW = 13
_TASKS = 151_025  # of the sample


@dataclass(frozen=True, slots=True)
class SampleJobs:
    """The jobs of the sample at a load.

    Attributes:
        submit_us, sizes: When each is submitted, int64[jobs], and its number of tasks.
        duration_s: Of each task, in the order of the jobs.
    """

    submit_us: Int64
    sizes: Int64
    duration_s: Int64

    def mean_s(self) -> Int64:
        """The mean run time of each job in whole seconds: int64[jobs]."""
        ends = np.cumsum(self.sizes)
        sums: Int64 = np.add.reduceat(self.duration_s, ends - self.sizes)
        return sums // self.sizes


def why_no_trace() -> str:
    """Why the sample cannot be drawn on this machine, in one sentence; "" if it can."""
    if not os.environ.get(TRACES):
        return f"It needs the Google trace of 2011: set {TRACES} to the folder with google2011/."
    path = _path()
    return "" if path.is_file() else f"It needs the Google trace of 2011: there is no {path}."


def sample_jobs(load: float) -> SampleJobs:
    """The sample at a load of MACHINES one-slot machines. Raises AgoraError if there is no trace,
    or it cannot be read."""
    if reason := why_no_trace():
        raise AgoraError(reason)
    path = _path()
    jobs = _trace_jobs(path, path.stat().st_size)
    uniform = random.Random(_DRAWN_WITH_SEED).random
    drawn = [jobs[int(uniform() * len(jobs))] for _ in range(JOBS)]
    work_s = sum(int(job.sum()) for job in drawn) / JOBS
    gap_s = work_s / (load * MACHINES)
    at_s = 0.0
    submit_us: list[int] = []
    for _ in range(JOBS):
        at_s -= math.log(1.0 - uniform()) * gap_s
        # no two at one time: the simulator would move one of them
        submit_us.append(max(round(at_s * 1e6), submit_us[-1] + 1 if submit_us else 0))
    sizes = np.array([len(job) for job in drawn])
    return SampleJobs(np.array(submit_us), sizes, np.concatenate(drawn))


def _path() -> Path:
    plain = Path(os.environ[TRACES]) / _PART_0
    return plain if plain.is_file() else plain.with_name(plain.name + ".gz")


@lru_cache(maxsize=1)
def _trace_jobs(path: Path, size: int) -> tuple[Int64, ...]:
    """The run times in s of the tasks of each job that counts, by first submission and then by id;
    tasks by index. It is read again if the file has another size."""
    rows = read_columns(path, _COLUMNS_OF_A_ROW, TASK_COLUMNS)
    time_us, event = rows["time"].astype(np.int64), rows["event type"]
    job, index = rows["job ID"], rows["task index"]
    order = np.lexsort((np.arange(len(job)), index, job))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(job[order]) != 0) | (np.diff(index[order]) != 0)
    task = np.empty(len(order), np.int64)
    task[order] = np.cumsum(begins) - 1
    tasks = int(task.max()) + 1
    first = order[begins]

    submit_us = _first(task, time_us, event == TaskEvent.SUBMIT, tasks)
    start_us = _first(task, time_us, event == TaskEvent.SCHEDULE, tasks)
    # of rows at one time the later one in the file is the later event
    place = np.arange(len(task))
    started_at = _first(task, place, event == TaskEvent.SCHEDULE, tasks)
    ends = is_end(event) & (place > started_at[task]) & (started_at[task] >= 0)
    end_us = _first(task, time_us, ends, tasks)
    counts = np.flatnonzero((submit_us >= TRACE_START_US) & (end_us >= 0))
    duration_s = np.maximum(1, -(-(end_us - start_us) // US_PER_S))

    found: dict[int, list[int]] = {}
    for one in counts.tolist():  # tasks are in the order of job and index
        found.setdefault(int(job[first[one]]), []).append(one)
    in_order = sorted(found.items(), key=lambda item: (submit_us[item[1]].min(), item[0]))
    return tuple(duration_s[of] for _, of in in_order)


def _first(task: Int64, values: Int64, which: NDArray[np.bool_], tasks: int) -> Int64:
    """The value at the first of these rows of each task, -1 of tasks that have none:
    int64[tasks]."""
    found = np.full(tasks, -1, np.int64)
    rows = np.flatnonzero(which)[::-1]
    found[task[rows]] = values[rows]  # the last assignment, that of the first row, stands
    return found


@dataclass(frozen=True)
class SampleRun(JobsRun):
    """The sample at a load.

    Attributes:
        load: Of the cell.
    """

    load: float

    @property
    def expected_s(self) -> float:
        return self.draws * _TASKS * TASK_S

    def content(self) -> dict[str, Any]:
        path = _path()
        return {**super().content(), "trace": [path.name, path.stat().st_size]}

    def workload(self, draw: int) -> Workload:
        jobs = sample_jobs(self.load)
        return jobs_workload(MACHINES, 1, jobs.submit_us, jobs.sizes, jobs.duration_s * US_PER_S)

    def summary(self, ran: Ran) -> dict[str, float]:
        """short_p50 to long_p99: percentiles of the response of short and long jobs in s, by
        nearest rank; asked, empty: questions per task, and those without an answer; short_ratio:
        the mean response of short jobs over the mean of their longest tasks."""
        mean_s = sample_jobs(self.load).mean_s()
        return {
            **percentiles_s(ran, mean_s),
            "asked": ran.per_task("asked"),
            "empty": ran.per_task("empty"),
            "short_ratio": float(
                ran.job_response_us()[mean_s <= SHORT_S].mean()
                / ran.longest_us()[mean_s <= SHORT_S].mean()
            ),
        }


def percentiles_s(ran: Ran, mean_s: Int64) -> dict[str, float]:
    """The percentiles of short and long jobs, by the names of SampleRun.summary.

    Args:
        mean_s: The mean run time of each job.
    """
    response_s = ran.job_response_us() / US_PER_S
    found = {}
    for name, chosen in ((SHORT, mean_s <= SHORT_S), (LONG, mean_s > SHORT_S)):
        values = np.sort(response_s[chosen])
        for percent in PERCENTILES:
            found[f"{name}_p{percent}"] = float(values[math.ceil(percent * len(values) / 100) - 1])
    return found


def sample_run(label: str, load: float, d: int, replaces: bool, draws: int) -> SampleRun:
    """The run of a load and a number of probes, machines drawn with or without replacement."""
    group = probing_group(probe_ratio=float(d), with_replacement=replaces, cancellation=False)
    return SampleRun(label, draws, group, HOP_S, 1000, load)


# What the public simulator printed: 50th, 90th and 99th percentile in s, as a range of its runs

Ranges = tuple[tuple[float, float], ...]
LOADS = (0.5, 0.9)
RECORDED_S: dict[tuple[str, float], Ranges] = {
    (SHORT, 0.5): ((171, 171), (670, 670), (1723, 1723)),
    (LONG, 0.5): ((980, 980), (2655, 2655), (3551, 3551)),
    (SHORT, 0.9): ((692, 731), (1511, 1561), (2145, 2215)),
    (LONG, 0.9): ((1616, 1648), (3137, 3166), (4339, 4473)),
}
ONE_PROBE_S: dict[str, Ranges] = {  # at a load of 0.9
    SHORT: ((1658, 1658), (6897, 6897), (14158, 14158)),
    LONG: ((2722, 2722), (9065, 9065), (15728, 15728)),
}
# short jobs at a load of 0.9: of an independent model, not of the simulator
WITHOUT_REPLACEMENT_S: Ranges = ((651, 674), (1385, 1407), (2071, 2084))
_DRAWS = {ReproduceScale.SMOKE: 1, ReproduceScale.PAPER: 5}
_WITH, _WITHOUT = "with replacement", "without"
# probes, and how they are drawn
_POINTS = {
    0.5: ((1, _WITH), (2, _WITH), (1, _WITHOUT), (2, _WITHOUT)),
    0.9: ((1, _WITH), (2, _WITH), (3, _WITH), (4, _WITH), (1, _WITHOUT), (2, _WITHOUT)),
}


def drawn(load: float, d: int, how: str) -> str:
    """The label of a run."""
    return f"Load {load:g}, d = {d}, {how}"


def google_runs(scale: ReproduceScale) -> tuple[SampleRun, ...]:
    """Over the number of probes, with and without replacement."""
    return tuple(
        sample_run(drawn(load, d, how), load, d, how == _WITH, _DRAWS[scale])
        for load, points in _POINTS.items()
        for d, how in points
    )


def _middle(span: tuple[float, float]) -> float:
    return (span[0] + span[1]) / 2


def _text(span: tuple[float, float]) -> str:
    low, high = span
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _texts(spans: Ranges) -> str:
    return " / ".join(_text(span) for span in spans)


def _over_middle(label: str, kind: str, percent: int, span: tuple[float, float]) -> Value:
    read, middle = mean_of(f"{kind}_p{percent}"), _middle(span)
    return lambda runs: read(runs[label]) / middle


def _furthest(label: str, kind: str, spans: Ranges) -> Value:
    """Of the three percentiles over the middles of their ranges the one furthest from 1."""
    return furthest_from_one(
        [
            _over_middle(label, kind, percent, span)
            for percent, span in zip(PERCENTILES, spans, strict=True)
        ]
    )


def _short_claims(load: float) -> dict[str, Like]:
    label = drawn(load, 2, _WITH)
    return {
        f"short_p{percent}_load_{round(100 * load)}": like(
            "short",
            _over_middle(label, SHORT, percent, span),
            percent=percent,
            load=load,
            recorded=_text(span),
            middle=f"{_middle(span):g}",
        )
        for percent, span in zip(PERCENTILES, RECORDED_S[SHORT, load], strict=True)
    }


def _long_claim(load: float) -> Like:
    spans = RECORDED_S[LONG, load]
    value = _furthest(drawn(load, 2, _WITH), LONG, spans)
    return like("long", value, load=load, recorded=_texts(spans))


_AT_TWO, _WITHOUT_AT_TWO = drawn(0.9, 2, _WITH), drawn(0.9, 2, _WITHOUT)


def _shorter(percent: int) -> Value:
    """By how much a percentile of short jobs is less without replacement, as a share."""
    read = mean_of(f"{SHORT}_p{percent}")
    gain = less(read, _AT_TWO, _WITHOUT_AT_TWO)
    return lambda runs: quotient(gain(runs), read(runs[_AT_TWO]))


CLAIMS: dict[str, Value | Like] = {
    **_short_claims(0.5),
    **_short_claims(0.9),
    "long_load_50": _long_claim(0.5),
    "long_load_90": _long_claim(0.9),
    **{
        f"one_probe_{kind}": like(
            "one_probe",
            _furthest(drawn(0.9, 1, _WITH), kind, spans),
            kind=kind,
            recorded=_texts(spans),
        )
        for kind, spans in ONE_PROBE_S.items()
    },
    "without_replacement": like(
        "without_replacement",
        _furthest(_WITHOUT_AT_TWO, SHORT, WITHOUT_REPLACEMENT_S),
        recorded=_texts(WITHOUT_REPLACEMENT_S),
    ),
    "replacement_costs": least([_shorter(percent) for percent in (50, 90)]),
    "questions": of(mean_of("asked"), _AT_TWO),
    "still_gains": ratio(mean_of("short_p50"), drawn(0.9, 4, _WITH), _AT_TWO),
}


def _draw(results: Results) -> Figure:
    """Percentiles of the response of short jobs, a panel for each load: a line for each run, and
    what the simulator printed."""
    with style.drawing(rows=1, columns=2) as (figure, made):
        figure.set_size_inches(9.6, 4.4)
        made[1].sharey(made[0])
        places = range(len(PERCENTILES))
        looks = {point: look for look, point in enumerate(_POINTS[0.9])}
        for axes, load in zip(made, LOADS, strict=True):
            for point in _POINTS[load]:
                found = results.of(drawn(load, *point))
                values = [
                    np.median([run[f"{SHORT}_p{percent}"].mean() for run in found])
                    for percent in PERCENTILES
                ]
                d, how = point
                look = looks[point]
                axes.plot(
                    places,
                    values,
                    marker=style.marker(look),
                    markersize=4.5,
                    label=f"d = {d}, {how}",
                    **style.line_style(look),
                )
            _recorded(axes, RECORDED_S[SHORT, load])
            if load == 0.9:
                _recorded(axes, ONE_PROBE_S[SHORT])
            axes.set_xticks(places, [f"{percent} %" for percent in PERCENTILES])
            axes.set_xlim(-0.3, len(PERCENTILES) - 0.7)
            axes.set_title(f"Load {load:g}")
            axes.set_xlabel("Percentile of short jobs")
            axes.set_yscale("log")
            ticks = (200, 500, 1_000, 2_000, 5_000, 10_000)
            axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.set_yticks([], minor=True)
            axes.set_ylabel("Response (s)")
        style.legend(figure, made[1])
    return figure


def _recorded(axes: Axes, spans: Ranges) -> None:
    axes.plot(
        range(len(spans)),
        [_middle(span) for span in spans],
        "o",
        markerfacecolor="none",
        markeredgecolor=style.INK,
        markersize=10,
        linestyle="none",
        label="Public simulator, with replacement",
        zorder=1.5,
    )


def _table(results: Results) -> Table:
    """Every run, beside what the simulator printed."""
    recorded: dict[tuple[str, str], Ranges] = {
        **{(kind, drawn(load, 2, _WITH)): spans for (kind, load), spans in RECORDED_S.items()},
        **{(kind, drawn(0.9, 1, _WITH)): spans for kind, spans in ONE_PROBE_S.items()},
        (SHORT, _WITHOUT_AT_TWO): WITHOUT_REPLACEMENT_S,
    }
    rows = []
    for run in results.runs:
        label = run.label
        texts = []
        for kind in (SHORT, LONG):
            texts.append(
                " / ".join(
                    median_text(results, of(mean_of(f"{kind}_p{percent}"), label), "{:.0f}".format)
                    for percent in PERCENTILES
                )
            )
            texts.append(_texts(recorded.get((kind, label), ())))
        ideal = median_text(results, of(mean_of("short_ratio"), label), "{:.2f}".format)
        rows.append((label, *texts, ideal))
    header = (
        *("", "short jobs, s", "recorded", "long jobs, s", "recorded"),
        "short jobs: response over that without waiting",
    )
    note = (
        "50th / 90th / 99th percentile. Recorded: the public simulator of Hawk and Eagle; without "
        "replacement, the independent model."
    )
    return Table(header, tuple(rows), note)


FIGURES = (
    CHAPTER.figure(
        "google",
        google_runs,
        CLAIMS,
        _draw,
        _table,
        unavailable=why_no_trace,
        draws=f"{_DRAWS[ReproduceScale.PAPER]} draws (smoke scale: one draw)",
    ),
)
