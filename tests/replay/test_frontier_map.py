"""The map of a frontier as a plot: what each cell says, and when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from experiments.analysis.frontier_model import (
    FRONTIER,
    FrontierCondition,
    FrontierSummary,
    read_frontier,
)
from experiments.studies.frontiers.page import MOST_COLUMNS, draw_map
from experiments.studies.frontiers.wording import best_text, conditions_by_load
from tests.unit.frontier_factory import PAIR
from tests.unit.run_factory import write_synthetic_run


def frontier_with(
    tmp_path: Path, loads: list[int], gaps: list[float | None], names: tuple[str, ...] = ()
) -> FrontierSummary:
    """A frontier under each load and gap; the first architecture is best, from the second condition
    on not certainly."""
    one = read_frontier(write_synthetic_run(tmp_path / "run") / FRONTIER)
    conditions = [FrontierCondition(load_percent=load, gap_s=gap) for load in loads for gap in gaps]
    places = range(len(conditions))
    changes = {
        name: [
            row.model_copy(update={"condition": place})
            for place in places
            for row in getattr(one, name)
        ]
        for name in ("points", "areas", "bests")
    }
    changes["bests"] = [
        best.model_copy(update={"tied": [1] if best.condition else []}) for best in changes["bests"]
    ]
    named = [
        architecture.model_copy(update={"name": name})
        for architecture, name in zip(one.architectures, names, strict=False)
    ]
    architectures = named + one.architectures[len(named) :]
    return one.model_copy(
        update={"conditions": conditions, "architectures": architectures, **changes}
    )


def drawn(summary: FrontierSummary) -> Figure:
    figure = draw_map(summary, summary.bests[0].members, PAIR)
    assert figure is not None
    return figure


def texts(figure: Figure) -> list[str]:
    (axes,) = figure.axes
    return [text.get_text() for text in axes.texts]


def test_a_cell_names_the_best_and_its_area(tmp_path: Path) -> None:
    summary = frontier_with(tmp_path, [50, 95], [0.05, 0.2], ("Greedy",))
    assert conditions_by_load(summary) == [[0, 1], [2, 3]]
    figure = drawn(summary)
    assert texts(figure) == ["Greedy\n50 %"] * 4
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["50 %", "95 %"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["G = 50 ms", "G = 200 ms"]


def test_only_certainly_best_ones_fill_their_cell(tmp_path: Path) -> None:
    (axes,) = drawn(frontier_with(tmp_path, [50, 95], [0.05])).axes
    fills = [alpha for patch in axes.patches if (alpha := patch.get_alpha()) is not None]
    outlines = [patch.get_linestyle() for patch in axes.patches if patch.get_alpha() is None]
    assert fills[0] > fills[1]
    assert outlines[0] != outlines[1]  # not by colour alone


def test_a_name_that_does_not_fit_is_in_the_legend_only(tmp_path: Path) -> None:
    long = "An architecture with quite a long name"
    figure = drawn(frontier_with(tmp_path, [50], [0.05 * part for part in range(1, 7)], (long,)))
    assert texts(figure) == ["50 %"] * 6
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [long]


def test_nobody_is_said_where_no_area_is_above_0(tmp_path: Path) -> None:
    summary = frontier_with(tmp_path, [50, 95], [0.05])
    bests = [best.model_copy(update={"best": None, "tied": []}) for best in summary.bests]
    assert texts(drawn(summary.model_copy(update={"bests": bests}))) == ["nobody", "nobody"]


@pytest.mark.parametrize("gaps", [[None], [0.01 * part for part in range(MOST_COLUMNS + 1)]])
def test_there_is_no_map_of_one_condition_or_of_very_many(
    tmp_path: Path, gaps: list[float | None]
) -> None:
    summary = frontier_with(tmp_path, [50], gaps)
    assert draw_map(summary, summary.bests[0].members, PAIR) is None


def test_names_with_commas_are_set_apart(tmp_path: Path) -> None:
    summary = frontier_with(tmp_path, [50], [None], ("Greedy", "ParSync, tau", "ParSync, patient"))
    several = summary.bests[0].model_copy(update={"best": 0, "tied": [1, 2]})
    expected = "Greedy; not certainly more than ParSync, tau; ParSync, patient"
    assert best_text(summary, several) == expected
