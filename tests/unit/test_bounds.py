"""Arms that leave tasks or jobs undone: their figures are bounds, and they win nothing against arms
that did their work."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.analysis.run_directory import write_run
from experiments.analysis.statistics import paired_difference
from experiments.analysis.summary import ArmResult, build_summary
from experiments.report.page import write_report
from experiments.report.terminal import comparison_table
from experiments.report.verdict import Row, verdict
from experiments.studies.compare import Comparison, csv_text, markdown_text
from parsync.metrics.summary import ArmFigures
from tests.unit.known_quantities import QUANTITIES
from tests.unit.run_factory import seed_figures, workload
from tests.unit.test_summary import FACTS, bare_arm

BOUND_US = 9000.0


def arm(
    name: str, delay_us: float, left: int, conflicts: float = 0.5, seeds: int = 5, **at_least: float
) -> ArmResult:
    """An arm that left so many of its 1000 tasks. Each seed's delay is one more than the last's."""
    bare = bare_arm(name)

    def figures(add: float) -> ArmFigures:
        bound = {"delay_mean_us": BOUND_US + add, "delay_p99_us": BOUND_US} if left > 1 else {}
        update: dict[str, Any] = {
            "submitted": 1000,
            "censored": left,
            "incomplete": left > 1,
            "delay_mean_us": delay_us + add,
            "delay_p99_us": None if left else delay_us,
            "conflict_rate": conflicts + add / 100,
            "jct_mean_us": delay_us * 10,
        }
        update["at_least"] = {**bound, **at_least}
        overall = bare.figures.overall.model_copy(update=update)
        return bare.figures.model_copy(update={"overall": overall})

    return replace(
        bare,
        figures=figures(0),
        seeds={seed: seed_figures(f"s{seed}", figures(seed)) for seed in range(seeds)},
    )


def row_of(key: str, *arms: ArmResult) -> Row:
    return verdict(build_summary(FACTS, workload(), list(arms)), [QUANTITIES[key]])[0]


def best(row: Row) -> str:
    return " ".join(cell.arm for cell in row.cells if cell.best or cell.tied)


def test_an_arm_that_left_tasks_unplaced_wins_nothing_with_seeds_or_without() -> None:
    for seeds in (0, 5):
        lazy, whole = (
            arm("lazy", 100.0, 240, conflicts=0.1, seeds=seeds),
            arm("whole", 500.0, 0, seeds=seeds),
        )
        for key in ("delay_mean_us", "delay_p99_us", "conflict_rate", "jct_mean_us"):
            row = row_of(key, lazy, whole, arm("slow", 800.0, 1, 0.9, seeds))
            assert best(row) == "whole", (key, seeds)
            assert "lazy left tasks unplaced and is not ranked" in row.sentence


def test_beside_one_whole_arm_alone_it_wins_nothing_either() -> None:
    row = row_of("conflict_rate", arm("lazy", 100.0, 240, conflicts=0.1), arm("whole", 500.0, 0))
    assert best(row) == "whole"
    assert "whole is lowest of the ranked arms, at 52 %. lazy left" in row.sentence


def test_the_bound_is_shown_in_place_of_the_mean_over_survivors_and_quantiles_are_never_never() -> (
    None
):
    lazy, whole = arm("lazy", 100.0, 240), arm("whole", 500.0, 0)
    mean, p99 = (
        row_of("delay_mean_us", lazy, whole).cells[0],
        row_of("delay_p99_us", lazy, whole).cells[0],
    )
    assert mean.value == "≥ 9.00 ms" and mean.spread == ""
    assert p99.value == "≥ 9 ms"


def test_a_task_in_a_thousand_is_no_bar() -> None:
    assert best(row_of("delay_mean_us", arm("fast", 100.0, 1), arm("whole", 500.0, 0))) == "fast"


def test_where_all_left_tasks_those_that_left_less_than_half_as_many_as_another_win() -> None:
    row = row_of(
        "conflict_rate",
        arm("A", 100.0, 300, 0.1),
        arm("B", 100.0, 200, 0.3),
        arm("C", 100.0, 150, 0.5),
    )
    assert best(row) == "A"  # 300 is twice 150, not more
    row = row_of(
        "conflict_rate",
        arm("A", 100.0, 301, 0.1),
        arm("B", 100.0, 200, 0.3),
        arm("C", 100.0, 150, 0.5),
    )
    assert best(row) == "B"


def test_unfinished_jobs_lose_only_the_figures_of_jobs() -> None:
    lazy, whole = arm("lazy", 100.0, 0, jct_mean_us=2000.0), arm("whole", 500.0, 0)
    assert best(row_of("jct_mean_us", lazy, whole)) == "whole"
    assert "left jobs unfinished" in row_of("jct_mean_us", lazy, whole).sentence
    assert best(row_of("delay_mean_us", lazy, whole)) == "lazy"


def test_a_difference_with_a_bound_says_on_which_side_and_is_certain_only_away_from_it() -> None:
    lazy, whole = arm("lazy", 100.0, 240), arm("whole", 500.0, 0)
    against_whole = row_of("delay_mean_us", whole, lazy).cells[1]
    assert (
        against_whole.change.startswith("≥ ×") and against_whole.certain and not against_whole.good
    )
    against_lazy = row_of("delay_mean_us", lazy, whole).cells[1]
    assert against_lazy.change.startswith("≤ −") and against_lazy.certain and against_lazy.good
    higher, lower = [20.0, 21.0, 22.5, 20.0, 23.0], [10.0, 11.0, 12.0, 11.0, 12.0]
    assert paired_difference(higher, lower, at_least=True).certain
    assert not paired_difference(lower, higher, at_least=True).certain  # it may be higher in truth
    assert not paired_difference(higher, lower, at_most=True).certain
    assert not paired_difference(higher, lower, at_least=True, at_most=True).certain


def test_only_an_arm_that_left_many_more_than_another_is_said_to_win_nothing(
    tmp_path: Path,
) -> None:
    arms = [arm("lazy", 100.0, 240), arm("less", 500.0, 50), arm("least", 500.0, 40)]
    write_run(tmp_path, build_summary(FACTS, workload(), arms), arms)
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    assert "24 % of tasks never placed: not ranked" in page
    assert (
        "5 % of tasks never placed</small>" in page and "4 % of tasks never placed</small>" in page
    )


def test_page_terminal_and_tables_tell_of_it(tmp_path: Path) -> None:
    arms = [arm("lazy", 100.0, 240), arm("whole", 500.0, 0)]
    summary = build_summary(FACTS, workload(), arms)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(comparison_table(summary))
    shown = capture.get()
    assert "24 % unplaced" in shown and "≥9.00 ms" in shown and "never placed are charged" in shown
    write_run(tmp_path, summary, arms)
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    assert "24 % of tasks never placed: not ranked" in page and "≥ 9.00 ms" in page
    rows = verdict(summary, [QUANTITIES["delay_mean_us"]])
    compared = Comparison.model_construct(**dict(summary), notes=[])
    assert "≥ 9.00 ms" in markdown_text(compared, rows)
    assert "Arms that left tasks unplaced: lazy." in markdown_text(compared, rows)
    of_lazy = list(csv.reader(csv_text(compared, rows).splitlines()))[1]
    assert of_lazy[:3] == ["lazy", "virtual", "equal capacity, 20,000 tasks/s"]
    assert of_lazy[3:7] == ["delay_mean_us", "9000.0", "1", "9002.0"]
