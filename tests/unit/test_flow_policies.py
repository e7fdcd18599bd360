"""What the built-in policies rest on: run times as schedulers learn them, interference classes,
fair shares; and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.policies import registry
from schedulers.flow.policies.conformance import check_policy_conformance
from schedulers.flow.policies.interface import MachineLoad, ObservedCell, TimePrice
from schedulers.flow.policies.interference import ANIMALS, InterferenceClasses
from schedulers.flow.policies.waiting_bounds import GangAdmission, fair_shares
from schedulers.flow.policies.whare_map import WhareMap
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import ChangeKind, SchedulerEnvironment, TaskChanges
from schedulers.registry import get
from schedulers.run_times import RunningSince, RunTimeEstimator
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import NOWHERE_ELSE, Int32, PreferenceCatalog, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_world import FlowWorld, catalog_of, slot_cell, tasks_of

UNKNOWN_US = 7
POLICIES = sorted(registry.BUILT_IN)


def changes(kind: ChangeKind, at_us: int, task: list[int], machine: int = 0) -> TaskChanges:
    n = len(task)
    on = np.full(n, machine, np.int32)
    return TaskChanges(kind, at_us, np.array(task, np.int64), on, np.arange(n))


def ran(estimator: RunTimeEstimator, task: list[int], begin_us: int, end_us: int) -> None:
    estimator.learn(changes(ChangeKind.COMMITTED, begin_us, task))
    estimator.learn(changes(ChangeKind.FINISHED, end_us, task))


def test_run_times_are_those_of_the_job_or_else_of_the_class() -> None:
    estimator = RunTimeEstimator(UNKNOWN_US)
    tasks = tasks_of(np.arange(6), job=np.array([0, 0, 1, 2, 3, 3]))
    tasks.task_class[3:] = 1
    assert estimator.estimate_us(tasks).tolist() == [UNKNOWN_US] * 6
    ran(estimator, [0, 1], 100, 200)
    ran(estimator, [2], 50, 350)
    assert estimator.estimate_us(tasks).tolist() == [100, 100, 300, *[UNKNOWN_US] * 3]
    ran(estimator, [3], 0, 11)
    late = tasks_of(np.arange(6, 8), job=9)
    late.task_class[1] = 1
    assert estimator.estimate_us(late).tolist() == [500 // 3, 11]


def test_a_task_that_has_to_run_again_teaches_nothing() -> None:
    running = RunningSince()
    running.ended(changes(ChangeKind.COMMITTED, 10, [0, 1, 2]))
    for kind, task in ((ChangeKind.EVICTED, 0), (ChangeKind.LOST, 1), (ChangeKind.REJECTED, 5)):
        assert len(running.ended(changes(kind, 20, [task])).task) == 0
    running.ended(changes(ChangeKind.COMMITTED, 30, [0]))
    ended = running.ended(changes(ChangeKind.FINISHED, 90, [0, 1, 2, 7], machine=3))
    assert ended.task.tolist() == [0, 2]  # 1 was lost, and nobody told when 7 began
    assert ended.ran_us.tolist() == [60, 80] and ended.machine.tolist() == [3, 3]


def test_jobs_are_drawn_for_interference_classes_in_their_shares() -> None:
    classes = InterferenceClasses({"batch": {"devil": 250, "turtle": 750}, "service": "rabbit"})
    tasks = tasks_of(np.arange(8000), job=np.arange(8000) // 2)
    found = np.array(ANIMALS)[classes.of(tasks)]
    assert np.array_equal(found[::2], found[1::2]), "all tasks of a job are of one class"
    assert set(found.tolist()) == {"devil", "turtle"}
    assert 0.22 < np.mean(found == "devil") < 0.28
    tasks.task_class[:4000] = 1
    tasks.task_class[4000:] = 2
    found = np.array(ANIMALS)[classes.of(tasks)]
    assert set(found[:4000].tolist()) == {"rabbit"} and set(found[4000:].tolist()) == {"sheep"}


def test_interference_classes_are_counted_by_machine() -> None:
    classes = InterferenceClasses({"batch": "devil", "service": "turtle"})
    tasks = tasks_of(np.arange(5))
    tasks.task_class[3:] = 1
    counts = classes.counts(tasks, np.array([2, 2, 0, 0, 0]), 3)
    assert counts.tolist() == [[2, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 2]]


@examples(200)
@given(st.lists(st.integers(0, 9), max_size=7), st.integers(0, 40))
def test_fair_shares_are_what_dealing_one_by_one_gives(tasks: list[int], places: int) -> None:
    share = [0] * len(tasks)
    left = places
    while left and share != tasks:
        for job, wanted in enumerate(tasks):
            if left and share[job] < wanted:
                share[job] += 1
                left -= 1
    assert fair_shares(np.array(tasks, np.int64), places).tolist() == share


def load(room: list[int]) -> MachineLoad:
    """Of machines with so much room, and nothing on them."""
    free = np.array(room, np.int64)
    return MachineLoad(free, np.zeros_like(free), free, free)


def test_gangs_are_admitted_as_they_were_submitted_while_there_is_room() -> None:
    admission = GangAdmission()
    tasks = tasks_of(np.arange(8), gang=np.array([4, 4, 5, 5, 6, 7, 7, -1]))
    tasks.submit_us[:] = [20, 20, 10, 10, 30, 5, 5, 0]
    group = np.unique(admission.waiting_group(tasks))
    size = np.array([np.count_nonzero(admission.waiting_group(tasks) == one) for one in group])
    admission.observe(observed(tasks.take(np.arange(5, 7)), np.zeros(2, np.int32), 2))
    bounds = admission.waiting_bounds(group, size, load([2, 3]))
    assert bounds is not None
    least, most = (dict(zip(group.tolist(), column.tolist(), strict=True)) for column in bounds)
    # 7 runs, 5 was submitted before 4, for which 1 place is left, which 6 takes
    assert [most[2 * gang + 1] for gang in (7, 5, 4, 6)] == [0, 0, 2, 0]
    assert [least[2 * gang + 1] for gang in (7, 5, 4, 6)] == [0, 0, 2, 0]
    assert (least[0], most[0]) == (0, 1), "a task without a gang may wait or not"


def observed(running: TaskBatch, machine: Int32, machines: int) -> ObservedCell:
    full = np.full((machines, 1), 9, np.int64)
    return ObservedCell(full, full, np.ones(machines, bool), running, machine)


def test_whare_map_learns_beside_which_tasks_others_ran_fast() -> None:
    """A task is not part of its own company."""
    policy = WhareMap(
        np.full((3, 1), 9), InterferenceClasses({"batch": "sheep"}), TimePrice(1, 1_000_000)
    )
    tasks = tasks_of(np.arange(4))
    policy.task_arcs(tasks)
    policy.learn(changes(ChangeKind.COMMITTED, 0, [0, 1, 2, 3]))
    # 0 and 1 run together, 2 alone on the second machine, nothing on the third
    policy.observe(observed(tasks.take(np.arange(3)), np.array([0, 0, 1], np.int32), 3), 0)
    policy.learn(changes(ChangeKind.FINISHED, 100, [0], machine=0))
    policy.learn(changes(ChangeKind.FINISHED, 300, [2], machine=1))
    policy.observe(observed(tasks.take(np.array([1])), np.array([0], np.int32), 3), 0)
    sheep = np.full(3, ANIMALS.index("sheep"))
    cost = policy.machine_arc_cost(sheep, np.zeros(3, np.int64), np.arange(3), load([9, 9, 9]))
    # mean of all: 200, of those beside one sheep 100, of those alone 300; the type is 100 % of best
    assert cost.tolist() == [100, 100, 100]
    policy.learn(changes(ChangeKind.FINISHED, 700, [3], machine=2))
    policy.observe(observed(tasks.take(np.arange(3)), np.array([0, 0, 1], np.int32), 3), 0)
    mean_us, known = policy._xi.mean_us(policy._xi_key(sheep, policy._company_of, np.arange(3)))
    assert known.tolist() == [False, True, True]  # beside two, beside one, alone
    assert mean_us[1:].tolist() == [100, 500]


def test_nothing_is_placed_without_costs_until_waiting_has_a_price() -> None:
    for wait_cost, placed in ((0, 0), (1, 3)):
        spec = slot_cell(2, 2, 2)
        given = {"policy": "void", "wait_cost": wait_cost}
        environment = SchedulerEnvironment(
            "flow", spec, Partitioning.by_topology(spec, 1).offsets, PreferenceCatalog.empty()
        )
        spec_of_kind = get("flow")
        scheduler = spec_of_kind.build(spec_of_kind.parse_options(given), environment)
        assert isinstance(scheduler, FlowScheduler)
        world = FlowWorld(spec, scheduler)
        world.offer(tasks_of(np.arange(3)))
        world.now_us = 5_000_000
        assert len(world.plan().task) == placed


def build(**options: object) -> None:
    spec = slot_cell(3, 1, 3)
    constrained = catalog_of(
        [{"machine": {0: 1}, "rack": {}, "elsewhere": NOWHERE_ELSE, "unscheduled": 5}]
    )
    parsed = get("flow").parse_options(options)
    offsets = Partitioning.by_topology(spec, 1).offsets
    get("flow").build(parsed, SchedulerEnvironment("flow", spec, offsets, constrained))


@pytest.mark.parametrize("policy", [one for one in POLICIES if one != "quincy"])
def test_policies_that_ignore_constraints_refuse_them(policy: str) -> None:
    with pytest.raises(AgoraError, match=rf"{policy}: expected a workload without constraints"):
        build(policy=policy)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fair_share": True}, "quincy with fair_share: expected a workload without constraints"),
        ({"admit_gangs": True}, "quincy with admit_gangs: expected a workload without"),
        ({"fair_share": True, "admit_gangs": True}, "set one of them"),
        ({"fair_share": True, "patience_s": 1.0}, "cannot stand beside patience_s"),
        (
            {"fair_share": True, "priority_preemption": True},
            "fair_share bounds who waits; it cannot stand beside priority_preemption",
        ),
        (
            {"policy": "coco", "interference": {"batch": "cow"}},
            "option 'interference': batch: expected turtle, sheep, rabbit or devil, got 'cow'",
        ),
        (
            {"policy": "coco", "interference": {"cron": "devil"}},
            "option 'interference': expected batch, service or mapreduce, got 'cron'",
        ),
        (
            {"policy": "whare_map", "interference": {"batch": {"devil": 500, "sheep": 400}}},
            "option 'interference': batch: expected shares that add up to 1000 permille",
        ),
        ({"policy": "octopus", "step_cost": 3}, "has no option 'step_cost'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(AgoraError, match=says):
        build(**options)


@pytest.mark.parametrize("option", ["fair_share", "admit_gangs"])
def test_bounds_of_waiting_keep_the_contract_of_policies(option: str) -> None:
    check_policy_conformance(registry.get("quincy"), {option: True})


def test_options_of_policies_do_not_hide_those_of_schedulers() -> None:
    for policy in POLICIES:
        own = set(registry.get(policy).options.model_fields)
        assert not own & set(FlowOptions.model_fields), policy
        assert own < set(options_with_policy(FlowOptions, {"policy": policy}).model_fields)


def names(policy: str) -> list[str]:
    spec = slot_cell(4, 2, 2)
    offsets = Partitioning.by_topology(spec, 1).offsets
    catalog = catalog_of([{"machine": {0: 1}, "elsewhere": 3, "unscheduled": 5}])
    made = registry.get(policy).build(
        options_with_policy(FlowOptions, {"policy": policy})(),
        SchedulerEnvironment("flow", spec, offsets, catalog),
    )
    return [made.aggregator_name(one) for one in range(made.aggregators)]


def test_aggregators_have_the_names_of_their_drawings() -> None:
    assert names("quincy") == ["X", "R0", "R1", "K0", "K1"]
    assert names("shortest_job_first") == ["X", "Y"] and names("energy_aware") == ["P", "B"]
    assert names("coco") == list(ANIMALS) and names("octopus") == ["X"]
