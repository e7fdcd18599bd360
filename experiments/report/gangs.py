"""The gangs of a run in the report: how many each arm placed whole, tore, and never placed."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.summary_model import ArmSummary, RunSummary
from parsync.metrics.gangs import GangMetric
from parsync.metrics.quantity import Quantity

_TITLES = {"virtual": "In virtual time", "ray": "Live"}


@dataclass(frozen=True, slots=True)
class GangRow:
    """An arm, and its figures in the order of the quantities."""

    arm: ArmSummary
    cells: list[str]


@dataclass(frozen=True, slots=True)
class GangTable:
    """Runs under one clock. title: which these are."""

    title: str
    quantities: list[Quantity]
    rows: list[GangRow]


def gang_tables(summary: RunSummary) -> list[GangTable]:
    """A table of the arms and one of the live runs that stand apart, under the run's own seed; none
    if the workload has no gangs."""
    quantities = [one for one in summary.quantities if one.metric == GangMetric.kind]
    if not quantities:
        return []
    return [
        GangTable(_TITLES[arms[0].runtime], quantities, [_row(arm, quantities) for arm in arms])
        for arms in (summary.arms, summary.live_runs)
        if arms
    ]


def tears(arm: ArmSummary) -> list[str]:
    """A note beside the name of an arm that may tear gangs."""
    return [f"may tear gangs: {arm.tears_gangs}"] if arm.tears_gangs else []


def _row(arm: ArmSummary, quantities: list[Quantity]) -> GangRow:
    figures = arm.overall
    return GangRow(
        arm, [one.text(figures.value(one.key), figures.is_bound(one.key)) for one in quantities]
    )
