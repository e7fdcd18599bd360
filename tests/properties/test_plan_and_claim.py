"""A round in one native call is the round in steps: the same plan, the same claims in the view."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import (
    ClaimedPlan,
    PartitionRanking,
    Plan,
    PlanContext,
    SchedulerEnvironment,
)
from shared_state.partition import Partitioning
from shared_state.tasks import TaskBatch
from shared_state.view import ClusterView
from tests.greedy_world import catalog_of, cell_of, tasks_of, view_of

ROOM = 4  # of a machine


class InSteps(GreedyScheduler):
    """Plans alike. A subclass may plan otherwise, so it is never planned in one call."""


@st.composite
def worlds(draw):
    """A cell's capacity and use, the tasks of a run, and those of the rounds of a scheduler."""
    machines = draw(st.integers(2, 12))
    dimensions = draw(st.integers(1, 2))
    amounts = st.lists(st.integers(0, ROOM), min_size=dimensions, max_size=dimensions)
    used = draw(st.lists(amounts, min_size=machines, max_size=machines))
    count = draw(st.integers(1, 20))
    tasks = tasks_of(
        draw(st.lists(amounts, min_size=count, max_size=count)),
        draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)),
        draw(st.lists(st.sampled_from([-1, -1, -1, 0, 1]), min_size=count, max_size=count)),
    )
    order = draw(st.permutations(range(count)))
    cut = draw(st.integers(0, count))
    return np.full((machines, dimensions), ROOM), used, tasks, (order[:cut], order[cut:])


def outcome(
    build: type[GreedyScheduler],
    kind: PlacementKind,
    preferred_first: bool,
    world,
    rankings: tuple[PartitionRanking, PartitionRanking],
) -> tuple[list[ClaimedPlan], ClusterView]:
    capacity, used, tasks, rounds = world
    spec = cell_of(capacity)
    partitioning = Partitioning(np.array([0, spec.machines // 2, spec.machines]))
    view = view_of(spec, partitioning, used)
    environment = SchedulerEnvironment(
        "one", spec, partitioning.offsets, catalog_of(({1: 2, 0: 1}, {0: 3}))
    )
    kind_spec = replace(
        registry.get("random"),
        build=lambda _, environment: build(kind, environment, preferred_first),
    )
    scheduler = CheckedScheduler.build(kind_spec, GreedyOptions(), environment, tasks)
    order = np.array([1, 0], np.int32)
    done = [
        scheduler.plan_and_claim(
            np.array(offered, np.int64), view, PlanContext(number, number, ranking, order)
        )
        for number, (offered, ranking) in enumerate(zip(rounds, rankings, strict=True))
    ]
    return done, view


@given(
    st.sampled_from(PlacementKind),
    st.booleans(),
    worlds(),
    st.tuples(st.sampled_from(PartitionRanking), st.sampled_from(PartitionRanking)),
)
def test_one_call_does_what_the_steps_do(kind, preferred_first, world, rankings) -> None:
    direct, view = outcome(GreedyScheduler, kind, preferred_first, world, rankings)
    stepped, expected = outcome(InSteps, kind, preferred_first, world, rankings)
    for one, other in zip(direct, stepped, strict=True):
        assert one.ticket == other.ticket
        assert one.synced_us.tolist() == other.synced_us.tolist()
        assert one.in_full == other.in_full
        for field in fields(Plan):
            ours, theirs = getattr(one.plan, field.name), getattr(other.plan, field.name)
            if isinstance(ours, np.ndarray):
                assert ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist(), field.name
            else:
                assert ours == theirs, field.name
    assert view.free.tolist() == expected.free.tolist()
    assert view.claims_in_flight == expected.claims_in_flight


def test_a_task_that_does_not_exist_leaves_the_view_unchanged() -> None:
    spec = cell_of([[1], [1]])
    view = view_of(spec, Partitioning(np.array([0, 2])))
    environment = SchedulerEnvironment("one", spec, np.array([0, 2]), catalog_of())
    tasks: TaskBatch = tasks_of([[1], [1]])
    scheduler = CheckedScheduler.build(registry.get("random"), GreedyOptions(), environment, tasks)
    context = PlanContext(0, 0, PartitionRanking.OPTIMISTIC, np.zeros(1, np.int32))
    for wrong in (2, -1):
        with pytest.raises(Exception, match=r"task\[1\]: there is no such task"):
            scheduler.plan_and_claim(np.array([0, wrong]), view, context)
    assert view.free.tolist() == [[1], [1]] and view.claims_in_flight == 0
