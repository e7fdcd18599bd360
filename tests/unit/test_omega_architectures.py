"""What Omega's architectures need: static partitions, jobs placed all or nothing, and a scheduler
with a fast and a slow path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from experiments.config.run_config import load_config
from experiments.studies.sweeps.sweep_file import read_sweep
from parsync.spec.arm import ArmConfig
from parsync.strict_model import first_error
from shared_state.tasks import TaskClass
from tests.fixtures.service_batch_runs import OMEGA, Tables, group, made, modelled, recorded

# A full cell with slow decisions, in which schedulers meet.
CONTENDED: dict[str, Any] = {
    "machines": 100,
    "duration_s": 400.0,
    "initial_fill_percent": 40,
    "batch": {"interarrival_s": 3.0, "tasks_per_job": 15.0, "run_s": 20.0},
    "service": {"interarrival_s": 10.0, "tasks_per_job": 5.0, "run_s": 20.0},
}
SLOW = modelled(500_000, 20_000.0)


# --- static partitions ---


def halves(protocol: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """A group for each class of jobs, in a part of ten partitions each."""
    return [
        group(
            name,
            {**protocol, "only_partitions": numbers},
            task_class=name,
            count=2,
            decision=SLOW,
            **options,
        )
        for name, numbers in (("batch", [9, 0, 1, 2, 3]), ("service", [4, 5, 6, 7, 8]))
    ]


@pytest.mark.parametrize("sync", ["every_attempt", "state_aligned", "diff_block", "diff_single"])
def test_groups_stay_in_their_partitions(sync: str) -> None:
    protocol = {**OMEGA, "sync": sync}
    groups = [one | {"kind": "load_spreading"} for one in halves(protocol)]
    workload = made(CONTENDED)
    tables = recorded(workload, groups, partitions=10, message_us=500)
    tasks, syncs = tables["tasks"], tables["syncs"]
    partition = tasks["machine"] // 10
    mine = np.isin(partition, [9, 0, 1, 2, 3]), np.isin(partition, [4, 5, 6, 7, 8])
    is_batch = tasks["agent"] < 2
    assert mine[0][is_batch].all()
    assert mine[1][~is_batch].all()
    assert len(np.unique(partition)) == 10
    assert set(np.unique(syncs["partition"][syncs["agent"] < 2])) == {9, 0, 1, 2, 3}
    # conflicts are with schedulers of the same part alone
    rival = tables["rejections"]["rival"]
    known = rival >= 0
    assert known.any()
    assert ((rival[known] < 2) == (tables["rejections"]["agent"][known] < 2)).all()


def test_staleness_is_that_of_the_partitions_seen() -> None:
    """Those never synchronised do not count."""
    sampled = recorded(
        made(CONTENDED), halves({**OMEGA, "sync": "state_aligned"}), 10, message_us=500
    )["agents"]
    # samples fall on the syncs of every second, which arrive half a millisecond later
    assert sampled["staleness_us"].max() <= 1_001_000


def test_flow_schedulers_stay_in_their_partitions_too() -> None:
    protocol = {"kind": "optimistic", "sync": "state_aligned", "gap_s": 1.0}
    only = group("flow", {**protocol, "only_partitions": [1]}, kind="flow")
    machine = recorded(made(CONTENDED), [only], partitions=4)["tasks"]["machine"]
    assert set(np.unique(machine // 25)) == {1}


# --- jobs all or nothing ---


def conflicts_of(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """The accepted and all claims of transactions with a conflict."""
    commits = tables["commits"]
    failed = commits["stale"] + commits["full"] > 0
    assert np.count_nonzero(failed) > 20, "the schedulers meet"
    return commits["accepted"][failed], commits["claims"][failed]


def contended(**options: Any) -> Tables:
    # Too full to place every job; what waits is not of interest.
    protocol = {**OMEGA, "requeue_s": 1.0, **options}
    schedulers = group("omega", protocol, count=6, kind="first_fit", decision=SLOW)
    return recorded(made(CONTENDED), [schedulers], drain_us=0)


@pytest.mark.parametrize("check", ["resource_fit", "sequence_number"])
def test_jobs_are_placed_all_or_nothing(check: str) -> None:
    accepted, _ = conflicts_of(
        contended(commit_mode="all_or_nothing", atomic_unit="job", conflict_check=check)
    )
    assert (accepted == 0).all()
    accepted, claims = conflicts_of(contended(conflict_check=check))
    assert ((accepted > 0) & (accepted < claims)).any(), "incremental commits place the others"


def test_without_marked_gangs_the_unit_gang_is_a_task() -> None:
    accepted, _ = conflicts_of(contended(commit_mode="all_or_nothing"))
    assert (accepted > 0).any()


def test_rounds_about_several_jobs_accept_job_by_job() -> None:
    """The kind that plans the whole queue: one job's conflict is not another's."""
    protocol = {**OMEGA, "sync": "state_aligned", "gap_s": 2.0, "losers": "block"}
    protocol |= {"commit_mode": "all_or_nothing", "atomic_unit": "job"}
    schedulers = group("all", protocol, kind="preferred_first", count=6, decision=SLOW)
    workload = made(CONTENDED)
    tables = recorded(workload, [schedulers], drain_us=0)
    tasks, rejections = tables["tasks"], tables["rejections"]
    key = 1 << 32
    # a task's start is the cell's time of its transaction, as is that of a rejection
    placed = workload.tasks.job[tasks["task"]] * key + tasks["start_us"]
    rejected = workload.tasks.job[rejections["task"]] * key + rejections["rejected_us"]
    assert len(rejected) > 20
    assert not np.isin(rejected, placed).any()
    assert np.isin(rejections["rejected_us"], tasks["start_us"]).any(), "other jobs were placed"


# --- several paths ---


def test_the_slow_path_is_for_service_jobs() -> None:
    decision = modelled(100_000, 5_000.0, service={"job_us": 2_000_000, "task_us": 7_000.0})
    workload = made(CONTENDED)
    attempts = recorded(workload, [group("one", decision=decision)], drain_us=0)["job_attempts"]
    first = np.unique(workload.tasks.job, return_index=True)[1]
    is_service = workload.tasks.task_class[first][attempts["job"]] == TaskClass.SERVICE
    expected = np.where(
        is_service, 2_000_000 + 7_000 * attempts["tasks"], 100_000 + 5_000 * attempts["tasks"]
    )
    assert np.array_equal(attempts["decision_us"], expected)
    assert is_service.any()
    assert not is_service.all()


def test_every_attempt_takes_t_job_and_t_task_for_each_task_left() -> None:
    """Of Omega: n is how many tasks of the job are not placed yet."""
    tables = contended()
    attempts = tables["job_attempts"]
    expected = 500_000 + 20_000 * attempts["tasks"]
    assert np.array_equal(attempts["decision_us"], expected)
    order = np.lexsort((attempts["start_us"], attempts["job"]))
    job, tasks, placed = (attempts[name][order] for name in ("job", "tasks", "placed"))
    again = job[1:] == job[:-1]
    assert again.any()
    assert np.array_equal(tasks[1:][again], (tasks - placed)[:-1][again])


# --- bad input ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"protocol": {**OMEGA, "only_partitions": [0, 4]}},
            "group 'one': only_partitions: expected numbers from 0 to 3, got 4",
        ),
        (
            {"protocol": {**OMEGA, "only_partitions": [0, 0]}},
            "group 'one': only_partitions: a partition is named twice",
        ),
        ({"protocol": {**OMEGA, "only_partitions": []}}, "only_partitions"),
        (
            {"protocol": {**OMEGA, "atomic_unit": "job"}},
            "atomic_unit: has no effect unless commit_mode is 'all_or_nothing', got none",
        ),
        (
            {"decision": modelled(1, 1.0, charges_kept=True, service={"task_us": 1.0})},
            "charges_kept: not with other times for service tasks",
        ),
    ],
)
def test_bad_options_are_named(changes: dict[str, Any], message: str) -> None:
    tree = {"name": "arm", "partitions": 4, "groups": [group("one") | changes]}
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate(tree)
    assert message in first_error(refused.value)


# --- the examples ---

EXAMPLES = Path("examples/omega")
COMBINATIONS = {"architectures": 6, "batch_schedulers": 24, "conflicts": 12, "pickiness": 8}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_sweeps_are_valid(name: str) -> None:
    path = EXAMPLES / f"{name}.toml"
    assert f"agora sweep {path}" in path.read_text("utf-8")
    assert len(read_sweep(path, {}).combinations) == COMBINATIONS[name]


def test_the_example_has_every_architecture() -> None:
    config = load_config(EXAMPLES / "run.toml")
    sweep = read_sweep(EXAMPLES / "architectures.toml", {}).combinations[0].config
    assert {arm.name for arm in config.arms} == {arm.name for arm in sweep.arms}
    named = [*COMBINATIONS, "mapreduce", "run"]
    assert sorted(path.stem for path in EXAMPLES.glob("*.toml")) == sorted(named)
