"""Omega's workload of service and batch jobs: its distributions, constraints and initial fill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.config.decision_basis import _part_of_jobs
from experiments.workloads.conformance import check_workload
from experiments.workloads.inspection import digest
from experiments.workloads.service_batch import SPEC
from parsync.spec.arm import GroupConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG, NO_PREFERENCE, NOWHERE_ELSE, TaskClass
from tests.fixtures.service_batch_runs import OMEGA, group

SMALL: dict[str, Any] = {"machines": 100, "duration_s": 600.0}


def made(seed: int = 1, **options: Any) -> Workload:
    return SPEC.make(SPEC.parse_options(SMALL | options), seed)


def jobs_of(workload: Workload, of: TaskClass) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrival, the number of tasks and the run time of each arriving job of a class."""
    first = workload.arrival_rows[workload.arrival_offsets[:-1]]
    mine = workload.tasks.task_class[first] == of
    size = np.diff(workload.arrival_offsets)
    return workload.arrival_us[mine], size[mine], workload.duration_us[first[mine]]


def test_keeps_the_contract_of_workloads() -> None:
    check_workload(SPEC, SMALL)
    options = SMALL | {
        "batch": {"pickiness": 0.25, "constrained_permille": 500},
        "service": {"pickiness": 0.5, "tasks_per_job": 1.0},
        "initial_fill_percent": 60,
        "gangs": True,
        "batch_rate": 3.0,
    }
    check_workload(SPEC, options, seed=3)


def test_the_defaults_are_the_example_of_omegas_simulator() -> None:
    options = SPEC.parse_options({})
    assert options.outline().tasks == 864_000 + 43_200
    # 100 tasks x 100 s each 10 s, 10 tasks x 500 s each 20 s, of 40,000 cores
    assert options.arriving_share == pytest.approx(1250 / 40_000)


@pytest.mark.parametrize(
    ("of", "interarrival_s", "tasks", "run_s"),
    [(TaskClass.BATCH, 10, 100, 100), (TaskClass.SERVICE, 20, 10, 500)],
)
def test_means_are_those_of_the_options(
    of: TaskClass, interarrival_s: float, tasks: float, run_s: float
) -> None:
    """Within four standard errors. Exponential variables have a standard deviation of their mean,
    a geometric one of sqrt(m (m - 1))."""
    seconds = 200_000.0
    arrival_us, size, run_us = jobs_of(made(duration_s=seconds), of)
    expected = seconds / interarrival_s
    assert abs(len(arrival_us) - expected) < 4 * expected**0.5
    error = 4 / len(size) ** 0.5
    assert abs(size.mean() - tasks) < error * (tasks * (tasks - 1)) ** 0.5
    assert abs(run_us.mean() / 1e6 - run_s) < error * run_s
    gap_s = np.diff(arrival_us) / 1e6
    assert abs(gap_s.std() - interarrival_s) < 2 * error * interarrival_s
    # the chance of one task is 1 / mean, as of a geometric variable and no other
    alone = np.count_nonzero(size == 1) / len(size)
    assert abs(alone - 1 / tasks) < error * (1 / tasks) ** 0.5


def test_tasks_of_a_job_are_alike_and_come_together() -> None:
    workload = made()
    tasks, rows = workload.tasks, workload.arrival_rows
    for column in (tasks.submit_us, workload.duration_us, tasks.preference, tasks.task_class):
        jobs, first = np.unique(tasks.job[rows], return_index=True)
        assert np.array_equal(column[rows], column[first][np.searchsorted(jobs, tasks.job[rows])])
    assert len(np.unique(tasks.job[rows])) == len(workload.arrival_us)
    assert (workload.duration_us > 0).all(), "service jobs of Omega end"


def test_the_rate_of_batch_jobs_changes_nothing_else() -> None:
    once, thrice = made(), made(batch_rate=3.0)
    for mine, theirs in zip(
        jobs_of(once, TaskClass.SERVICE), jobs_of(thrice, TaskClass.SERVICE), strict=True
    ):
        assert np.array_equal(mine, theirs)
    few, many = jobs_of(once, TaskClass.BATCH), jobs_of(thrice, TaskClass.BATCH)
    assert np.array_equal(many[1][: len(few[1])], few[1])
    assert 2.5 * len(few[0]) < len(many[0]) < 3.5 * len(few[0])
    # the same gaps, a third as long; each is rounded down
    assert np.abs(many[0][: len(few[0])] * 3 - few[0]).max() < 3 * len(few[0])


@pytest.mark.parametrize(("pickiness", "usable"), [(0.57, 43), (0.1, 90), (0.999, 1)])
def test_pickiness_leaves_so_many_machines(pickiness: float, usable: int) -> None:
    """As in Omega's simulator, floor(p * machines) of them are left out."""
    workload = made(batch={"pickiness": pickiness})
    catalog = workload.catalog
    assert np.diff(catalog.machine_offsets).tolist() == [0, usable, 0]
    assert catalog.elsewhere_cost.tolist() == [0, NOWHERE_ELSE, 0]
    of_class = workload.tasks.task_class
    assert (workload.tasks.preference[of_class == TaskClass.BATCH] == 1).all()
    assert (workload.tasks.preference[of_class == TaskClass.SERVICE] == NO_PREFERENCE).all()


def test_machines_of_a_pickier_class_are_among_those_of_the_other() -> None:
    catalog = made(batch={"pickiness": 0.5}, service={"pickiness": 0.75}).catalog
    one, two = np.split(catalog.machine, [catalog.machine_offsets[2]])
    assert set(two) < set(one)
    assert len(one) == 50
    assert len(two) == 25


def test_a_share_of_the_jobs_is_constrained() -> None:
    workload = made(duration_s=20_000.0, batch={"pickiness": 0.5, "constrained_permille": 300})
    first = workload.arrival_rows[workload.arrival_offsets[:-1]]
    batch = workload.tasks.task_class[first] == TaskClass.BATCH
    share = (workload.tasks.preference[first][batch] == 1).mean()
    assert abs(share - 0.3) < 4 * (0.21 / np.count_nonzero(batch)) ** 0.5


def test_the_initial_fill_stays_to_the_end() -> None:
    workload = made(initial_fill_percent=60)
    initial = workload.initial
    used = workload.tasks.request[initial.task].sum(axis=0) / workload.cell.capacity.sum(axis=0)
    assert used.max() == pytest.approx(0.6)
    assert (workload.duration_us[initial.task] == -1).all()
    per_machine = np.zeros_like(workload.cell.capacity)
    np.add.at(per_machine, initial.machine, workload.tasks.request[initial.task])
    assert (per_machine <= workload.cell.capacity).all()
    assert workload.phases[0].load_percent == 60 + 312  # 1,250 arriving tasks at once, 400 cores


def test_jobs_are_gangs_if_asked() -> None:
    workload = made(gangs=True, initial_fill_percent=10)
    rows = workload.arrival_rows
    assert np.array_equal(workload.tasks.gang[rows], workload.tasks.job[rows])
    assert (workload.tasks.gang[workload.initial.task] == NO_GANG).all()
    assert (made().tasks.gang == NO_GANG).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"service": {"request": {"cpu_milli": 5000, "mem_mib": 1}}},
            "service.request: larger than every machine",
        ),
        (
            {"batch": {"request": {"cpu_milli": 1000}}},
            "batch.request: expected amounts of cpu_milli, mem_mib, got cpu_milli",
        ),
        ({"batch": {"pickiness": 1.0}}, "batch.pickiness"),
        ({"duration_s": 1e-6}, "duration_s: no job arrives"),
        ({"duration_s": 1e7, "batch_rate": 1e6}, "batch: more than 2^31 tasks"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AgoraError, match=message.replace("^", r"\^")):
        made(**options)


MAPREDUCE: dict[str, Any] = {"interarrival_s": 5.0, "workers": [2, 9]}


def test_mapreduce_jobs_change_no_other_job() -> None:
    plain, both = made(), made(mapreduce=MAPREDUCE)
    assert plain.mapreduce is None
    for of in (TaskClass.BATCH, TaskClass.SERVICE):
        for mine, theirs in zip(jobs_of(plain, of), jobs_of(both, of), strict=True):
            assert np.array_equal(mine, theirs)


def test_activities_of_a_mapreduce_job_run_as_its_scheduler_is_told() -> None:
    check_workload(SPEC, SMALL | {"mapreduce": MAPREDUCE, "gangs": True, "initial_fill_percent": 9})
    workload = made(mapreduce=MAPREDUCE, gangs=True)
    jobs, tasks = workload.mapreduce, workload.tasks
    assert jobs is not None and len(jobs) > 50
    assert set(jobs.workers.tolist()) == {2, 9}
    is_activity = tasks.task_class == TaskClass.MAPREDUCE
    assert np.array_equal(jobs.of(tasks.task) >= 0, is_activity)
    assert (tasks.gang[is_activity] == NO_GANG).all()
    for row in range(len(jobs)):
        first, maps = int(jobs.first_task[row]), int(jobs.maps[row])
        middle, end = first + maps, first + maps + int(jobs.reduces[row])
        assert (workload.duration_us[first:middle] == jobs.map_us[row]).all()
        assert (workload.duration_us[middle:end] == jobs.reduce_us[row]).all()
        assert len(np.unique(tasks.job[first:end])) == 1


def test_what_users_ask_for_is_part_of_the_digest() -> None:
    workload = made(mapreduce=MAPREDUCE)
    jobs = workload.mapreduce
    assert jobs is not None
    more = replace(workload, mapreduce=replace(jobs, workers=jobs.workers + 1))
    assert digest(more) != digest(workload) == digest(made(mapreduce=MAPREDUCE))


def test_means_of_mapreduce_jobs_are_those_of_the_options() -> None:
    """Within four standard errors, as above."""
    options = {"interarrival_s": 20.0, "workers": [2, 9], "map_s": 3.0, "reduce_s": 7.0}
    jobs = made(duration_s=60_000.0, mapreduce=options).mapreduce
    assert jobs is not None
    assert abs(len(jobs) - 3000) < 4 * 3000**0.5
    for workers in (2, 9):
        rows = jobs.workers == workers
        error = 4 / np.count_nonzero(rows) ** 0.5
        assert abs(np.mean(rows) - 0.5) < error
        for drawn, mean in ((jobs.maps, 10 * workers), (jobs.reduces, 2 * workers)):
            assert abs(drawn[rows].mean() - mean) < error * mean
    error = 4 / len(jobs) ** 0.5
    assert abs(jobs.map_us.mean() / 1e6 - 3) < error * 3
    assert abs(jobs.reduce_us.mean() / 1e6 - 7) < error * 7
    of_options = SPEC.parse_options(SMALL | {"mapreduce": options})
    # 66 activities of (10 * 3 + 2 * 7) / 12 s every 20 s, of 400 cores
    more = 66 * 44 / 12 / 20 / 400
    assert of_options.arriving_share == pytest.approx(
        SPEC.parse_options(SMALL).arriving_share + more
    )


def test_each_class_has_its_share_of_the_jobs() -> None:
    """Batch jobs arrive every 10 s, service and MapReduce jobs every 20 s."""
    options = {"interarrival_s": 20.0, "workers": [4]}
    outline = SPEC.outline(SPEC.parse_options(SMALL | {"mapreduce": options}))
    assert outline is not None
    assert outline.service_share == outline.mapreduce_share == pytest.approx(0.25)
    assert outline.batch_tasks == pytest.approx(100 / 2 + 10 / 4 + 48 / 4)
    assert SPEC.outline(SPEC.parse_options(SMALL)).mapreduce_share == 0  # type: ignore[union-attr]
    both = [group(name, OMEGA, task_class=name) for name in ("batch", "service", "mapreduce")]
    parts = [_part_of_jobs(GroupConfig.model_validate(one), outline) for one in both]
    assert parts == pytest.approx([0.5, 0.25, 0.25])


def test_requests_of_activities_that_fit_no_machine_are_refused() -> None:
    with pytest.raises(AgoraError, match=r"mapreduce\.request"):
        made(mapreduce=MAPREDUCE | {"request": {"gpu": 1}})
