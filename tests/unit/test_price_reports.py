"""What reports say about slot prices: which arms have them, and that regret does not rank these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments.analysis.statistics import paired_difference
from experiments.analysis.summary import ArmResult, build_summary
from experiments.analysis.summary_model import ComparedArms, RunSummary
from experiments.config.price_settings import prices_of, prices_of_groups
from experiments.report.answer import rests_on
from experiments.report.arms import differences
from experiments.report.page import verdict_page
from experiments.report.verdict import Row, verdict
from parsync.metrics.regret import RegretMeans
from tests.unit.known_quantities import QUANTITIES
from tests.unit.run_factory import with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

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


def arm(name: str, options: dict[str, Any], seeds: dict[int, float] | None = None) -> ArmResult:
    group = {"name": "greedy", "kind": "random", "count": 2, "options": options}
    return replace(bare_arm(name, seeds=seeds), mix=[group], quantities=list(QUANTITIES.values()))


def built(**regret: float) -> RunSummary:
    """Arms with these regrets; those with "priced" in their names have slot prices."""
    arms = [arm(name, IMPLIED if "priced" in name else {}) for name in regret]
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
    arms = [arm(name, options, seeds={1: 1.0, 2: 2.0}) for name, options in names.items()]
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
    arms = [arm("none", {}), arm("paid", PAID), arm("tie", {**IMPLIED, "patience_s": 0.1})]
    none, paid, tie = build_summary(FACTS, workload(), arms).arms
    assert differences(paid, none) == "implied prices: paid at weight 0.3, elsewhere (not none)"
    assert differences(none, tie) == (
        "options.patience s none (not 0.1), no prices (not implied prices: tie, all)"
    )
