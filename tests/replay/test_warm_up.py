"""An arm's warm-up: what it leaves at time 0 is what ran and waited in it, and a run that begins so
has the figures of one that has gone on for long."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.campaign import running_live
from experiments.campaign.running import make_workload, run_arm_virtual, seed_figures
from experiments.config.run_config import RunConfig
from experiments.config.warm_up import state_after, warmed_up
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.workloads.inspection import digest
from experiments.workloads.synthetic import SyntheticOptions, warm_up
from parsync.metrics.record import Record
from parsync.metrics.summary import PhaseFigures
from parsync.runtime.live.run import LiveOutcome
from parsync.runtime.virtual.repeat import repeat
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, SeededArm
from parsync.workload.checks import validate
from parsync.workload.workload import WAITS, MachineEvents, StartState, Workload, starting_from
from tests.fixtures.overloaded_cell import arm, failing_workload, group

SMALL = SyntheticOptions(
    machines=60,
    slots_per_machine=5,
    machines_per_rack=10,
    mean_duration_s=0.5,
    duration_sigma=0.8,
    batch_tasks=5,
    phase_s=5.0,
    load_percent=(70,),
    preference_groups=6,
    preferred_fraction=0.1,
)
GREEDY = arm("diff_block", group("random", 2))


def config(options: SyntheticOptions, one: ArmConfig = GREEDY, **changes: object) -> RunConfig:
    fields = {"settle_s": 0.0, "drain_s": 1.0, "seeds": 1, **changes}
    return RunConfig(workload=WorkloadConfig.of("synthetic", options), arms=(one,), **fields)


def begins(options: SyntheticOptions = SMALL, one: ArmConfig = GREEDY, seed: int = 1) -> Workload:
    run = config(options, one)
    workload = warmed_up(run, one, make_workload(run, seed), seed, lambda _: None)
    validate(workload)
    return workload


def state_and_continuation(
    before: Workload, one: ArmConfig = GREEDY
) -> tuple[StartState, dict[int, tuple[int, int]]]:
    """What runs and waits at the end of a workload, and, as the oracle, (machine, end) of every
    task in a run of it that goes on until nothing runs."""
    spec = one.seeded(1, 1000, before.end_us // 100, live=False)
    state = state_after(spec, before, lambda _: None, 500, 60.0)
    ends: dict[int, tuple[int, int]] = {}

    def take(record: Record) -> None:
        if record.table == "ends":
            names = ("task", "machine", "end_us")
            for task, machine, end_us in zip(
                *(record.columns[name].tolist() for name in names), strict=True
            ):
                ends[task] = (machine, end_us)

    late = replace(before, end_us=before.end_us + 20_000_000)
    run_virtual(spec, late, 0, take, lambda _: None, 500)
    return state, ends


@pytest.mark.parametrize(
    "one", [GREEDY, arm("state_aligned", group("flow", 1))], ids=["greedy", "flow"]
)
def test_what_runs_at_the_end_of_a_warm_up_is_handed_over(one: ArmConfig) -> None:
    before = warm_up(SMALL, 1)
    assert before is not None
    state, ends = state_and_continuation(before, one)
    runs = state.machine != WAITS
    ids = state.tasks.task
    later = {task for task, (_, end_us) in ends.items() if end_us > before.end_us}
    assert runs.sum() > 100 and set(ids[runs].tolist()) <= later == set(ids.tolist())
    catalog, permille = before.catalog, before.preferred_permille
    of_set = np.repeat(np.arange(catalog.sets), np.diff(catalog.machine_offsets))
    preferred = set(zip(of_set.tolist(), catalog.machine.tolist(), strict=True))
    for row in np.flatnonzero(runs).tolist():
        task, on = int(ids[row]), int(state.machine[row])
        left_us = int(state.duration_us[row])
        if (int(state.tasks.preference[row]), on) in preferred:
            left_us = left_us * permille // 1000
        machine, end_us = ends[task]
        assert machine == on
        # the master learns of an end with the next heartbeat, a message later
        assert 0 <= end_us - (before.end_us + left_us) <= 1_500


def test_nothing_is_handed_over_twice_and_nothing_lost() -> None:
    before = warm_up(SMALL.model_copy(update={"load_percent": (160,)}), 1)
    assert before is not None
    state, ends = state_and_continuation(before)
    over = {task for task, (_, end_us) in ends.items() if end_us <= before.end_us}
    ids = set(state.tasks.task.tolist())
    assert len(ids) == len(state.tasks)
    assert (state.machine == WAITS).sum() > 100, "an overloaded cell has a queue"
    assert ids.isdisjoint(over) and ids | over == set(range(len(before.tasks)))


def test_tasks_that_lost_their_machine_run_elsewhere_or_wait() -> None:
    before = failing_workload()
    events = before.machine_events
    down = MachineEvents(events.at_us[:3], events.machine[:3], events.up[:3])
    before = replace(before, machine_events=down)
    state, _ = state_and_continuation(before, arm("diff_block", group()))
    running = state.machine != WAITS
    used = np.bincount(state.machine[running], minlength=before.cell.machines)
    assert (used <= before.cell.capacity[:, 0]).all() and used.sum() > 100
    assert not used[down.machine].any()


def test_services_stay_where_they_are() -> None:
    before = warm_up(SMALL.model_copy(update={"service_permille": 200}), 1)
    assert before is not None
    state, _ = state_and_continuation(before)
    endless = before.duration_us[before.initial.task] < 0
    assert endless.any()
    where = dict(zip(state.tasks.task.tolist(), state.machine.tolist(), strict=True))
    services, machines = before.initial.task[endless], before.initial.machine[endless]
    assert [where[task] for task in services.tolist()] == machines.tolist()
    assert (state.duration_us[np.isin(state.tasks.task, services)] == -1).all()


def test_the_runs_own_tasks_keep_their_ids_jobs_and_times() -> None:
    run = config(SMALL)
    own, workload = make_workload(run, 1), begins()
    n = len(own.tasks)
    assert np.array_equal(workload.tasks.job[:n], own.tasks.job)
    assert np.array_equal(workload.duration_us[:n], own.duration_us)
    assert np.array_equal(workload.arrival_us[-len(own.arrival_us) :], own.arrival_us)
    assert not np.isin(workload.tasks.job[n:], own.tasks.job).any()
    assert (workload.initial.task >= n).all()


def test_a_workload_that_says_what_runs_takes_no_other_state() -> None:
    before = warm_up(SMALL, 1)
    assert before is not None
    state, _ = state_and_continuation(before)
    with pytest.raises(ValueError, match="says itself what runs"):
        starting_from(before, state)


def test_a_cold_start_is_the_workload_itself() -> None:
    cold = config(SMALL.model_copy(update={"start": "cold"}))
    workload = make_workload(cold, 1)
    assert warmed_up(cold, GREEDY, workload, 1, lambda _: None) is workload


def test_arms_that_begin_so_can_be_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "arms" / "one"
    folder.mkdir(parents=True)
    run = config(SMALL)
    result = run_arm_virtual(
        run, GREEDY, make_workload(run, 1), 1, folder, lambda _: None, Interruption()
    )
    assert not result.stopped
    repeated = repeat(folder, lambda *_: None)
    assert repeated.divergence is None and repeated.log is not None
    assert repeated.log.digest == result.digest


def test_a_live_run_begins_as_one_in_virtual_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Begun(Exception):
        pass

    began: list[Workload] = []

    def run_live(_: SeededArm, workload: Workload, *__: object) -> LiveOutcome:
        began.append(workload)
        raise Begun

    monkeypatch.setattr(running_live, "run_live", run_live)
    run = config(SMALL, runtime="ray")
    workload = make_workload(run, 1)
    with pytest.raises(Begun):
        running_live.run_arm_live(
            run, GREEDY, workload, 1, tmp_path, lambda _: None, Interruption(), None
        )
    assert len(began[0].initial.task) > 100
    assert digest(began[0]) == digest(begins()) != digest(workload)


@cache
def figures(start: str, phase_s: float, settle_s: float) -> tuple[PhaseFigures, ...]:
    """Of the one phase, for eight seeds."""
    options = SMALL.model_copy(update={"start": start, "phase_s": phase_s})
    run = config(options, settle_s=settle_s)
    return tuple(seed_figures(run, GREEDY, seed).phases[0] for seed in range(8))


def mean_and_error(sample: tuple[PhaseFigures, ...], key: str) -> tuple[float, float]:
    values = np.array([one.value(key) for one in sample], np.float64)
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


KEYS = ("delay_mean_us", "utilisation_mean", "preferred_share")


def apart(start: str, key: str) -> float:
    """By how many standard errors a short run differs from the later part of a long cold one."""
    long, its_error = mean_and_error(figures("cold", 20.0, 10.0), key)
    short, error = mean_and_error(figures(start, 2.0, 0.0), key)
    return abs(short - long) / math.hypot(error, its_error)


@pytest.mark.parametrize("key", KEYS)
def test_a_steady_start_has_the_figures_of_a_long_cold_run(key: str) -> None:
    assert apart("steady", key) < 4


def test_a_cold_start_does_not_have_them() -> None:
    assert apart("cold", "utilisation_mean") > 8
    assert apart("cold", "preferred_share") > 4
