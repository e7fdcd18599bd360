"""Who wins nothing: arms that leave tasks or jobs undone, whose figures are bounds, and by regret
those with slot prices.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.analysis.run_directory import write_run
from experiments.analysis.statistics import paired_difference
from experiments.analysis.summary import ArmResult, build_summary
from experiments.analysis.summary_model import ComparedArms, RunSummary
from experiments.config.price_settings import prices_of, prices_of_groups
from experiments.report.answer import rests_on
from experiments.report.arms import differences
from experiments.report.page import verdict_page, write_report
from experiments.report.terminal import comparison_table
from experiments.report.verdict import Row, verdict
from experiments.studies.compare import Comparison, csv_text, markdown_text
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.summary import ArmFigures
from tests.unit.known_quantities import QUANTITIES
from tests.unit.run_factory import seed_figures, with_overall, workload
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


IMPLIED = {"prices": "implied"}
PAID = {**IMPLIED, "price_mode": "paid", "price_weight_permille": 300, "price_scope": "elsewhere"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, ""),
        ({"prices": "none"}, ""),
        ({"prices": True}, ""),  # an option of somebody's own scheduler
        (None, ""),
        (IMPLIED, "implied prices: tie, all"),
        ({**IMPLIED, "price_mode": "paid"}, "implied prices: paid, all"),
        (PAID, "implied prices: paid at weight 0.3, elsewhere"),
        (
            {"prices": "demand", "price_options": {"forget_s": 5.0, "pool": False}},
            "demand prices (forget_s = 5.0, pool = false): tie, all",
        ),
        ({**IMPLIED, "share_demand": True}, "implied prices: tie, all; demand shared"),
    ],
)
def test_prices_in_words(options: object, text: str) -> None:
    assert prices_of(options) == text


def test_groups_with_different_prices_are_named() -> None:
    groups: list[dict[str, Any]] = [
        {"name": "greedy", "options": IMPLIED},
        {"name": "flow", "options": PAID},
        {"name": "plain", "options": {}},
    ]
    assert prices_of_groups(groups) == (
        "greedy: implied prices: tie, all; flow: implied prices: paid at weight 0.3, elsewhere"
    )
    assert prices_of_groups(groups[:1] * 2) == "implied prices: tie, all"
    assert prices_of_groups(groups[2:]) == "" == prices_of_groups([])


def priced_arm(
    name: str, options: dict[str, Any], seeds: dict[int, float] | None = None
) -> ArmResult:
    group = {"name": "greedy", "kind": "random", "count": 2, "options": options}
    return replace(bare_arm(name, seeds=seeds), mix=[group], quantities=list(QUANTITIES.values()))


def built(**regret: float) -> RunSummary:
    """Arms with these regrets; those with "priced" in their names have slot prices."""
    arms = [priced_arm(name, IMPLIED if "priced" in name else {}) for name in regret]
    summary = build_summary(FACTS, workload(), arms)
    delays = {name: 100.0 * place for place, name in enumerate(regret, start=1)}
    by_key = {key: dict(regret) for key in RegretMeans.model_fields}
    return with_overall(summary, **by_key, delay_mean_us=delays)


def row(summary: ComparedArms, key: str) -> Row:
    return verdict(summary, [QUANTITIES[key]])[0]


def marked(row: Row) -> list[str]:
    return [cell.arm for cell in row.cells if cell.best or cell.tied]


@pytest.mark.parametrize("key", RegretMeans.model_fields)
def test_arms_with_prices_are_not_ranked_by_regret(key: str) -> None:
    """Neither as the best one nor behind others; their figure stands there all the same."""
    lowest = row(built(priced=1.0, one=5.0, other=9.0), key)
    assert marked(lowest) == ["one"]
    assert [cell.value for cell in lowest.cells] == ["1", "5", "9"]
    assert lowest.sentence.startswith("one is lowest of the ranked arms, at 5")
    assert "priced has slot prices and is not ranked here: regret looks one batch" in (
        lowest.sentence
    )
    alone = row(built(one=5.0, priced=9.0), key)
    assert marked(alone) == [] and alone.sentence.startswith("priced has slot prices and is not")
    nobody = row(built(priced=1.0, priced_too=9.0), key)
    assert marked(nobody) == []
    assert nobody.sentence.startswith("priced and priced_too have slot prices and are not ranked")
    assert marked(row(built(one=1.0, other=2.0), key)) == ["one"]


def test_other_figures_rank_arms_with_prices() -> None:
    by_delay = row(built(priced=9.0, one=5.0), "delay_mean_us")
    assert marked(by_delay) == ["priced"] and "not ranked" not in by_delay.sentence


def test_the_change_of_a_priced_arm_s_regret_is_neither_good_nor_bad() -> None:
    names = {"one": {}, "other": {}, "priced": IMPLIED}
    arms = [priced_arm(name, options, seeds={1: 1.0, 2: 2.0}) for name, options in names.items()]
    summary = build_summary(FACTS, workload(), arms)
    change = paired_difference([5.0, 6.0, 7.0, 8.0, 9.0], [3.0] * 5)
    changes = {arm.slug: {"decision_regret": change} for arm in summary.arms[1:]}
    paired = summary.paired.model_copy(update={"differences": changes})
    summary = summary.model_copy(update={"paired": paired})
    summary = with_overall(summary, decision_regret={"one": 5.0, "other": 8.0, "priced": 8.0})
    shown = row(summary, "decision_regret")
    assert [cell.judged for cell in shown.cells] == [True, True, False]
    page = verdict_page(summary, [shown], "title", "caption")
    assert page.count('class="change bad"') == 1  # of the arm without prices
    assert page.count("+133 %") == 2


def test_the_report_says_what_prices_do_to_regret() -> None:
    text = dict(rests_on(built(priced=1.0, one=5.0, other=9.0)))["Slot prices"]
    assert text.startswith("1 of 3 arms has them")
    assert "all figures rest on the workload's own costs" in text
    assert "Arms with prices are not ranked by regret." in text
    assert "Slot prices" not in dict(rests_on(built(one=5.0, other=9.0)))


def test_the_tables_name_the_prices_below_the_arm() -> None:
    summary = built(priced=1.0, one=5.0)
    page = verdict_page(summary, [row(summary, "delay_mean_us")], "title", "caption")
    assert page.count("<small>implied prices: tie, all</small>") == 1


def test_what_an_arm_differs_in_says_its_prices_in_one_piece() -> None:
    arms = [
        priced_arm("none", {}),
        priced_arm("paid", PAID),
        priced_arm("tie", {**IMPLIED, "patience_s": 0.1}),
    ]
    none, paid, tie = build_summary(FACTS, workload(), arms).arms
    assert differences(paid, none) == "implied prices: paid at weight 0.3, elsewhere (not none)"
    assert differences(none, tie) == (
        "options.patience s none (not 0.1), no prices (not implied prices: tie, all)"
    )
