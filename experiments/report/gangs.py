"""The gangs of a run in the report: how many each arm placed whole, tore, and never placed."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.summary_model import ArmSummary, ComparedArms
from experiments.config.decision_basis import basis_title
from parsync.metrics.jobs import GangMetric
from parsync.metrics.quantity import Quantity


@dataclass(frozen=True, slots=True)
class GangRow:
    """A run of an arm. cells: its figures, by quantity."""

    arm: ArmSummary
    cells: list[str]


@dataclass(frozen=True, slots=True)
class GangTable:
    """Runs under one clock, of arms that may be compared. title: which these are."""

    title: str
    quantities: list[Quantity]
    rows: list[GangRow]


def gang_tables(summary: ComparedArms) -> list[GangTable]:
    """A table for each set of comparable arms; none if the workload has no gangs."""
    quantities = [one for one in summary.quantities if one.metric == GangMetric.kind]
    if not quantities:
        return []
    clock = "Live" if summary.runtime == "ray" else "In virtual time"
    sets = summary.sets()
    tables = []
    for one in sets:
        basis = f": {basis_title(one.arms[0].basis)}" if len(sets) > 1 else ""
        rows = [GangRow(arm, _cells(arm, quantities)) for arm in one.arms]
        tables.append(GangTable(f"{clock}{basis}", quantities, rows))
    return tables


def tears(arm: ArmSummary) -> list[str]:
    """A note beside the name of an arm that may tear gangs."""
    return [f"may tear gangs: {arm.tears_gangs}"] if arm.tears_gangs else []


def _cells(arm: ArmSummary, quantities: list[Quantity]) -> list[str]:
    figures = arm.overall
    return [one.text(figures.value(one.key), figures.is_bound(one.key)) for one in quantities]
