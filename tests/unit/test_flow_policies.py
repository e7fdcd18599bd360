"""What the built-in policies rest on: run times as schedulers learn them, interference classes,
fair shares; and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.conformance import check_conformance
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.policies import registry
from schedulers.flow.policies.interference import ANIMALS, InterferenceClasses
from schedulers.flow.policies.waiting_bounds import fair_shares
from schedulers.interface import ChangeKind, SchedulerEnvironment, TaskChanges
from schedulers.registry import get
from schedulers.run_times import RunningSince, RunTimeEstimator
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import NOWHERE_ELSE
from tests.fixtures.examples import examples
from tests.flow_world import catalog_of, slot_cell, tasks_of

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


# network_aware needs a cell with a resource that is a bandwidth
@pytest.mark.parametrize("policy", [one for one in POLICIES if one != "network_aware"])
def test_every_policy_keeps_the_contract_of_schedulers(policy: str) -> None:
    check_conformance(get("flow"), {"policy": policy, "preemption": True})


@pytest.mark.parametrize("option", ["fair_share", "admit_gangs"])
def test_bounds_of_waiting_keep_the_contract_of_schedulers(option: str) -> None:
    check_conformance(get("flow"), {option: True, "preemption": option == "fair_share"})


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
