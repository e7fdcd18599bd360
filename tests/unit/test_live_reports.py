"""What summary, report and terminal say of live runs: whether they were disturbed, and what virtual
time had predicted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.cell_watch import Watched
from experiments.analysis.run_directory import read_summary, write_run
from experiments.analysis.summary import ArmResult, build_summary
from experiments.analysis.summary_model import RunSummary
from experiments.campaign.running import ArmRun, make_metrics, make_workload
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.report.answer import answer
from experiments.report.live_runs import (
    disturbed_runs,
    live_disagreement,
    live_note,
    prediction_basis,
    predictions,
)
from experiments.report.page import write_report
from experiments.report.terminal import comparison_table
from experiments.report.verdict import is_ranked, verdict
from experiments.studies.run.calibration import calibrated_on, prediction_points, predictions_of
from parsync.metrics.kinds.validity import Validity, validity
from parsync.runtime.calibration import MeasuredTimes
from tests.fixtures.small_run import SMALL_RUN
from tests.unit.known_quantities import QUANTITIES
from tests.unit.run_factory import with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm
from tests.unit.test_validity import NAMES, change, rows

DELAY = [QUANTITIES["delay_mean_us"]]
ON_RAY = replace(FACTS, runtime="ray")


def found(disturbed: bool) -> Validity:
    table = rows()
    if disturbed:
        change(table, 0, [7, 8, 30], late_p95_us=12_000)
    return validity(table, NAMES)


def live_summary(
    live_us: dict[str, float], disturbed: str = "", seeds: dict[str, dict[int, float]] | None = None
) -> RunSummary:
    """Live runs with these mean delays; with seeds, beside their arms in virtual time."""
    live = [live_run(name, name == disturbed) for name in live_us]
    if seeds is None:
        return with_overall(build_summary(ON_RAY, workload(), live), delay_mean_us=live_us)
    arms = [bare_arm(name, seeds=its) for name, its in seeds.items()]
    summary = build_summary(FACTS, workload(), arms, live)
    of_live = summary.live()
    assert of_live is not None
    measured = with_overall(of_live, delay_mean_us=live_us).arms
    first = {name: next(iter(its.values())) for name, its in seeds.items()}
    return with_overall(summary, delay_mean_us=first).model_copy(update={"live_runs": measured})


def live_run(name: str, disturbed: bool) -> ArmResult:
    return replace(bare_arm(name), runtime="ray", validity=found(disturbed))


def test_a_disturbed_live_run_is_not_ranked() -> None:
    delays = {"A": 100.0, "B": 200.0, "C": 300.0}
    row = verdict(live_summary(delays), DELAY)[0]
    assert [cell.best for cell in row.cells] == [True, False, False]
    summary = live_summary(delays, disturbed="A")
    row = verdict(summary, DELAY)[0]
    assert [cell.best for cell in row.cells] == [False, True, False]
    assert not is_ranked(summary, summary.arms[0]) and is_ranked(summary, summary.arms[1])
    assert row.sentence.startswith("B is lowest")


def test_live_runs_change_no_verdict_and_no_answer() -> None:
    seeds = {"A": {3: 50.0, 4: 51.0}, "B": {3: 90.0, 4: 91.0}, "C": {3: 95.0, 4: 99.0}}
    summary = live_summary({"A": 500.0, "B": 300.0, "C": 400.0}, "B", seeds)
    alone = summary.model_copy(update={"live_runs": []})
    assert verdict(summary, DELAY) == verdict(alone, DELAY)
    assert answer(summary) == answer(alone)
    live = summary.live()
    assert live is not None
    sentence = verdict(live, DELAY)[0].sentence
    assert sentence.startswith("C is lowest at 400 µs"), "B was disturbed"


def test_one_line_says_what_live_runs_are_to_the_answer() -> None:
    seeds = {"A": {3: 50.0, 4: 51.0}, "B": {3: 90.0, 4: 91.0}}
    live = {"A": 500.0, "B": 300.0}
    rests = "The answer rests on virtual time, which other work on the machine does not affect; "
    of_live = "1 of 2 live runs was disturbed by other work"
    assert live_note(live_summary(live, "A", seeds)) == f"{rests}{of_live}."
    assert (
        live_note(live_summary(live, "", seeds)) == f"{rests}2 live runs are reported separately."
    )
    on_ray = live_note(live_summary(live, "A"))
    assert on_ray == f"{of_live} on this machine and is not ranked."
    assert live_note(live_summary(live)) == ""
    assert live_note(build_summary(FACTS, workload(), [])) == ""


def test_report_and_terminal_say_what_disturbed_a_run(tmp_path: Path) -> None:
    arms = [live_run(name, name == "Omega") for name in ("ParSync", "Omega")]
    summary = build_summary(ON_RAY, workload(), arms)
    (sentence,) = disturbed_runs(summary)
    assert sentence == (
        "The live run of Omega was disturbed and is not ranked. 3 of 60 seconds: schedulers-0 was "
        "up to 12 ms late (95th percentile; limit 2 ms) in seconds 7-8, 30."
    )
    write_run(tmp_path, summary, arms)
    assert read_summary(tmp_path) == summary
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    assert sentence in page and "valid: 60 seconds, none of them disturbed" in page
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(read_summary(tmp_path)))
    text = " ".join(console.export_text().split())
    assert sentence in text
    assert "one live run" in text


def test_predictions_stand_beside_measurements() -> None:
    seeds = {"A": {FACTS.seed: 50_000.0}, "B": {FACTS.seed: 90_000.0}}
    summary = live_summary({"A": 40_000.0, "B": 100_000.0}, "B", seeds)
    first, second = predictions(summary)
    delay = next(one for one in first.figures if one.quantity.key == "delay_mean_us")
    assert (delay.measured, delay.predicted, delay.error) == ("40 ms", "50 ms", "+25 %")
    assert second.run.is_disturbed and not first.run.is_disturbed
    assert predictions(live_summary({"A": 1.0})) == [], "no run in virtual time"


def test_the_basis_of_predictions_is_named() -> None:
    plain = build_summary(replace(FACTS, config={"virtual": {"message_us": 500}}), workload(), [])
    assert "messages take 500 µs each, and no ticks" in prediction_basis(plain)
    config = {"virtual": {"message_us": 500, "calibration": {"hosts": 2}}}
    calibrated = build_summary(replace(FACTS, config=config), workload(), [])
    assert "calibrated on" in prediction_basis(calibrated)


@pytest.mark.parametrize(
    ("live_us", "disturbed", "disagrees"),
    [
        ({"A": 100.0, "B": 200.0}, "", False),
        ({"A": 200.0, "B": 100.0}, "", True),
        ({"A": 102.0, "B": 100.0}, "", False),  # alike
        ({"A": 200.0, "B": 100.0}, "A", False),  # nobody knows
    ],
)
def test_orders_that_differ_live_and_in_virtual_time_are_said(
    live_us: dict[str, float], disturbed: str, disagrees: bool
) -> None:
    seeds = {"A": {FACTS.seed: 10.0}, "B": {FACTS.seed: 20.0}}
    summary = live_summary(live_us, disturbed, seeds)
    assert live_disagreement(summary) == (
        "Live runs and virtual time disagree about the order of arms: B waits less than A in the "
        "live runs, and longer in virtual time."
        if disagrees
        else ""
    )


def test_the_live_section_says_when_live_and_virtual_orders_disagree(tmp_path: Path) -> None:
    seeds = {"A": {FACTS.seed: 10.0}, "B": {FACTS.seed: 20.0}}
    summary = live_summary({"A": 200.0, "B": 100.0}, "", seeds)
    arms = [bare_arm(name, seeds=of) for name, of in seeds.items()]
    write_run(tmp_path, summary, arms, [live_run(name, False) for name in seeds])
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    live = page[page.index('<section id="live">') :]
    assert "Live runs and virtual time disagree" in live[: live.index("</section>")]
    assert "Live runs" not in page[page.index("<h2>Answer") : page.index("</p>")]


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    path = tmp_path / "run.toml"
    path.write_text(SMALL_RUN.replace('runtime = "virtual"', 'runtime = "ray"'), "utf-8")
    return load_config(path)


def calibrating_run(config: RunConfig, name: str, step_us: int, disturbed: bool = False) -> ArmRun:
    arm = next(arm for arm in config.arms if arm.name == name)
    metrics = make_metrics(config, arm, make_workload(config, 1))
    table = rows()
    if disturbed:
        change(table, 0, [3, 4, 5], late_p95_us=50_000)
    metrics.add("actors", table)
    times = MeasuredTimes([step_us], [500], [400], [100])
    return ArmRun(arm, metrics, "", {}, "", 0.0, Watched(), live=True, times=times)


def on(config: RunConfig, *runs: ArmRun) -> dict[str, list[str]]:
    return {
        name: [run.arm.name for run in those] for name, those in calibrated_on(config, runs).items()
    }


def test_an_arm_is_calibrated_on_the_others_that_were_not_disturbed(config: RunConfig) -> None:
    parsync, flow = calibrating_run(config, "ParSync", 800), calibrating_run(config, "Flow", 900)
    disturbed = calibrating_run(config, "Flow", 900, disturbed=True)
    assert on(config, parsync, flow) == {"ParSync": ["Flow"], "Flow": ["ParSync"]}
    assert on(config, parsync, disturbed) == {"ParSync": ["ParSync"], "Flow": ["ParSync"]}
    assert on(config, disturbed) == {}
    assert on(config) == {}


def test_predictions_are_runs_in_virtual_time_with_those_times(config: RunConfig) -> None:
    runs = [calibrating_run(config, "ParSync", 800), calibrating_run(config, "Flow", 900)]
    points = prediction_points(config, runs)
    assert [(point.arm.name, point.seed) for point in points] == [("ParSync", 1), ("Flow", 1)]
    tables = [point.config.virtual.calibration for point in points]
    assert [table.step_us for table in tables if table is not None] == [(900,), (800,)]
    figures = {}
    for point in points:
        result = point.measure(None).figures
        figures[point.arm.name] = result
    found = predictions_of(config, runs, figures)
    assert found["ParSync"].calibrated_on == ["Flow"]
    assert found["Flow"].overall.delay_mean_us is not None


def test_a_run_that_is_calibrated_already_predicts_by_itself(config: RunConfig) -> None:
    runs = [calibrating_run(config, "ParSync", 800)]
    (point,) = prediction_points(config, runs)
    calibrated = validated(point.config.model_dump(mode="json"), "test")
    assert prediction_points(calibrated, runs) == []
