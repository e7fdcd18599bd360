"""Rounds of the flow scheduler on a true cell: placements, patience, gangs, preemption, what rounds
cost, and the table of its tasks. FlowWorld.plan checks certificate, OR-tools' cost and fit in every
round."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from pydantic import ValidationError

from experiments.workloads.input_data import input_catalog
from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.flow.scheduler import WEIGHTS_PS, FlowScheduler, RoundWork
from schedulers.flow.solver_graph import NO_ROW, TaskState, TaskTable
from schedulers.interface import ChangeKind, PendingReason, TaskChanges
from shared_state.random import Stream
from shared_state.tasks import TaskBatch
from shared_state.transaction import Transaction
from tests.flow_world import (
    FLOW,
    LOCAL,
    FlowWorld,
    LoadSpreadingOptions,
    QuincyOptions,
    build_load_spreading,
    catalog_of,
    environment,
    placed,
    quincy,
    slot_cell,
    spreading,
    tasks_of,
)


def test_a_graph_without_a_way_out_names_the_tasks_that_cannot_leave() -> None:
    """No policy makes one; an error that did would have to be found."""
    spec = slot_cell(machines=2, slots=2, rack_size=2)
    scheduler = quincy(spec)
    world = FlowWorld(spec, scheduler)
    world.offer(tasks_of(np.arange(3)))
    solve = scheduler.graph.solve

    def solve_without_arcs_of_the_second(table: TaskTable, *budget: object) -> None:
        solver = scheduler.graph.solver
        network, nodes, arcs = solver.snapshot()
        node = table.node[table.rows(np.array([1]))]
        solver.set_capacity(arcs[np.isin(nodes[network.tail], node)], 0)
        solve(table)

    scheduler.graph.solve = solve_without_arcs_of_the_second
    with pytest.raises(
        RuntimeError,
        match="left INFEASIBLE: 1 node has a supply of 1, and arcs of capacity 0 out of it; "
        "tasks there: 1",
    ):
        world.plan()


def test_retained_tasks_are_placed_without_being_offered_again() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    world = FlowWorld(spec, quincy(spec))
    world.offer(tasks_of(np.arange(2)))
    first = world.plan()
    world.commit(first)
    world.sync()
    assert len(world.plan().task) == 0
    world.finish(world.running(FLOW))
    second = world.plan()
    assert sorted([*first.task, *second.task]) == [0, 1]


def test_a_service_competes_with_tasks_that_have_input_data() -> None:
    """For a place that is nobody's preferred one, under the workload's own catalog."""
    spec = slot_cell(machines=4, slots=1, rack_size=1)
    catalog = input_catalog(np.array([1]), spec.rack, 500, Stream(5))
    world = FlowWorld(spec, quincy(spec, catalog))
    world.rival_claims(catalog.machine.tolist(), 1_000)
    world.sync()
    free = 4 - len(catalog.machine)
    world.offer(tasks_of(np.arange(free + 1), preference=np.array([1] * free + [0])))
    plan = world.plan()
    assert len(plan.task) == free > 0
    assert free in plan.task  # the service


def patient_world(preemption: bool = False) -> FlowWorld:
    """Four machines; set 1 prefers the first, set 2 none."""
    spec = slot_cell(machines=4, slots=1, rack_size=1)
    catalog = catalog_of(
        [
            {"machine": {0: 3}, "elsewhere": 10, "unscheduled": 50},
            {"elsewhere": 1, "unscheduled": 20},
        ]
    )
    return FlowWorld(spec, quincy(spec, catalog, patience_s=0.5, preemption=preemption))


def test_a_patient_task_waits_for_its_machine_and_then_takes_any() -> None:
    world = patient_world()
    world.offer(tasks_of(np.arange(3), preference=np.array([1, 1, 0])))
    plan = world.plan()
    assert 2 in plan.task and len(plan.task) == 2 and 0 in plan.machine, "the first takes machine 0"
    assert plan.pending_reason.tolist() == [PendingReason.WAITS_FOR_PREFERRED]
    assert plan.retry_at_us == 500_000
    world.commit(plan)
    world.now_us = 499_999
    assert not len(world.plan().task)
    world.now_us = 500_000
    late = world.plan()
    assert len(late.task) == 1 and late.retry_at_us is None


def test_patience_counts_from_the_submission_also_for_rejected_tasks() -> None:
    world = patient_world()
    world.now_us = 200_000
    world.offer(tasks_of(np.arange(1), preference=1))
    world.rival_claims([0], 100)
    plan = world.plan()
    world.commit(plan)  # rejected
    world.now_us = 300_000
    assert world.plan().retry_at_us == 500_000
    world.now_us = 500_000
    assert len(world.plan().task) == 1


def test_a_running_task_has_no_patience_left() -> None:
    """Under preemption: if it did, it would wait for 4 so that another need not wait for 21."""
    world = patient_world(preemption=True)
    world.rival_claims([1, 2, 3], 100)
    world.sync()
    world.offer(tasks_of(np.arange(1), preference=1))
    world.commit(world.plan())
    world.now_us = 100
    world.offer(tasks_of(np.arange(1, 2), preference=2))
    plan = world.plan()
    assert not len(plan.evict) and plan.pending.tolist() == [1]


def test_rejected_claims_are_planned_elsewhere() -> None:
    spec = slot_cell(machines=3, slots=1, rack_size=3)
    catalog = catalog_of([{"machine": {0: 0, 1: 3}, "elsewhere": 9, "unscheduled": 50}])
    world = FlowWorld(spec, quincy(spec, catalog))
    world.offer(tasks_of(np.arange(1), preference=1))
    world.rival_claims([0], first_task=100)
    first = world.plan()
    assert placed(first) == {0: 0}
    assert not world.commit(first).accepted.any()
    second = world.plan()  # before any sync: the claim it lost still covers the machine
    assert placed(second) == {0: 1}
    assert world.commit(second).accepted.all()
    world.sync()
    assert len(world.plan().task) == 0


def test_downed_machines_take_nothing_and_returned_ones_do() -> None:
    spec = slot_cell(machines=2, slots=2, rack_size=1)
    world = FlowWorld(spec, quincy(spec))
    world.cell.set_machines(np.array([0], np.int32), np.array([False]), 0)
    world.sync()
    world.offer(tasks_of(np.arange(4)))
    plan = world.plan()
    assert list(placed(plan).values()) == [1, 1]
    world.commit(plan)
    world.cell.set_machines(np.array([0], np.int32), np.array([True]), 0)
    world.sync()
    assert list(placed(world.plan()).values()) == [0, 0]


def test_a_task_that_ends_while_waiting_is_forgotten() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    world = FlowWorld(spec, quincy(spec))
    world.offer(tasks_of(np.arange(2)))
    waiting = world.plan().pending
    world.tell(ChangeKind.FINISHED, waiting, np.array([-1]), np.array([-1]))
    world.tell(ChangeKind.FINISHED, np.array([77]), np.array([0]), np.array([5]))  # never heard of
    world.plan()
    assert world.scheduler.graph.tasks == 0


@pytest.mark.parametrize("preemption", [False, True])
def test_a_waiting_task_that_turns_out_to_run_is_not_claimed_again(preemption: bool) -> None:
    spec = slot_cell(machines=1, slots=2, rack_size=1)
    world = FlowWorld(spec, quincy(spec, preemption=preemption))
    world.rival_claims([0, 0], first_task=100)
    world.sync()
    world.offer(tasks_of(np.arange(1)))
    assert world.plan().pending.tolist() == [0]
    held = world.running(1)
    world.tell(ChangeKind.ADOPTED, np.array([0, 55]), np.array([0, 0]), held)
    world.finish(held[1:])
    world.sync()
    assert len(world.plan().task) == 0


def test_gangs_are_claimed_whole_or_not_at_all() -> None:
    spec = slot_cell(machines=4, slots=1, rack_size=4)
    world = FlowWorld(spec, quincy(spec))
    world.rival_claims([0, 1], first_task=100)
    world.sync()
    world.offer(tasks_of(np.arange(3), gang=7))
    plan = world.plan()
    assert len(plan.task) == 0
    assert sorted(plan.pending.tolist()) == [0, 1, 2]
    assert plan.stats["held_back"] == 2
    world.finish(world.running(1)[:1])
    world.sync()
    plan = world.plan()
    assert sorted(plan.task.tolist()) == [0, 1, 2]
    assert plan.gang.tolist() == [7, 7, 7]


def test_load_spreading_levels_the_tasks_of_everybody() -> None:
    spec = slot_cell(machines=5, slots=4, rack_size=5)
    world = FlowWorld(spec, spreading(spec))
    world.rival_claims([0, 0, 0, 1], first_task=100)
    world.sync()
    for first, n, expected in (
        (0, 4, [3, 2, 1, 1, 1]),
        (4, 5, [3, 3, 2, 2, 3]),
        (9, 7, [4, 4, 4, 4, 4]),
    ):
        world.offer(tasks_of(np.arange(first, first + n)))
        plan = world.plan()
        assert len(plan.task) == n
        world.commit(plan)
        world.sync()
        assert sorted(world.cell.used[:, 0]) == sorted(expected)


def test_load_spreading_with_fewer_levels_than_slots_still_fills_every_machine() -> None:
    spec = slot_cell(machines=3, slots=10, rack_size=3)
    world = FlowWorld(spec, spreading(spec, levels=4))
    world.offer(tasks_of(np.arange(15)))
    world.commit(world.plan())
    world.sync()
    assert world.cell.used[:, 0].max() <= 6  # level to within one arc's three units
    world.offer(tasks_of(np.arange(15, 32)))
    world.commit(world.plan())
    assert world.cell.used[:, 0].tolist() == [10, 10, 10]


def test_a_large_preference_set_is_one_aggregator_and_costs_the_same() -> None:
    spec = slot_cell(machines=40, slots=1, rack_size=10)
    sets = [
        {
            "machine": {m: m % 7 for m in range(0, 30, 2)},
            "rack": {1: 8},
            "elsewhere": 20,
            "unscheduled": 100,
        }
    ]
    costs, arcs = [], []
    for limit in (0, 100):
        world = FlowWorld(spec, quincy(spec, catalog_of(sets), max_task_arcs=limit))
        world.offer(tasks_of(np.arange(35), preference=1))
        world.plan()
        costs.append(world.scheduler.graph.solver.cost)
        arcs.append(world.scheduler.graph.solver.num_arcs)
    assert costs[0] == costs[1]
    assert arcs[0] < arcs[1] / 3


def test_equal_inputs_give_equal_plans() -> None:
    def history() -> list[tuple[list[int], list[int], int]]:
        spec = slot_cell(machines=30, slots=2, rack_size=6)
        world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL, LOCAL])), partitions=3)
        said = []
        for r in range(6):
            world.offer(
                tasks_of(
                    np.arange(15 * r, 15 * r + 15),
                    job=r,
                    preference=np.arange(15) % 3,
                    submit_us=world.now_us,
                )
            )
            world.rival_claims([r, r + 5], first_task=1000 + 10 * r)
            plan = world.plan()
            said.append((plan.task.tolist(), plan.machine.tolist(), plan.operations))
            world.commit(plan)
            world.finish(world.running(FLOW)[::5])
            world.sync()
            world.now_us += 700_000
        return said

    assert history() == history()


def test_schedulers_with_other_streams_choose_other_machines_among_equals() -> None:
    spec = slot_cell(machines=200, slots=1, rack_size=20)
    chosen = []
    for rounds in (0, 1000):  # FlowWorld derives the decision's stream from its count of rounds
        world = FlowWorld(spec, quincy(spec))
        world.rounds = rounds
        world.offer(tasks_of(np.arange(20)))
        chosen.append(set(world.plan().machine.tolist()))
    assert len(chosen[0] & chosen[1]) < 10


@pytest.mark.parametrize("preemption", [False, True])
def test_nothing_is_left_behind_when_all_tasks_have_gone(preemption: bool) -> None:
    spec = slot_cell(machines=6, slots=2, rack_size=3)
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL]), preemption=preemption))
    sizes = []
    for r in range(12):
        world.offer(
            tasks_of(
                np.arange(20 * r, 20 * r + 20),
                job=100 * r + np.arange(20) % 4,
                preference=np.arange(20) % 2,
            )
        )
        for _ in range(3):
            plan = world.plan()
            world.offered.extend(
                tasks_of(np.array([t]), preference=1) for t in world.cell.describe(plan.evict).task
            )
            world.commit(plan)
            world.finish(world.running(FLOW))
            world.sync()
        world.plan()
        solver = world.scheduler.graph.solver
        sizes.append((solver.num_nodes, solver.num_arcs, world.scheduler.graph.tasks))
        assert np.all(world.scheduler.table.state == TaskState.ABSENT)
    entrances = 6 if preemption else 0  # of placements into machines, one arc each
    # sink, machines, X, racks and their arcs
    assert set(sizes) == {(1 + 6 + entrances + 1 + 2, 6 + entrances + 2 + 6, 0)}


@pytest.mark.parametrize("kind", ["flow", "flow_load_spreading"])
def test_kinds_conform_under_preemption_too(kind: str) -> None:
    check_conformance(registry.get(kind), {"preemption": True, "certify_every": 1})


@pytest.mark.parametrize(
    "field", [{"wait_cost": -1}, {"wait_quantum_us": 0}, {"certify_every": 0}, {"colour": "blue"}]
)
def test_bad_options_are_refused(field: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        QuincyOptions(**field)


def test_preemption_weighs_the_work_done_against_who_waits() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    # Going on costs 9 - seconds done, waiting 21 + seconds waited: a rival at 51 - 10 beats it by
    # 29.
    catalog = catalog_of(
        [{"elsewhere": 10, "unscheduled": 20}, {"elsewhere": 10, "unscheduled": 50}]
    )
    for worked_s, evicts in ((0, True), (25, True), (35, False)):
        world = FlowWorld(spec, quincy(spec, catalog, preemption=True, wait_cost=0))
        world.offer(tasks_of(np.arange(1), preference=1))
        world.commit(world.plan())
        victim = world.running(FLOW)
        world.now_us += worked_s * 1_000_000
        world.offer(tasks_of(np.array([1]), preference=2))
        plan = world.plan()
        assert plan.evict.tolist() == (victim.tolist() if evicts else [])
        assert plan.task.tolist() == ([1] if evicts else [])
        if evicts:
            assert world.commit(plan).accepted.all()
            assert world.cell.used[0, 0] == 1


def test_nobody_is_preempted_for_a_claim_that_is_not_made() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    catalog = catalog_of(
        [{"elsewhere": 10, "unscheduled": 20}, {"elsewhere": 10, "unscheduled": 500}]
    )
    world = FlowWorld(spec, quincy(spec, catalog, preemption=True))
    world.offer(tasks_of(np.arange(1), preference=1))
    world.commit(world.plan())
    world.offer(tasks_of(np.array([1, 2]), preference=2, gang=3))
    plan = world.plan()
    assert plan.stats["held_back"] == 1  # the flow gives one of the gang the slot, which is no use
    assert len(plan.evict) == len(plan.task) == 0


def test_migration_moves_a_task_to_a_better_machine_that_came_free() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 10, "unscheduled": 50}])
    world = FlowWorld(spec, quincy(spec, catalog, preemption=True))
    world.rival_claims([0], first_task=100)
    world.sync()
    task = tasks_of(np.arange(1), preference=1)
    world.offer(task)
    world.commit(world.plan())
    assert len(world.plan().evict) == 0
    world.finish(world.running(1))
    world.sync()
    plan = world.plan()
    assert plan.evict.tolist() == world.running(FLOW).tolist()
    world.commit(plan)
    world.sync()
    world.offer(task)
    assert placed(world.plan()) == {0: 0}


def test_a_task_that_came_and_went_costs_nothing() -> None:
    spec = slot_cell(machines=4, slots=1, rack_size=4)
    world = FlowWorld(spec, quincy(spec))
    world.offer(tasks_of(np.arange(1)))
    plan = world.plan()
    world.tell(ChangeKind.REJECTED, plan.task, plan.machine, np.array([-1]))
    world.plan()
    # still the same node, waiting
    assert (world.scheduler.work.added, world.scheduler.work.removed) == (0, 0)


def _dearer_after_a_second(scheduler: FlowScheduler) -> int:
    """By how much waiting costs more then, for a task that does."""
    world = FlowWorld(slot_cell(machines=1, slots=1, rack_size=1), scheduler)
    world.offer(tasks_of(np.arange(1), preference=1))
    world.plan()
    row, graph = np.zeros(1, np.int64), scheduler.graph
    at, later = (graph.wait_cost(scheduler.table, row, now_us) for now_us in (0, 1_000_000))
    return int(later[0] - at[0])


def test_waiting_grows_dearer_by_the_workloads_price_unless_the_options_state_another() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    priced = replace(catalog_of([LOCAL]), wait_cost=500, wait_quantum_us=20_000)
    for options, by_then in (
        ({}, 50 * 500),
        ({"wait_cost": 3}, 50 * 3),
        ({"wait_cost": 3, "wait_quantum_us": 1_000_000}, 3),
    ):
        assert _dearer_after_a_second(quincy(spec, priced, **options)) == by_then
    assert quincy(spec, priced)._policy.progress_price.cost == 25_000  # per second
    # whose costs are its own
    scheduler = build_load_spreading(LoadSpreadingOptions(), environment(spec, priced))
    assert _dearer_after_a_second(scheduler) == 1


def test_counted_work_follows_what_a_round_does() -> None:
    spec = slot_cell(machines=40, slots=2, rack_size=8)
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL])))
    world.offer(tasks_of(np.arange(60), preference=1))
    first = world.plan()
    work = world.scheduler.work
    solver = world.scheduler.graph.solver
    assert (work.joining, work.placing, work.waiting, work.machines) == (1, 1, 60, 40)
    assert 1 + 40 + 40 + work.added == solver.num_nodes + solver.num_arcs and work.removed == 0
    assert work.certified + work.read > 0 and work.scanned > 0 and work.augmented == 60
    world.commit(first)
    world.sync()
    quiet = world.plan()  # the tasks leave the graph, with their arcs
    work = world.scheduler.work
    assert (work.joining, work.placing, work.waiting, work.added) == (0, 0, 0, 0)
    assert work.removed >= 60 * 3
    world.plan()
    work = world.scheduler.work
    assert (work.added, work.removed, work.altered, work.scanned) == (0, 0, 0, 0)
    assert first.operations > quiet.operations > work.operations > 0


@pytest.mark.parametrize("count", [field.name for field in fields(RoundWork)])
def test_every_count_has_a_weight(count: str) -> None:
    idle = RoundWork(*[0] * len(fields(RoundWork)))
    assert idle.operations == 0
    assert (
        replace(idle, **{count: 10**9}).operations
        == 10**9 * getattr(WEIGHTS_PS, count) // PS_PER_OPERATION
        > 0
    )


def table_of(tasks: TaskBatch) -> TaskTable:
    table = TaskTable(tasks.request.shape[1])
    table.offer(tasks)
    return table


def test_a_batch_is_what_was_offered() -> None:
    request = np.array([[1, 2], [3, 4], [5, 6]])
    tasks = tasks_of(
        np.array([7, 3, 9]),
        job=np.array([1, 2, 1]),
        request=request,
        submit_us=5,
        preference=np.array([0, 2, 1]),
        gang=np.array([-1, 4, 4]),
    )
    table = table_of(tasks)
    row = table.rows(np.array([9, 7, 8, -1]))
    assert row[2:].tolist() == [NO_ROW, NO_ROW]
    batch = table.batch(row[:2])
    expected = tasks.take(np.array([2, 0]))
    for field in TaskBatch.__slots__:
        got, wanted = getattr(batch, field), getattr(expected, field)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted), field
    assert table.requests(row[:2]).tolist() == [[5, 6], [1, 2]]
    assert table.gangs(row[:2]).tolist() == [4, -1]


def test_columns_of_any_layout_may_be_offered() -> None:
    wide = np.arange(24).reshape(4, 6)
    tasks = tasks_of(np.arange(8)[::2], request=wide[:, ::3], gang=np.arange(8)[::-2])
    table = table_of(tasks)
    batch = table.batch(table.rows(tasks.task))
    assert np.array_equal(batch.request, wide[:, ::3])
    assert batch.gang.tolist() == [7, 5, 3, 1]


@pytest.mark.parametrize("preemption", [False, True])
def test_a_task_that_ran_before_the_scheduler_began_moves_only_under_preemption(
    preemption: bool,
) -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 10, "unscheduled": 50}])
    world = FlowWorld(spec, quincy(spec, catalog, preemption=preemption))
    task = tasks_of(np.arange(1), preference=1)
    request, synced = np.ones((1, 1), np.int64), np.zeros(1, np.int64)
    claim = Transaction(FLOW, 0, task.task, np.array([1], np.int32), request, synced)
    allocation = world.cell.commit(claim, 0).allocation
    machine = np.array([1], np.int32)
    world.scheduler.observe(
        TaskChanges(ChangeKind.ADOPTED, 0, task.task, machine, allocation, task)
    )
    world.sync()
    assert world.plan().evict.tolist() == (allocation.tolist() if preemption else [])
