"""Errors about options name the option or the file, before anything is run or written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.config.flags import numbers_of
from experiments.config.presets import default_config
from experiments.studies.extra_slots import points_of
from experiments.studies.frontiers.execution import FrontierOptions, start
from experiments.studies.model_settings import ReproduceScale
from experiments.studies.run.killed_runs import in_progress
from experiments.toml_text import toml_text
from shared_state.errors import AgoraError


def test_several_numbers() -> None:
    assert numbers_of("--gap", "0.5, 1,2", float) == (0.5, 1.0, 2.0)


@pytest.mark.parametrize("text", ["1,1", "0.5,1,.5"])
def test_a_number_that_appears_twice_is_refused(text: str) -> None:
    with pytest.raises(AgoraError, match=f"^--gap {re.escape(text)}: a value appears twice$"):
        numbers_of("--gap", text, float)


def test_a_sync_policy_that_appears_twice_is_refused() -> None:
    with pytest.raises(AgoraError, match=r"^--sync same_block,same_block: same_"):
        points_of("same_block,same_block", {}, ReproduceScale.SMOKE)


def test_a_file_is_not_called_a_missing_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for read in (read_summary, in_progress):
        with pytest.raises(AgoraError, match=r"file: not a directory$"):
            read(file)
        with pytest.raises(AgoraError, match=r"none: no such directory$"):
            read(tmp_path / "none")


def test_an_error_of_an_arm_names_the_file_of_the_frontier(tmp_path: Path) -> None:
    tree = default_config(True).model_dump(mode="json")
    for arm in tree["arms"]:
        arm["partitions"] = 99_999
    file = tmp_path / "wrong.toml"
    file.write_text(toml_text(tree), "utf-8")
    with pytest.raises(AgoraError, match=f"^{re.escape(str(file))}: arm .*: partitions: expected"):
        start(FrontierOptions(file=file, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_wrong_address_is_refused_before_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AgoraError, match=r"^--address junk: expected HOST:PORT"):
        start(FrontierOptions(quick=True, address="junk", out=tmp_path / "out"))
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "out").exists()
