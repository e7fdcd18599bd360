"""Tasks that may run on some machines only: no scheduler places them elsewhere, and a plan that
does so is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parsync.workload.checks import validate
from schedulers import registry
from schedulers.checked import PlanCheck
from schedulers.greedy.scheduler import PlacementKind
from schedulers.interface import Capability, PartitionRanking, PendingReason, SchedulerEnvironment
from schedulers.objective import BestPlacement, PlacementConstraints
from shared_state.errors import AgoraError
from shared_state.tasks import NOWHERE_ELSE, PreferenceCatalog
from tests.fixtures.service_batch_runs import group, made, recorded
from tests.greedy_world import Greedy, catalog_of, cell_of, tasks_of
from tests.unit.test_checked_scheduler import Trial

PICKY = {
    "machines": 60,
    "duration_s": 200.0,
    "initial_fill_percent": 10,
    "batch": {"tasks_per_job": 10.0, "pickiness": 0.5},
    "service": {"pickiness": 0.75},
}
PROTOCOL = {"kind": "optimistic", "sync": "every_attempt", "gap_s": 1.0}
KINDS = [kind.name.lower() for kind in PlacementKind]
LISTED = {1: 0, 4: 0, 9: 3}
RACK = 2  # machines 8 to 11


def constraint(*sets: Any) -> PreferenceCatalog:
    """The sets of catalog_of, each a constraint."""
    catalog = catalog_of(*sets)
    elsewhere = catalog.elsewhere_cost.copy()
    elsewhere[1:] = NOWHERE_ELSE
    return replace(catalog, elsewhere_cost=elsewhere)


@pytest.mark.parametrize("ranking", list(PartitionRanking))
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_kinds_place_what_fits_the_listed_and_leave_the_rest(
    kind: str, ranking: PartitionRanking
) -> None:
    """Three machines with room for two each, and free tasks that compete for them."""
    cell = cell_of([2] * 12, rack_size=4)
    greedy = Greedy(kind, cell, 3, catalog=constraint((LISTED, {})))
    for stream in range(20):
        preference = np.tile([1, 0], 10).astype(np.int32)
        plan = greedy.plan(tasks_of([1] * 20, preference), ranking, stream)
        constrained = plan.machine[preference[plan.task] == 1]
        assert set(constrained.tolist()) <= set(LISTED)
        free = np.count_nonzero(preference[plan.task] == 0)
        assert free == 10, "tasks without a constraint find room among the 24 places"
        left = preference[plan.pending]
        assert (left == 1).all()
        assert (plan.pending_reason == PendingReason.NO_ROOM).all()
        used = np.bincount(plan.machine, minlength=12)
        assert (used[list(LISTED)] == 2).all() or not len(left), "none waits beside room"


@pytest.mark.parametrize("kind", KINDS)
def test_racks_may_be_listed(kind: str) -> None:
    greedy = Greedy(kind, cell_of([2] * 12, rack_size=4), 3, catalog=constraint(({}, {RACK: 5})))
    plan = greedy.plan(tasks_of([1] * 20, 1))
    assert len(plan.task) == 8
    assert set(plan.machine.tolist()) == {8, 9, 10, 11}


def test_a_gang_larger_than_its_machines_waits() -> None:
    greedy = Greedy("random", cell_of([2] * 12), catalog=constraint((LISTED, {})))
    assert len(greedy.plan(tasks_of([1] * 7, 1, gang=0)).task) == 0
    assert len(greedy.plan(tasks_of([1] * 6, 1, gang=0)).task) == 6


def test_plans_that_break_a_constraint_are_refused() -> None:
    """Whether or not the plan claims all the tasks of its call, which is checked apart."""
    for capabilities in ((), (Capability.KEEPS_PENDING,)):
        trial = Trial(*capabilities)
        table = replace(trial.table, preference=np.ones(len(trial.table), np.int32))
        constraints = PlacementConstraints.of(constraint(({0: 0}, {})), trial.spec)
        trial.table = table
        trial.check = PlanCheck(table, frozenset(capabilities), constraints)
        assert trial.plan([0], {0: 0}) is None
        broken = trial.plan([1], {1: 1})
        assert broken is not None
        assert broken.startswith("plan.machine: task 1 may not run on machine 1: ")
    assert PlacementConstraints.of(catalog_of(({0: 0}, {})), trial.spec) is None


def test_the_optimum_leaves_waiting_what_fits_nowhere() -> None:
    cell = cell_of([2] * 12)
    catalog = constraint((LISTED, {}))
    best = BestPlacement(cell, catalog).cost(
        cell.capacity.copy(), np.ones(8, np.int32), np.ones((8, 1), np.int64)
    )
    waiting = 2 * int(catalog.unscheduled_cost[1])
    assert best.exact
    assert best.cost == 2 * 3 + waiting  # two on machine 9, which costs 3 each


def test_a_constraint_that_lists_nothing_is_no_workload() -> None:
    workload = made({"machines": 10, "duration_s": 100.0})
    elsewhere = workload.catalog.elsewhere_cost.copy()
    elsewhere[1] = NOWHERE_ELSE
    catalog = replace(workload.catalog, elsewhere_cost=elsewhere)
    with pytest.raises(ValueError, match="lists no machine or rack"):
        validate(replace(workload, catalog=catalog))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("randomized_first_fit", {}),
        ("load_spreading", {"patience_s": 5.0}),
        ("flow", {}),
        ("flow", {"max_task_arcs": 100}),
    ],
)
def test_no_task_of_a_run_is_where_it_may_not_be(kind: str, options: dict[str, Any]) -> None:
    workload = made(PICKY)
    schedulers = group("all", PROTOCOL, kind=kind, count=2, options=options)
    tasks = recorded(workload, [schedulers], partitions=4, drain_us=100_000_000)["tasks"]
    preference, machine = workload.tasks.preference[tasks["task"]], tasks["machine"]
    assert set(preference) == {1, 2}
    constraints = PlacementConstraints.of(workload.catalog, workload.cell)
    assert constraints is not None
    assert constraints.first_broken(preference, machine) == -1


@pytest.mark.parametrize(
    ("kind", "options", "what"),
    [
        ("flow_load_spreading", {}, "load_spreading"),
        ("random", {"prices": "implied"}, "slot prices"),
        ("flow", {"prices": "implied"}, "slot prices"),
    ],
)
def test_kinds_that_ignore_constraints_are_refused(
    kind: str, options: dict[str, Any], what: str
) -> None:
    catalog, cell = constraint((LISTED, {})), cell_of([2] * 12)
    spec = registry.get(kind)
    environment = SchedulerEnvironment("one", cell, np.array([0, 12]), catalog)
    with pytest.raises(AgoraError, match=f"{what}: expected a workload without constraints"):
        spec.build(spec.parse_options(options), environment)
