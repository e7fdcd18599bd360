"""Calibration files and the configuration's section: what is written is read, and bad input is
refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from experiments.campaign.running import make_workload, run_arm_virtual
from experiments.commands.run import app
from experiments.config.run_config import load_config, validated
from experiments.interruption import Interruption
from experiments.studies.run.calibration import (
    CALIBRATION_FILE,
    read_calibration,
    write_calibration,
)
from experiments.toml_text import toml_text
from parsync.runtime.arm_directory import read_arm
from parsync.runtime.calibration import Calibration, MeasuredTimes
from parsync.runtime.virtual.repeat import repeat
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.small_run import SMALL_RUN

TIMES = MeasuredTimes(step_us=[900, 700], other_step_us=[500], push_us=[400], lag_us=[60])
TABLES = {"step_us": [700, 900], "other_step_us": [500], "push_us": [400], "lag_us": [60]}
PLAIN = {"hosts": 2, "tick_us": 25_000, **TABLES}


def with_calibration(path: Path, **change: Any) -> Path:
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**PLAIN, **change}.items()]
    path.write_text(SMALL_RUN + "\n[virtual.calibration]\n" + "\n".join(lines) + "\n", "utf-8")
    return path


def test_what_a_run_measured_calibrates_another_one(tmp_path: Path) -> None:
    write_calibration(tmp_path, [TIMES], 2, 25_000)
    assert read_calibration(tmp_path).model_dump(mode="json") == PLAIN


def test_nothing_is_written_of_a_run_without_sound_live_arms(tmp_path: Path) -> None:
    write_calibration(tmp_path, [], 2, 25_000)
    assert not (tmp_path / CALIBRATION_FILE).exists()
    with pytest.raises(AgoraError, match=r"^--calibrate: .*: it has no calibration\.json: "):
        read_calibration(tmp_path)
    with pytest.raises(AgoraError, match=r"^--calibrate: .*nowhere: no such directory$"):
        read_calibration(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("{", "calibration.json: not readable as JSON"),
        ('{"format": 119}', "calibration.json: field format: expected "),
        (json.dumps({"format": 12, "calibration": {**PLAIN, "lag_us": ["1"]}}), "lag_us"),
        (json.dumps({"format": 12, "calibration": {**PLAIN, "push_us": []}}), "push_us"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str, line: str) -> None:
    (tmp_path / CALIBRATION_FILE).write_text(content, "utf-8")
    with pytest.raises(AgoraError, match=re.escape(line)):
        read_calibration(tmp_path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"hosts": 0}, "virtual.calibration.hosts: "),
        ({"tick_us": 1}, "virtual.calibration.tick_us: "),
        ({"lag_us": []}, "virtual.calibration.lag_us: "),
        ({"lag_us": [-1]}, "virtual.calibration.lag_us.0: "),
        ({"lag_us": [0.5]}, "virtual.calibration.lag_us.0: "),
        ({"step_us": [9, 8]}, "virtual.calibration: step_us: expected ascending times"),
        ({"step_us": list(range(300))}, "virtual.calibration.step_us: "),
        ({"way_us": [1]}, "virtual.calibration.way_us: unknown option"),
    ],
)
def test_a_wrong_section_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    path = with_calibration(tmp_path / "run.toml", **change)
    with pytest.raises(AgoraError) as raised:
        load_config(path)
    assert str(raised.value).startswith(f"{path}: {line}") and "\n" not in str(raised.value)


def test_the_command_refuses_a_directory_without_a_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(SMALL_RUN, "utf-8")
    options = ["--config", path, "--calibrate", tmp_path, "--out", tmp_path / "out"]
    assert exit_status(app, *options) == 2
    assert "--calibrate: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_calibrated_run_is_written_with_its_calibration_and_repeats(tmp_path: Path) -> None:
    config = load_config(with_calibration(tmp_path / "run.toml"))
    again = tmp_path / "again.toml"
    again.write_text(toml_text(config.model_dump(mode="json")), "utf-8")
    assert load_config(again) == config
    directory = tmp_path / "run" / "arms" / "parsync"
    directory.mkdir(parents=True)
    workload = make_workload(config, 1)
    result = run_arm_virtual(
        config, config.arms[0], workload, 1, directory, lambda _: None, Interruption()
    )
    assert not result.stopped and result.notes["drained"]
    virtual = read_arm(directory).virtual
    assert virtual is not None and virtual.calibration == Calibration(**PLAIN)
    repeated = repeat(directory, lambda now_us, end_us: None)
    assert repeated.divergence is None and repeated.gaps == ()
    plain = validated({**config.model_dump(mode="json"), "virtual": {}}, "test")
    other = run_arm_virtual(plain, plain.arms[0], workload, 1, None, lambda _: None, Interruption())
    assert other.digest != result.digest
