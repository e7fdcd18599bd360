"""The gangs of a run: the line that it begins with, and how many each arm placed whole, tore, and
never placed.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.summary_model import ArmSummary, ComparedArms
from experiments.config.decision_basis import basis_title
from experiments.config.run_config import RunConfig
from parsync.metrics.kinds.jobs import GangMetric
from parsync.metrics.quantity import Quantity, counted
from parsync.protocols.spec import ProtocolCapability
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.workload.workload import TaskGangs, Workload


def tears_gangs(arm: ArmConfig) -> str:
    """Why an arm may tear gangs, such as `commit_mode = "incremental"`; "" if it may not."""
    return ", ".join(dict.fromkeys(filter(None, map(_tears, arm.groups))))


def _tears(group: GroupConfig) -> str:
    if ProtocolCapability.COMMITS_GANGS_WHOLE in group.protocol.capabilities:
        return ""
    return group.protocol.described.get("gangs", f"protocol {group.protocol.kind!r}")


def gangs_announced(config: RunConfig, workload: Workload) -> str:
    """How many gangs the workload has, and which arms may tear them, in one line; "" if it has
    none.

    Args:
        config: Of the run, settled with its workload.
        workload: What it runs.
    """
    gangs = TaskGangs.of(workload)
    if gangs is None:
        return ""
    reasons: dict[str, list[str]] = {}
    for arm in config.arms:
        reasons.setdefault(tears_gangs(arm), []).append(f"'{arm.name}'")
    whole = reasons.pop("", [])
    if not reasons:
        return f"{counted(len(gangs), 'gang')}: placed whole or not at all."
    by_reason = "; ".join(f"{', '.join(arms)} ({reason})" for reason, arms in reasons.items())
    others = " The other arms place them whole or not at all." if whole else ""
    return f"{counted(len(gangs), 'gang')} may be torn by {by_reason}.{others}"


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
