"""How much an arm gets done, and how loaded it is: throughput, utilisation of the cell, backlog,
whether both were steady, and what schedulers spend their time on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.counters import Counters, TimeSeries
from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import KeptRows, Metric, NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import Days, RunFrame
from parsync.metrics.table_fold import Rows
from schedulers.interface import ChangeKind
from shared_state.tasks import Int64

_ENDED = {
    ChangeKind.FINISHED: "ended_finished",
    ChangeKind.EVICTED: "ended_evicted",
    ChangeKind.LOST: "ended_lost",
}


class ThroughputFigures(Figures):
    """First commits and ends, by the window in which they happened. Tasks that waited at the start
    and were committed late are no part of what the arrivals after it get."""

    throughput_per_s: Number | None = quantity(
        "Throughput",
        Unit.RATE,
        Better.HIGHER,
        "First commits per second; what was submitted bounds it.",
        headline=True,
        per_scheduler=True,
    )
    ended_finished: Count
    ended_evicted: Count
    ended_lost: Count


class ThroughputMetric(NativeMetric):
    """First commits and ended allocations."""

    kind = "throughput"
    description = "First commits per second, and allocations that ended."
    figures_model = ThroughputFigures
    reads: ClassVar[TableColumns] = {
        "tasks": ("agent", "submit_us", "commit_us", "first"),
        "ends": ("agent", "end_us", "change", "due"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("first_commits", *_ENDED.values(), "still_running"), run)
        self.timeline = TimeSeries(("first_commits",), run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "tasks":
            firsts = rows.first_commits
            late = firsts.slot("submit_us") == self.run.start
            slot = late.choose(self.run.outside, firsts.slot("commit_us"))
            firsts.add(self.count["first_commits"], (firsts["agent"], slot))
            firsts.add_over_time(
                self.timeline, "first_commits", firsts["agent"], firsts["commit_us"]
            )
        else:
            self._ends(rows)

    def _ends(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("end_us")
        known = rows.where(rows["agent"] >= 0)  # -1: running before any agent existed
        due = rows["due"] == 1
        known.where(due).add(self.count["still_running"], place)
        ended = known.where(~due)
        for change, name in _ENDED.items():
            ended.where(rows["change"] == change).add(self.count[name], place)

    def figures(self, scope: Scope) -> ThroughputFigures:
        commits = scope.sum(self.count["first_commits"])
        return ThroughputFigures(
            throughput_per_s=ratio(commits * 1e6, self.run.window_us(scope.slots)),
            **{name: scope.sum(self.count[name]) for name in _ENDED.values()},
        )


class UtilisationFigures(Figures):
    """The use of the cell's first resource, over the samples in the windows; the same for all
    agents."""

    utilisation_mean: Number | None = quantity(
        "Utilisation",
        Unit.SHARE,
        Better.NEITHER,
        "Of the cell's first resource, averaged over samples.",
    )
    utilisation_max: Number | None = quantity(
        "Highest utilisation", Unit.SHARE, Better.NEITHER, "Largest sample."
    )


class UtilisationMetric(Metric):
    """Use of the cell's first resource."""

    kind = "utilisation"
    description = "How much of the cell is in use."
    figures_model = UtilisationFigures
    keeps: ClassVar[TableColumns] = {"cell": ("at_us", "running", "machines_up", "used_permille")}

    def figures(self, scope: Scope) -> UtilisationFigures:
        rows, inside = scope.rows("cell")
        if not inside.any():
            return UtilisationFigures(utilisation_mean=None, utilisation_max=None)
        used = rows["used_permille"][inside]
        return UtilisationFigures(
            utilisation_mean=float(used.mean()) / 1000, utilisation_max=int(used.max()) / 1000
        )


class BacklogFigures(Figures):
    """Tasks submitted and not committed, at the samples in the windows: sums over the schedulers,
    and the longest queue of any of them."""

    backlog_mean: Number | None = quantity(
        "Backlog",
        Unit.COUNT,
        Better.LOWER,
        "Tasks submitted and not committed, averaged over samples.",
        per_scheduler=True,
    )
    backlog_end: Number | None = quantity(
        "Backlog at the end",
        Unit.COUNT,
        Better.LOWER,
        "At the last sample of the counted time.",
    )
    backlog_max_per_scheduler: Number | None


class BacklogMetric(Metric):
    """Lengths of the schedulers' queues."""

    kind = "backlog"
    description = "How many tasks wait in the schedulers' queues."
    figures_model = BacklogFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "queued")}

    def figures(self, scope: Scope) -> BacklogFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return BacklogFigures(
                backlog_mean=None, backlog_end=None, backlog_max_per_scheduler=None
            )
        mean = end = largest = 0.0
        for agent in scope.agents:
            queued = rows["queued"][inside & (rows["agent"] == agent)]
            if len(queued):
                mean += float(queued.mean())
                end += int(queued[-1])
                largest = max(largest, int(queued.max()))
        return BacklogFigures(backlog_mean=mean, backlog_end=end, backlog_max_per_scheduler=largest)


FEWEST_SAMPLES = 8
STANDARD_ERRORS = 2.0
UTILISATION_SHARE, UTILISATION_POINTS = 0.05, 0.01
BACKLOG_SHARE, BACKLOG_OF_RUNNING = 0.2, 0.01


class StationarityFigures(Figures):
    """Of one load phase: None over several phases, and where there are too few samples.

    A phase is `transient` if backlog or utilisation drifts: if the straight line fitted to its
    samples changes over the counted time
    - by more than twice its standard error, and
    - by more than a share of its mean (utilisation 5 %, backlog 20 %), and
    - by more than what does not matter: for utilisation 1 point, for the backlog 1 % of the tasks
      that run.

    A phase that is only a few mean run times long may be called stationary although it had too
    little time to show a trend.
    """

    backlog_change: Number | None = quantity(
        "Change of the backlog",
        Unit.COUNT,
        Better.NEITHER,
        "Over the counted time of a phase, by the straight line fitted to its samples.",
    )
    utilisation_change: Number | None = quantity(
        "Change of the utilisation",
        Unit.SHARE,
        Better.NEITHER,
        "Over the counted time of a phase, by the straight line fitted to its samples.",
    )
    transient: bool | None = None


class StationarityMetric(Metric):
    """Trends of backlog and utilisation."""

    kind = "stationarity"
    description = "Whether backlog and utilisation drifted during a load phase."
    figures_model = StationarityFigures
    keeps: ClassVar[TableColumns] = {
        "cell": ("at_us", "running", "machines_up", "used_permille"),
        "agents": ("at_us", "agent", "queued"),
    }

    def figures(self, scope: Scope) -> StationarityFigures:
        unknown = StationarityFigures(backlog_change=None, utilisation_change=None, transient=None)
        if len(scope.slots) != 1:
            return unknown
        cell, within = scope.rows("cell")
        agents, of_agents = scope.rows("agents")
        utilisation = trend(cell["used_permille"][within] / 1000)
        backlog = trend(_backlog(agents, of_agents))
        if utilisation is None or backlog is None:
            return unknown
        running = float(cell["running"][within].mean())
        return StationarityFigures(
            backlog_change=backlog.change,
            utilisation_change=utilisation.change,
            transient=utilisation.drifts(UTILISATION_SHARE, UTILISATION_POINTS)
            or backlog.drifts(BACKLOG_SHARE, BACKLOG_OF_RUNNING * running),
        )


def _backlog(rows: KeptRows, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The sum over the agents, at evenly spaced times. Agents of a live run do not take their
    samples at the same time."""
    at_us, agent, queued = (rows[name][inside] for name in ("at_us", "agent", "queued"))
    if not len(at_us):
        return np.zeros(0)
    agents, samples = np.unique(agent, return_counts=True)
    times = np.linspace(at_us.min(), at_us.max(), int(samples.max()))
    total = np.zeros(len(times))
    for one in agents:
        mine = agent == one
        total += np.interp(times, at_us[mine], queued[mine])
    return total


@dataclass(frozen=True, slots=True)
class Trend:
    """The straight line through a series of samples.

    Samples in a row are alike, so they count as fewer: as n (1 - r) / (1 + r) of them, for r their
    correlation with the next one, and as 3 at least (B. D. Santer et al., Statistical significance
    of trends and trend differences in layer-average atmospheric temperature time series, Journal of
    Geophysical Research 105, 2000).

    Attributes:
        change: From the first sample to the last.
        error: The standard error of the change.
        mean: Of the samples.
    """

    change: float
    error: float
    mean: float

    def drifts(self, share: float, least: float) -> bool:
        """Whether the change is certain, and more than `least` and than this share of the mean."""
        change = abs(self.change)
        return change > max(STANDARD_ERRORS * self.error, share * abs(self.mean), least)


def trend(values: NDArray[np.float64]) -> Trend | None:
    """The trend of evenly spaced samples float64[n]; None for fewer than FEWEST_SAMPLES."""
    n = len(values)
    if n < FEWEST_SAMPLES:
        return None
    time = np.linspace(-0.5, 0.5, n)
    mean, spread = float(values.mean()), float(time @ time)
    change = float(time @ values) / spread
    rest = values - mean - change * time
    squares = float(rest @ rest)
    if squares <= 1e-12 * float(values @ values):
        return Trend(change, 0.0, mean)
    alike = max(0.0, float(rest[1:] @ rest[:-1]) / squares)
    effective = max(3.0, n * (1 - alike) / (1 + alike))
    return Trend(change, math.sqrt(squares / (effective - 2) / spread), mean)


class BusynessFigures(Figures):
    """The shares of the time between samples of one window that schedulers spent on decisions
    (Omega's busyness, Schwarzkopf et al. 2013, section 4). Rounds with a conflict are wasted."""

    decisions_per_s: Number | None = quantity(
        "Effective capacity",
        Unit.RATE,
        Better.NEITHER,
        "Tasks that schedulers working without a pause would commit per second: those that they "
        "committed, over the time that they spent on decisions.",
        headline=True,
        column_label="Capacity",
        per_scheduler=True,
    )
    busy_useful_share: Number | None = quantity(
        "Deciding usefully",
        Unit.SHARE,
        Better.NEITHER,
        "Share of a scheduler's time (Omega's busyness).",
        per_scheduler=True,
    )
    busy_wasted_share: Number | None = quantity(
        "Deciding in vain",
        Unit.SHARE,
        Better.LOWER,
        "Share of time spent on rounds with a conflict.",
        per_scheduler=True,
    )
    latency_first_share: Number | None = quantity(
        "Time in latency-first",
        Unit.SHARE,
        Better.NEITHER,
        "Share of samples; adaptive switches.",
        per_scheduler=True,
    )


class BusynessMetric(NativeMetric):
    """Decision time over time, and the commits that it bought."""

    kind = "busyness"
    description = "How much of their time schedulers spend on decisions, and on which."
    figures_model = BusynessFigures
    reads: ClassVar[TableColumns] = {"tasks": ("agent", "submit_us", "commit_us", "first")}
    keeps: ClassVar[TableColumns] = {
        "agents": ("at_us", "agent", "latency_first", "busy_us", "wasted_us")
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("commits_while_counted",), run)

    def add_up(self, rows: Rows) -> None:
        rows.add(self.count["commits_while_counted"], (rows["agent"], rows.slot("commit_us")))

    def figures(self, scope: Scope) -> BusynessFigures:
        rows, inside = scope.rows("agents")
        elapsed_us = busy_us = wasted_us = 0
        per_s = 0.0
        window_us = self.run.window_us(scope.slots)
        for agent in scope.agents if inside.any() else ():
            mine = rows["agent"] == agent
            slot, within = rows.slot[mine], inside[mine]
            paired = within[1:] & (slot[1:] == slot[:-1])
            sampled_us = int(np.diff(rows["at_us"][mine])[paired].sum())
            decided_us = int(growth(rows["busy_us"][mine])[paired].sum())
            if decided_us and window_us:
                commits = int(self.count["commits_while_counted"][agent, list(scope.slots)].sum())
                # Samples leave out the ends of the windows: both are rates.
                per_s += (commits * 1e6 / window_us) / (decided_us / sampled_us)
            elapsed_us += sampled_us
            busy_us += decided_us
            wasted_us += int(growth(rows["wasted_us"][mine])[paired].sum())
        latency_first = int(rows["latency_first"][inside].sum()) if inside.any() else 0
        return BusynessFigures(
            decisions_per_s=per_s or None,
            busy_useful_share=ratio(busy_us - wasted_us, elapsed_us),
            busy_wasted_share=ratio(wasted_us, elapsed_us),
            latency_first_share=ratio(latency_first, int(inside.sum())),
        )


class DailyBusynessFigures(Figures):
    """The share of the time that one scheduler spent on decisions, day by day (Omega, section 4:
    the median of the daily busyness, and the median absolute deviation from it). Runs of less than
    two days have tenths in place of days."""

    busyness_median: Number | None = quantity(
        "Daily busyness",
        Unit.SHARE,
        Better.NEITHER,
        "Median over schedulers and days of the share of time spent on decisions (Omega); of runs "
        "shorter than two days, over tenths of the run.",
        per_scheduler=True,
    )
    busyness_mad: Number | None = quantity(
        "Deviation of the daily busyness",
        Unit.SHARE,
        Better.NEITHER,
        "Median absolute deviation from the median.",
        per_scheduler=True,
    )


_NOTHING = DailyBusynessFigures(busyness_median=None, busyness_mad=None)


class DailyBusynessMetric(Metric):
    """Decision time by day."""

    kind = "daily_busyness"
    description = "How busy schedulers are from day to day."
    figures_model = DailyBusynessFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "busy_us")}

    def figures(self, scope: Scope) -> DailyBusynessFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return _NOTHING
        days = Days(self.run)
        at_us, busy_us = rows["at_us"], rows["busy_us"]
        shares = []
        for agent in scope.agents:
            mine = rows["agent"] == agent
            slot, within, times_us = rows.slot[mine], inside[mine], at_us[mine]
            paired = within[1:] & (slot[1:] == slot[:-1])
            # what was decided between two samples counts on the day of the first
            day = days.of(times_us[:-1][paired])
            elapsed = np.bincount(day, np.diff(times_us)[paired], minlength=days.count)
            decided = np.bincount(day, growth(busy_us[mine])[paired], minlength=days.count)
            whole = days.is_whole(elapsed)
            shares.append(decided[whole] / elapsed[whole])
        every = np.concatenate(shares)
        if not len(every):
            return _NOTHING
        median = float(np.median(every))
        return DailyBusynessFigures(
            busyness_median=median, busyness_mad=float(np.median(np.abs(every - median)))
        )


def growth(counter: Int64) -> Int64:
    """The growth of a counter from sample to sample. One that fell began anew: its agent was
    restarted."""
    grown: Int64 = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)


class SolverRoundFigures(Figures):
    """The times of the rounds in the windows; None without any."""

    rounds: Count | None
    solve_p50_us: Number | None = quantity(
        "Solver time per round",
        Unit.DURATION,
        Better.LOWER,
        "Median over the rounds of flow schedulers.",
    )
    solve_max_us: Number | None = quantity(
        "Longest solver time",
        Unit.DURATION,
        Better.LOWER,
        "Over the rounds of flow schedulers.",
    )
    round_p50_us: Number | None = quantity(
        "Flow round, end to end",
        Unit.DURATION,
        Better.LOWER,
        "Graph update, solve and extraction; median.",
    )
    round_max_us: Number | None


class SolverRoundMetric(Metric):
    """Times of the rounds of flow schedulers."""

    kind = "solver_rounds"
    description = "How long the rounds of flow schedulers take, by the clock."
    figures_model = SolverRoundFigures
    keeps: ClassVar[TableColumns] = {
        "rounds": ("at_us", "agent", "graph_us", "solve_us", "extract_us")
    }

    def figures(self, scope: Scope) -> SolverRoundFigures:
        rows, inside = scope.rows("rounds")
        if not inside.any():
            return SolverRoundFigures(**dict.fromkeys(SolverRoundFigures.model_fields))
        solve_us = rows["solve_us"][inside]
        round_us = solve_us + rows["graph_us"][inside] + rows["extract_us"][inside]
        return SolverRoundFigures(
            rounds=int(inside.sum()),
            solve_p50_us=float(np.quantile(solve_us, 0.5, method="inverted_cdf")),
            solve_max_us=int(solve_us.max()),
            round_p50_us=float(np.quantile(round_us, 0.5, method="inverted_cdf")),
            round_max_us=int(round_us.max()),
        )
