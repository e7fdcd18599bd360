"""What a report says of its seeds: what they draw, which runs do not depend on them, and under
which loads resamples ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.seed_variation import (
    are_like_loads,
    is_same_under_every_seed,
    seed_note,
    what_seeds_vary,
)
from experiments.analysis.summary import RunFacts, build_summary
from experiments.analysis.summary_model import RunSummary
from experiments.campaign.running import make_workload, run_arm_virtual, seed_figures
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from experiments.report.answer import rests_on
from experiments.report.terminal import comparison_table
from experiments.report.verdict import NO_SPREAD, verdict
from experiments.studies.run.finishing import arm_result
from experiments.workloads.registry import SEEDS_VARY
from experiments.workloads.resampling import OFFERED_BY_TRACE, RESAMPLE
from tests.unit.run_factory import with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

EXAMPLE = Path(__file__).parents[2] / "examples" / "workloads" / "tasks.csv"
PROTOCOL = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.2}
DELAYS = {1: 10.0, 2: 20.0, 3: 30.0}


def summary(
    seeds: dict[str, dict[int, tuple[str, str, int]]], **facts: int | float | str
) -> RunSummary:
    """A run whose arms have, under each seed, this log, this workload and this offered load."""
    made = workload()
    made = replace(made, facts={**made.facts, **facts})
    found = build_summary(FACTS, made, [bare_arm(name, seeds=DELAYS) for name in seeds])
    arms = []
    for arm in found.arms:
        rows = [
            row.model_copy(
                update=dict(
                    zip(
                        ("digest", "workload", "offered_permille"),
                        seeds[arm.name][row.seed],
                        strict=True,
                    )
                )
            )
            for row in arm.seeds
        ]
        arms.append(arm.model_copy(update={"seeds": rows}))
    return found.model_copy(update={"arms": arms})


SAME = dict.fromkeys(DELAYS, ("log", "tasks", 700))
DRAWN = {seed: (f"log {seed}", "tasks", 700) for seed in DELAYS}


def test_a_run_that_no_seed_changes_has_no_spread_and_is_named() -> None:
    found = summary({"Fixed": SAME, "Random": DRAWN})
    fixed, drawn = found.arms
    assert is_same_under_every_seed(fixed, found.paired.seeds)
    assert not is_same_under_every_seed(drawn, found.paired.seeds)
    assert not is_same_under_every_seed(fixed, [1])  # one seed tells nothing
    text = what_seeds_vary(found)
    assert "All seeds have the same workload." in text
    assert text.endswith("The run of Fixed does not depend on the seed, so it has no spread.")
    assert seed_note(found) == text and ("Seeds", text) in rests_on(found)
    quantity = found.quantity("delay_mean_us")
    assert quantity is not None
    measured = with_overall(found, delay_mean_us={"Fixed": 9.0, "Random": 9.0})
    (row,) = verdict(measured, [quantity])
    assert row.cells[0].spread == NO_SPREAD != row.cells[1].spread


def test_a_difference_that_no_seed_changes_has_no_interval_and_no_count_of_seeds() -> None:
    arms = [bare_arm(name, seeds=dict.fromkeys(range(7), at)) for name, at in (("A", 3), ("B", 4))]
    found = with_overall(build_summary(FACTS, workload(), arms), delay_mean_us={"A": 3, "B": 4})
    quantity = found.quantity("delay_mean_us")
    assert quantity is not None
    (row,) = verdict(found, [quantity])
    assert ", the same under every seed." in row.sentence
    assert "interval" not in row.sentence and " of 7 seeds" not in row.sentence


def test_a_kind_says_itself_what_seeds_draw() -> None:
    other = {seed: (f"log {seed}", f"tasks {seed}", 700) for seed in DELAYS}
    said = summary({"A": other}, **{SEEDS_VARY: "A seed draws the whole workload."})
    assert what_seeds_vary(said) == "A seed draws the whole workload."
    assert seed_note(said) == ""  # nothing that a table over seeds would not be taken for
    assert "their kind does not say" in what_seeds_vary(summary({"A": other}))


@pytest.mark.parametrize(
    ("loads", "says"),
    [
        (
            (700, 730, 720),
            "the resamples offer 70, 73 and 72 % of the cell, the trace 71 %. These loads are si",
        ),
        (
            (700, 750, 720),
            "the resamples offer 70, 75 and 72 % of the cell, the trace 71 %. These loads are not",
        ),
    ],
)
def test_resamples_say_their_loads_and_whether_these_are_alike(
    loads: tuple[int, int, int], says: str
) -> None:
    rows = {seed: (f"log {seed}", f"tasks {seed}", loads[seed - 1]) for seed in DELAYS}
    facts: dict[str, int | float | str] = {RESAMPLE: "jobs", OFFERED_BY_TRACE: 71.0}
    text = seed_note(summary({"A": rows}, **facts))
    assert says in text
    assert ("Compare arms by their differences" in text) == ("not similar" in text)


def test_loads_are_alike_up_to_a_twentieth_of_the_higher() -> None:
    assert are_like_loads([950, 1000]) and are_like_loads([0, 0])
    assert not are_like_loads([949, 1000])


def test_a_scheduler_that_draws_nothing_has_one_run_on_a_trace(
    example_site: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(example_site("workloads"))
    monkeypatch.delitem(sys.modules, "csv_trace", raising=False)
    monkeypatch.setenv("COLUMNS", "300")

    def compared(**options: object) -> RunSummary:
        config = RunConfig.model_validate(
            {
                "workload": {"kind": "csv_trace", "file": EXAMPLE, "machines": 25, **options},
                "settle_s": 0.0,
                "seeds": 2,
                "arms": [
                    {
                        "name": kind,
                        "partitions": 5,
                        "groups": [{"kind": kind, "name": kind, "count": 1, "protocol": PROTOCOL}],
                    }
                    for kind in ("best_fit", "random")
                ],
            }
        )
        made = make_workload(config, 1)
        seeds = {
            seed: {arm.name: seed_figures(config, arm, seed) for arm in config.arms}
            for seed in (1, 2)
        }
        results = [
            arm_result(
                config,
                run_arm_virtual(config, arm, made, 1, None, lambda _: None, Interruption()),
                seeds,
            )
            for arm in config.arms
        ]
        return build_summary(RunFacts(1, "test", "virtual", 0, {}), made, results)

    as_it_is = compared()
    seeds = as_it_is.paired.seeds
    assert [is_same_under_every_seed(arm, seeds) for arm in as_it_is.arms] == [True, False]
    Console().print(comparison_table(as_it_is))
    shown = capsys.readouterr().out
    assert "no spread" in shown and "The trace is the same under every seed." in shown
    assert "The run of best_fit does not depend on the seed, so it has no spread." in shown
    resampled = compared(resample="blocks", block_s=2.0)
    assert not any(is_same_under_every_seed(arm, seeds) for arm in resampled.arms)
    one, two = ({row.seed: row.workload for row in arm.seeds} for arm in resampled.arms)
    assert one == two and one[1] != one[2]  # all arms share each resample
    assert "blocks of about 2 s" in what_seeds_vary(resampled)
