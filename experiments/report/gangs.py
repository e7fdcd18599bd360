"""The gangs of a run in the report: how many each arm placed whole, tore, and never placed."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.summary_model import ArmSummary, RunSummary
from parsync.metrics.gangs import GangMetric
from parsync.metrics.quantity import Quantity
from parsync.metrics.summary import ScopeFigures


@dataclass(frozen=True, slots=True)
class GangRow:
    """An arm. tears: why it may tear gangs, "" if it may not. cells: its figures, by quantity."""

    name: str
    place: int
    tears: str
    cells: list[str]


@dataclass(frozen=True, slots=True)
class GangTable:
    """Runs under one clock. title: which these are."""

    title: str
    quantities: list[Quantity]
    rows: list[GangRow]


def gang_tables(summary: RunSummary) -> list[GangTable]:
    """The arms in virtual time, then the live ones, under the run's own seed; none if the workload
    has no gangs."""
    quantities = [one for one in summary.quantities if one.metric == GangMetric.kind]
    if not quantities:
        return []
    live = [(place, arm) for place, arm in enumerate(summary.arms) if arm.runtime == "ray"]
    virtual = [
        (place, arm, figures)
        for place, arm in enumerate(summary.arms)
        if (figures := _in_virtual_time(arm, summary.seed)) is not None
    ]
    tables = [
        GangTable("In virtual time", quantities, [_row(*one, quantities) for one in virtual]),
        GangTable("Live", quantities, [_row(*one, one[1].overall, quantities) for one in live]),
    ]
    return [table for table in tables if table.rows]


def tears(arm: ArmSummary) -> list[str]:
    """A note beside the name of an arm that may tear gangs."""
    return [f"may tear gangs: {arm.tears_gangs}"] if arm.tears_gangs else []


def _in_virtual_time(arm: ArmSummary, seed: int) -> ScopeFigures | None:
    """The figures of an arm in virtual time under the run's seed; None if it ran live only."""
    if arm.runtime == "virtual":
        return arm.overall
    return next((row.overall for row in arm.seeds if row.seed == seed), None)


def _row(place: int, arm: ArmSummary, figures: ScopeFigures, quantities: list[Quantity]) -> GangRow:
    cells = [one.text(figures.value(one.key), figures.is_bound(one.key)) for one in quantities]
    return GangRow(arm.name, place, arm.tears_gangs, cells)
