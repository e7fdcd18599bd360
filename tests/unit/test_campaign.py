"""The loop over tasks: what is missing, what runs, what is kept, and in which order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pytest

from experiments.campaign.directories import is_locked, locked
from experiments.campaign.loop import KeptRuns, missing, run_tasks, this_process
from experiments.campaign.task import ARRAYS, Measured, Store, Task
from experiments.interruption import Interruption
from parsync.metrics.quantity import Figures
from shared_state.errors import AgoraError


class Sum(Figures):
    total: int


ran: list[str] = []


@dataclass(frozen=True)
class Adds(Task[Sum]):
    """Adds its number to the total of the task that it begins with."""

    number: int
    first: Adds | None = None
    keeps: Collection[str] = ()
    takes_s: float = 0.0
    least: int = 0

    def named(self) -> tuple[str, int]:
        return f"add {self.number}", 1

    def key(self) -> str:
        return f"{self.number}" + (f"-{self.first.key()}" if self.first else "")

    @property
    def expected_s(self) -> float:
        return self.takes_s

    def also(self, other: Adds) -> Adds:
        return replace(self, keeps=(*self.keeps, *other.keeps))

    def before(self) -> Adds | None:
        return self.first

    def accepts(self, kept: Measured[Sum]) -> bool:
        return kept.figures.total >= self.least

    def measure(self, before: Measured[Sum] | None) -> Measured[Sum]:
        ran.append(self.key())
        if self.number < 0:
            raise AgoraError(f"{self}: below 0")
        total = self.number + (before.figures.total if before else 0)
        return Measured(Sum(total=total), {name: {"all": np.arange(total)} for name in self.keeps})


ONE = Adds(1)
TWO = Adds(2, ONE)
THREE = Adds(3, TWO)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@pytest.fixture
def store(tmp_path: Path) -> Store[Sum]:
    return Store(tmp_path / "kept", Sum)


def totals(tasks: list[Adds], store: Store[Sum] | None = None) -> dict[int, int]:
    runs = run_tasks(tasks, Interruption(), store=store, pool=this_process)
    return {index: measured.figures.total for index, measured in runs}


def test_a_task_begins_with_the_result_of_the_one_before_it(store: Store[Sum]) -> None:
    assert missing([THREE], store) == [ONE, TWO, THREE]
    assert totals([THREE, ONE, TWO]) == {0: 6, 1: 1, 2: 3}
    assert ran == ["1", "2-1", "3-2-1"]


def test_what_a_task_begins_with_may_be_kept(store: Store[Sum]) -> None:
    totals([ONE, TWO], store)
    assert missing([THREE], store) == [THREE]
    assert totals([THREE], store) == {0: 6}
    assert ran == ["1", "2-1", "3-2-1"]


def test_tasks_with_equal_keys_run_once_and_measure_what_any_asks_for(store: Store[Sum]) -> None:
    alike = [Adds(5, keeps=(ARRAYS,)), Adds(7), Adds(5, keeps=("more",))]
    five, seven = missing(alike, store)
    assert (five.key(), set(five.keeps), seven.key()) == ("5", {ARRAYS, "more"}, "7")
    assert totals(alike, store) == {0: 5, 1: 7, 2: 5}
    assert ran == ["5", "7"]
    assert not missing(alike, store)
    found = store.result("5", (ARRAYS, "more")).arrays
    assert [found[name]["all"].tolist() for name in (ARRAYS, "more")] == [[0, 1, 2, 3, 4]] * 2


def test_arrays_that_are_not_kept_are_measured_again(store: Store[Sum]) -> None:
    totals([Adds(5)], store)
    with_arrays = Adds(5, keeps=(ARRAYS,))
    assert missing([Adds(5), with_arrays], store)
    assert totals([with_arrays], store) == {0: 5}
    assert ran == ["5", "5"]
    assert not missing([Adds(5), with_arrays], store)


def test_what_another_version_kept_is_made_again_and_said(
    store: Store[Sum], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tasks that have arrays only, too."""
    with_arrays = Adds(5, keeps=(ARRAYS,))
    totals([with_arrays], store)
    monkeypatch.setattr("experiments.campaign.task.version_text", lambda: "another")
    for figures, ending in ((Sum, "json"), (NoneType, "npz")):
        later: KeptRuns[Any] = KeptRuns(Store(tmp_path / "kept", figures))
        told = later.unusable([with_arrays, ONE])
        assert told.startswith("1 kept run cannot be used and is made again: ")
        assert f"5.{ending}: of another version of Agora (" in told
    totals([with_arrays], Store(tmp_path / "kept", Sum))
    assert ran == ["5", "5"]


def test_a_kept_result_that_will_not_do_is_made_again(store: Store[Sum]) -> None:
    totals([ONE], store)
    wants_more = replace(ONE, least=2)
    assert missing([wants_more], store) == [wants_more] and not missing([ONE], store)
    totals([wants_more], store)
    assert ran == ["1", "1"]


def test_the_longest_are_begun_first() -> None:
    totals([Adds(1, takes_s=1.0), Adds(2, takes_s=3.0), Adds(3, takes_s=2.0)])
    assert ran == ["2", "3", "1"]


def test_what_is_done_is_kept_before_it_is_told(store: Store[Sum]) -> None:
    runs = run_tasks([ONE, Adds(2)], Interruption(), store=store, pool=this_process)
    next(runs)
    runs.close()  # as Ctrl-C does
    assert store.has("1") and not store.has("2")


def test_a_stop_signal_ends_the_loop_where_all_is_kept_too(store: Store[Sum]) -> None:
    totals([ONE], store)
    stopped = Interruption()
    stopped.number = 2
    with pytest.raises(KeyboardInterrupt):
        list(run_tasks([ONE], stopped, store=store, pool=this_process))


def test_nobody_else_works_in_a_locked_directory(tmp_path: Path) -> None:
    (tmp_path / "run.toml").touch()
    for path in (tmp_path, tmp_path / "run.toml"):
        with locked(path, "sum"):
            assert path.is_dir() or is_locked(path)
            with (
                pytest.raises(AgoraError, match="its sum is still in progress"),
                locked(path, "sum"),
            ):
                pass
        with locked(path, "sum"):
            pass
    assert not is_locked(tmp_path / "run.toml")


def test_a_task_that_fails_ends_the_loop_and_keeps_the_others(store: Store[Sum]) -> None:
    with pytest.raises(AgoraError, match=r"^'add -1', seed 1: below 0$"):
        totals([ONE, Adds(-1), Adds(2)], store)
    assert store.has("1") and ran == ["1", "-1"]


def test_a_result_that_is_not_there_is_named(store: Store[Sum], tmp_path: Path) -> None:
    with pytest.raises(AgoraError, match=r"kept/1: the result of a run is missing"):
        store.result("1")
    totals([ONE], store)
    (tmp_path / "kept" / "1.json").write_text("{")
    with pytest.raises(AgoraError, match=r"1\.json: not readable as JSON"):
        store.result("1")
