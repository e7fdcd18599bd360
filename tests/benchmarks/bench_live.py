"""The live runtime at paper scale: 200,000 slots, 20 schedulers, ParSync latency-first, 95 % load:
38,000 tasks/s of mean 5 s.

Runs in real time on an embedded Ray, with everything a user's run does: logs of every core,
checkpoints, Parquet. Peer in the same run: the same arm in virtual time, where messages take no
time and there is neither tick nor rival for the processor. AGORA_LIVE_BENCH_S: seconds of load, 20
unless given (the target is for 60); the first 5 s, a task length, are left out of every figure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from experiments.campaign.running import ArmRun, make_workload, run_arm_virtual
from experiments.campaign.running_live import leave, prepare, run_arm_live
from experiments.config.presets import greedy_group, paper_scale
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from parsync.metrics.summary import summarise
from parsync.spec.arm import ArmConfig
from parsync.spec.decision_times import DecisionTime, MeasuredTime

pytestmark = pytest.mark.ray
SECONDS = float(os.environ.get("AGORA_LIVE_BENCH_S", "20"))
SETTLE_S, DRAIN_S = 5.0, 20.0
LOAD_PER_S = 38_000
DELAY_TARGET_MS = 60
LIVE, VIRTUAL = "agora", "the same arm in virtual time"
WAYS = pytest.mark.parametrize("way", [LIVE, VIRTUAL])


class Runs:
    """Every run is made once, whichever figure asks for it first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connected = False
        self.of = cache(self._of)

    def _of(self, clock: str, way: str) -> ArmRun:
        config, arm = configuration(MeasuredTime() if clock == "measured" else None)
        workload = make_workload(config, config.seed)
        if way == VIRTUAL:
            return run_arm_virtual(
                config, arm, workload, config.seed, None, lambda _: None, Interruption()
            )
        if not self._connected:
            prepare(config, hold=False)
            self._connected = True
        directory = self._folder / clock
        directory.mkdir()
        return run_arm_live(
            config,
            arm,
            workload,
            config.seed,
            directory,
            lambda _: None,
            Interruption(),
            held=None,
        )

    def close(self) -> None:
        """End Ray, if a run started it."""
        if self._connected:
            leave()


def configuration(decision: DecisionTime | None) -> tuple[RunConfig, ArmConfig]:
    """The issue's run; decision None: the modelled times of the paper's cell."""
    scale = paper_scale()
    synthetic = scale.synthetic.model_copy(update={"load_percent": (95,), "phase_s": SECONDS})
    group = greedy_group(scale, "latency_first", scale.schedulers, kind="random")
    if decision is not None:
        group = group.model_copy(update={"decision": decision})
    arm = ArmConfig(
        name="ParSync latency-first",
        partitions=scale.partitions,
        groups=(group,),
    )
    return RunConfig(
        workload=WorkloadConfig.of("synthetic", synthetic),
        arms=(arm,),
        settle_s=SETTLE_S,
        drain_s=DRAIN_S,
        runtime="ray",
    ), arm


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("live"))
    yield runs
    runs.close()


def figure(run: ArmRun, key: str) -> float:
    """A figure of a run that got to its end."""
    assert not run.stopped, run.stopped
    assert run.notes["drained"], f"{run.notes['waiting']} tasks were never placed"
    value = summarise(run.metrics).overall.plain_value(key)
    assert value is not None, key
    return value


def backlog(run: ArmRun, begin_s: float, end_s: float) -> float:
    """Tasks that schedulers held and had not committed, all together, mean of the samples in a
    stretch of the run."""
    samples = run.metrics.samples("agents")
    inside = (samples["at_us"] >= begin_s * 1e6) & (samples["at_us"] < end_s * 1e6)
    return float(samples["queued"][inside].mean()) * run.metrics.run.agents


def beside(run: ArmRun) -> str:
    """What a reader of the live figure should see with it."""
    quarter_s = (SECONDS - SETTLE_S) / 4
    first = backlog(run, SETTLE_S, SETTLE_S + quarter_s)
    last = backlog(run, SECONDS - quarter_s, SECONDS)
    p99_us = figure(run, "delay_p99_us")
    return (
        f"{SECONDS:g} s of load; p99 {p99_us / 1000:.0f} ms; waiting for ticks "
        f"and steps {run.notes['step_wait_mean_us'] / 1000:.1f} ms, "
        f"{run.notes['step_wait_share'] * 100:.0f} % of the mean delay; backlog of the first and "
        f"last quarter {first:,.0f} and {last:,.0f} tasks; drained "
        f"{run.notes['ended_us'] / 1e6 - SECONDS:.1f} s after the load; steps p50 "
        f"{run.notes['step_round_trip_p50_us'] / 1000:.1f} ms"
    )


@pytest.mark.benchmark(
    group="live runtime, paper scale: committed tasks of one second, Measured decisions"
)
@WAYS
def test_tasks_per_second(benchmark: Any, way: str, runs: Runs) -> None:
    run = benchmark.pedantic(runs.of, args=("measured", way), rounds=1)
    benchmark.extra_info.update(
        unit="tasks/s",
        figure=figure(run, "throughput_per_s"),
        larger_is_better=True,
        offered_per_s=LOAD_PER_S,
    )
    if way == LIVE:
        benchmark.extra_info.update(note=beside(run))


@pytest.mark.benchmark(group="live runtime, paper scale: mean scheduling delay, Measured decisions")
@WAYS
def test_delay_with_measured_decisions(benchmark: Any, way: str, runs: Runs) -> None:
    run = benchmark.pedantic(runs.of, args=("measured", way), rounds=1)
    benchmark.extra_info.update(unit="ms", figure=figure(run, "delay_mean_us") / 1000)
    if way == LIVE:
        benchmark.extra_info.update(target=DELAY_TARGET_MS, note=beside(run))


@pytest.mark.benchmark(group="live runtime, paper scale: mean scheduling delay, Modelled decisions")
@WAYS
def test_delay_with_modelled_decisions(benchmark: Any, way: str, runs: Runs) -> None:
    run = benchmark.pedantic(runs.of, args=("modelled", way), rounds=1)
    benchmark.extra_info.update(unit="ms", figure=figure(run, "delay_mean_us") / 1000)
    if way == LIVE:
        benchmark.extra_info.update(note=beside(run))
