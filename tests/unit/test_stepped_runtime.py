"""The live runtime in virtual time: the same loops, with times from a calibration."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from parsync.metrics.record import Record
from parsync.runtime.calibration import (
    ENTRIES,
    Calibration,
    Draws,
    MeasuredTimes,
    quantile_table,
)
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.spec.arm import SeededArm
from parsync.spec.decision_times import CountedTime
from parsync.workload.workload import Workload
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import mixed_arm, probing_arm, queues_arm, small_arm, small_workload

QUICK = Calibration(
    hosts=2,
    tick_us=25_000,
    step_us=(800, 1_000, 1_200),
    other_step_us=(700,),
    push_us=(400, 600),
    lag_us=(50, 100),
)
Columns = dict[str, list[Any]]


def run(
    arm: SeededArm, workload: Workload, calibration: Calibration | None = QUICK, seed: int = 5
) -> tuple[VirtualOutcome, dict[str, Columns]]:
    tables: dict[str, Columns] = defaultdict(lambda: defaultdict(list))

    def take(record: Record) -> None:
        for name, values in record.columns.items():
            tables[record.table][name] += np.asarray(values).tolist()

    outcome = run_virtual(
        changed(arm, seed=seed),
        workload,
        20_000_000,
        take,
        lambda _: None,
        calibration=calibration,
    )
    return outcome, tables


def mean_delay_us(tables: dict[str, Columns]) -> float:
    tasks = tables["tasks"]
    return float(np.mean(np.array(tasks["commit_us"]) - np.array(tasks["submit_us"])))


@pytest.mark.parametrize("arm", [small_arm(), mixed_arm(), small_arm(sync="every_attempt")])
def test_every_task_is_placed_once_and_ends_once(arm: SeededArm) -> None:
    workload = small_workload()
    outcome, tables = run(arm, workload)
    assert outcome.drained and outcome.waiting == 0
    first = np.array(tables["tasks"]["first"]) == 1
    placed = np.array(tables["tasks"]["task"])[first]
    assert sorted(placed.tolist()) == sorted(workload.arrival_rows.tolist())
    assert sum(tables["submissions"]["tasks"]) == len(workload.arrival_rows)
    ended = tables["ends"]["task"]
    assert len(ended) == len(set(ended)) == len(workload.tasks)


def test_the_same_seed_gives_the_same_events_and_another_one_others() -> None:
    arm, workload = small_arm(), small_workload(0.5)
    digests = [run(arm, workload, QUICK, seed)[0].digest for seed in (5, 5, 6)]
    assert digests[0] == digests[1] != digests[2]
    assert run(arm, workload, changed(QUICK, push_us=(9_000,)))[0].digest != digests[0]


def test_tasks_wait_for_ticks_and_steps() -> None:
    arm, workload = small_arm(), small_workload()
    plain = mean_delay_us(run(arm, workload, None)[1])
    stepped = mean_delay_us(run(arm, workload)[1])
    # a submission waits for half a tick of its source on average, and claims for two half trips
    assert 12_500 < stepped - plain < 25_000
    slow = changed(QUICK, step_us=(20_000,))
    assert mean_delay_us(run(arm, workload, slow)[1]) > stepped + 10_000


def test_what_probing_asks_and_answers_does_not_wait_for_ticks() -> None:
    """Submissions do, and a probe may: half a tick each on average. The rest are a few steps."""
    workload = small_workload(0.5)
    tick_us = 100_000
    plain = mean_delay_us(run(probing_arm(beside=False), workload, None)[1])
    slow = changed(QUICK, tick_us=tick_us)
    stepped = mean_delay_us(run(probing_arm(beside=False), workload, slow)[1])
    assert tick_us / 2 < stepped - plain < 1.3 * tick_us


def test_processes_with_longer_ticks_let_tasks_wait_longer() -> None:
    arm, workload = small_arm(), small_workload()
    delays = [
        mean_delay_us(run(arm, workload, changed(QUICK, tick_us=tick_us))[1])
        for tick_us in (5_000, 25_000, 100_000)
    ]
    assert delays == sorted(delays) and delays[2] > delays[1] + 30_000


def test_a_scheduler_at_its_own_speed_keeps_the_others_of_its_process_waiting() -> None:
    arm, workload = small_arm(), small_workload()
    slow = changed(arm.groups[0], decision=CountedTime(ns_per_operation=1_000_000))
    together = changed(arm, groups=(slow,))
    one = mean_delay_us(run(together, workload, changed(QUICK, hosts=1))[1])
    four = mean_delay_us(run(together, workload, changed(QUICK, hosts=4))[1])
    assert one > four


def test_queues_at_the_machines_run_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("tests/fixtures/protocols")
    outcome, _ = run(queues_arm(), small_workload(0.5))
    assert outcome.drained


def test_a_table_has_the_distribution_of_its_values() -> None:
    values = np.random.default_rng(3).exponential(1_000, 100_000).astype(np.int64).tolist()
    table = quantile_table(values)
    assert len(table) == ENTRIES and list(table) == sorted(table)
    assert np.mean(table) == pytest.approx(np.mean(values), rel=0.01)
    assert np.quantile(table, 0.9) == pytest.approx(np.quantile(values, 0.9), rel=0.02)
    assert quantile_table([5, 3]) == (3, 5) and quantile_table([]) == ()


def test_draws_are_entries_of_the_table_and_depend_on_the_seed_alone() -> None:
    draws = {
        (seed, name): [stream.next() for _ in range(5_000)]
        for seed in (1, 2)
        for name in ("a", "b")
        for stream in [Draws((1, 2, 3), seed, name)]
    }
    assert set(draws[1, "a"]) == {1, 2, 3}
    assert draws[1, "a"] != draws[2, "a"] != draws[1, "b"]
    again = Draws((1, 2, 3), 1, "a")
    assert draws[1, "a"] == [again.next() for _ in range(5_000)]


def test_measured_times_make_a_calibration_once_all_of_them_are_known() -> None:
    parts = [
        MeasuredTimes(step_us=[3, 1], push_us=[7], lag_us=[2]),
        MeasuredTimes(other_step_us=[5]),
    ]
    assert MeasuredTimes.joined(parts[:1]).calibration(2, 25_000) is None
    assert MeasuredTimes.joined([]).calibration(2, 25_000) is None
    assert MeasuredTimes.joined(parts).calibration(2, 25_000) == Calibration(
        hosts=2, tick_us=25_000, step_us=(1, 3), other_step_us=(5,), push_us=(7,), lag_us=(2,)
    )
