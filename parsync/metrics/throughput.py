"""How much an arm gets done: first commits per second, and allocations that ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from parsync.metrics.counters import Counters, TimeSeries
from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
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
        self._series = TimeSeries(("first_commits",), run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "tasks":
            firsts = rows.first_commits
            late = firsts.slot("submit_us") == self.run.start
            slot = late.choose(self.run.outside, firsts.slot("commit_us"))
            firsts.add(self.count["first_commits"], (firsts["agent"], slot))
            firsts.add_over_time(
                self._series, "first_commits", firsts["agent"], firsts["commit_us"]
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

    def merge(self, other: ThroughputMetric) -> None:
        self.count.merge(other.count)
        self._series.merge(other._series)

    def figures(self, scope: Scope) -> ThroughputFigures:
        commits = scope.sum(self.count["first_commits"])
        return ThroughputFigures(
            throughput_per_s=ratio(commits * 1e6, self.run.window_us(scope.slots)),
            **{name: scope.sum(self.count[name]) for name in _ENDED.values()},
        )

    def series(self) -> Mapping[str, Int64]:
        return self._series.by_name()
