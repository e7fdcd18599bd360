"""The fluid bound of workloads: reference figures, rates that came true, and a scheduler that comes
close to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments.analysis.summary_model import PhaseBound
from experiments.campaign.running import make_workload, seed_figures
from experiments.config.run_config import ArmConfig, RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.studies.frontiers.build import condition_bounds
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.run import fluid_bound
from experiments.studies.run.fluid_bound import phase_bounds, phase_problem
from experiments.workloads import registry
from experiments.workloads.registry import ExpectedRates
from experiments.workloads.resources import MachineType, TaskShape
from experiments.workloads.synthetic import SyntheticOptions, demo_options, generate
from parsync.spec.arm import GroupConfig
from parsync.spec.decision_times import CountedTime
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from schedulers.prices import fluid
from schedulers.prices.fluid import solve_fluid
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG, CellSpec, PreferenceCatalog, TaskBatch
from tests.fixtures.frontier_toml import frontier_config

SECOND = 1_000_000
SMALL = SyntheticOptions(
    machines=60,
    slots_per_machine=4,
    machines_per_rack=10,
    mean_duration_s=0.2,
    batch_tasks=5,
    phase_s=20.0,
    load_percent=(95,),
    preference_groups=8,
    preferred_fraction=0.1,
)


def bounds_of(options: SyntheticOptions, seed: int = 3) -> list[PhaseBound | None]:
    return phase_bounds(WorkloadConfig.of("synthetic", options), generate(options, seed), 0)


def test_the_demos_cell_has_the_reference_figures() -> None:
    """Of an independent program, by scipy's maximum flow."""
    options = demo_options().model_copy(update={"load_percent": (80, 95, 99), "phase_s": 0.1})
    found = bounds_of(options)
    shares = [None if one is None else one.preferred_share for one in found]
    assert shares == pytest.approx([0.962, 0.923, 0.910], abs=5e-4)
    assert [one and one.rates for one in found] == ["expected"] * 3
    assert [one and one.random_share for one in found] == pytest.approx([0.0625] * 3)


def test_a_phase_of_too_much_work_has_no_steady_state() -> None:
    steady, overloaded = bounds_of(SMALL.model_copy(update={"load_percent": (60, 170)}))
    assert steady is not None and steady.is_steady and steady.highest_load is None
    assert overloaded is not None and overloaded.preferred_share is None
    # at 100 % no task is preferred, at 100 / 0.7 % all are
    assert 100 / 170 < (overloaded.highest_load or 0) < 100 / 170 / 0.7


def test_there_is_no_bound_where_nothing_is_preferred() -> None:
    assert bounds_of(SMALL.model_copy(update={"preference_groups": 0})) == [None]
    assert bounds_of(SMALL.model_copy(update={"no_preference_permille": 1000})) == [None]
    silent, busy = bounds_of(SMALL.model_copy(update={"load_percent": (0, 50)}))
    assert silent is None and busy is not None


def test_rates_that_came_true_are_close_to_those_expected_in_a_long_run() -> None:
    options = SMALL.model_copy(update={"poisson_arrivals": True})
    workload = generate(options, 3)
    realised = phase_problem(workload, 0, None, 2 * SECOND)
    spec = registry.get("synthetic")
    expected = phase_problem(workload, 0, spec.expected_rates(options), 2 * SECOND)
    assert (realised.rates, expected.rates) == ("realised", "expected")
    assert realised.slots == expected.slots == 240
    assert realised.fluid.rate_per_s.sum() == pytest.approx(0.95 * 240 / 0.2, rel=0.03)
    assert realised.fluid.rate_per_s == pytest.approx(expected.fluid.rate_per_s, rel=0.35)
    mean_us = realised.fluid.rate_per_s @ realised.fluid.elsewhere_us
    assert mean_us / realised.fluid.rate_per_s.sum() == pytest.approx(0.2 * SECOND, rel=0.05)


def test_a_problem_that_is_too_large_has_no_bound_but_a_random_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fluid, "MOST_COLUMNS", 3)
    options = SMALL.model_copy(update={"rack_cost": 300, "load_percent": (95, 50, 95)})
    for found in bounds_of(options):
        assert found is not None and not found.is_steady and found.highest_load is None
        assert found.random_share == pytest.approx(0.1)


def test_phases_of_one_load_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []
    monkeypatch.setattr(
        fluid_bound, "solve_fluid", lambda *of: solved.append(of) or solve_fluid(*of)
    )
    found = bounds_of(SMALL.model_copy(update={"load_percent": (95, 50, 95), "phase_s": 1.0}))
    assert found[0] == found[2] != found[1]
    assert len(solved) == 4  # two loads, two objectives


@pytest.mark.parametrize("change", [{"service_permille": 100}, {"preference_drift_s": 5.0}])
def test_rates_that_are_not_constant_are_those_that_came_true(change: dict[str, object]) -> None:
    (found,) = bounds_of(SMALL.model_copy(update={**change, "load_percent": (50,)}))
    assert found is not None and found.rates == "realised"


def tiny(duration_us: list[int], at_us: list[int]) -> Workload:
    """Three machines of two slots; tasks that prefer machine 0 and take half as long there."""
    n = len(duration_us)
    ids = np.arange(n, dtype=np.int64)
    one, none = np.ones(n, np.int32), np.zeros(0, np.int64)
    return Workload(
        name="tiny",
        cell=CellSpec(
            ("slots",),
            np.full((3, 1), 2, np.int64),
            np.zeros(3, np.int32),
            np.zeros(3, np.int64),
            np.array([1000]),
        ),
        catalog=PreferenceCatalog(
            np.array([0, 0, 1]),
            np.zeros(1, np.int32),
            np.zeros(1, np.int64),
            np.zeros(3, np.int64),
            np.zeros(0, np.int32),
            none,
            np.array([0, 1000]),
            np.array([2000, 2000]),
        ),
        tasks=TaskBatch(
            ids,
            ids,
            np.ones((n, 1), np.int64),
            one * 0,
            np.array(at_us, np.int64),
            one,
            np.full(n, NO_GANG),
            np.zeros(n, np.int8),
        ),
        duration_us=np.array(duration_us, np.int64),
        preferred_permille=500,
        arrival_us=np.array(at_us, np.int64),
        arrival_offsets=np.arange(n + 1, dtype=np.int64),
        arrival_rows=ids,
        initial=InitialPlacement(none, np.zeros(0, np.int32)),
        machine_events=MachineEvents(none, np.zeros(0, np.int32), np.zeros(0, np.bool_)),
        phases=(Phase(0, 10 * SECOND, 0),),
        end_us=10 * SECOND,
        facts={},
    )


def test_run_times_count_as_far_as_they_fall_into_the_phase() -> None:
    # the second would run for 4 s, or 2 s on machine 0, and 3 s are left; the third never ends
    found = phase_problem(
        tiny([1 * SECOND, 4 * SECOND, -1], [1 * SECOND, 7 * SECOND, 8 * SECOND]), 0, None, 0
    ).fluid
    assert found.rate_per_s == pytest.approx([0, 0.3])
    assert found.elsewhere_us == pytest.approx([0, (1 + 3 + 2) / 3 * SECOND])
    assert found.preferred_us == pytest.approx([0, (0.5 + 2 + 2) / 3 * SECOND])
    assert found.held_slots == 0


def test_tasks_from_before_hold_slots() -> None:
    # counted from 2 s to 10 s; the first runs at least until 1 + 6 / 2 = 4 s
    found = phase_problem(
        tiny([6 * SECOND, 1 * SECOND], [1 * SECOND, 5 * SECOND]), 0, None, 2_000_000
    )
    assert found.fluid.rate_per_s == pytest.approx([0, 1 / 8])
    assert found.fluid.held_slots == pytest.approx(2 / 8)


def test_initial_tasks_hold_slots_of_their_machines() -> None:
    workload = replace(
        tiny([6 * SECOND, 4 * SECOND, -1, 1 * SECOND], [0, 0, 0, 5 * SECOND]),
        arrival_us=np.array([5 * SECOND]),
        arrival_offsets=np.array([0, 1]),
        arrival_rows=np.array([3]),
        initial=InitialPlacement(np.array([0, 1, 2]), np.array([0, 1, 2], np.int32)),
    )
    found = phase_problem(workload, 0, None, 0)
    # on its preferred machine 0 the first takes half of its 6 s
    assert found.fluid.slots == pytest.approx([2 - 0.3, 2 - 0.4, 2 - 1.0])
    assert found.slots == pytest.approx(6)
    (bound,) = phase_bounds(WorkloadConfig.of("synthetic", WITH_SERVICES), workload, 0)
    assert bound is not None
    assert bound.preferred_share == pytest.approx(1.0)
    assert bound.occupancy == pytest.approx((0.3 + 0.4 + 1.0 + 0.05) / 6)


WITH_SERVICES = SMALL.model_copy(update={"service_permille": 1})  # rates are those that came true


def test_machines_count_for_the_time_that_they_are_up() -> None:
    events = MachineEvents(
        np.array([0, 4 * SECOND, 6 * SECOND]),
        np.array([1, 0, 0], np.int32),
        np.array([False, False, True]),
    )
    workload = replace(tiny([SECOND], [SECOND]), machine_events=events)
    assert phase_problem(workload, 0, None, 0).fluid.slots == pytest.approx([1.6, 0, 2])
    # counted from 5 s on: machine 0 is down for a second of five
    assert phase_problem(workload, 0, None, 5 * SECOND).fluid.slots == pytest.approx([1.6, 0, 2])


def test_several_resources_make_an_estimate() -> None:
    options = SMALL.model_copy(
        update={
            "machine_types": (MachineType(capacity={"cpu": 40, "mem": 10}),),
            "task_shapes": (TaskShape(request={"cpu": (5, 15), "mem": (2, 2)}),),
        }
    )
    (found,) = bounds_of(options)
    assert found is not None and found.is_estimate
    slots = phase_problem(generate(options, 3), 0, None, 0).slots
    assert slots == pytest.approx(60 * 40 / 10, rel=0.01)  # of the tightest: cpu, not mem's 5


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (lambda _: 3.0, "expected ExpectedRates, got a float"),
        (lambda _: ExpectedRates(np.ones((1, 2)), 1.0), r"per_s: expected shape \(1, 9\), got"),
        (lambda _: ExpectedRates(np.full((1, 9), -1.0), 1.0), "per_s: expected finite numbers"),
        (lambda _: ExpectedRates(np.full((1, 9), np.nan), 1.0), "per_s: expected finite numbers"),
        (lambda _: ExpectedRates(np.ones((1, 9)), 0.0), "mean_us: expected a run time above 0"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_wrong_rates_of_a_kind_of_workload_are_named(
    rates: Callable[[object], ExpectedRates], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(registry.get("synthetic"), expected_rates=rates)
    monkeypatch.setattr(registry, "get", lambda kind: spec)
    with pytest.raises(AgoraError, match=f"workload kind 'synthetic': .*{message}"):
        bounds_of(SMALL)


def test_a_patient_scheduler_comes_close_to_the_bound_and_not_beyond() -> None:
    arms = [
        ArmConfig(
            name=str(patience_s),
            partitions=6,
            groups=(
                GroupConfig(
                    name="greedy",
                    kind="preferred_first",
                    count=1,
                    decision=CountedTime(),
                    options={"patience_s": patience_s},
                    protocol={"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.05},
                ),
            ),
        )
        for patience_s in (0.0, 5.0)
    ]
    config = RunConfig(
        workload=WorkloadConfig.of("synthetic", SMALL), arms=tuple(arms), settle_s=2.0
    )
    (bound,) = bounds_of(SMALL, config.seed)
    assert bound is not None and bound.preferred_share is not None
    hasty, patient = (
        seed_figures(config, arm, config.seed).overall.preferred_share for arm in arms
    )
    assert hasty is not None and patient is not None
    # 20,000 tasks in jobs of some batches of 5: the share of the popular groups varies
    assert hasty < patient < bound.preferred_share + 0.02
    assert (bound.way(patient) or 0) > 0.9


def test_every_condition_of_a_frontier_has_its_bound() -> None:
    config = frontier_config()
    frontier = config.frontier.model_copy(update={"load_percent": (60, 90), "gap_s": (0.05, 0.1)})
    grid = make_grid(config.model_copy(update={"frontier": frontier}))
    first = make_workload(grid.conditions[0].config, grid.seeds[0])
    found = condition_bounds(grid, first)
    shares = [one.preferred_share for one in found if one is not None]
    assert [one.load_percent for one in grid.conditions] == [60, 60, 90, 90]
    assert shares[0] == shares[1] > shares[2] == shares[3]
    as_it_is = make_grid(config)
    (whole,) = condition_bounds(as_it_is, make_workload(config, config.seed))
    # its phases are at 60 and 90 % and count by their tasks
    assert whole is not None
    assert whole.preferred_share == pytest.approx((60 * shares[0] + 90 * shares[2]) / 150, abs=0.01)
