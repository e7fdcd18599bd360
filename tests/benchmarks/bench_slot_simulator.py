"""The slot simulator at ParSync's scale (200,000 slots) and at four times it, on one core.

Speed: decisions per CPU second, setting up included. Against the virtual runtime: 8 s of the same
cell at 95 % load, 20 schedulers with StateSync and weighted sampling, tasks committed per CPU
second; the peer also plans, logs and measures every task. Memory: what a run adds, at its
largest, to the resident set of a process that has loaded everything else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parsync.model.slot_settings import (
    Phase,
    SchedulerGroup,
    SlotSettings,
    SyncMode,
    paper_settings,
)
from parsync.model.slot_simulator import simulate
from parsync.protocols.optimistic.options import StrategyKind
from tests.benchmarks.bench_virtual import Case

ROOT = Path(__file__).parents[2]
SECONDS = 8.0  # beside the virtual runtime
RATIO_TARGET = 10


def of_factor(schedulers_factor: int) -> SlotSettings:
    """StateSync with S_extra = 15,000, 90 s."""
    return replace(paper_settings(schedulers_factor), extra_slots=15_000, freed_at_once=True)


def four_times(strategy: StrategyKind, batch_tasks: int) -> SlotSettings:
    """800,000 slots, 160,000 tasks/s, 80 schedulers, DiffSyn, 60 s."""
    return SlotSettings(
        groups=(SchedulerGroup(schedulers=80, batch_tasks=batch_tasks, strategy=strategy),),
        phases=(Phase(duration_s=60.0, rate_per_s=(160_000.0,)),),
        slots=800_000,
        partitions=80,
        sync=SyncMode.DIFF_BLOCK,
    )


# settings, decisions/s, MB
CASES = {
    "StateSync, A = 2": (of_factor(2), 5_000_000, 64),
    "StateSync, A = 8": (of_factor(8), 4_000_000, 64),
    "4 x DiffSyn latency-first": (four_times(StrategyKind.LATENCY_FIRST, 50), 2_500_000, 400),
    "4 x DiffSyn optimistic": (four_times(StrategyKind.OPTIMISTIC, 50), 1_500_000, 400),
}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", CASES)
def test_speed(benchmark: Any, name: str) -> None:
    benchmark.group = f"slot simulator: {name}"
    settings, target, _ = CASES[name]
    found = benchmark.pedantic(lambda: simulate(settings), rounds=3)
    benchmark.extra_info.update(unit="decisions/s", amount=found.decisions, target=target)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("way", ["agora", "the virtual runtime"])
def test_against_the_virtual_runtime(benchmark: Any, way: str, tmp_path: Path) -> None:
    benchmark.group = "slot simulator beside the virtual runtime: StateSync weighted, 95 % load"
    if way == "agora":
        settings = paper_settings(2, rate_per_s=38_000.0, duration_s=SECONDS)
        committed = benchmark.pedantic(lambda: simulate(settings).commits.sum(), rounds=3)
        benchmark.extra_info.update(ratio_target=RATIO_TARGET)
    else:
        case = Case.of("StateSync weighted", SECONDS)
        committed = benchmark.pedantic(lambda: case.run(tmp_path), rounds=1)
    benchmark.extra_info.update(unit="tasks/s", amount=int(committed), label=way)


@pytest.mark.benchmark
@pytest.mark.parametrize("name", CASES)
def test_memory(benchmark: Any, name: str) -> None:
    benchmark.group = f"slot simulator: memory, {name}"

    def added_mb() -> float:
        command = [sys.executable, "-m", "tests.benchmarks.bench_slot_simulator", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout))

    benchmark.extra_info.update(
        unit="MB", figure=benchmark.pedantic(added_mb, rounds=1), target=CASES[name][2]
    )


def status_kb(field: str) -> int:
    """A size of this process. (getrusage counts that of the process it was forked from, too.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main(name: str) -> None:
    """One run in this process; prints how much larger it became (MB)."""
    before_kb = status_kb("VmRSS")
    simulate(CASES[name][0])
    print((status_kb("VmHWM") - before_kb) * 1024 / 1e6)


if __name__ == "__main__":
    main(*sys.argv[1:])
