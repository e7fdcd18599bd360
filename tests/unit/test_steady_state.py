"""The warm-up of generated workloads begins in a cell in equilibrium."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.workloads.equilibrium import (
    NOT_RUNNING,
    length_biased_durations,
    remaining_times,
    running_machines,
)
from experiments.workloads.inspection import digest
from experiments.workloads.resources import MachineType, TaskShape
from experiments.workloads.synthetic import (
    WARM_UP_LENGTHS,
    SyntheticOptions,
    generate,
    make_catalog,
    make_cell,
    warm_up,
)
from parsync.workload.checks import validate
from parsync.workload.workload import Workload
from shared_state.random import Stream
from shared_state.tasks import NO_GANG, TaskClass
from tests.fixtures.examples import examples

SMALL = SyntheticOptions(machines=400, batch_tasks=10)


def made(seed: int = 3, **changes: object) -> Workload:
    workload = warm_up(
        SyntheticOptions.model_validate({**SMALL.model_dump(), **changes}), seed=seed
    )
    assert workload is not None
    validate(workload)
    return workload


def used(workload: Workload) -> np.ndarray:
    """int64[M, R] of what runs as it begins."""
    running = workload.initial
    total = np.zeros_like(workload.cell.capacity)
    np.add.at(total, running.machine, workload.tasks.request[running.task])
    return total


def prefers(workload: Workload) -> np.ndarray:
    """bool[k]: whether each task that runs as it begins is on a preferred machine."""
    catalog, running = workload.catalog, workload.initial
    of_set = np.repeat(np.arange(catalog.sets), np.diff(catalog.machine_offsets))
    pairs = of_set * workload.cell.machines + catalog.machine
    sets = workload.tasks.preference[running.task].astype(np.int64)
    return np.isin(sets * workload.cell.machines + running.machine, pairs)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0])
def test_the_mean_of_what_remains_is_that_of_renewal_theory(sigma: float) -> None:
    """E[D^2] / (2 E[D]), from run times as arriving tasks have them; within five standard errors of
    both samples."""
    n, mean_us = 200_000, 1_000_000
    arriving = Stream(1).lognormal(n, mean_us, sigma) if sigma else np.full(n, mean_us)
    arriving = arriving / 1e6
    wanted = (arriving**2).mean() / (2 * arriving.mean())
    total_us = length_biased_durations(Stream(2), n, mean_us, sigma)
    remaining = remaining_times(Stream(3), total_us) / 1e6
    assert (remaining > 0).all() and (remaining <= total_us / 1e6).all()
    error = math.hypot(
        remaining.std() / math.sqrt(n), (arriving**2).std() / math.sqrt(n) / (2 * arriving.mean())
    )
    assert abs(remaining.mean() - wanted) < 5 * error + 1e-5


def test_run_times_have_the_distribution_of_a_random_moment() -> None:
    """Oracle: tasks one after the other, looked at in random moments."""
    n = 200_000
    ends = np.cumsum(Stream(5).lognormal(n, 1_000_000, 1.0))
    moments = np.sort(Stream(6).integers(20_000, int(ends[-1])))
    found = np.searchsorted(ends, moments, side="right")
    seen = np.diff(ends, prepend=0)[found]
    drawn = length_biased_durations(Stream(7), 20_000, 1_000_000, 1.0)
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert np.mean(drawn < np.quantile(seen, share)) == pytest.approx(share, abs=0.02)
    left = ends[found] - moments
    remaining = remaining_times(Stream(8), drawn)
    for share in (0.1, 0.5, 0.9):
        assert np.mean(remaining < np.quantile(left, share)) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(("load", "alpha"), [(30, 1000), (50, 700), (80, 500)])
def test_as_many_tasks_run_as_littles_law_says(load: int, alpha: int) -> None:
    workload = made(load_percent=(load, 90), preferred_permille=alpha)
    shorter = prefers(workload)
    arrivals = (~shorter).sum() + shorter.sum() * 1000 / alpha  # per mean run time
    assert arrivals == pytest.approx(4000 * load / 100, abs=2)
    assert 0.3 < shorter.mean() <= 1.0


def test_the_warm_up_goes_on_at_the_first_load() -> None:
    workload = made(load_percent=(40, 95))
    assert workload.end_us == WARM_UP_LENGTHS * 2_000_000
    assert [phase.load_percent for phase in workload.phases] == [40]
    arriving = 4000 / 2.0 * 0.4 * 10
    assert len(workload.arrival_rows) == pytest.approx(arriving, abs=10)


def test_its_cell_is_the_runs_and_its_tasks_are_not() -> None:
    run = generate(SMALL, 3)
    before = made()
    for part in ("cell", "catalog"):
        for field in dataclasses.fields(getattr(run, part)):
            one, other = (getattr(getattr(w, part), field.name) for w in (run, before))
            assert np.array_equal(one, other)
    n = min(len(run.tasks), len(before.arrival_rows))
    assert not np.array_equal(run.duration_us[:n], before.duration_us[:n])


def test_the_run_itself_is_the_same_with_either_start() -> None:
    cold = SMALL.model_copy(update={"start": "cold"})
    assert digest(generate(SMALL, 3)) == digest(generate(cold, 3))
    assert warm_up(cold, 3) is None


def test_equal_seeds_make_equal_warm_ups() -> None:
    assert digest(made(seed=5)) == digest(made(seed=5))
    assert digest(made(seed=5)) != digest(made(seed=6))


@pytest.mark.parametrize(
    "changes", [{"load_percent": (0, 50)}, {"machines": 1, "batch_tasks": 1000}]
)
def test_there_is_no_warm_up_without_arrivals(changes: dict[str, object]) -> None:
    assert warm_up(SMALL.model_copy(update=changes), 3) is None


def test_services_are_there_in_their_share_and_more_come_with_the_run() -> None:
    workload = made(service_permille=100, machines=2_000)
    of_class = workload.tasks.task_class
    running, arriving = workload.initial.task, workload.arrival_rows
    services = of_class[running] == TaskClass.SERVICE
    assert services.mean() == pytest.approx(0.1, abs=0.05)
    assert ((workload.duration_us[running] < 0) == services).all()
    assert (of_class[arriving] == TaskClass.BATCH).all()


def test_what_is_left_of_a_gang_is_no_gang() -> None:
    workload = made(gang_permille=1000)
    assert (workload.tasks.gang[workload.initial.task] == NO_GANG).all()
    assert (workload.tasks.gang[workload.arrival_rows] != NO_GANG).all()


def test_jobs_that_run_are_in_parts_of_batches() -> None:
    workload = made(load_percent=(80,))
    _, tasks = np.unique(workload.tasks.job[workload.initial.task], return_counts=True)
    assert 1 < tasks.mean() < 30  # of 10 per batch, and batches of which less and less is left
    assert not np.isin(
        workload.tasks.job[workload.initial.task], workload.tasks.job[workload.arrival_rows]
    ).any()


SHAPES = st.lists(
    st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=3
)  # cpu, memory


@examples(30)
@given(
    shapes=SHAPES,
    machines=st.integers(2, 60),
    load=st.integers(1, 200),
    groups=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_no_machine_holds_more_than_its_capacity(
    shapes: list[tuple[int, int]], machines: int, load: int, groups: int, seed: int
) -> None:
    options = SyntheticOptions(
        machines=machines,
        machine_types=(
            MachineType(capacity={"cpu": 8, "mem": 8}),
            MachineType(capacity={"cpu": 32, "mem": 16}),
        ),
        task_shapes=tuple(TaskShape(request={"cpu": (1, c), "mem": (m, m)}) for c, m in shapes),
        batch_tasks=2,
        preference_groups=groups,
        load_percent=(load,),
    )
    workload = warm_up(options, seed)
    if workload is not None:
        validate(workload)
        assert (used(workload) <= workload.cell.capacity).all()


def test_a_cell_that_cannot_hold_its_load_begins_full() -> None:
    workload = made(load_percent=(300,), preferred_permille=1000)
    assert used(workload).sum() == workload.cell.capacity.sum()


def test_placement_prefers_machines_while_they_have_room() -> None:
    cell = make_cell(SMALL, 1)
    catalog = make_catalog(SMALL, cell, 1)
    n = 100
    machine = running_machines(
        cell,
        catalog,
        np.ones(n, np.int32),
        np.ones((n, 1), np.int64),
        1000,
        Stream(1),
    )
    first = catalog.machine[catalog.machine_offsets[1] : catalog.machine_offsets[2]]
    assert np.isin(machine, first).all() and (machine != NOT_RUNNING).all()
