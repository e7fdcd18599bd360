"""Rounds of the flow scheduler on a true cell. FlowWorld.plan checks certificate, OR-tools' cost
and fit in every round."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from experiments.workloads.input_data import input_catalog
from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.flow.scheduler import QuincyOptions
from schedulers.flow.solver_graph import TaskState, TaskTable
from schedulers.interface import ChangeKind, PendingReason
from shared_state.random import Stream
from tests.flow_world import FLOW, RIVAL, FlowWorld, catalog_of, cell_of, slot_cell, tasks_of
from tests.unit.flow_schedulers import LOCAL, placed, quincy, spreading


def test_preferences_are_filled_cheapest_first() -> None:
    spec = slot_cell(machines=4, slots=1, rack_size=2)
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL])))
    world.offer(tasks_of(np.arange(3), preference=1))
    plan = world.plan()
    machines = sorted(placed(plan).values())
    assert machines[:2] == [0, 1]  # the preferred one, its rack, then anywhere
    assert machines[2] in (2, 3)
    assert len(plan.pending) == 0


def test_tasks_without_preference_are_placed_at_once() -> None:
    spec = slot_cell(machines=2, slots=2, rack_size=2)
    world = FlowWorld(spec, quincy(spec))
    world.offer(tasks_of(np.arange(5)))
    plan = world.plan()
    assert len(plan.task) == 4
    assert plan.pending_reason.tolist() == [PendingReason.NO_ROOM]


def test_a_graph_without_a_way_out_names_the_tasks_that_cannot_leave() -> None:
    """No policy makes one; an error that did would have to be found."""
    spec = slot_cell(machines=2, slots=2, rack_size=2)
    scheduler = quincy(spec)
    world = FlowWorld(spec, scheduler)
    world.offer(tasks_of(np.arange(3)))
    solve = scheduler.graph.solve

    def solve_without_arcs_of_the_second(table: TaskTable) -> None:
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


def test_waiting_is_worth_more_than_a_bad_place_until_its_price_has_risen() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 10, "unscheduled": 4}])
    world = FlowWorld(spec, quincy(spec, catalog, may_wait=True))
    world.offer(tasks_of(np.arange(2), preference=1))
    plan = world.plan()
    assert list(placed(plan).values()) == [0]
    assert plan.pending_reason.tolist() == [PendingReason.PRICED_OUT]
    world.commit(plan)
    waited_s = 0
    while not len((plan := world.plan()).task) and waited_s < 20:
        waited_s += 1
        world.now_us += 1_000_000
    assert list(placed(plan).values()) == [1]
    assert waited_s == 6  # 4 + 1 + waited exceeds 10; at 5 it is a tie, and nothing moves


def test_no_task_waits_beside_a_free_place_unless_it_may() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 10, "unscheduled": 4}])
    world = FlowWorld(spec, quincy(spec, catalog))
    world.offer(tasks_of(np.arange(3), preference=1))
    plan = world.plan()
    assert sorted(placed(plan).values()) == [0, 1]
    assert plan.pending_reason.tolist() == [PendingReason.NO_ROOM]


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


def test_a_patient_task_takes_its_machine_when_that_gets_room() -> None:
    world = patient_world()
    world.offer(tasks_of(np.arange(2), preference=1))
    first = world.plan()
    world.commit(first)
    world.now_us = 100_000
    world.finish(world.running(FLOW))
    assert placed(world.plan()) == {int(first.pending[0]): 0}


def test_of_patient_tasks_the_one_that_has_waited_longest_is_placed() -> None:
    """Older tasks have later numbers here: no other order gives this one."""
    world = patient_world()
    world.rival_claims([0], 100)
    world.sync()
    for number, submit_us in ((3, 0), (2, 200_000), (1, 400_000)):
        world.now_us = submit_us
        world.offer(tasks_of(np.array([number]), job=number, submit_us=submit_us, preference=1))
        assert not len(world.plan().task)
    first = []
    world.finish(world.running(RIVAL))
    world.sync()
    for _ in range(3):
        plan = world.plan()
        first += plan.task.tolist()
        world.commit(plan)
        world.finish(world.running(FLOW))
    assert first == [3, 2, 1]


def test_patience_counts_from_the_submission_also_for_rejected_tasks() -> None:
    world = patient_world()
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


def test_requests_of_several_dimensions_fit_and_oversubscribed_ones_are_placed_singly() -> None:
    spec = cell_of(np.array([[10, 10], [10, 10], [100, 100]], np.int64))
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 5, "unscheduled": 1000}])
    request = np.array([[2, 2]] * 4 + [[9, 9]], np.int64)
    world = FlowWorld(spec, quincy(spec, catalog))
    world.offer(tasks_of(np.arange(5), request=request, preference=1))
    plan = world.plan()
    assert len(plan.task) == 5
    assert plan.stats["oversubscribed"] > 0
    assert plan.stats["repaired"] > 0


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
    assert set(sizes) == {(1 + 6 + 1 + 2, 6 + 2 + 6, 0)}  # sink, machines, X, racks and their arcs


@pytest.mark.parametrize("kind", ["quincy", "flow_load_spreading"])
def test_kinds_conform_under_preemption_too(kind: str) -> None:
    check_conformance(registry.get(kind), {"preemption": True, "certify_every": 1})


@pytest.mark.parametrize(
    "field", [{"wait_cost": -1}, {"wait_quantum_us": 0}, {"certify_every": 0}, {"colour": "blue"}]
)
def test_bad_options_are_refused(field: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        QuincyOptions(**field)
