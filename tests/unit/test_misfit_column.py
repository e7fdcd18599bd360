"""The column of what flows could not express, in the first tables of terminal and report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from experiments.analysis.run_directory import read_summary
from experiments.analysis.summary import distinct
from experiments.analysis.summary_model import RunSummary
from experiments.report.terminal import comparison_table
from experiments.report.verdict import verdict
from tests.unit.run_factory import write_synthetic_run


def shown(summary: RunSummary) -> str:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(comparison_table(summary))
    return capture.get()


def without_misfits(summary: RunSummary) -> RunSummary:
    arms = []
    for arm in summary.arms:
        others = {**arm.overall.others, "flow_misfits": 0}
        overall = arm.overall.model_copy(update={"others": others})
        arms.append(arm.model_copy(update={"overall": overall}))
    return summary.model_copy(update={"arms": arms})


def test_first_tables_have_the_column_only_where_a_flow_did_not_fit(tmp_path: Path) -> None:
    run = write_synthetic_run(tmp_path / "run", names=["ParSync adaptive", "Flow"])
    summary = read_summary(run)
    greedy, flow = (arm.overall.others for arm in summary.arms)
    assert "flow_misfits" not in greedy and flow["flow_misfits"]
    assert "Misfits" in shown(summary)
    assert "Misfits" not in shown(without_misfits(summary))
    without = without_misfits(summary)
    # the report's other tables have it all the same
    for quantities in (without.headline, without.details):
        keys = {row.quantity.key for row in verdict(without, quantities)}
        assert ("flow_misfits" in keys) is (quantities == without.details)


def test_quantities_that_few_arms_have_stand_where_the_tables_have_them(tmp_path: Path) -> None:
    run = write_synthetic_run(tmp_path / "run", names=["Flow", "ParSync adaptive"])
    every = distinct(read_summary(run).quantities)
    few = [one for one in every if not one.key.startswith("flow_")]
    assert few != every
    for arms in ((few, every, few), (every, few), (few, few, every)):
        assert distinct([one for arm in arms for one in arm]) == every
