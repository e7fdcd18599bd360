"""Runs of models: kept, continued, and independent of where they were stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.interruption import Interruption
from experiments.studies.model_runs import ModelRuns, RoundsRun, SearchRun, extra_slots
from parsync.model.extra_slots import ExtraSlotsSearch
from shared_state.errors import AgoraError
from tests.unit.slot_cells import small_settings

SEARCH = ExtraSlotsSearch(largest=4_000, first_step=50, resolution=40, confirmations=1)
START = SearchRun("G = 0.5", small_settings(), SEARCH)
NEXT = SearchRun("G = 0.75", small_settings(gap_s=0.75), SEARCH, START)


class Stops(Interruption):
    """Stops at the first look."""

    def check(self) -> None:
        raise KeyboardInterrupt


def run_all(folder: Path, runs: list[SearchRun], seeds: list[int]) -> list[float | None]:
    engine = ModelRuns(folder)
    engine.run(engine.missing(runs, seeds), Interruption(), lambda: None)
    return [extra_slots(of[run.label]) for of in engine.results(runs, seeds) for run in runs]


def test_a_stopped_command_goes_on_to_the_same_results(tmp_path: Path) -> None:
    seeds = [1, 2]
    at_once = run_all(tmp_path / "at_once", [START, NEXT], seeds)
    assert None not in at_once
    with pytest.raises(KeyboardInterrupt):
        engine = ModelRuns(tmp_path / "stopped")
        engine.run(engine.missing([NEXT], seeds), Stops(), lambda: None)
    run_all(tmp_path / "stopped", [START], [1])
    assert run_all(tmp_path / "stopped", [START, NEXT], seeds) == at_once
    assert not ModelRuns(tmp_path / "stopped").missing([START, NEXT], seeds)


def test_a_run_comes_after_what_it_begins_with(tmp_path: Path) -> None:
    work = ModelRuns(tmp_path).missing([NEXT], [2])
    assert [(task.run, task.seed) for task in work] == [(START, 1), (NEXT, 1), (NEXT, 2)]


def test_a_torn_file_is_made_again(tmp_path: Path) -> None:
    run_all(tmp_path, [START], [1])
    (file,) = tmp_path.glob("*.npz")
    file.write_bytes(file.read_bytes()[:-50])
    assert len(ModelRuns(tmp_path).missing([START], [1])) == 1


def test_a_setting_that_is_refused_is_named(tmp_path: Path) -> None:
    engine = ModelRuns(tmp_path)
    wrong = SearchRun("wrong", small_settings(partitions=0), SEARCH)
    with pytest.raises(AgoraError, match=r"'wrong', seed 1: partitions: "):
        engine.run(engine.missing([wrong], [1]), Interruption(), lambda: None)


def test_simulated_rounds_agree_with_eq_2() -> None:
    found = RoundsRun("rounds", 10, 50, 500, 400).measure(1, None)
    assert abs(found["mean"] - found["expected"]) < 4 * found["error"]
    again = RoundsRun("other label", 10, 50, 500, 400).measure(1, None)
    assert np.array_equal(found["mean"], again["mean"])
