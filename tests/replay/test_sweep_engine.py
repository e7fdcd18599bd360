"""Many runs: what a point's figures depend on, where they are kept, and lost processes."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign import loop as engine
from experiments.campaign import points as workload_cache
from experiments.campaign import progress
from experiments.campaign import task as kept_points
from experiments.campaign.expected_time import expected_run_s
from experiments.campaign.loop import ATTEMPTS, Processes, local_map
from experiments.campaign.points import Point, paired_points, run_points
from experiments.campaign.progress import processors, time_text
from experiments.campaign.running import ArmRun, make_workload, seed_figures
from experiments.campaign.task import Store
from experiments.config.run_config import RunConfig, validated
from experiments.interruption import Interruption
from experiments.studies.run.execution import announced_runs, run_announcement
from experiments.toml_text import toml_text
from shared_state.errors import AgoraError
from tests.fixtures.google2011_workloads import trace
from tests.fixtures.mapped import its_process, kill_always, kill_once, square
from tests.fixtures.run_toml import arm_toml, workload_toml

TEXT = "seeds = 2\nsettle_s = 0.1\n" + workload_toml(40, 0.5, "start = 'cold'\nload_percent = [60]")


def config(*arms: str, text: str = TEXT) -> RunConfig:
    return validated(tomllib.loads(text + "".join(arms)), "test")


def never() -> None:
    pass


RUN = config(arm_toml("one"), arm_toml("two", sync="state_aligned"))


def changed(run: RunConfig, **values: Any) -> RunConfig:
    tree = run.model_dump(mode="json")
    for path, value in values.items():
        *above, last = path.split("__")
        inner = tree
        for name in above:
            inner = inner[name]
        inner[last] = value
    return validated(tomllib.loads(toml_text(tree)), "changed")


def test_a_key_does_not_depend_on_what_the_figures_do_not() -> None:
    alone = config(arm_toml("another name"))
    later = changed(
        alone, name="later", seeds=7, seed=5, runtime="ray", plan_limit_s=9.0, live__hosts=3
    )
    one = Point(RUN, RUN.arms[0], 3)
    other = Point(later, later.arms[0], 3)
    assert one.key() == other.key()
    figures = [seed_figures(point.config, point.arm, point.seed) for point in (one, other)]
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    "change",
    [
        {"heartbeat_us": 2000},
        {"sample_s": 0.2},
        {"drain_s": 1.0},
        {"settle_s": 0.2},
        {"virtual__message_us": 0},
        {"workload__machines": 41},
    ],
)
def test_a_key_depends_on_what_the_figures_do(change: dict[str, Any]) -> None:
    other = changed(RUN, **change)
    assert Point(RUN, RUN.arms[0], 1).key() != Point(other, other.arms[0], 1).key()


def test_a_key_depends_on_arm_and_seed() -> None:
    arms = [*RUN.arms, *config(arm_toml("one", group="others"), arm_toml("x", count=5)).arms]
    keys = {Point(RUN, arm, seed).key() for arm in arms for seed in (1, 2)}
    assert len(keys) == 2 * len(arms)


def test_every_point_has_the_figures_of_its_own_run() -> None:
    points = paired_points(RUN)
    assert [(point.seed, point.arm.name) for point in points] == [
        (1, "one"),
        (1, "two"),
        (2, "one"),
        (2, "two"),
    ]
    done = list(run_points(points, Interruption(), pool=Processes(2)))
    assert {str(point) for point, _ in done} == {str(point) for point in points}
    for point, figures in done:
        assert figures == seed_figures(point.config, point.arm, point.seed)


class Counting:
    """A parallel map in this process that counts its calls."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, function: Any, items: Any, check: Any, processes: Any) -> Iterator[Any]:
        for index, item in enumerate(items):
            self.ran.append(str(item))
            yield index, function(item)
            check()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(engine, "local_map", counting)
    return counting


def test_equal_points_run_once(counting: Counting) -> None:
    same = config(arm_toml("the same"))
    points = [Point(RUN, RUN.arms[0], 1), Point(same, same.arms[0], 1)]
    first, second = run_points(points, Interruption())
    assert counting.ran == ["'one', seed 1"]
    assert (first[0], second[0]) == (points[0], points[1]) and first[1] == second[1]


def test_kept_points_do_not_run_again(counting: Counting, tmp_path: Path) -> None:
    points, kept = paired_points(RUN), tmp_path / "kept"
    runs = run_points(points, Interruption(), keep=kept)
    first = {str(point): figures for point, figures in (next(runs), next(runs))}
    runs.close()  # as Ctrl-C does
    assert len(counting.ran) == 2
    again = {
        str(point): figures for point, figures in run_points(points, Interruption(), keep=kept)
    }
    assert len(counting.ran) == len(set(counting.ran)) == 4
    assert again.items() >= first.items() and len(again) == 4
    assert not list(kept.glob("*.partial"))


@pytest.mark.parametrize("how", ["truncated", "of another version", "empty"])
def test_a_kept_point_that_cannot_be_used_runs_again(
    counting: Counting, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = Point(RUN, RUN.arms[0], 1)
    [(_, figures)] = run_points([point], Interruption(), keep=tmp_path)
    path = tmp_path / f"{point.key()}.json"
    text = path.read_text()
    assert Store(tmp_path, SeedFigures).unusable({point.key(): ()}) == ""
    if how == "of another version":
        monkeypatch.setattr(kept_points, "version_text", lambda: "another")
    else:
        path.write_text(text[:100] if how == "truncated" else "")
    kept = Store(tmp_path, SeedFigures)
    assert not kept.has(point.key())
    told = kept.unusable({point.key(): ()})
    assert told.startswith(f"1 kept run cannot be used and is made again: {path}: ")
    assert list(run_points([point], Interruption(), keep=tmp_path)) == [(point, figures)]
    assert len(counting.ran) == 2
    list(run_points([point], Interruption(), keep=tmp_path))
    assert len(counting.ran) == 2


def test_a_key_depends_on_the_files_that_the_workload_reads(tmp_path: Path) -> None:
    """By their size and time of change; what is beside the options' folders does not count."""
    trace(tmp_path / "trace", [])
    text = TEXT[: TEXT.index("[workload]")]
    text += f'[workload]\nkind = "google2011"\ndirectory = "{tmp_path / "trace"}"\n'

    def key() -> str:
        run = config(arm_toml("one"), text=text)
        return Point(run, run.arms[0], 1).key()

    first = key()
    assert key() == first
    (tmp_path / "beside").touch()
    assert key() == first
    tasks = next((tmp_path / "trace" / "task_events").iterdir())
    os.utime(tasks, ns=(1, 1))
    touched = key()
    assert touched != first
    data = tasks.read_bytes()
    tasks.write_bytes(data + data)
    os.utime(tasks, ns=(1, 1))
    assert key() not in (first, touched)
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / f"{first}.json").touch()
    told = Store(folder, SeedFigures).unknown([touched])
    assert told.startswith("1 kept run cannot be used: the files that the workload reads have")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AgoraError, match=r"file: File exists"):
        list(run_points([Point(RUN, RUN.arms[0], 1)], Interruption(), keep=tmp_path / "file"))


def test_a_point_that_does_not_get_to_its_end_says_which_it_is(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> ArmRun:
        raise AgoraError("'one', seed 1: its plan is wrong")

    monkeypatch.setattr(workload_cache, "seed_run", fails)
    with pytest.raises(AgoraError, match=r"^'one', seed 1: its plan is wrong$"):
        list(run_points([Point(RUN, RUN.arms[0], 1)], Interruption()))


def test_a_signal_ends_the_runs(counting: Counting) -> None:
    interruption = Interruption()
    runs = run_points(paired_points(RUN), interruption)
    next(runs)
    interruption.number = 2
    with pytest.raises(KeyboardInterrupt):
        next(runs)
    assert len(counting.ran) == 1


def test_arms_of_a_seed_share_their_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def make(run: RunConfig, seed: int) -> Any:
        made.append(seed)
        return make_workload(run, seed)

    monkeypatch.setattr(workload_cache, "make_workload", make)
    last = workload_cache.WorkloadCache()
    first = last.make(RUN, 1)
    assert last.make(changed(RUN, seeds=5), 1) is first
    assert last.make(RUN, 2) is not first
    last.make(changed(RUN, settle_s=0.2), 2)
    assert made == [1, 2, 2]
    with pytest.raises(AgoraError, match="settle_s"):
        monkeypatch.setattr(workload_cache, "make_workload", _refused)
        last.make(RUN, 3)


def _refused(run: RunConfig, seed: int) -> Any:
    raise AgoraError("settle_s: too long")


def test_local_processes_map_in_any_order() -> None:
    numbers = list(range(20))
    results = dict(local_map(square, numbers, never, processes=2))
    assert results == {number: number * number for number in numbers}
    assert list(local_map(square, [], never)) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux only")
def test_no_more_local_processes_than_the_processors_left_to_this_one() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert processors() == 1
        assert len({pid for _, pid in local_map(its_process, range(6), never)}) == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert processors() == len(allowed)


def test_what_a_killed_process_did_is_done_again(tmp_path: Path) -> None:
    markers = [tmp_path / name for name in "abcd"]
    for marker in markers[:-1]:
        marker.touch()
    results = dict(local_map(kill_once, markers, never, processes=2))
    assert results == dict(enumerate("abcd"))


def test_an_item_that_always_kills_its_process_is_named(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(AgoraError, match=rf"{marker}: its process was killed {ATTEMPTS} times"):
        list(local_map(kill_always, [marker], never))
    assert marker.read_text().count("killed") == ATTEMPTS


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (430, "7 minutes"), (12_600, "3.5 hours")]
)
def test_times_left(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_the_time_left_follows_the_pace_after_the_first_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    monkeypatch.setattr(progress, "processors", lambda: 2)
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    shown = progress.Progress(10, at_once=3)
    said = [shown.step() for _ in range(3)]
    now_s += 60  # the processes start
    said += [shown.step() for _ in range(2)]
    assert said == [f"{done} of 10 runs" for done in range(1, 6)]
    now_s += 4
    assert shown.step() == "6 of 10 runs, about 16 s left"
    now_s += 4
    assert shown.step() == "7 of 10 runs, about 12 s left"


def test_what_a_run_says_before_it_starts() -> None:
    workload = make_workload(RUN, 1)
    alone, expected_s = run_announcement(changed(RUN, seeds=1), workload)
    assert re.fullmatch(r"2 arms in virtual time: about \d+ s\.", alone)
    live = changed(RUN, runtime="ray", live__arms=["two"])
    said, with_live_s = run_announcement(live, workload)
    assert said.startswith("2 arms in virtual time, 1 live, 2 paired seeds")
    assert with_live_s > expected_s + workload.end_us / 1e6  # live seconds count in full
    smaller = changed(RUN, runtime="ray", live__arms=["two"], live__machines=10)
    said, _ = run_announcement(smaller, workload)
    assert said.startswith("2 arms in virtual time, 1 live on 10 of 40 machines, 2 paired seeds")
    all_live, _ = run_announcement(changed(RUN, runtime="ray"), workload)
    assert all_live.startswith("2 arms in virtual time, 2 live, 2 paired seeds")


def test_each_run_in_virtual_time_is_expected_once() -> None:
    def expected(**changes: Any) -> tuple[int, list[tuple[str, int]]]:
        first, later = announced_runs(changed(RUN, seeds=3, **changes))
        assert {point.seed for point in first} <= {RUN.seed}
        return len(first), [(point.arm.name, point.seed) for point in later]

    others = [(name, seed) for seed in (2, 3) for name in ("one", "two")]
    assert expected() == (2, others)  # the first seed is that of the arms
    predictions = [("two", 1)]
    assert expected(runtime="ray", live__arms=["two"]) == (2, others + predictions)
    assert expected(runtime="ray") == (2, [*others, ("one", 1), ("two", 1)])


def test_the_expected_time_grows_with_the_work() -> None:
    small = make_workload(RUN, 1)
    large = make_workload(changed(RUN, workload__machines=400), 1)
    flow = config(arm_toml("flow", kind="flow")).arms[0]
    plain = expected_run_s(RUN.arms[0], small, None)
    assert plain < expected_run_s(flow, small, None) < expected_run_s(flow, large, None)
    assert plain < expected_run_s(RUN.arms[0], small, small)


def test_the_expected_time_grows_with_what_each_round_costs() -> None:
    workload = make_workload(RUN, 1)

    def expected(strategy: str, more: str = "") -> float:
        protocol = f'sync = "diff_block", gap_s = 0.2, strategy = "{strategy}"'
        arm = config(arm_toml("one").replace('sync = "diff_block", gap_s = 0.2', protocol) + more)
        return expected_run_s(arm.arms[0], workload, None)

    patient, priced = "options = {patience_s = 0.1}", 'options = {prices = "implied"}'
    assert expected("latency_first") < expected("quality_first") < expected("prompt")
    for more in (patient, priced):
        assert expected("quality_first") < expected("quality_first", more)
        assert expected("quality_first", more) < expected("prompt", more)
