"""MapReduce jobs in virtual time: how long they take with so many workers, the order of maps and
reduces, and what extra workers leave to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.config.run_config import load_config
from experiments.interruption import Interruption
from experiments.papers.chapter import FigureRun
from experiments.papers.runs import PlatformRuns
from experiments.results import load_run
from experiments.results.mapreduce import NOT_FINISHED, run_times_of, run_times_us, speedups
from parsync.runtime.assembly import Assembly
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import ChangeKind
from schedulers.mapreduce.jobs import predicted_us, whole_activities_us
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts
from shared_state.tasks import Int64
from tests.fixtures.commands import agora, in_one_process, without_figures
from tests.fixtures.service_batch_runs import OMEGA, Tables, group, made, modelled, recorded
from tests.fixtures.stopping import ROOT
from tests.fixtures.watched_runs import WatchedRun

PROTOCOL = {"kind": "optimistic", "sync": "every_attempt", "gap_s": 1.0, "freed_at_once": True}
HEARTBEAT_US = 1_000
# Rare jobs on a cell that has room for all of their activities at once.
ALONE: dict[str, Any] = {
    "machines": 1_000,
    "duration_s": 4_000.0,
    "batch": {"interarrival_s": 1e6},
    "service": {"interarrival_s": 1e6},
    "mapreduce": {
        "interarrival_s": 500.0,
        "workers": [3, 20],
        "map_s": 10.0,
        "reduce_s": 20.0,
    },
}
# A cell on which batch jobs leave room now and then, and schedulers get in each other's way.
SHARED: dict[str, Any] = {
    "machines": 40,
    "duration_s": 300.0,
    "initial_fill_percent": 20,
    "batch": {"interarrival_s": 2.0, "tasks_per_job": 10.0, "run_s": 8.0},
    "service": {"interarrival_s": 20.0, "tasks_per_job": 3.0, "run_s": 100.0},
    "mapreduce": {
        "interarrival_s": 25.0,
        "workers": [4, 10],
        "maps_per_worker": 5.0,
        "map_s": 4.0,
        "reduce_s": 4.0,
    },
}


def mapreduce(
    policy: str, decision: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    return group(
        "mapreduce",
        PROTOCOL,
        kind="mapreduce",
        task_class="mapreduce",
        options={"policy": policy, **options},
        decision=decision or modelled(1, 0.001),
    )


def others(decision: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        group(name, OMEGA, task_class=name, decision=decision or modelled(10_000, 1_000.0))
        for name in ("batch", "service")
    ]


def run_times(workload: Workload, tables: Tables) -> Int64:
    """Of each MapReduce job."""
    assert workload.mapreduce is not None
    tasks, ends = tables["tasks"], tables["ends"]
    ran = ends["change"] == ChangeKind.FINISHED
    return run_times_us(
        workload.mapreduce,
        tasks["task"],
        tasks["start_us"],
        ends["task"][ran],
        ends["end_us"][ran],
    )


def of_policy(workload: Workload, policy: str, **options: Any) -> Int64:
    """The run times of the jobs under a policy."""
    groups = [*others(), mapreduce(policy, **options)]
    return run_times(workload, recorded(workload, groups, heartbeat_us=HEARTBEAT_US))


@pytest.fixture(scope="module")
def alone() -> Workload:
    return made(ALONE)


def waves(workload: Workload, workers: Int64) -> tuple[Int64, Int64]:
    """How long the jobs take with so many workers, and the most that heartbeats and decisions add
    to it."""
    jobs = workload.mapreduce
    assert jobs is not None
    work = jobs.maps, jobs.reduces, jobs.map_us, jobs.reduce_us, workers
    exact = whole_activities_us(*work)
    assert (predicted_us(*work) <= exact).all()
    rounds = -(-jobs.maps // workers) - (-jobs.reduces // workers)
    return exact, rounds * (HEARTBEAT_US + 2)


@pytest.mark.parametrize(
    ("policy", "options", "times"),
    [
        ("requested", {}, 1),
        ("relative_job_size", {}, 4),
        ("relative_job_size", {"times_requested": 2}, 2),
        ("max_parallelism", {}, 10**6),
        ("global_cap", {"target_utilization": 1.0}, 10**6),
        ("global_cap", {"target_utilization": 0.0}, 1),
    ],
)
def test_on_an_idle_cell_jobs_take_as_long_as_their_workers_need(
    alone: Workload, policy: str, options: dict[str, Any], times: int
) -> None:
    jobs = alone.mapreduce
    assert jobs is not None and len(jobs) > 5
    workers = np.minimum(jobs.workers * times, jobs.maps + jobs.reduces)
    exact_us, slack_us = waves(alone, workers)
    found_us = of_policy(alone, policy, **options)
    assert (found_us >= exact_us).all()
    assert (found_us <= exact_us + slack_us).all()


def test_extra_workers_finish_jobs_sooner_on_a_shared_cell() -> None:
    workload = made(SHARED)
    assert workload.mapreduce is not None
    runs = {
        policy: of_policy(workload, policy)
        for policy in ("requested", "relative_job_size", "max_parallelism")
    }
    assert all((times > 0).all() for times in runs.values())
    before = runs["requested"]
    assert np.median(before / runs["relative_job_size"]) > 1.2
    assert np.median(before / runs["max_parallelism"]) > 1.2


def check_all_ran(workload: Workload, groups: list[dict[str, Any]]) -> AuditCounts:
    """Of a run whose cell is audited, the order of maps and reduces with it."""
    arm = ArmConfig.model_validate({"name": "arm", "partitions": 4, "groups": groups})
    counts = WatchedRun(arm, workload, HEARTBEAT_US).run_all(3_000_000_000, 500).counts
    assert counts.waiting == 0 and counts.finished == len(workload.arrival_rows)
    return counts


@pytest.mark.parametrize(
    "protocol",
    [
        PROTOCOL,
        PROTOCOL | {"freed_at_once": False},
        {
            "kind": "optimistic",
            "sync": "diff_block",
            "gap_s": 0.2,
            "conflict_check": "sequence_number",
        },
        {"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.5, "strategy": "latency_first"},
    ],
    ids=["omega", "freed later", "sequence numbers", "latency first"],
)
def test_maps_come_before_reduces_and_no_activity_is_lost(protocol: dict[str, Any]) -> None:
    """With conflicts, two schedulers that share the jobs, and decisions that take their time."""
    workload = made(SHARED)
    slow = modelled(200_000, 1_000.0)
    shared = mapreduce("max_parallelism", slow) | {"protocol": protocol, "count": 2}
    assert check_all_ran(workload, [*others(slow), shared]).rejected > 0


def test_schedulers_that_know_no_mapreduce_jobs_are_refused() -> None:
    workload = made(SHARED)
    plain = group("all")
    with pytest.raises(AgoraError, match=r"group 'all': .* 'randomized_first_fit' cannot take"):
        assembly_of(workload, [plain]).check_mapreduce()
    assembly_of(workload, [*others(), mapreduce("requested")]).check_mapreduce()
    everything = mapreduce("requested") | {"task_class": None}
    assembly_of(workload, [everything]).check_mapreduce()


def assembly_of(workload: Workload, groups: list[dict[str, Any]]) -> Assembly:
    arm = ArmConfig.model_validate({"name": "arm", "partitions": 1, "groups": groups})
    return Assembly.of(arm.seeded(1, HEARTBEAT_US, 1_000_000, live=False), workload)


def test_one_scheduler_can_place_all_jobs() -> None:
    workload = made(SHARED)
    everything = mapreduce("relative_job_size") | {"task_class": None}
    check_all_ran(workload, [everything])


def test_jobs_that_did_not_finish_have_no_run_time() -> None:
    workload = made(SHARED)
    jobs = workload.mapreduce
    assert jobs is not None
    task = jobs.first_task[:1] + np.arange(int(jobs.maps[0] + jobs.reduces[0]))
    at_us = np.arange(len(task), dtype=np.int64)
    times = run_times_us(jobs, task, at_us + 5, task, at_us + 100)
    assert times[0] == 100 + len(task) - 1 - 5
    assert (times[1:] == NOT_FINISHED).all()
    assert (run_times_us(jobs, task, at_us, task[1:], at_us[1:]) == NOT_FINISHED).all()


# --- the example ----------------------------------------------------------------------------------

EXAMPLE = ROOT / "examples" / "omega" / "mapreduce.toml"
MAPREDUCE = load_config(EXAMPLE)


@pytest.fixture(scope="module")
def mapreduce_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example on a small cell, for a short time."""
    folder = tmp_path_factory.mktemp("mapreduce")
    text = (EXAMPLE).read_text()
    for given, small in (
        ("machines = 500", "machines = 60"),
        ("duration_s = 7_200.0", "duration_s = 300.0"),
        ("workers = [5, 11, 100]", "workers = [3, 10]"),
        ("map_s = 20.0", "map_s = 4.0"),
        ("reduce_s = 40.0", "reduce_s = 4.0"),
    ):
        assert given in text
        text = text.replace(given, small)
    (folder / "run.toml").write_text(text)
    with without_figures(), in_one_process():
        run = agora("run", "--config", folder / "run.toml", "--out", folder / "out")
    assert run.returncode == 0, run.stderr
    return folder / "out"


def test_the_mapreduce_example_compares_the_policies_of_the_paper() -> None:
    policies = [arm.groups[-1].options["policy"] for arm in MAPREDUCE.arms]
    assert policies == ["requested", "max_parallelism", "global_cap", "relative_job_size"]


def test_speed_ups_are_read_from_a_run(mapreduce_run: Path) -> None:
    requested, most, _, relative = load_run(mapreduce_run).arms
    run_us = run_times_of(requested)
    assert requested.workload.mapreduce is not None
    assert len(run_us) == len(requested.workload.mapreduce) > 5
    assert (speedups(requested, requested) == 1).all()
    assert np.median(speedups(most, requested)) > 1.2
    assert np.median(speedups(relative, requested)) > 1.2


def test_a_run_for_a_figure_keeps_what_the_tables_of_a_run_tell(
    mapreduce_run: Path, tmp_path: Path
) -> None:
    config = load_config(mapreduce_run.parent / "run.toml")
    arm, seeds = config.arms[1], (config.seed,)
    run = FigureRun("most", config, arm, draws_series=False, keeps_mapreduce=True)
    runs = PlatformRuns(tmp_path)
    runs.run(runs.missing((run,), seeds), Interruption(), lambda: None)
    kept = runs.mapreduce_results((run,), seeds).first("most")
    loaded = load_run(mapreduce_run).arms[1]
    assert kept["run_us"].tolist() == run_times_of(loaded).tolist()
    cell = loaded.table("cell", ["at_us", "used_permille"])
    arriving = cell["at_us"].to_numpy() <= 300_000_000
    for name, column in (("used_at_us", "at_us"), ("used_permille", "used_permille")):
        assert kept[name].tolist() == cell[column].to_numpy()[arriving].tolist()
    assert 10 < len(kept["used_at_us"]) < len(cell), "the drain is left out"


@pytest.mark.usefixtures("no_figures", "one_process")
def test_a_run_without_mapreduce_jobs_has_no_speed_ups(tmp_path: Path) -> None:
    """It is offered many times what its cell holds, too, and still has a report."""
    text = """
name = "none"
seeds = 1
[workload]
kind = "service_batch"
machines = 10
duration_s = 20.0
batch = { interarrival_s = 1.0, tasks_per_job = 2.0, run_s = 1.0 }
[[arms]]
name = "all"
partitions = 1
[[arms.groups]]
name = "all"
kind = "random"
count = 1
protocol = { kind = "optimistic", sync = "every_attempt", gap_s = 1.0 }
"""
    (tmp_path / "run.toml").write_text(text)
    out = tmp_path / "out"
    assert agora("run", "--config", tmp_path / "run.toml", "--out", out).returncode == 0
    (arm,) = load_run(out).arms
    with pytest.raises(AgoraError, match="has no MapReduce jobs"):
        run_times_of(arm)
