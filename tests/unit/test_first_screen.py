"""The first screen of a report: a question, an answer that the seeds bear out, and what the
comparison rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.analysis.summary import ArmResult, build_summary
from experiments.analysis.summary_model import ChangedArm, RunSummary, Sensitivity
from experiments.config.decision_basis import BasisKind, DecisionBasis
from experiments.config.presets import default_arms, demo_scale
from experiments.report.answer import (
    answer,
    effective_capacity,
    question,
    rests_on,
    sensitivity_sentences,
    sensitivity_tables,
)
from experiments.studies.run.sensitivity import CHOICES
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
    own = {arm.name for arm in arms if "own speed" in arm.name}
    assert scan == {arm.name for arm in arms} - own - {"Flow", "Flow with prices"}
    assert kept == {"Flow", "Flow with prices", "Greedy, patient", "Mix"}
    for choice in CHOICES:
        for arm in arms:
            changed = choice.of(arm)
            assert changed is None or choice.of(changed) is None, "it is made already"
