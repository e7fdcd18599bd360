"""How much of their time schedulers spend on decisions (Omega's busyness, Schwarzkopf et al. 2013,
section 4), and how many tasks they can decide."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.counters import Counters
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from shared_state.tasks import Int64


class BusynessFigures(Figures):
    """The shares of the time between samples of one window that schedulers spent on decisions.
    Rounds with a conflict are wasted."""

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

    def merge(self, other: BusynessMetric) -> None:
        self.count.merge(other.count)

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


def growth(counter: Int64) -> Int64:
    """The growth of a counter from sample to sample. One that fell began anew: its agent was
    restarted."""
    grown: Int64 = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)
