"""The first screen of a report: a question, an answer that the seeds bear out, and what the
comparison rests on, its seeds among it; the rules of an arm in words.
"""

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
from experiments.analysis.summary import ArmResult, RunFacts, build_summary
from experiments.analysis.summary_model import ChangedArm, RunSummary, Sensitivity
from experiments.campaign.running import make_workload, run_arm_virtual, seed_figures
from experiments.config.decision_basis import BasisKind, DecisionBasis
from experiments.config.presets import default_arms, demo_scale
from experiments.config.run_config import RunConfig, load_config
from experiments.interruption import Interruption
from experiments.report.answer import (
    answer,
    effective_capacity,
    question,
    rests_on,
    sensitivity_sentences,
    sensitivity_tables,
)
from experiments.report.arms import cell_rules
from experiments.report.terminal import comparison_table
from experiments.report.verdict import NO_SPREAD, verdict
from experiments.studies.run.finishing import arm_result
from experiments.studies.run.sensitivity import CHOICES
from experiments.workloads.registry import SEEDS_VARY
from experiments.workloads.resampling import OFFERED_BY_TRACE, RESAMPLE
from parsync.spec.decision_times import CountedTime
from tests.unit.run_factory import EQUAL, with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

OWN = DecisionBasis(kind=BasisKind.OWN_SPEED, cores=1, message_us=500)
SEEDS = range(1, 6)


def summary_of(**delays: float) -> RunSummary:
    """Arms at equal capacity with these mean delays, nearly the same under every seed."""
    arms = [
        replace(bare_arm(name, name, {s: delay + s / 1000 for s in SEEDS}), basis=EQUAL)
        for name, delay in delays.items()
    ]
    return built(arms)


def built(arms: list[ArmResult]) -> RunSummary:
    """A summary whose arms have a mean delay of their own runs, too."""
    summary = build_summary(FACTS, workload(), arms)
    return with_overall(summary, delay_mean_us={arm.name: 1.0 for arm in arms})


def with_choice(summary: RunSummary, others: bool = True, **delays: float) -> RunSummary:
    """With arms that had these delays with another choice."""
    by_name = {arm.name: arm for arm in summary.arms}
    changed = []
    for name, delay in delays.items():
        seeds = [
            row.model_copy(
                update={"overall": row.overall.model_copy(update={"delay_mean_us": delay})}
            )
            for row in by_name[name].seeds[:3]
        ]
        changed.append(ChangedArm(slug=by_name[name].slug, seeds=seeds))
    one = Sensitivity(
        key="scan_cost", value=0.75, title="If it rained", with_others=others, arms=changed
    )
    return summary.model_copy(update={"sensitivity": [one]})


def test_the_answer_names_the_soonest_arm_of_each_class() -> None:
    summary = summary_of(slow=9000.0, quick=2000.0)
    (sentence,) = answer(summary)
    assert "quick places tasks soonest: after 2" in sentence and "slow" not in sentence
    assert "not for certain" not in sentence
    assert question(summary).startswith("Which of 2 ways")


def test_the_answer_says_when_the_seeds_do_not_tell() -> None:
    by_arm = {"a": [1.0, 3.0, 1.0, 3.0, 1.0], "b": [3.0, 1.0, 3.0, 1.0, 2.0]}
    arms = [
        replace(bare_arm(name, name, dict(zip(SEEDS, values, strict=True))), basis=EQUAL)
        for name, values in by_arm.items()
    ]
    (sentence,) = answer(built(arms))
    assert "a places tasks soonest" in sentence and "not for certain ahead of b" in sentence


def test_names_with_commas_are_set_apart_in_sentences() -> None:
    (sentence,) = answer(summary_of(**{"greedy, patient": 2000.0, "slow": 9000.0}))
    assert "“greedy, patient” places tasks soonest" in sentence


def test_arms_of_other_classes_do_not_share_an_answer() -> None:
    arms = [
        replace(bare_arm(name, name, dict.fromkeys(SEEDS, delay)), basis=basis)
        for name, delay, basis in (("a", 5.0, EQUAL), ("b", 6.0, EQUAL), ("c", 1.0, OWN))
    ]
    summary = built(arms)
    first, second = answer(summary)
    assert "a places tasks soonest" in first and "Tasks of c (own speed, 1 core) wait" in second
    assert [subject for subject, _ in rests_on(summary)][:2] == [
        "Equal capacity, 20,000 tasks/s: 2 arms",
        "Own speed, 1 core: 1 arm",
    ]


def test_what_the_comparison_rests_on_is_told_in_numbers() -> None:
    known = EQUAL.model_copy(update={"capacity": 2.0, "arrivals_per_s": 10_000.0})
    arms = [replace(bare_arm(name, name, {1: 1.0}), basis=known) for name in ("a", "b")]
    summary = build_summary(FACTS, workload(), arms)
    summary = with_overall(summary, decisions_per_s={"a": 17_235.0, "b": 20_008.0})
    told = dict(rests_on(summary))
    text = told["Equal capacity, A = 2: 2 arms"]
    assert "A = 2 times the tasks that arrive at 100 % load" in text
    assert "from 1.72 (a) to 2 (b) times the arrivals" in text
    assert effective_capacity(summary.arms[0]) == pytest.approx(1.7235)
    assert "answer in no time" in told["Other times"] and "Steady state" in told
    config = {**FACTS.config, "heartbeat_us": 1500, "virtual": {"message_us": 500}}
    times = dict(rests_on(build_summary(replace(FACTS, config=config), workload(), arms)))
    assert "a message takes 500 µs" in times["Other times"]
    assert "The workers report ended tasks every 1.50 ms" in times["Other times"]


def test_a_choice_that_turns_two_arms_round_is_told() -> None:
    summary = summary_of(first=2000.0, second=3000.0, third=4000.0)
    turned = with_choice(summary, first=9000.0)
    (sentence,) = sensitivity_sentences(turned)
    assert sentence.startswith("If it rained, mean delays would be 4.50 times as long, and ")
    few = " (under each of 3 seeds; an interval takes 5)."
    assert sentence.endswith(f", and second would overtake first; third would overtake first{few}")
    assert sensitivity_sentences(turned)[0] == dict(rests_on(turned))["Decision times"]
    (table,) = sensitivity_tables(turned)
    assert table.seeds == 3 and list(table.rows) == ["first"]
    (delay, *_) = table.rows["first"]
    assert "×" in delay.change and not delay.certain
    assert delay.doubt == ": not enough seeds"
    alone = with_choice(summary, False, first=9000.0, second=3000.0)
    assert sensitivity_sentences(alone)[0].endswith(f", and second would overtake first{few}")
    both = with_choice(summary, first=2100.0, second=6000.0)
    assert "would be 1.05 to 2.00 times as long" in sensitivity_sentences(both)[0]
    equal = with_choice(summary, first=2000.0)
    assert "mean delays would not change" in sensitivity_sentences(equal)[0]
    same = with_choice(summary, first=2100.0)
    assert sensitivity_sentences(same) == [
        "If it rained, mean delays would be 1.05 times as long, and no arm would overtake another"
        f"{few}"
    ]


def test_a_choice_changes_the_arms_that_it_concerns() -> None:
    arms = default_arms(demo_scale(False))
    scan, kept = ({arm.name for arm in arms if choice.of(arm) is not None} for choice in CHOICES)
    own = {arm.name for arm in arms if isinstance(arm.groups[0].decision, CountedTime)}
    assert scan == {arm.name for arm in arms} - own - {"Flow", "Flow with prices", "Sparrow"}
    assert kept == {"Flow", "Flow with prices", "Greedy, patient", "Mix"}
    for choice in CHOICES:
        for arm in arms:
            changed = choice.of(arm)
            assert changed is None or choice.of(changed) is None, "it is made already"


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


def test_quotas_are_named_in_words() -> None:
    config = load_config(Path("examples/quotas.toml")).model_dump(mode="json")
    assert cell_rules(config, "quotas") == [
        "quotas: ads (30-60 %), search (from 20 %, weight 2), batch (up to 80 %)"
    ]
    assert cell_rules(config, "no quotas") == cell_rules(config, "unknown") == []
    config["arms"][0] |= {"evictions": "lower_priority"}
    config["arms"][0]["quotas"]["reclaim_after_s"] = 0.5
    quotas, evictions = cell_rules(config, "quotas")
    assert quotas.endswith("batch (up to 80 %); tasks above a grant end after 0.5 s")
    assert evictions == "evicts tasks of lower priority, of any scheduler"


def test_limits_of_schedulers_are_named_in_words() -> None:
    config = load_config(Path("examples/omega/run.toml")).model_dump(mode="json")
    arm = next(arm for arm in config["arms"] if len(arm["groups"]) == 2)
    batch, service = arm["groups"]
    batch["protocol"] |= {"hold_max": 0.25, "jobs_max": 50}
    service["protocol"] |= {"jobs_max": 1}
    assert cell_rules(config, arm["name"]) == [
        f"each scheduler of {batch['name']} holds at most 25 % of the cell, admits at most 50 jobs"
        " at a time",
        f"each scheduler of {service['name']} admits at most 1 job at a time",
    ]
