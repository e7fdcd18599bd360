"""How many tasks with preferences got a preferred machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from parsync.metrics.counters import Counters, TimeSeries
from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from shared_state.tasks import Int64


class PreferenceFigures(Figures):
    """The placement of submitted tasks that prefer some machine, by the window of their submission:
    one that is never committed counts as not preferred."""

    submitted_prefers: Count
    preferred: Count
    preferred_share: Number | None = quantity(
        "Share on preferred machines",
        Unit.SHARE,
        Better.HIGHER,
        "First commits on a preferred machine of all submitted tasks that prefer some.",
        headline=True,
        column_label="Preferred",
        per_scheduler=True,
    )


class PreferenceMetric(NativeMetric):
    """First commits on preferred machines."""

    kind = "preferences"
    description = "How many tasks with preferences got a preferred machine."
    figures_model = PreferenceFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "submit_us", "prefers"),
        "tasks": ("agent", "submit_us", "first", "preferred"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        names = ("submitted_prefers", "preferred")
        self.count = Counters(names, run)
        self._series = TimeSeries(names, run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        agent, submit_us, slot = rows["agent"], rows["submit_us"], rows.slot("submit_us")
        if rows.table == "submissions":
            rows.add(self.count["submitted_prefers"], (agent, slot), rows["prefers"])
            rows.add_over_time(self._series, "submitted_prefers", agent, submit_us, rows["prefers"])
        else:
            firsts = rows.first_commits
            hits = firsts.where(firsts["preferred"] == 1)
            hits.add(self.count["preferred"], (agent, slot))
            hits.add_over_time(self._series, "preferred", agent, submit_us)

    def merge(self, other: PreferenceMetric) -> None:
        self.count.merge(other.count)
        self._series.merge(other._series)

    def figures(self, scope: Scope) -> PreferenceFigures:
        submitted = scope.sum(self.count["submitted_prefers"])
        preferred = scope.sum(self.count["preferred"])
        return PreferenceFigures(
            submitted_prefers=submitted,
            preferred=preferred,
            preferred_share=ratio(preferred, submitted),
        )

    def series(self) -> Mapping[str, Int64]:
        return self._series.by_name()
