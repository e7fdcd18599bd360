"""Generated workloads: load, run times, jobs, preferences and options do what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.workloads.inspection import describe
from experiments.workloads.synthetic import (
    SLOT_SCORE_ONE,
    SyntheticOptions,
    WorkClock,
    demo_options,
    generate,
    paper_options,
)
from parsync.workload.checks import validate
from parsync.workload.workload import Phase, Workload
from shared_state.tasks import TaskClass

SMALL = SyntheticOptions(machines=200, phase_s=3.0, batch_tasks=10)


def varied(**changes: object) -> Workload:
    workload = generate(SyntheticOptions.model_validate({**SMALL.model_dump(), **changes}), seed=3)
    validate(workload)
    return workload


def test_the_demo_is_the_papers_cell_at_a_tenth() -> None:
    workload = generate(demo_options(), seed=1)
    validate(workload)
    assert (
        workload.cell.capacity.sum() == 20_000
        and np.bincount(workload.cell.rack).tolist() == [40] * 50
    )
    assert [(phase.end_us - phase.start_us, phase.load_percent) for phase in workload.phases] == [
        (6_000_000, load) for load in (50, 80, 95, 80, 50)
    ]
    assert len(workload.tasks) == 10_000 * 6 * 355 // 100
    assert workload.preferred_permille == 700


def test_the_papers_cell_is_offered_40000_tasks_per_second() -> None:
    options = paper_options()
    assert options.machines * options.slots_per_machine == 200_000
    workload = generate(options.with_duration(1.0), seed=1)
    assert workload.end_us == 1_000_000 and len(workload.tasks) == 40_000 * 355 // 500


def test_88_percent_of_tasks_run_under_ten_seconds() -> None:
    """ParSync section 2: most tasks are short; the reference figure for a lognormal of mean 5 s and
    sigma 1.18 is 88 %."""
    durations = varied(mean_duration_s=5.0, phase_s=60.0).duration_us
    assert len(durations) > 50_000
    assert np.mean(durations < 10_000_000) == pytest.approx(0.8805, abs=0.005)
    assert durations.mean() == pytest.approx(5e6, rel=0.03)
    assert np.log(durations).std() == pytest.approx(1.18, rel=0.02)


def test_fixed_durations() -> None:
    assert np.unique(varied(duration_sigma=0).duration_us).tolist() == [2_000_000]


@pytest.mark.parametrize("jitter", [0, 37, 100])
def test_offered_load_is_exact_in_every_phase(jitter: int) -> None:
    """Up to one batch at each end of a phase; a phase of no load gets none."""
    workload = varied(load_percent=(50, 0, 95, 120, 0, 10), arrival_jitter_percent=jitter)
    for phase in workload.phases:
        inside = (workload.arrival_us >= phase.start_us) & (workload.arrival_us < phase.end_us)
        wanted = 2000 / 2.0 * phase.load_percent / 100 * 3.0
        assert abs(10 * int(inside.sum()) - wanted) <= (10 if phase.load_percent else 0)


def test_batches_are_evenly_spaced_without_jitter() -> None:
    gaps = np.diff(varied(load_percent=(50,), arrival_jitter_percent=0).arrival_us)
    assert set(gaps.tolist()) == {20_000}


def test_poisson_arrivals() -> None:
    workload = varied(poisson_arrivals=True, load_percent=(100, 50), phase_s=100.0)
    gaps = np.diff(workload.arrival_us[workload.arrival_us < 100_000_000])
    # 100 batches a second; the gaps of a Poisson process deviate as much as their mean.
    assert gaps.mean() == pytest.approx(10_000, rel=0.05) and gaps.std() == pytest.approx(
        10_000, rel=0.05
    )
    assert np.mean(workload.arrival_us >= 100_000_000) == pytest.approx(1 / 3, rel=0.08)


def test_the_work_clock_against_counting() -> None:
    """Oracle: walk microsecond by microsecond."""
    phases = (Phase(0, 7, 3), Phase(7, 9, 0), Phase(9, 20, 11))
    clock = WorkClock(phases, slots=5)
    offered = np.cumsum([15] * 7 + [0] * 2 + [55] * 11)
    assert clock.total == offered[-1]
    work = np.arange(clock.total)
    assert clock.time_us(work).tolist() == np.searchsorted(offered, work, side="right").tolist()


def test_the_work_clock_refuses_overflow() -> None:
    with pytest.raises(ValueError, match="2\\^62"):
        WorkClock((Phase(0, 1 << 50, 1000),), slots=1 << 20)


def test_job_sizes_are_heavy_tailed_and_in_whole_batches() -> None:
    workload = varied(phase_s=60.0, job_batches_max=50)
    _, tasks = np.unique(workload.tasks.job, return_counts=True)
    sizes = tasks[:-1] // 10  # the last job may be cut short
    assert (tasks % 10 == 0).all() and sizes.min() == 1 and sizes.max() <= 50
    for k in (2, 5, 10):
        tail = (k**-1.14 - 51**-1.14) / (1 - 51**-1.14)
        assert np.mean(sizes >= k) == pytest.approx(tail, rel=0.12)


def test_sum_of_run_times_per_job_is_the_papers() -> None:
    """Table 1 fits S0 = 954-977 s of run time per job away from preferred machines."""
    workload = generate(paper_options().with_duration(20.0), seed=1)
    jobs = int(workload.tasks.job[-1]) + 1
    assert 900 < workload.duration_us.sum() / 1e6 / jobs < 1050


def test_preference_groups() -> None:
    workload = varied(
        phase_s=60.0,
        preference_groups=4,
        preference_zipf=1.0,
        preferred_fraction=0.1,
        rack_cost=7,
        elsewhere_cost=9,
    )
    catalog = workload.catalog
    assert catalog.sets == 5 and np.diff(catalog.machine_offsets).tolist() == [0, 20, 20, 20, 20]
    for group in range(1, 5):
        machines = catalog.machine[
            catalog.machine_offsets[group] : catalog.machine_offsets[group + 1]
        ]
        assert np.bincount(machines // 10, minlength=20).tolist() == [1] * 20, (
            "one machine from each stretch of ten"
        )
        racks = catalog.rack[catalog.rack_offsets[group] : catalog.rack_offsets[group + 1]]
        assert racks.tolist() == sorted({int(workload.cell.rack[machine]) for machine in machines})
    assert set(catalog.rack_cost.tolist()) == {7} and not catalog.machine_cost.any()
    assert catalog.elsewhere_cost.tolist() == [0, 9, 9, 9, 9]
    _, first = np.unique(workload.tasks.job, return_index=True)
    share = np.bincount(workload.tasks.preference[first], minlength=5) / len(first)
    assert share[0] == 0 and share[1:] == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.03)
    assert not np.array_equal(catalog.machine[:20], catalog.machine[20:40])


def test_jobs_without_preference() -> None:
    workload = varied(phase_s=60.0, no_preference_permille=250)
    assert np.mean(workload.tasks.preference == 0) == pytest.approx(0.25, abs=0.04)
    assert varied(no_preference_permille=1000).tasks.preference.max() == 0
    assert varied(preference_groups=0).catalog.sets == 1


def test_a_job_is_of_one_preference_and_class() -> None:
    workload = varied(service_permille=300, no_preference_permille=300)
    kind = workload.tasks.preference * 2 + workload.tasks.task_class
    starts = np.flatnonzero(np.diff(workload.tasks.job, prepend=-1))
    assert (kind == np.repeat(kind[starts], np.diff(starts, append=len(kind)))).all()


def test_services_never_end() -> None:
    workload = varied(phase_s=60.0, service_permille=200)
    services = workload.tasks.task_class == TaskClass.SERVICE
    assert services.mean() == pytest.approx(0.2, abs=0.04)
    assert np.array_equal(services, workload.duration_us == -1) and np.array_equal(
        services, workload.tasks.priority > 0
    )


def test_slot_scores_are_weights() -> None:
    """w = exp(score - mean), score ~ N(mean, V): the logarithm of the weight is normal with
    variance V."""
    score = varied(
        machines=20_000, slots_per_machine=1, phase_s=0.1, slot_score_variance=2.0
    ).cell.slot_score
    log_weight = np.log(score / SLOT_SCORE_ONE)
    assert log_weight.mean() == pytest.approx(0, abs=0.05) and log_weight.var() == pytest.approx(
        2.0, rel=0.05
    )
    assert not varied().cell.slot_score.any()


def test_one_option_moves_only_what_it_names() -> None:
    base, other = (
        varied(),
        varied(preference_zipf=2.0, slot_score_variance=1.0, preferred_fraction=0.5),
    )
    assert np.array_equal(base.duration_us, other.duration_us) and np.array_equal(
        base.arrival_us, other.arrival_us
    )
    assert np.array_equal(base.tasks.job, other.tasks.job) and not np.array_equal(
        base.tasks.preference, other.tasks.preference
    )


def test_another_seed_is_another_workload() -> None:
    one, two = generate(SMALL, 1), generate(SMALL, 2)
    for column in ("duration_us", "arrival_us"):
        assert not np.array_equal(getattr(one, column), getattr(two, column))
    assert not np.array_equal(one.tasks.preference, two.tasks.preference)
    assert not np.array_equal(one.catalog.machine, two.catalog.machine)


def test_duration_scales_the_phases() -> None:
    options = demo_options(quick=True).with_duration(10.5)
    assert options.phase_s == 3.5 and options.load_percent == demo_options(quick=True).load_percent


@pytest.mark.parametrize(
    "fault",
    [
        {"machine": 5},
        {"machines": 0},
        {"load_percent": ()},
        {"load_percent": (0, 0)},
        {"load_percent": (50, -1)},
        {"phase_s": math.inf},
        {"preferred_fraction": 0},
        {"preferred_permille": 0},
        {"rack_cost": 2000},
    ],
)
def test_bad_options_are_refused(fault: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(fault))):
        SyntheticOptions.model_validate(fault)


def test_phases_too_short_or_too_long_are_refused() -> None:
    with pytest.raises(ValueError, match="phase_s: no batch"):
        varied(phase_s=1e-3)
    with pytest.raises(ValueError, match="more than 2\\^31 tasks"):
        varied(machines=100_000, phase_s=2000.0)


def test_offered_load_described() -> None:
    described = describe(varied(phase_s=30.0))
    phases = described["phases"]
    assert isinstance(phases, list)
    for phase in phases:
        assert phase["offered_percent"]["slots"] == pytest.approx(phase["load_percent"], rel=0.08)


def members(workload: Workload, group: int) -> set[int]:
    begin, end = workload.catalog.machine_offsets[group + 1 : group + 3]
    return set(workload.catalog.machine[begin:end].tolist())


def shared_machines(workload: Workload) -> float:
    """The share of machines in groups that are in more than one."""
    count = np.bincount(workload.catalog.machine)
    return float((count > 1).sum() / (count > 0).sum())


def test_groups_are_disjoint_without_overlap() -> None:
    workload = varied(preference_overlap_percent=0, preference_groups=16, preferred_fraction=1 / 16)
    assert sorted(workload.catalog.machine.tolist()) == sorted(
        set(workload.catalog.machine.tolist())
    )
    sizes = np.diff(workload.catalog.machine_offsets)
    assert sizes.tolist() == [0] + [12] * 16  # 200 / 16, rounded
    # one of each of twelve equal stretches
    stretch = np.array(sorted(members(workload, 3))) * 12 // 200
    assert stretch.tolist() == list(range(12))


def test_overlap_grows_up_to_that_of_groups_drawn_apart() -> None:
    shared = [
        shared_machines(varied(machines=4000, preference_overlap_percent=percent))
        for percent in (0, 25, 50, 100)
    ]
    assert shared[0] == 0 and shared[0] < shared[1] < shared[2] < shared[3]
    apart = varied(machines=4000)
    full = varied(machines=4000, preference_overlap_percent=100)
    assert shared[3] == pytest.approx(shared_machines(apart), abs=0.03)
    assert np.array_equal(full.tasks.preference, apart.tasks.preference)


def test_overlap_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="preference_overlap_percent: 16 groups of 20 machines"):
        varied(preference_overlap_percent=0, preferred_fraction=0.1)


def test_popularity_drifts() -> None:
    still = varied(preference_zipf=2.0, phase_s=20.0, load_percent=(80, 80))
    drifts = varied(
        preference_zipf=2.0, phase_s=20.0, load_percent=(80, 80), preference_drift_s=10.0
    )
    epoch = still.tasks.submit_us // 10_000_000
    favourite = [int(np.bincount(drifts.tasks.preference[epoch == k]).argmax()) for k in range(4)]
    assert favourite[0] == 1 and len(set(favourite)) > 2
    # The first epoch is as without, and jobs keep their set; the draws differ in nothing else.
    first = np.isin(still.tasks.job, still.tasks.job[epoch == 0])
    assert np.array_equal(still.tasks.preference[first], drifts.tasks.preference[first])
    assert np.array_equal(still.duration_us, drifts.duration_us)
    of_job = [np.unique(drifts.tasks.preference[drifts.tasks.job == job]) for job in range(50)]
    assert all(len(sets) == 1 for sets in of_job)
    # In every epoch popularity is that of the same law: only the names change.
    for k in range(1, 4):
        counts = [
            np.sort(np.bincount(workload.tasks.preference[epoch == k], minlength=17))
            for workload in (still, drifts)
        ]
        assert np.abs(counts[0] - counts[1]).max() <= 10 * 8  # a job across the edge
