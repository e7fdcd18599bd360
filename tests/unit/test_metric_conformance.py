"""Every registered metric keeps the contract, and the check finds metrics that do not."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from parsync.metrics import registry
from parsync.metrics.conformance import check_metric
from parsync.metrics.metric import (
    Counters,
    Metric,
    OverTime,
    RecordBatch,
    Scope,
    TableColumns,
    TimeSeries,
)
from parsync.metrics.quantity import Better, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from schedulers.conformance import NonConformance
from shared_state.tasks import Int64


@pytest.mark.parametrize("metric", registry.metrics(), ids=lambda metric: str(metric.kind))
def test_registered_metrics_conform(metric: type[Metric]) -> None:
    check_metric(metric)


class MineFigures(Figures):
    mine: Number | None = quantity("Mine", Unit.COUNT, Better.LOWER, "Tasks.")


class Mine(Metric):
    kind = "mine"
    description = "Tasks."
    figures_model: ClassVar[type[Figures]] = MineFigures
    reads: ClassVar[TableColumns] = {"tasks": ("agent", "submit_us")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("mine",), run)

    def fold(self, batch: RecordBatch) -> None:
        self.count.add("mine", batch["agent"], batch.slot("submit_us"))

    def merge(self, other: Mine) -> None:
        self.count.merge(other.count)

    def figures(self, scope: Scope) -> Figures:
        return MineFigures(mine=scope.sum(self.count["mine"]))


class OverTimeMine(Mine):
    plots = (OverTime("Mine", "mine", "tasks", Unit.COUNT, "Mine", "Tasks."),)


class ForgetsItsTimeline(Mine):
    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.timeline = TimeSeries(("mine",), run.agents, run.bucket_us)

    def fold(self, batch: RecordBatch) -> None:
        super().fold(batch)
        self.timeline.add("mine", batch["agent"], batch["submit_us"])


class ReadsMore(Mine):
    def fold(self, batch: RecordBatch) -> None:
        self.count.add("mine", batch["agent"], batch.slot("submit_us"), batch["cost"])


class CountsBatches(Mine):
    def fold(self, batch: RecordBatch) -> None:
        self.count.add("mine", batch["agent"][:1], batch.slot("submit_us")[:1])


class ForgetsToMerge(Mine):
    def merge(self, other: Mine) -> None:
        pass


class Unpicklable(Mine):
    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.function = lambda: None


class NotANumber(Mine):
    def figures(self, scope: Scope) -> Figures:
        return MineFigures(mine=float(np.float64("nan")))


class OtherFigures(Mine):
    def figures(self, scope: Scope) -> Figures:
        return Figures()


class Fails(Mine):
    def fold(self, batch: RecordBatch) -> None:
        raise ZeroDivisionError("of mine")


class OtherLiveKey(Mine):
    def live(self) -> dict[str, tuple[Int64, Int64]]:
        return {"yours": (np.zeros(3, np.int64), np.zeros(3, np.int64))}


class LiveBySlot(Mine):
    def live(self) -> dict[str, tuple[Int64, Int64]]:
        return {"mine": (self.count["mine"], self.count["mine"])}


class NoTable(Mine):
    reads: ClassVar[TableColumns] = {"task": ("agent",)}


class NoColumn(Mine):
    reads: ClassVar[TableColumns] = {"tasks": ("agents",)}


class KeepsTooMuch(Mine):
    keeps: ClassVar[TableColumns] = {"tasks": ("agent",)}


class NoDescription(Mine):
    description = ""


class UnlabelledFigures(Figures):
    mine: Number | None = quantity("", Unit.COUNT, Better.LOWER, "Tasks.")


class NoLabel(Mine):
    figures_model: ClassVar[type[Figures]] = UnlabelledFigures


def test_a_metric_that_keeps_its_promises_passes() -> None:
    check_metric(Mine)


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (ReadsMore, "reads column 'cost' of table 'tasks', which it does not declare"),
        (CountsBatches, "figure 'mine' is .* of all rows at once and .* row by row"),
        (ForgetsToMerge, "figure 'mine' is .* in two objects that are merged"),
        (
            ForgetsItsTimeline,
            "figure 'mine over time, agent 0' is .* in two objects that are merged",
        ),
        (OverTimeMine, "plots: 'mine' is not a series of this metric"),
        (Unpicklable, "pickle: "),
        (NotANumber, "figures: ValidationError: "),
        (OtherFigures, "figures: TypeError: expected MineFigures, got Figures"),
        (Fails, "fold: ZeroDivisionError: of mine"),
        (OtherLiveKey, "live: 'yours' is no quantity among its figures"),
        (LiveBySlot, r"live: 'mine': expected two sums by agent, int64\[agents\] each"),
        (NoTable, "reads: expected tables of .*, got 'task'"),
        (NoColumn, "reads: table 'tasks' has no column 'agents'; it has task, job"),
        (KeepsTooMuch, "keeps: expected tables of cell, agents, rounds, got 'tasks'"),
        (NoDescription, "description: expected a text, got ''"),
        (NoLabel, "figures_model: label: "),
    ],
)
def test_a_broken_promise_is_named(metric: type[Metric], says: str) -> None:
    with pytest.raises(NonConformance, match=f"^metric 'mine': {says}"):
        check_metric(metric)
