"""Time in which nothing happens costs next to nothing, and changes nothing for the tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.campaign.expected_time import DAY_S, expected_run_s, resting_time_s
from experiments.campaign.running import ArmRun, figures_of_run, run_arm_virtual
from experiments.config.run_config import SAMPLES_MAX, RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.workloads.synthetic import generate
from parsync.protocols.optimistic.sync import kinds
from parsync.runtime.virtual import run as virtual_run
from parsync.workload.workload import MachineEvents, Workload
from tests.fixtures.overloaded_cell import OPTIONS, arm, group

TASKS = 25
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US


def straggler(after_us: int) -> Workload:
    """25 tasks, of which the last arrives after a time in which no other is left."""
    options = OPTIONS.model_copy(update={"batch_tasks": 1, "load_percent": (20,), "phase_s": 5.0})
    made = generate(options, seed=1)
    arrival_us = made.arrival_us[:TASKS].copy()
    arrival_us[-1] = after_us
    rows = np.arange(TASKS)
    tasks = replace(made.tasks.take(rows), submit_us=arrival_us)
    end_us = after_us + 5 * SECOND_US
    return replace(
        made,
        tasks=tasks,
        duration_us=made.duration_us[:TASKS],
        arrival_us=arrival_us,
        arrival_rows=rows,
        arrival_offsets=np.arange(TASKS + 1),
        phases=(replace(made.phases[0], end_us=end_us),),
        end_us=end_us,
    )


def config(count: int = 1, sync: str = "diff_block", sample_s: float | None = None) -> RunConfig:
    return RunConfig(
        workload=WorkloadConfig.of("synthetic", OPTIONS),
        arms=(arm(sync, group(count=count)),),
        settle_s=0.1,
        sample_s=sample_s,
    )


def run(of: RunConfig, workload: Workload, folder: Path | None = None) -> ArmRun:
    result = run_arm_virtual(of, of.arms[0], workload, 1, folder, lambda _: None, Interruption())
    assert not result.stopped, result.stopped
    return result


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many events the last run handled."""
    handled: list[int] = []
    whole = virtual_run.run_virtual

    def noted(*arguments: object, **named: object) -> virtual_run.VirtualOutcome:
        outcome = whole(*arguments, **named)  # type: ignore[arg-type]
        handled.append(outcome.events)
        return outcome

    monkeypatch.setattr("experiments.campaign.running.run_virtual", noted)
    return lambda: handled[-1]


def test_a_straggler_after_29_days_costs_little(events: Callable[[], int], tmp_path: Path) -> None:
    of, workload = config(), straggler(29 * DAY_US)
    result = run(of, workload, tmp_path)
    figures = figures_of_run(result, workload)
    assert figures.totals.committed == TASKS
    # an agent's sample, the master's, a synchronisation of three events, and 60 of these in each
    # second in which something happens
    assert events() < 6 * SAMPLES_MAX
    samples = pq.read_table(tmp_path / "agents.parquet")["at_us"].to_numpy()
    assert (
        np.all(np.diff(samples)[:-1] == of.sample_us(workload)) and len(samples) > SAMPLES_MAX / 2
    )
    staleness = figures.overall.value("staleness_mean_us")
    assert staleness is None or staleness < 50_000  # views are as fresh as ever at the samples


@pytest.mark.parametrize("sync", [kind for kind in kinds() if kind != "custom"])
def test_tasks_fare_as_without_a_rest(
    sync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Callable[[], int]
) -> None:
    of, workload = config(count=2, sync=sync), straggler(1_000 * SECOND_US)
    tables, counts = [], []
    for rest_us in (virtual_run.REST_US, 1 << 60):
        monkeypatch.setattr(virtual_run, "REST_US", rest_us)
        folder = tmp_path / str(rest_us)
        folder.mkdir()
        run(of, workload, folder)
        counts.append(events())
        tables.append(pq.read_table(folder / "tasks.parquet").sort_by("task"))
    assert tables[0] == tables[1]
    assert counts[0] <= counts[1]
    if sync != "every_attempt":  # which has no periodic synchronisations
        assert counts[0] < counts[1] / 3  # what is left are samples


def test_a_rest_ends_before_a_machine_changes_or_a_task_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = straggler(3_000 * SECOND_US)
    at_us = np.array([1_000 * SECOND_US, 2_000 * SECOND_US])
    events = MachineEvents(at_us, np.array([1, 1], np.int32), np.array([False, True]))
    changing = replace(workload, machine_events=events)
    rests: list[tuple[int, int]] = []
    whole = virtual_run.VirtualRuntime.rest_until

    def noted(self: virtual_run.VirtualRuntime, until_us: int, interval_us: int) -> None:
        rests.append((self.now_us, until_us))
        whole(self, until_us, interval_us)

    monkeypatch.setattr(virtual_run.VirtualRuntime, "rest_until", noted)
    run(config(), changing)
    activity = (*at_us.tolist(), 3_000 * SECOND_US)
    assert {end for _, end in rests} >= {at - SECOND_US for at in activity}
    assert not any(begin < at < end + SECOND_US // 2 for begin, end in rests for at in activity)
    assert len(rests) < 20


def test_a_run_with_a_rest_repeats() -> None:
    of, workload = config(count=2), straggler(5_000 * SECOND_US)
    assert run(of, workload).digest == run(of, workload).digest


def test_the_sample_interval_grows_with_very_long_runs_only() -> None:
    of = config()
    for seconds, sample_us in ((5, 100_000), (1_600, 100_000), (1_700, 200_000)):
        assert of.sample_us(straggler(seconds * SECOND_US)) == sample_us
    long = straggler(29 * DAY_US)
    assert long.end_us / of.sample_us(long) <= SAMPLES_MAX
    assert config(sample_s=0.5).sample_us(long) == 500_000  # given by hand
    settled = of.for_workload(long)
    assert settled.sample_s == of.sample_us(long) / 1e6
    assert settled.sample_us(long) == of.sample_us(long)


def test_idle_time_is_not_expected_to_take_long() -> None:
    busy, idle = straggler(5 * SECOND_US), straggler(29 * DAY_US)
    assert resting_time_s(busy) == 0
    assert 29 * DAY_S - 60 < resting_time_s(idle) < 29 * DAY_S
    for count in (1, 4):
        arm_ = config(count=count).arms[0]
        assert expected_run_s(arm_, idle, None) < expected_run_s(arm_, busy, None) + 20
    endless = replace(idle, duration_us=np.full(TASKS, -1))
    assert resting_time_s(endless) > 28 * DAY_S
