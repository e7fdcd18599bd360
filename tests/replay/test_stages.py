"""The stages of a run with live runs besides: all arms in virtual time first, which is the first
paired seed, then the separate live runs; a report can be opened meanwhile, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments import figures
from experiments.analysis.frontier_model import FRONTIER, read_frontier
from experiments.analysis.model_files import read_model
from experiments.analysis.run_directory import read_summary
from experiments.analysis.summary_model import KeptSeed, RunSummary
from experiments.campaign import preconditions, running_live
from experiments.campaign.arm_runners import arm_runner
from experiments.campaign.points import Point
from experiments.campaign.preconditions import make_run_directory
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRun, make_workload, run_arm_virtual
from experiments.config.frontier_config import Architecture, FrontierConfig
from experiments.config.run_config import LiveConfig, RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.figures import style
from experiments.interruption import Interruption
from experiments.report import page
from experiments.report.page import write_report
from experiments.studies.run import stages
from experiments.studies.run.execution import run
from experiments.studies.run.killed_runs import finish_killed
from parsync.spec.decision_times import ModelledTime
from shared_state.errors import AgoraError
from tests.fixtures.overloaded_cell import OPTIONS, arm, group

WORKLOAD = OPTIONS.model_copy(update={"load_percent": (60,), "phase_s": 1.0})


def named(name: str, *groups: Any) -> Any:
    return arm("state_aligned", *groups).model_copy(update={"name": name})


CONFIG = RunConfig.model_validate(
    {
        "runtime": "ray",
        "live": {"arms": ["greedy"]},
        "seeds": 2,
        "sensitivity_seeds": 2,
        "settle_s": 0.1,
        "drain_s": 2.0,
        "workload": WorkloadConfig.of("synthetic", WORKLOAD),
        "arms": (named("greedy", group()), named("flow", group("flow", 1))),
    }
)


def as_if_live(*arguments: Any) -> ArmRun:
    return replace(run_arm_virtual(*arguments), live=True, digest="live")


def started(
    tmp_path: Path,
    live: Callable[..., ArmRun] = as_if_live,
    interruption: Interruption | None = None,
    config: RunConfig = CONFIG,
) -> tuple[int, Path, str]:
    """Exit status, run directory and what was said."""
    workload = make_workload(config, config.seed)
    directory = make_run_directory(tmp_path / "run", config, workload)
    with (tmp_path / "terminal").open("w") as terminal:
        console = Console(record=True, file=terminal, width=200)
        signals = interruption or Interruption()
        status = run(config, workload, directory, ProgressReport(console), live, signals)
    return status, directory, console.export_text()


@pytest.mark.usefixtures("no_figures")
def test_the_first_run_is_the_first_seed_and_a_report_is_there_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "REPORT_EVERY_S", 0.0)
    run_points, asked = stages.run_points, []

    def counted(points: Sequence[Point], interruption: Interruption) -> Any:
        asked.extend(points)
        return run_points(points, interruption)

    monkeypatch.setattr(stages, "run_points", counted)
    reports: list[str] = []

    def live(*arguments: Any) -> ArmRun:
        reports.append((tmp_path / "run" / "report.html").read_text("utf-8"))
        return as_if_live(*arguments)

    status, directory, said = started(tmp_path, live)
    assert status == 0 and said.count("report so far: ") == 1
    (report,) = reports
    told = " ".join(report.split())
    assert "This run goes on. Still to come: 1 live run: greedy; 1 paired seed for" in told
    assert "Figures are of seed 1 in virtual time" in told
    assert "goes on" not in (directory / "report.html").read_text("utf-8")

    summary = read_summary(directory)
    greedy, flow = summary.arms
    assert summary.runtime == greedy.runtime == flow.runtime == "virtual"
    (live_run,) = summary.live_runs
    assert (live_run.name, live_run.slug) == ("greedy", "greedy-live")
    assert (live_run.runtime, live_run.digest, live_run.seeds) == ("ray", "live", [])
    folders = sorted(path.name for path in (directory / "arms").iterdir())
    assert folders == ["flow", "greedy", "greedy-live"]
    assert all((directory / "arms" / name / "tasks.parquet").is_file() for name in folders)
    assert summary.paired.seeds == [1, 2]
    # under seed 1 nothing ran twice, but the arms with other decision times
    (scan,) = summary.sensitivity
    assert scan.key == "scan_cost" and [arm.slug for arm in scan.arms] == ["greedy"]
    # the longest of each stage first
    assert [(point.arm.name, point.seed) for point in asked] == [
        ("flow", 2),
        ("greedy", 2),
        ("greedy", 1),
        ("greedy", 2),
    ]
    kept = json.loads((directory / "seeds" / "1.json").read_text())
    assert kept["arms"]["flow"]["digest"] == flow.digest
    again = run_arm_virtual(
        CONFIG, CONFIG.arms[0], make_workload(CONFIG, 1), 1, None, lambda _: None, Interruption()
    )
    assert kept["arms"]["greedy"]["digest"] == again.digest == greedy.digest
    assert greedy.seeds[0].digest == again.digest
    for one in summary.arms:
        of_seed = read_model(directory / "seeds" / "1.json", KeptSeed).arms[one.slug]
        assert (one.overall, one.phases) == (of_seed.overall, of_seed.phases)

    # of a run that was killed before its summary, the same runs are found
    (directory / "summary.json").unlink()
    finish_killed(directory)
    found = read_summary(directory)
    assert (found.arms, found.live_runs) == (summary.arms, summary.live_runs)
    assert found.partial_reason == "the runs with other decision times are missing"


@pytest.mark.usefixtures("one_process")
def test_figures_of_the_arms_are_drawn_once_beside_the_seeds_and_are_those_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("trade_off", "delay_over_time", "delay_distribution", "backlog_over_time")
    few = tuple(spec for spec in figures.FIGURES if spec.name in chosen)
    monkeypatch.setattr(figures, "FIGURES", few)
    save, threads = style.save, []

    def counted(*arguments: Any) -> Any:
        threads.append((arguments[-1], threading.current_thread() is threading.main_thread()))
        return save(*arguments)

    monkeypatch.setattr(style, "save", counted)
    status, directory, _ = started(tmp_path)
    assert status == 0
    of_seeds = [name for name, in_main in threads if in_main]
    assert of_seeds == ["trade_off", "live_trade_off"]
    names = [f"{live}{name}" for live in ("", "live_") for name in chosen]
    assert sorted(name for name, _ in threads) == sorted(names)

    files = [*(directory / "figures").iterdir(), directory / "report.html"]
    before = {path: path.read_bytes() for path in files}
    write_report(directory)
    assert len(threads) == 2 * len(names)
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.usefixtures("no_figures", "one_process")
def test_figures_that_could_not_be_drawn_beside_the_seeds_are_drawn_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise AgoraError("no room")

    monkeypatch.setattr(page, "draw_arms", failing)
    status, directory, _ = started(tmp_path)
    assert status == 0 and (directory / "report.html").is_file()


@pytest.mark.usefixtures("no_figures", "one_process")
def test_with_paired_seeds_arms_are_compared_in_virtual_time_even_if_all_run_live(
    tmp_path: Path,
) -> None:
    every = CONFIG.model_copy(update={"live": LiveConfig()})
    status, directory, _ = started(tmp_path, config=every)
    summary = read_summary(directory)
    assert status == 0 and summary.runtime == "virtual"
    assert [arm.runtime for arm in summary.arms] == ["virtual"] * 2
    assert [arm.name for arm in summary.live_runs] == ["greedy", "flow"]
    alone = every.model_copy(update={"seeds": 1})
    (tmp_path / "alone").mkdir()
    status, directory, _ = started(tmp_path / "alone", config=alone)
    summary = read_summary(directory)
    assert status == 0 and summary.runtime == "ray" and not summary.live_runs
    assert [arm.slug for arm in summary.arms] == ["greedy", "flow"]
    assert summary.paired.seeds == []


@pytest.mark.usefixtures("no_figures", "one_process")
def test_live_runs_do_not_change_the_digest_of_a_run(tmp_path: Path) -> None:
    _, mixed, _ = started(tmp_path)
    (tmp_path / "plain").mkdir()
    virtual = CONFIG.model_copy(update={"runtime": "virtual"})
    _, plain, _ = started(tmp_path / "plain", run_arm_virtual, config=virtual)
    assert read_summary(mixed).digest == read_summary(plain).digest


@pytest.mark.usefixtures("no_figures", "one_process")
def test_arms_that_did_not_get_to_run_live_keep_their_run_in_virtual_time(tmp_path: Path) -> None:
    def stopped(*arguments: Any) -> ArmRun:
        raise KeyboardInterrupt

    status, directory, _ = started(tmp_path, stopped)
    assert status == 130
    summary = read_summary(directory)
    assert [(arm.name, arm.runtime) for arm in summary.arms] == [
        ("greedy", "virtual"),
        ("flow", "virtual"),
    ]
    assert "1 of 1 live arms ran in virtual time only" in summary.partial_reason


@pytest.mark.usefixtures("no_figures", "one_process")
@pytest.mark.parametrize("seeds", [2, 1])
def test_a_live_run_on_a_smaller_cell_says_so_and_has_a_twin(tmp_path: Path, seeds: int) -> None:
    cells: list[tuple[int, float]] = []

    def live(config: RunConfig, arm: Any, workload: Any, *others: Any) -> ArmRun:
        assert isinstance(arm.groups[0].decision, ModelledTime)
        cells.append((workload.cell.machines, arm.groups[0].decision.task_us))
        return as_if_live(config, arm, workload, *others)

    steady = WORKLOAD.model_copy(update={"start": "steady"})  # with a workload of its own, as live
    config = CONFIG.model_copy(
        update={
            "live": LiveConfig(arms=("greedy",), machines=30),
            "workload": WorkloadConfig.of("synthetic", steady),
            "seeds": seeds,
        }
    )
    status, directory, said = started(tmp_path, live, config=config)
    assert status == 0 and cells == [(30, 600.0)]  # half the machines, twice the decision time
    assert "1/1 greedy, live on 30 machines" in said
    summary = read_summary(directory)
    (live_run,) = summary.live_runs
    assert (live_run.slug, live_run.machines) == ("greedy-30-machines-live", 30)
    assert [arm.machines for arm in summary.arms] == [None, None]
    assert summary.arms[0].totals.submitted > 1.5 * live_run.totals.submitted
    # the twin in virtual time has the same cell; this one cannot be calibrated
    assert live_run.prediction is not None and live_run.prediction.calibrated_on == []
    assert live_run.prediction.overall.delay_mean_us == live_run.overall.delay_mean_us
    report = " ".join((directory / "report.html").read_text("utf-8").split())
    assert "Live runs had a cell of 30 machines instead of 60." in report
    assert "<small>30 machines</small>" in report
    assert "no ticks. Its cell was that of the live run." in report

    kept = read_model(directory / "summary.json", RunSummary).live_runs
    (directory / "summary.json").unlink()
    finish_killed(directory)
    without_twin = kept[0].model_copy(update={"prediction": None})
    assert read_summary(directory).live_runs == [without_twin]


@pytest.mark.usefixtures("no_figures", "one_process")
def test_ray_starts_after_the_arms_in_virtual_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def folders(*_: object) -> None:
        done.append(sorted(path.name for path in (tmp_path / "run" / "arms").iterdir()))

    def live(*arguments: Any, held: object) -> ArmRun:
        return as_if_live(*arguments)

    monkeypatch.setattr(running_live, "prepare", folders)
    monkeypatch.setattr(running_live, "run_arm_live", live)
    monkeypatch.setattr(running_live, "leave", lambda: done.append("left"))
    report = ProgressReport(Console(quiet=True))
    with arm_runner(CONFIG, False, report, late=True) as runner:
        assert done == []
        status, _, _ = started(tmp_path, runner)
    assert status == 0 and done == [["flow", "greedy"], "left"]
    with arm_runner(CONFIG, False, report):
        assert len(done) == 3  # at once


def test_where_memory_is_short_fewer_arms_run_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = make_workload(CONFIG, CONFIG.seed)
    alone = CONFIG.model_copy(update={"runtime": "virtual"})
    needed = preconditions.needed_bytes(alone, workload.cell.machines, len(workload.tasks))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for available, expected in ((None, 8), (100 * needed, 8), (3 * needed, 3), (1, 1)):
        monkeypatch.setattr(preconditions, "available_bytes", lambda given=available: given)
        assert preconditions.runs_at_a_time(CONFIG, workload) == expected


class StopsAfterTheFirstArm(Interruption):
    """Ctrl-C as soon as the first arm has been kept."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def check(self) -> None:
        if list(self._directory.glob("arms/*/figures.json")):
            self.number = signal.SIGINT
        super().check()


@pytest.mark.usefixtures("no_figures")
def test_of_arms_in_virtual_time_those_that_ended_are_kept(tmp_path: Path) -> None:
    interruption = StopsAfterTheFirstArm(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.studies.run.stages.runs_at_a_time", lambda config, workload: 1)
        status, directory, _ = started(tmp_path, interruption=interruption)
    assert status == 130
    summary = read_summary(directory)
    (kept,) = summary.arms
    assert summary.partial_reason.startswith("interrupted in virtual time; 1 of 2 arms did not run")
    assert [folder.name for folder in (directory / "arms").iterdir()] == [kept.slug]
    assert not kept.partial and kept.totals.committed == summary.workload.arrivals


WITH_FRONTIER = CONFIG.model_copy(
    update={
        "frontier": FrontierConfig(
            seeds=2,
            architectures=(
                Architecture(arm="greedy", knob="options.patience_s", values=(0.0, 0.05)),
            ),
        )
    }
)


@pytest.mark.usefixtures("no_figures", "one_process")
@pytest.mark.parametrize(
    ("runs", "reason", "frontier"),
    [
        (1, "interrupted during the paired seeds", None),  # of two
        (2, "interrupted during the frontier", None),  # no seed is whole
        (3, "interrupted during the frontier", "interrupted after 2 of 4 runs"),
        (5, "interrupted during the runs with other decision times", ""),  # of two
        (7, "", ""),
    ],
)
def test_what_a_stop_signal_leaves_of_the_later_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, reason: str, frontier: str | None
) -> None:
    """Under seed 1 both arms have run, and so has one point of the frontier."""
    run_points = stages.run_points

    def stopped(points: Sequence[Point], interruption: Interruption) -> Iterator[Any]:
        assert len(points) == 7  # one of them is an arm under seed 2
        place = {id(point): number for number, point in enumerate(points)}
        in_order = sorted(run_points(points, interruption), key=lambda one: place[id(one[0])])
        for number, one in enumerate(in_order):
            if number == runs:
                raise KeyboardInterrupt
            yield one

    monkeypatch.setattr(stages, "run_points", stopped)
    _, directory, _ = started(tmp_path, config=WITH_FRONTIER)
    assert read_summary(directory).partial_reason.startswith(reason)
    path = directory / FRONTIER
    assert path.exists() == (frontier is not None)
    if frontier is not None:
        assert read_frontier(path).partial == frontier
