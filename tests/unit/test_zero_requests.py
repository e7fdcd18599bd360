"""Tasks that request 0 of a resource: they run on machines without it, and on machines that hold
more than their limit of it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.campaign.running import make_workload, run_arm_virtual
from experiments.config.run_config import validated
from experiments.interruption import Interruption
from experiments.studies.run.fluid_bound import _mean_request
from experiments.workloads.building import arriving_tasks, equal_machines
from experiments.workloads.equilibrium import running_machines
from experiments.workloads.inspection import describe
from experiments.workloads.resources import MachineType, Resources, TaskShape
from experiments.workloads.synthetic import SyntheticOptions, generate, warm_up
from parsync.core.quotas import TaskQuotas
from parsync.protocols.agent_quota import QuotaAccount, Reclaimer
from parsync.workload.checks import validate
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.interface import (
    Capability,
    ChangeKind,
    PartitionRanking,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.mapreduce.scheduler import WorkerPolicy
from schedulers.prices import registry as price_kinds
from schedulers.running_tasks import RunningTasks
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.random import Stream
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch, fits
from shared_state.transaction import Transaction
from shared_state.view import ClusterView
from tests.greedy_world import catalog_of, cell_of, tasks_of

# cpu, gpu: two machines without a GPU, two with, one that holds more GPUs than it has, one down
CAPACITY = [[4, 0], [4, 0], [8, 2], [8, 2], [8, 1], [8, 4]]
OVERDRAWN, DOWN = 4, 5
PRICED = ["random", "best_fit", "load_spreading", "flow"]
KINDS = [
    *((kind, {}) for kind in registry.kinds() if kind != "mapreduce"),
    *(
        (kind, {"prices": prices, "price_mode": mode})
        for kind in PRICED
        for prices in price_kinds.kinds()
        for mode in ("tie", "paid")
        if prices != "potentials" or kind == "flow"  # these need a flow
    ),
]


@pytest.mark.parametrize(
    "shapes", [[[1, 0], [2, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]], ids=["mixed", "cpu", "gpu"]
)
@pytest.mark.parametrize(
    ("kind", "given"), KINDS, ids=["-".join([kind, *given.values()]) for kind, given in KINDS]
)
def test_every_kind_uses_machines_without_what_is_not_requested(
    kind: str, given: dict[str, str], shapes: list[list[int]]
) -> None:
    """Round after round, until nothing more is placed: then no task that waits would fit."""
    spec = cell_of(CAPACITY, rack_size=2)
    partitioning = Partitioning.by_topology(spec, 2)
    request = np.array(shapes, np.int64)[np.arange(60) % 4 // 3]  # of the first shape, mostly
    tasks = tasks_of(request)
    running = tasks_of([[1, 3]])
    whole = TaskBatch.concatenate([tasks, running])
    whole.task[-1] = len(tasks)
    cell = Cell(spec, partitioning)
    cell.load(whole.task[-1:], np.array([OVERDRAWN], np.int32), running.request, np.zeros(1, "i4"))
    cell.set_machines(np.array([DOWN], np.int32), np.zeros(1, np.bool_), 0)
    view = ClusterView(spec, partitioning)
    found = registry.get(kind)
    options = found.parse_options(given)
    environment = SchedulerEnvironment(
        "zero", spec, partitioning.offsets, PreferenceCatalog.empty()
    )
    scheduler = CheckedScheduler.build(found, options, environment, whole)
    waiting, now_us = tasks, 0
    for number in range(1, 40):
        now_us += 1_000_000
        for p in range(partitioning.count):
            view.apply(cell.delta_since(p, int(view.versions[p]), now_us, False))
        order = np.arange(partitioning.count, dtype=np.int32)
        context = PlanContext(now_us, number, PartitionRanking.OPTIMISTIC, order)
        plan = scheduler.plan(waiting, view, context)
        if not len(plan.task):
            break
        transaction = Transaction(
            1, number, plan.task, plan.machine, plan.request, np.zeros(len(plan.task), np.int64)
        )
        result = cell.commit(transaction, now_us)
        assert result.accepted.all()
        scheduler.observe(
            TaskChanges(ChangeKind.COMMITTED, now_us, plan.task, plan.machine, result.allocation)
        )
        kept = np.isin(tasks.task, cell.allocations(1).task)
        keeps = Capability.KEEPS_PENDING in found.capabilities
        waiting = tasks.take(~kept) if not keeps else TaskBatch.empty(2)
    held = cell.allocations(1)
    used_rows = set(held.machine.tolist())
    if shapes[0][1] == 0:
        assert {0, 1, OVERDRAWN} <= used_rows
    assert DOWN not in used_rows
    assert not held.request[held.machine == OVERDRAWN, 1].any()
    left = np.where(cell.up[:, None], spec.limit - cell.used, 0)
    for task in np.setdiff1d(tasks.task, held.task):
        assert not fits(request[task], left).any()


def preempting_plan(
    spec: CellSpec, tasks: TaskBatch, runs_on: dict[int, int], own: int
) -> tuple[list[int], list[int], Int64]:
    """What the preempting scheduler plans for the last task where others run: the machines, the
    allocations that it evicts, and those of the others. The first `own` of them are its own."""
    partitioning = Partitioning.by_topology(spec, 1)
    cell, view = Cell(spec, partitioning, tasks.priority), ClusterView(spec, partitioning)
    ids, machine = np.array(list(runs_on)), np.array(list(runs_on.values()), np.int32)
    allocation = cell.load(ids, machine, tasks.request[ids], np.zeros(len(ids), np.int32))
    view.apply(cell.delta_since(0, 0, 1, False))
    found = registry.get("preempting")
    environment = SchedulerEnvironment(
        "zero", spec, partitioning.offsets, PreferenceCatalog.empty()
    )
    scheduler = found.build(found.parse_options({}), environment)
    running = RunningTasks.of(tasks, allocation[:own], ids[:own], machine[:own])
    order = np.zeros(1, np.int32)
    context = PlanContext(1, 1, PartitionRanking.OPTIMISTIC, order, running=running)
    plan = scheduler.plan(tasks.take(slice(2, 3)), view, context)
    assert plan.evict is not None
    return plan.machine.tolist(), plan.evict.tolist(), allocation


def test_a_task_makes_room_where_what_it_does_not_request_is_overdrawn() -> None:
    tasks = tasks_of([[2, 3], [2, 1], [2, 0]])
    tasks.priority[2] = 5
    machine, evict, allocation = preempting_plan(
        cell_of([[2, 1], [2, 1]]), tasks, {0: 0, 1: 1}, own=1
    )
    assert (machine, evict) == ([0], allocation[:1].tolist())


def test_tasks_that_hold_nothing_of_what_is_short_are_not_ended() -> None:
    tasks = tasks_of([[1, 0], [1, 1], [1, 1]])
    tasks.priority[:] = [0, 1, 2]
    machine, evict, allocation = preempting_plan(cell_of([[4, 1]]), tasks, {0: 0, 1: 0}, own=2)
    assert (machine, evict) == ([0], [allocation[1]])
    reclaimer = Reclaimer(TaskQuotas(1, np.zeros(3, np.int32), True), tasks)
    reclaimer.on_started(allocation, np.arange(2), np.zeros(2, np.int32))
    asked = reclaimer.transaction(7, 1, np.array([[0, 1]]))
    assert asked is not None and asked.evict is not None
    assert asked.evict.tolist() == [allocation[1]]


def test_constraints_and_machines_that_are_down_still_exclude() -> None:
    spec = cell_of(CAPACITY, rack_size=1)
    catalog = catalog_of(({0: 1, DOWN: 1}, {}))
    catalog.elsewhere_cost[1] = 1 << 38
    environment = SchedulerEnvironment("zero", spec, np.array([0, 6]), catalog)
    view = ClusterView(spec, Partitioning(np.array([0, 6])))
    cell = Cell(spec, Partitioning(np.array([0, 6])))
    cell.set_machines(np.array([DOWN], np.int32), np.zeros(1, np.bool_), 0)
    view.apply(cell.delta_since(0, 0, 1, False))
    for kind in ("random", "best_fit", "flow"):
        found = registry.get(kind)
        scheduler = found.build(found.parse_options({}), environment)
        context = PlanContext(1, 1, PartitionRanking.OPTIMISTIC, np.zeros(1, np.int32))
        plan = scheduler.plan(tasks_of([[1, 0]] * 6, preference=1), view, context)
        assert set(plan.machine.tolist()) == {0} and len(plan.task) == 4


def test_a_quota_does_not_check_what_is_not_requested() -> None:
    tasks = tasks_of([[1, 2], [1, 0], [1, 1], [1, 0]])
    account = QuotaAccount(TaskQuotas(1, np.zeros(4, np.int32)), tasks)
    account.granted = np.array([[4, 1]], np.int64)
    account.held[0, 1] = 2  # more than what is granted now
    ids = np.arange(4, dtype=np.int64)
    assert account.within(ids[[1, 3]]).tolist() == [True, True]
    assert account.within(ids[[1, 2, 3]]).tolist() == [True, False, False]  # in order
    assert account.has_room(ids[1:2], ids[:0]) and not account.has_room(ids[2:3], ids[:0])


def test_extra_workers_do_not_wait_for_what_they_do_not_request() -> None:
    policy = WorkerPolicy(times_requested=4, target_permille=500)
    request = np.array([[1, 0]] * 3, np.int64)
    assert policy.extra_started(request, np.array([1, 9]), np.array([6, 4])) == 2


def test_tasks_that_run_at_the_start_use_machines_without_what_they_do_not_request() -> None:
    cell = cell_of([[4, 0]] * 9 + [[4, 4]], rack_size=1)
    request = np.array([[1, 0]] * 30 + [[1, 1]] * 4, np.int64)
    zero = np.zeros(len(request), np.int32)
    machine = running_machines(cell, PreferenceCatalog.empty(), zero, request, 1000, Stream(1))
    on_gpu = request[:, 1] > 0
    assert 9 in machine[on_gpu] and set(machine[on_gpu].tolist()) <= {-1, 9}
    assert len(set(machine[~on_gpu].tolist()) - {-1, 9}) == 9


def test_the_fluid_bound_counts_what_all_tasks_request() -> None:
    workload = generate(SyntheticOptions.model_validate(OPTIONS), 1)
    mean = _mean_request(workload)
    assert 1 < mean[0] < 2 and np.isinf(mean[1])


OPTIONS: dict[str, Any] = {
    "machines": 20,
    "mean_duration_s": 0.5,
    "batch_tasks": 5,
    "phase_s": 2.0,
    "load_percent": [40],
    "preference_groups": 0,
    "start": "cold",
    "machine_types": [{"capacity": {"cpu": 4, "gpu": 0}}, {"capacity": {"cpu": 8, "gpu": 4}}],
    "task_shapes": [{"request": {"cpu": 1, "gpu": 0}}, {"request": {"cpu": 2, "gpu": 1}}],
}


def changed(**changes: Any) -> SyntheticOptions:
    return SyntheticOptions.model_validate({**OPTIONS, **changes})


def test_generated_tasks_keep_their_zeros() -> None:
    workload = generate(changed(), 1)
    validate(workload)
    gpu = workload.tasks.request[:, 1]
    assert 0.3 < (gpu == 0).mean() < 0.7 and (workload.cell.capacity[:, 1] == 0).sum() == 10
    drawn = changed(task_shapes=[{"request": {"cpu": 1, "gpu": [0, 1]}}])
    assert set(generate(drawn, 1).tasks.request[:, 1]) == {0, 1}
    steady = warm_up(changed(start="steady"), 1)
    assert steady is not None
    validate(steady)


def test_a_resource_that_nobody_has_or_wants_is_no_reason_to_fail() -> None:
    none = {"cpu": 4, "gpu": 0}
    unused = changed(
        machine_types=[{"capacity": none}], task_shapes=[{"request": {"cpu": 1, "gpu": 0}}]
    )
    assert unused.resources().tasks_at_once() == ("cpu", 80)
    described: Any = describe(generate(unused, 1))
    assert described["phases"][0]["offered_percent"]["gpu"] == 0
    config = validated(config_of(unused.model_dump(exclude_unset=True), KINDS_IN_A_RUN), "test")
    run_all(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"task_shapes": [{"request": {"cpu": 0, "gpu": [0, 2]}}]},
            "task_shapes.0: some tasks would ask for nothing; expected at least 1 of some resource",
        ),
        (
            {"machine_types": [{"capacity": {"cpu": 0, "gpu": 0}}]},
            "machine_types.0: expected some of a resource, got none",
        ),
        ({"task_shapes": [{"request": {"cpu": -1, "gpu": 1}}]}, "greater than or equal to 0"),
    ],
)
def test_what_generators_refuse(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AgoraError, match=message):
        validated(config_of({**OPTIONS, **changes}, ["random"]), "test")


def test_gangs_fit_by_what_they_request() -> None:
    resources = Resources.of(
        2,
        [MachineType(capacity={"cpu": 4, "gpu": 0})],
        [TaskShape(request={"cpu": (1, 1), "gpu": (0, 0)})],
    )
    resources.check_gang(8)
    with pytest.raises(ValueError, match="does not fit the cell, of 8 cpu"):
        resources.check_gang(9)


KINDS_IN_A_RUN = ["first_fit", "best_fit", "preempting", "flow", "flow_load_spreading"]


def config_of(workload: dict[str, Any], kinds: list[str]) -> dict[str, Any]:
    return {
        "name": "zero",
        "runtime": "virtual",
        "settle_s": 0.0,
        "drain_s": 5.0,
        "workload": {"kind": "synthetic", **workload},
        "arms": [
            {
                "name": kind,
                "partitions": 2,
                **({"evictions": "lower_priority"} if kind == "preempting" else {}),
                "groups": [
                    {
                        "name": "s",
                        "kind": kind,
                        "count": 2,
                        "decision": {"clock": "modelled", "task_us": 1.0},
                        "protocol": {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.02},
                    }
                ],
            }
            for kind in kinds
        ],
    }


def run_all(config: Any, workload: Workload | None = None, folder: Path | None = None) -> None:
    workload = make_workload(config, 1) if workload is None else workload
    for arm in config.arms:
        place = None if folder is None else folder / arm.name
        if place is not None:
            place.mkdir(parents=True)
        run = run_arm_virtual(config, arm, workload, 1, place, lambda _: None, Interruption())
        assert not run.stopped


def test_a_run_places_tasks_without_a_gpu_on_machines_without_one(tmp_path: Path) -> None:
    config = validated(config_of({**OPTIONS, "load_percent": [100]}, KINDS_IN_A_RUN), "test")
    workload = make_workload(config, 1)
    run_all(config, workload, tmp_path)
    without = (workload.cell.capacity[:, 1] == 0).nonzero()[0]
    for kind in KINDS_IN_A_RUN:
        task, machine = placements(tmp_path / kind)
        there = np.isin(machine, without)
        assert there.any() and not workload.tasks.request[task[there], 1].any(), kind


def placements(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(folder / "tasks.parquet")
    placed = table["machine"].to_numpy() >= 0
    return table["task"].to_numpy()[placed], table["machine"].to_numpy()[placed]


# --- readers ---


def test_readers_keep_zeros_and_count_tasks_that_request_nothing() -> None:
    cell = equal_machines(2, {"cpu": 4, "gpu": 2})
    workload = arriving_tasks(
        "zeros",
        cell,
        submit_us=[0, 1, 2],
        duration_us=[5, 5, 5],
        request={"cpu": [2, 0, 0], "gpu": [0, 1, 0]},
    )
    validate(workload)
    assert workload.tasks.request.tolist() == [[2, 0], [0, 1], [1, 1]]
    assert workload.facts["tasks_that_request_nothing"] == 1


def test_a_workload_of_ones_own_may_request_nothing_of_some_resources_not_of_all() -> None:
    workload = generate(changed(), 1)
    workload.tasks.request[3] = 0
    with pytest.raises(ValueError, match=r"tasks\.request: a task that requests nothing at all"):
        validate(workload)
    workload.tasks.request[3] = [1, -1]
    with pytest.raises(ValueError, match=r"tasks\.request: int64, not negative"):
        validate(workload)


TRACES = Path(
    os.environ.get("AGORA_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces"
)
GPU_TRACE = TRACES / "alibaba_gpu2023"


def columns_of(path: Path, *names: str) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="ascii") as file:
        header, *rows = (line.rstrip("\n").split(",") for line in file)
    return [[row[header.index(name)] for row in rows] for name in names]


@pytest.mark.skipif(not GPU_TRACE.is_dir(), reason=f"no trace at {GPU_TRACE}: set AGORA_TRACES")
def test_on_a_gpu_trace_tasks_go_where_first_fit_puts_them(tmp_path: Path) -> None:
    """Alibaba's cluster of 2023 (Weng et al., ATC 2023), one scheduler: as placing one task after
    the other on the lowest machine that fits."""
    names = ("cpu_milli", "memory_mib", "gpu")
    cpu, memory, gpu = columns_of(GPU_TRACE / "openb_node_list_all_node.csv.gz", *names)
    capacity = np.array([cpu, memory, gpu], np.int64).T[::10]
    capacity[:, 2] *= 1000
    pods = columns_of(
        GPU_TRACE / "openb_pod_list_default.csv.gz",
        *("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
    )
    asked = np.array(pods, np.int64).T[:700]
    request = np.column_stack([asked[:, :2], asked[:, 2] * asked[:, 3]])
    cell = cell_of(capacity)
    n = len(request)
    workload = arriving_tasks(
        "gpu",
        cell,
        submit_us=np.arange(n) * 1000,
        duration_us=np.full(n, -1),
        request=dict(zip(cell.dimensions, request.T, strict=True)),
    )
    validate(workload)
    config = validated(config_of(OPTIONS, ["first_fit"]), "test")
    arm = config.arms[0]
    one = arm.model_copy(update={"groups": (arm.groups[0].model_copy(update={"count": 1}),)})
    run_all(config.model_copy(update={"arms": (one,)}), workload, tmp_path)

    free, expected = capacity.copy(), {}
    for task, wanted in enumerate(request.tolist()):
        for machine, left in enumerate(free.tolist()):
            if all(w == 0 or w <= f for w, f in zip(wanted, left, strict=True)):
                expected[task] = machine
                free[machine] -= wanted
                break
    task, machine = placements(tmp_path / "first_fit")
    wants_no_gpu, has_no_gpu = request[:, 2] == 0, capacity[:, 2] == 0
    there = {t for t, m in expected.items() if wants_no_gpu[t] and has_no_gpu[m]}
    assert dict(zip(task.tolist(), machine.tolist(), strict=True)) == expected
    assert len(there) > 40 and len(expected) == n
