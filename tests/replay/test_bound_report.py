"""How reports and frontiers speak of the fluid bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.analysis.frontier_model import (
    BESIDE,
    DELAYS,
    FRONTIER,
    QUALITIES,
    read_frontier,
    write_frontier,
)
from experiments.analysis.run_directory import SUMMARY, read_run, read_summary
from experiments.analysis.summary_model import PhaseBound, RunSummary, bound_over
from experiments.figures.frontier import draw_condition, of_run
from experiments.report.bound import bound_sentences, bound_table, overall_bound
from experiments.report.page import write_report
from experiments.studies.frontiers.page import write_frontier_page
from experiments.studies.frontiers.wording import bounds_text
from parsync.metrics.quantity import quantities_of
from parsync.metrics.summary import ScopeFigures
from tests.unit.run_factory import with_overall, write_synthetic_run

STEADY = PhaseBound(
    rates="expected",
    is_estimate=False,
    random_share=0.1,
    preferred_share=0.9,
    cost_mean=100.0,
    occupancy=0.7,
    highest_load=None,
)
OVERLOADED = STEADY.model_copy(
    update={"preferred_share": None, "cost_mean": None, "occupancy": None, "highest_load": 0.8}
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_synthetic_run(tmp_path_factory.mktemp("bound") / "run", step_us=2_000_000)


def with_bounds(summary: RunSummary, *bounds: PhaseBound | None) -> RunSummary:
    """The bounds of the phases, the last one of all that follow."""
    phases = summary.workload.phases
    its = [*bounds, *[bounds[-1]] * len(phases)]
    changed = [
        phase.model_copy(update={"bound": bound}) for phase, bound in zip(phases, its, strict=False)
    ]
    workload = summary.workload.model_copy(update={"phases": changed})
    return summary.model_copy(update={"workload": workload})


def test_the_way_goes_from_random_placement_to_the_bound() -> None:
    assert STEADY.way(0.1) == pytest.approx(0.0)
    assert STEADY.way(0.5) == pytest.approx(0.5)
    assert STEADY.way(0.9) == pytest.approx(1.0)
    assert STEADY.way(0.06) == pytest.approx(-0.05)
    assert STEADY.way(None) is None and OVERLOADED.way(0.5) is None
    # where every machine is preferred, there is no way to go
    assert STEADY.model_copy(update={"random_share": 0.9}).way(0.9) is None


def test_the_bound_over_phases_counts_each_by_its_tasks() -> None:
    lower = STEADY.model_copy(update={"preferred_share": 0.7, "cost_mean": 300.0})
    both = bound_over([STEADY, lower], [3, 1])
    assert both is not None
    assert both.preferred_share == pytest.approx(0.85) and both.cost_mean == pytest.approx(150)
    alone = bound_over([STEADY, None], [3, 0])
    assert alone is not None and alone.preferred_share == pytest.approx(0.9)
    assert bound_over([STEADY, None], [3, 1]) is None
    assert bound_over([STEADY, OVERLOADED], [3, 1]) is None
    assert bound_over([], []) is None


def test_the_sentences_say_bound_random_and_who_came_how_far(directory: Path) -> None:
    summary = with_bounds(read_summary(directory), STEADY)
    names = [arm.name for arm in summary.arms]
    shares = dict.fromkeys(names, 0.5) | {names[0]: 0.3, names[1]: 0.7}
    bound, ways = bound_sentences(with_overall(summary, preferred_share=shares))
    assert "at most 90 % of them on preferred machines, and its mean placement cost" in bound
    assert "at least 100. Random placement puts 10 % there." in bound
    assert f"{names[1]} has come 75 % and {names[0]} 25 %" in ways
    alone = summary.model_copy(update={"arms": summary.arms[:1]})
    assert bound_sentences(with_overall(alone, preferred_share={names[0]: 0.3}))[1] == (
        f"Of the way from the one to the other, {names[0]} has come 25 % (seed {summary.seed})."
    )
    pair = summary.model_copy(update={"arms": summary.arms[:2]})
    even = bound_sentences(with_overall(pair, preferred_share=dict.fromkeys(names[:2], 0.5)))
    assert "both arms have come 50 %" in even[1]
    assert "beyond the bound" not in ways
    best = with_overall(alone, preferred_share={names[0]: 0.94})
    assert "has come 105 % (seed 1). An arm comes beyond the bound" in bound_sentences(best)[1]
    estimate = with_bounds(summary, STEADY.model_copy(update={"is_estimate": True}))
    assert "would put about 90 %" in bound_sentences(estimate)[0]


def test_a_phase_without_steady_state_is_named_and_there_is_no_overall_bound(
    directory: Path,
) -> None:
    summary = with_bounds(read_summary(directory), STEADY, OVERLOADED, STEADY)
    assert bound_sentences(summary) == [
        "Phase 2 has no steady state: the cell can do the work of 80 % of its arrivals, however "
        "they are placed."
    ]
    assert overall_bound(summary.workload.phases, summary.arms) is None
    table = bound_table(summary)
    assert table is not None
    assert table.bounds[1].preferred == "no steady state"
    assert table.bounds[1].beside == ["random 10 %", "80 % of these arrivals could be sustained"]


def test_a_bound_that_was_not_found_is_said(directory: Path) -> None:
    unknown = OVERLOADED.model_copy(update={"highest_load": None})
    summary = with_bounds(read_summary(directory), unknown)
    table = bound_table(summary)
    assert table is not None and table.bounds[0].preferred == "could not be computed"
    assert bound_sentences(summary) == []


def test_nothing_is_said_where_no_bound_is_known(directory: Path) -> None:
    summary = read_summary(directory)
    assert bound_sentences(summary) == [] and bound_table(summary) is None


@pytest.mark.usefixtures("no_figures")
def test_the_report_shows_the_bound_and_the_arms_beside_it(directory: Path) -> None:
    summary = with_bounds(read_summary(directory), STEADY)
    table = bound_table(summary)
    assert table is not None
    assert table.bounds[0].preferred == "90 %"
    assert table.bounds[0].beside == ["random 10 %", "lowest cost 100", "70 % busy"]
    first = summary.arms[0]
    cells, figures = table.arms[first.slug], first.phases[0]
    assert f"{100 * (figures.preferred_share - 0.1) / 0.8:.3g} % of the way" in cells[0].beside[0]
    (directory / SUMMARY).write_text(summary.model_dump_json(), "utf-8")
    assert read_summary(directory) == summary
    text = write_report(directory).read_text("utf-8")
    section = text[text.index('<section id="bound">') : text.index('<section id="details">')]
    assert "How far it could go" in section and "lowest cost 100" in section
    assert section.count("<tr") == 2 + len(summary.arms)


def test_frontiers_have_a_line_at_the_bound(directory: Path, tmp_path: Path) -> None:
    frontier = read_frontier(directory / FRONTIER)
    known = [one.model_copy(update={"bound": STEADY}) for one in frontier.conditions]
    with_bound = frontier.model_copy(update={"conditions": known})
    members = [0, 1]
    for summary, lines in ((frontier, 0), (with_bound, 1)):
        figure = draw_condition(summary, 0, members, "delay_mean_us", "preferred_share")
        assert figure is not None
        (axes,) = figure.axes
        drawn = [line for line in axes.lines if line.get_label() == "Bound"]
        assert [line.get_ydata()[0] for line in drawn] == [0.9] * lines
    assert bounds_text(frontier) == ""
    assert bounds_text(with_bound) == "90 % preferred at a mean cost of 100"
    every = {one.key: one for one in quantities_of(ScopeFigures)}
    shown = [every[key] for key in (*DELAYS, *QUALITIES, *BESIDE)]
    whole = with_bound.model_copy(update={"quantities": shown})
    page = write_frontier_page(tmp_path, whole, {}, lambda: None).read_text("utf-8")
    assert "90 % preferred at a mean cost of 100" in page
    assert ": Mean delay, share on preferred machines</h3>" in page
    write_frontier(directory / FRONTIER, with_bound)
    lead = of_run(read_run(directory))
    assert lead is not None
    assert all(any(line.get_label() == "Bound" for line in axes.lines) for axes in lead.axes)
