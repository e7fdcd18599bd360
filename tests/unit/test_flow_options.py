"""Options of flow schedulers: algorithms and races, migration, and rounds that end early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.config.run_config import validated
from flowsolver import algorithms
from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.flow.options import FlowOptions
from schedulers.flow.solver_work import SolverWork
from schedulers.interface import Capability, PendingReason, Plan
from shared_state.errors import AgoraError
from shared_state.tasks import PreferenceCatalog
from tests.flow_world import (
    FLOW,
    FlowWorld,
    catalog_of,
    environment,
    placed,
    quincy,
    slot_cell,
    tasks_of,
)

MACHINES = 30
# Firmament, Table 2
PLACES_WHEN_STOPPED = {"cost_scaling", "cycle_cancelling", "network_simplex"}
LOCAL_OR_FAR = {"machine": {0: 0}, "elsewhere": 10, "unscheduled": 50}
RACE = [{"name": "relaxation", "from_scratch": True}, {"name": "cost_scaling", "alpha": 9}]


def preferences(sets: int) -> PreferenceCatalog:
    rng = np.random.default_rng(1)
    return catalog_of(
        [
            {
                "machine": {
                    int(machine): int(rng.integers(0, 10))
                    for machine in rng.choice(MACHINES, 3, replace=False)
                },
                "rack": {int(rng.integers(0, 3)): 12},
                "elsewhere": 20,
                "unscheduled": 60,
            }
            for _ in range(sets)
        ]
    )


def rounds(world: FlowWorld, count: int, tasks: int) -> list[dict[str, int]]:
    """So many rounds, before each of which tasks arrive and time passes; the stats of each."""
    rng = np.random.default_rng(2)
    stats = []
    for number in range(count):
        some = np.arange(number * tasks, (number + 1) * tasks)
        preference = rng.integers(1, 21, tasks)
        world.offer(tasks_of(some, job=number, preference=preference, submit_us=world.now_us))
        plan = world.plan()
        world.commit(plan)
        world.sync()
        world.now_us += 1_000_000
        stats.append({**plan.stats, "claims": len(plan.task)})
    return stats


@pytest.mark.parametrize(
    "algorithm",
    [
        *algorithms(),
        *({"name": name, "from_scratch": True} for name in algorithms()),
        {"name": "relaxation", "arc_prioritisation": False},
        {"name": "cost_scaling", "alpha": 2, "task_removal": False, "price_refine": False},
        RACE,
    ],
    ids=str,
)
def test_every_algorithm_and_race_finds_the_optimum(algorithm: object) -> None:
    world = FlowWorld(
        slot_cell(MACHINES, 2, 10),
        quincy(slot_cell(MACHINES, 2, 10), preferences(20), algorithm=algorithm, preemption=True),
    )
    assert all(one["unrouted"] == 0 for one in rounds(world, 4, 15))


def test_algorithms_are_written_as_they_are_read() -> None:
    for given in (
        "relaxation",
        RACE,
        {"name": "cost_scaling", "alpha": 3},
        ["relaxation", RACE[1]],
    ):
        options = registry.get("flow").parse_options({"algorithm": given})
        assert options.model_dump(mode="json")["algorithm"] == given
    assert registry.get("firmament").parse_options({}) == registry.get("firmament").parse_options(
        {"algorithm": RACE}
    )


@pytest.mark.parametrize("kind", ["firmament", "quincy"])
def test_the_kinds_conform(kind: str) -> None:
    check_conformance(registry.get(kind), {"certify_every": 1})


def test_a_race_is_the_same_in_every_run() -> None:
    found = []
    for _ in range(3):
        spec = slot_cell(MACHINES, 2, 10)
        scheduler = quincy(spec, preferences(20), algorithm=RACE, preemption=True)
        stats = rounds(FlowWorld(spec, scheduler), 5, 14)
        found.append([(one["claims"], one["migrated"], one["arcs_scanned"]) for one in stats])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("migration", [True, False])
def test_without_migration_a_running_task_stays_or_waits(migration: bool) -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    options = {"preemption": True, "migration": migration, "wait_cost": 0, "may_wait": True}
    urgent = {"machine": {1: 0}, "unscheduled": 500, "elsewhere": 400}
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL_OR_FAR, urgent]), **options))
    world.rival_claims([0], first_task=100)
    world.sync()
    task = tasks_of(np.arange(1), preference=1)
    world.offer(task)
    assert placed(committed(world)) == {0: 1}
    world.finish(world.running(1))  # its preferred machine is free
    world.sync()
    moves = world.running(FLOW).tolist() if migration else []
    assert world.plan().evict.tolist() == moves
    if migration:
        return
    world.offer(tasks_of(np.array([1]), preference=2))
    plan = world.plan()  # but it gives way
    assert plan.evict.tolist() == world.running(FLOW).tolist() and placed(plan) == {1: 1}
    world.commit(plan)
    world.sync()
    world.offer(task)  # and can go anywhere again
    assert placed(world.plan()) == {0: 0}


def committed(world: FlowWorld) -> Plan:
    plan = world.plan()
    world.commit(plan)
    return plan


@pytest.mark.parametrize(
    ("kind", "given", "cost"),
    [
        ("flow", {}, 3),
        ("firmament", {}, 6),
        ("quincy", {}, 6),
        ("quincy", {"wait_cost": 5}, 10),
        ("quincy", {"progress_cost": 1}, 1),
        ("firmament", {"policy": "load_spreading"}, None),
    ],
)
def test_progress_is_priced_as_published(
    kind: str, given: dict[str, object], cost: int | None
) -> None:
    """Twice the price of a second of waiting: here 3, the catalog's."""
    catalog = replace(preferences(3), wait_cost=3, wait_quantum_us=1_000_000)
    spec = registry.get(kind)
    scheduler = spec.build(
        spec.parse_options(given), environment(slot_cell(MACHINES, 2, 10), catalog)
    )
    price = scheduler._policy.progress_price
    assert cost is None or (price.cost, price.quantum_us) == (cost, 1_000_000)


def test_a_round_s_operations_are_those_of_its_solver() -> None:
    """Cost scaling from scratch counts more than the default, and a race the winner's and more."""
    spec, operations = slot_cell(MACHINES, 2, 10), {}
    scratch = {"name": "cost_scaling", "from_scratch": True}
    for name, algorithm in (("default", "incremental_ssp"), ("one", scratch), ("race", RACE)):
        world = FlowWorld(spec, quincy(spec, preferences(20), algorithm=algorithm))
        world.offer(tasks_of(np.arange(40), preference=np.arange(40) % 20 + 1))
        operations[name] = world.plan().operations
        work = world.scheduler.work
        assert (work.scanned > 0) is (name == "default")
        if name == "default":
            assert operations[name] == work.operations
        else:
            counted = SolverWork.of(
                world.scheduler.graph.work,
                world.scheduler.graph.size,
                world.scheduler.solved_by.from_scratch,
            )
            ps = counted.duration_ps(world.scheduler.solved_by.name)
            assert operations[name] >= work.operations + ps // PS_PER_OPERATION
    assert operations["one"] > operations["default"]


@pytest.mark.parametrize("preemption", [False, True])
@pytest.mark.parametrize("algorithm", sorted(algorithms()))
def test_a_round_that_ends_early_places_what_has_a_way(algorithm: str, preemption: bool) -> None:
    """FlowWorld checks that claims fit."""
    spec = slot_cell(MACHINES, 2, 10)
    partly = 0
    for budget in (1, 300, 1_000, 4_000, 1 << 40):
        scheduler = quincy(
            spec,
            preferences(20),
            algorithm=algorithm,
            preemption=preemption,
            max_operations=budget,
        )
        world = FlowWorld(spec, scheduler)
        for one in rounds(world, 5, 20):
            in_graph = one["tasks"]
            assert 0 <= one["unrouted"] <= in_graph
            if one["unrouted"] and algorithm not in PLACES_WHEN_STOPPED:
                assert one["unrouted"] == in_graph and one["claims"] == one["migrated"] == 0
            partly += 0 < one["unrouted"] < in_graph
        if budget == 1 << 40:
            assert one["unrouted"] == 0
    assert (partly > 0) is (algorithm == "cost_scaling") or algorithm in PLACES_WHEN_STOPPED


@pytest.mark.parametrize("algorithm", ["successive_shortest_path", "relaxation"])
def test_tasks_whose_flow_was_not_routed_are_pending_for_that(algorithm: str) -> None:
    """Though there is room for all."""
    spec = slot_cell(MACHINES, 2, 10)
    scheduler = quincy(spec, preferences(20), algorithm=algorithm, max_operations=1)
    world = FlowWorld(spec, scheduler)
    world.offer(tasks_of(np.arange(20)))
    plan = world.plan()
    assert plan.stats["unrouted"] > 0 and len(plan.pending) > 0
    assert set(plan.pending_reason.tolist()) == {PendingReason.NOT_ROUTED}


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("firmament", {"algorithm": ["relaxation", "relaxation"]}, "option 'algorithm': .*twice"),
        ("firmament", {"algorithm": [{"name": "cost_scaling", "alpha": 1}]}, ".* alpha = 1"),
        ("flow", {"algorithm": {"name": "relaxation", "alpha": 9}}, "option 'algorithm': .*alpha"),
        ("flow", {"algorithm": {"name": "relaxation", "beta": 9}}, "option 'algorithm': .*beta"),
        (
            "flow",
            {"algorithm": {"name": "cost_scaling", "alpha": 2.5}},
            "option 'algorithm': .*alp",
        ),
        ("flow", {"algorithm": "simplex"}, "option 'algorithm': .*simplex"),
        ("flow", {"algorithm": []}, "option 'algorithm': "),
        ("flow", {"algorithm": 3}, "option 'algorithm': "),
        ("flow", {"max_operations": 0}, "option 'max_operations': .* got 0"),
        ("quincy", {"migration": 1}, "option 'migration': "),
    ],
)
def test_bad_options_are_refused(kind: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(AgoraError, match=f"^scheduler kind '{kind}', {says}"):
        registry.get(kind).parse_options(options)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("flow", {"migration": False}, "migration = false: .* unless preemption is on"),
        ("firmament", {"migration": False, "preemption": False}, "migration = false: "),
        ("quincy", {"deterministic": False}, "deterministic = false: .* unless several alg"),
        ("flow", {"deterministic": False, "algorithm": ["relaxation"]}, "deterministic = false: "),
    ],
)
def test_options_without_effect_are_refused(
    kind: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(AgoraError, match=f"^scheduler kind '{kind}': {says}"):
        registry.get(kind).parse_options(options)


def test_a_kind_may_have_defaults_that_have_no_effect_by_themselves() -> None:
    class Options(FlowOptions):
        migration: bool = False
        deterministic: bool = False

    assert not Options().migration
    written = {"migration": False, "deterministic": False}
    assert Options.model_validate(written) == Options()


def run(kind: str, decision: str, live: bool = False, **options: object) -> None:
    group = {
        "name": "g",
        "kind": kind,
        "count": 1,
        "options": options,
        "decision": {"clock": decision, **({"task_us": 10.0} if decision == "modelled" else {})},
        "protocol": {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.1},
    }
    tree = {
        "workload": {"kind": "synthetic", "machines": 20, "phase_s": 2.0},
        "arms": [{"name": "a", "partitions": 1, "groups": [group]}],
        "settle_s": 0.1,
        **({"runtime": "ray", "seeds": 1} if live else {}),
    }
    validated(tree, "test")


def test_a_race_needs_times_that_it_decides() -> None:
    run("firmament", "counted")
    run("firmament", "measured")
    run("firmament", "modelled", algorithm="relaxation")
    run("quincy", "modelled")
    with pytest.raises(AgoraError, match="'firmament' races algorithms, which has no effect"):
        run("firmament", "modelled")
    with pytest.raises(AgoraError, match="'flow' races algorithms"):
        run("flow", "modelled", algorithm=RACE)


def test_a_race_in_virtual_time_is_deterministic() -> None:
    with pytest.raises(AgoraError, match="'firmament', option 'deterministic': a race in virtual"):
        run("firmament", "counted", deterministic=False)
    run("firmament", "measured", live=True, deterministic=False)
    options = registry.get("firmament").parse_options({"deterministic": False})
    capabilities = registry.get("firmament").with_options(options).capabilities
    assert {Capability.RACES, Capability.DEPENDS_ON_TIMING} <= capabilities
