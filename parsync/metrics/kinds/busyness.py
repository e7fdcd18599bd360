"""What schedulers spend their time on: decisions, useful or in vain, over a run and by day, and the
rounds of flow schedulers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.metric import Counters, Metric, NativeMetric, Rows, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import Days, RunFrame
from shared_state.tasks import Int64


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


class DailyBusynessMetric(Metric):
    """Decision time by day."""

    kind = "daily_busyness"
    description = "How busy schedulers are from day to day."
    figures_model = DailyBusynessFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "busy_us")}

    def figures(self, scope: Scope) -> DailyBusynessFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return DailyBusynessFigures.unknown()
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
            return DailyBusynessFigures.unknown()
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
        "Longest solver time", Unit.DURATION, Better.LOWER, "Over the rounds of flow schedulers."
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
            return SolverRoundFigures.unknown()
        solve_us = rows["solve_us"][inside]
        round_us = solve_us + rows["graph_us"][inside] + rows["extract_us"][inside]
        return SolverRoundFigures(
            rounds=int(inside.sum()),
            solve_p50_us=float(np.quantile(solve_us, 0.5, method="inverted_cdf")),
            solve_max_us=int(solve_us.max()),
            round_p50_us=float(np.quantile(round_us, 0.5, method="inverted_cdf")),
            round_max_us=int(round_us.max()),
        )
