"""Which live runs calibrate which prediction."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.analysis.cell_watch import Watched
from experiments.campaign.running import ArmRun, make_metrics, make_workload
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.studies.run.calibration import calibrated_on, prediction_points, predictions_of
from parsync.runtime.calibration import MeasuredTimes
from tests.fixtures.small_run import SMALL_RUN
from tests.unit.test_validity import change, rows


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    path = tmp_path / "run.toml"
    path.write_text(SMALL_RUN.replace('runtime = "virtual"', 'runtime = "ray"'), "utf-8")
    return load_config(path)


def live_run(config: RunConfig, name: str, step_us: int, disturbed: bool = False) -> ArmRun:
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
    parsync, flow = live_run(config, "ParSync", 800), live_run(config, "Flow", 900)
    disturbed = live_run(config, "Flow", 900, disturbed=True)
    assert on(config, parsync, flow) == {"ParSync": ["Flow"], "Flow": ["ParSync"]}
    assert on(config, parsync, disturbed) == {"ParSync": ["ParSync"], "Flow": ["ParSync"]}
    assert on(config, disturbed) == {}
    assert on(config) == {}


def test_predictions_are_runs_in_virtual_time_with_those_times(config: RunConfig) -> None:
    runs = [live_run(config, "ParSync", 800), live_run(config, "Flow", 900)]
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
    runs = [live_run(config, "ParSync", 800)]
    (point,) = prediction_points(config, runs)
    calibrated = validated(point.config.model_dump(mode="json"), "test")
    assert prediction_points(calibrated, runs) == []
