"""check_workload finds every broken promise of a kind of workload, and passes ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, field_serializer

from experiments.workloads import registry
from experiments.workloads.building import arriving_tasks, equal_machines, machines_of_types
from experiments.workloads.conformance import check_workload
from experiments.workloads.groups import group_catalog
from experiments.workloads.input_data import InputLocality
from experiments.workloads.registry import Outline, WorkloadSpec
from parsync.workload.checks import validate
from parsync.workload.workload import InitialPlacement, Workload
from schedulers.conformance import NonConformance
from shared_state.errors import AgoraError
from tests.unit.test_workload_golden import trace

CELL = equal_machines(10, {"cpu_milli": 1000, "mem_mib": 512}, machines_per_rack=3)


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tasks: int = 20


def made(options: Options, seed: int) -> Workload:
    n = np.arange(options.tasks)
    request = {"mem_mib": n + 1, "cpu_milli": n * 2 + 1}
    return arriving_tasks("made", CELL, n // 3 * 1000, n * 500, request, job=n // 3)


SPEC = WorkloadSpec("made", Options, made)


def test_ours_keep_the_contract(tmp_path: Path) -> None:
    small = {"machines": 50, "phase_s": 0.5, "batch_tasks": 10, "slot_score_variance": 1.0}
    synthetic = registry.get("synthetic")
    assert check_workload(synthetic, small).name == "synthetic"
    check_workload(synthetic, small | {"gang_permille": 500, "service_permille": 100}, seed=5)
    trace(tmp_path)
    google = registry.get("google2011")
    for resources in ("slots=2", "requests"):
        read = check_workload(google, {"directory": str(tmp_path), "resources": resources})
        assert {type(value) for value in google.values(read)} == {InputLocality}


def test_arriving_tasks_are_a_workload() -> None:
    workload = check_workload(SPEC)
    assert workload.cell.dimensions == ("cpu_milli", "mem_mib")
    assert workload.tasks.request[3].tolist() == [7, 4]
    assert workload.arrival_us.tolist() == [0, 1000, 2000, 3000, 4000, 5000, 6000]
    assert workload.duration_us[:2].tolist() == [1, 500], "no task runs for 0 us"
    assert workload.cell.rack.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert workload.facts["tasks_larger_than_every_machine"] == 0


def test_tasks_in_any_order_arrive_in_time_and_services_never_end() -> None:
    cell = equal_machines(2, {"slots": 2})
    workload = arriving_tasks(
        "x", cell, [30, 10, 20, 10, 40], [5, 6, 7, 8, -1], {"slots": [1, 2, 3, 0, 1]}, end_us=40
    )
    assert workload.tasks.submit_us.tolist() == [10, 10, 20, 30]
    assert workload.duration_us.tolist() == [6, 8, 7, 5]
    assert workload.tasks.request[:, 0].tolist() == [2, 1, 3, 1]
    assert len(workload.arrival_us) == 4, "each task is a job of its own"
    facts = workload.facts
    assert (facts["tasks_after_the_end_dropped"], facts["tasks_larger_than_every_machine"]) == (
        1,
        1,
    )
    whole = arriving_tasks("x", cell, [30], [-1], {"slots": [1]})
    assert whole.tasks.task_class.tolist() == [1] and whole.end_us == 31


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"request": {"slots": [1]}}, "duration_us: expected 1 values, got shape \\(2,\\)"),
        ({"request": {"cpu": [1]}, "duration_us": [1]}, "request: expected slots, got cpu"),
        ({"submit_us": [0.5], "duration_us": [1]}, "submit_us: expected integers, got float64"),
        ({"end_us": 0, "duration_us": [1]}, "x: no task arrives"),
        ({"submit_us": np.zeros(0, int), "duration_us": [1]}, "x: no task arrives"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change: dict[str, object], says: str) -> None:
    columns = {"submit_us": [0], "duration_us": [1, 2], "request": {"slots": [1]}, **change}
    with pytest.raises(AgoraError, match=says):
        arriving_tasks("x", equal_machines(2, {"slots": 2}), **columns)  # type: ignore[arg-type]


def test_gangs_priorities_machine_types_and_preferences_follow_their_tasks() -> None:
    cell = machines_of_types(
        [(2, {"cpu_milli": 8, "gpu": 0}), (1, {"gpu": 4, "cpu_milli": 4})], machines_per_rack=2
    )
    assert cell.dimensions == ("cpu_milli", "gpu")
    assert cell.capacity.tolist() == [[8, 0], [8, 0], [4, 4]] and cell.rack.tolist() == [0, 0, 1]
    sets = group_catalog([np.array([0], np.int32), np.array([2], np.int32)], cell.rack, None, 9, 99)
    workload = arriving_tasks(
        "x",
        cell,
        submit_us=[20, 10, 10, 10, 10],
        duration_us=[1, 2, 3, 4, 5],
        request={"cpu_milli": [1, 2, 3, 4, 1], "gpu": [0, 0, 1, 0, 0]},
        job=[7, 5, 5, 5, 5],
        gang=[-1, 40, 12, 40, -1],
        priority=[1, 2, 3, 4, 2**31 - 1],
        preference=[0, 1, 2, 0, 0],
        catalog=sets,
        preferred_permille=700,
    )
    validate(workload)
    tasks = workload.tasks
    assert workload.duration_us.tolist() == [5, 3, 2, 4, 1], "gangs stand together in a batch"
    assert tasks.gang.tolist() == [-1, 0, 1, 1, -1]
    assert tasks.priority.tolist() == [2**31 - 1, 3, 2, 4, 1]
    assert tasks.preference.tolist() == [0, 2, 1, 0, 0]
    assert tasks.request.tolist() == [[1, 0], [3, 1], [2, 0], [4, 0], [1, 0]]
    assert workload.catalog is sets and workload.preferred_permille == 700


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ({"gang": [3, 3, 3]}, "the tasks of gang 3 are not all of one job and submitted together"),
        ({"gang": [-2, 0, 0]}, "gang: expected -1 or numbers from 0 on, got -2"),
        ({"gang": [1, 1]}, "gang: expected 3 values"),
        ({"priority": [0, 2**31, 0]}, "priority: expected -2147483648 to .*, got 2147483648"),
        ({"preference": [0, 0, 1]}, "preference: expected 0 to 0, got 1"),
    ],
)
def test_columns_with_values_that_cannot_be_are_refused(
    column: dict[str, list[int]], says: str
) -> None:
    with pytest.raises(AgoraError, match=says):
        arriving_tasks(
            "x",
            equal_machines(2, {"slots": 2}),
            [0, 0, 5],
            [1, 1, 1],
            {"slots": [1, 1, 1]},
            job=[1, 1, 1],
            **column,  # type: ignore[arg-type]
        )


def test_types_of_machines_have_the_same_resources() -> None:
    with pytest.raises(AgoraError, match="machine types: expected cpu, got gpu"):
        machines_of_types([(1, {"cpu": 1}), (1, {"gpu": 1})])


class Unwritable(Options):
    @field_serializer("tasks")
    def _rounded(self, tasks: int) -> int:
        return tasks // 7


def by_luck(options: Options, seed: int) -> Workload:
    workload = made(options, seed)
    duration = workload.duration_us + np.random.randint(1, 1000, 20)  # noqa: NPY002
    return replace(workload, duration_us=duration)


def change(**columns: object) -> Callable[[Options, int], Workload]:
    return lambda options, seed: replace(made(options, seed), **columns)  # type: ignore[arg-type]


def outline(**fields: object) -> Callable[[Options], Outline]:
    right = {"machines": 10, "tasks": 20, "phase_s": 0.006001, "tasks_per_s": 3000.0}
    right |= {"batch_tasks": 3, "service_share": 0.0}
    return lambda _: Outline(**{**right, **fields})  # type: ignore[arg-type]


BASE = made(Options(), 1)
BROKEN = {
    "options: not the same after": WorkloadSpec("made", Unwritable, made),
    "the same options and seed gave another duration_us": WorkloadSpec("made", Options, by_luck),
    "facts.rows: expected a number or a text, got a list": WorkloadSpec(
        "made", Options, change(facts={**BASE.facts, "rows": [1]})
    ),
    "outline: 9 machines, not 10": WorkloadSpec("made", Options, made, outline=outline(machines=9)),
    "outline: 90 tasks, not about 20": WorkloadSpec(
        "made", Options, made, outline=outline(tasks=90)
    ),
    "outline: a shortest phase of 1.0 s": WorkloadSpec(
        "made", Options, made, outline=outline(phase_s=1.0)
    ),
    "warm_up: not the workload's capacity": WorkloadSpec(
        "made",
        Options,
        made,
        warm_up=lambda options, seed: change(cell=replace(CELL, capacity=CELL.capacity * 2))(
            options, seed
        ),
    ),
    "warm_up: the same options and seed gave another duration_us": WorkloadSpec(
        "made",
        Options,
        made,
        warm_up=lambda options, seed: change(
            duration_us=BASE.duration_us + np.random.randint(1, 1 << 30)  # noqa: NPY002
        )(options, seed),
    ),
    "warm_up: the workload says itself what runs at 0": WorkloadSpec(
        "made",
        Options,
        change(
            initial=InitialPlacement(np.arange(3), np.zeros(3, np.int32)),
            arrival_us=BASE.arrival_us[1:],
            arrival_offsets=BASE.arrival_offsets[1:] - 3,
            arrival_rows=BASE.arrival_rows[3:],
        ),
        warm_up=made,
    ),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_named(promise: str) -> None:
    check_workload(WorkloadSpec("made", Options, made, outline=outline()))
    with pytest.raises(NonConformance, match=f"^{promise}"):
        check_workload(BROKEN[promise])


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"duration_us": BASE.duration_us.astype(np.int32)}, "duration_us: int64"),
        ({"arrival_us": BASE.arrival_us.astype(np.float64)}, "arrival_us: int64"),
        ({"arrival_us": BASE.arrival_us[::-1]}, "arrival_us: not ascending"),
        ({"arrival_rows": BASE.arrival_rows + 1}, "arrival_rows: no such task"),
        ({"initial": InitialPlacement(np.zeros(0), np.zeros(0, np.int32))}, "initial.task: int64"),
        ({"cell": replace(BASE.cell, dimensions=("cpu", "cpu"))}, "cell.dimensions: 1 to 8 diff"),
        ({"cell": replace(BASE.cell, capacity=BASE.cell.capacity[0])}, "cell.capacity: int64.M, R"),
        ({"cell": replace(BASE.cell, capacity=BASE.cell.capacity << 40)}, "cell.capacity: above"),
        ({"cell": replace(BASE.cell, slot_score=np.zeros(10))}, "cell.slot_score: int64"),
        (
            {"catalog": replace(BASE.catalog, elsewhere_cost=np.zeros(1))},
            "catalog: elsewhere_cost and unscheduled_cost: int64",
        ),
    ],
)
def test_columns_of_another_type_or_beyond_their_range_are_refused(
    columns: dict[str, object], says: str
) -> None:
    with pytest.raises(AgoraError, match=f"workload kind 'made': not a valid workload: {says}"):
        check_workload(WorkloadSpec("made", Options, change(**columns)))
