"""The probing protocol against closed forms with many machines, against the jobs of a file, and its
speed beside optimistic schedulers at paper scale.

    python -m tests.benchmarks.bench_probing closed-forms [--machines N] [--cases TEXT]
    python -m tests.benchmarks.bench_probing jobs FILE [--machines N]
    python -m tests.benchmarks.bench_probing sparrow
    python -m tests.benchmarks.bench_probing speed

The settings are those of `agora reproduce sparrow` (experiments/papers/sparrow/settings.py).

closed-forms: machines of one slot, a task per job, exponential gaps and run times, no delays. Mean
responses in mean run times, for late binding and for the least queue, with half-widths of 95 % from
20 batch means. How long runs are depends on load and probes (settings.py): half-widths are to be at
most 0.7 %. TEXT: only the cases whose lines contain it, such as "load 0.9 late".

jobs: a job per line, submission in s, tasks, mean run time in s, run times in s, as the public
simulators of Sparrow, Hawk and Eagle read. Machines have one slot, and are drawn with replacement.
Prints the 50th, 90th and 99th percentile of the response of short jobs (mean up to 500 s) and long,
and the share of short tasks that waited behind a long one. `--queue` sets the queues' order.

sparrow: the setting of Sparrow's own simulations. 10,000 machines of 4 slots, 4,000 jobs of 100
independent tasks of 100 ms, a hop of 0.5 ms. Mean response of the jobs submitted after 500 ms.

speed: committed tasks per second of processor time, where 38,000 tasks of 5 s arrive per second.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.config.presets import greedy_group, paper_scale
from experiments.papers.sparrow.figures import JUDGED, MEAN, half_width
from experiments.papers.sparrow.google import LONG, PERCENTILES, SHORT, percentiles_s
from experiments.papers.sparrow.runs import jobs_workload, probing_arm, probing_group, run
from experiments.papers.sparrow.settings import (
    PROTOCOLS,
    simulation_run,
    single_task_run,
    theory_length,
)
from experiments.workloads.synthetic import generate
from parsync.model.queueing import least_work, shortest_queue
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.workload.workload import Workload
from shared_state.tasks import Int64, TaskClass


def closed_forms(machines: int, only: str) -> None:
    """Print how far means are from closed forms, the longest runs last."""
    cases = [(d, "late", least_work) for d in (2, 3, 4)]
    cases += [(d, "least_queue", shortest_queue) for d in (2, 3, 4)]
    cases += [(1, "late", least_work)]
    for d, binding, form in cases:
        for load in JUDGED:
            case = f"load {load} {binding} d {d}"
            if only not in case:
                continue
            run = single_task_run("", load, d, binding, machines, theory_length(load, d))
            found = run.measure(1, None)
            mean, half, expected = MEAN(found), half_width(found), form(load, d)
            print(
                f"{case}: {mean:.4f} +- {half * mean:.4f} ({100 * half:.2f} %), closed form "
                f"{expected:.4f}, {100 * (mean / expected - 1):+.2f} %",
                flush=True,
            )


def read_jobs(path: Path, machines: int) -> tuple[Workload, Int64]:
    """The jobs of a file and the mean run time in s of each, as the file has it."""
    submit, mean, times = [], [], []
    for line in path.read_text("utf-8").splitlines():
        at, _, mean_s, *durations = line.split()
        submit.append(round(float(at) * 1e6))
        mean.append(int(mean_s))
        times.append(durations)
    sizes = np.array([len(one) for one in times])
    duration_us = np.array([int(one) for durations in times for one in durations]) * 1_000_000
    workload = jobs_workload(machines, 1, np.array(submit), sizes, duration_us)
    return workload, np.array(mean)


def percentiles(
    path: Path, machines: int, seeds: int, d: float, replaces: bool, queue: str
) -> None:
    workload, mean_s = read_jobs(path, machines)
    group = probing_group(probe_ratio=d, with_replacement=replaces)
    task_class = np.repeat(
        np.where(mean_s > 500, TaskClass.SERVICE, TaskClass.BATCH),
        np.diff(workload.arrival_offsets),
    )
    tasks = replace(workload.tasks, task_class=task_class.astype(np.int8))
    workload = replace(workload, tasks=tasks)
    for seed in range(1, seeds + 1):
        ran = run(probing_arm(group, queue=queue), workload, heartbeat_us=1000, seed=seed)
        found = percentiles_s(ran, mean_s)
        for name in (SHORT, LONG):
            at = [f"{found[f'{name}_p{percent}']:.0f}" for percent in PERCENTILES]
            print(f"draw {seed} {name:5}", " / ".join(at), ran.sums, flush=True)
        share = ran.sums["behind_long"] / ran.sums["given_short"]
        print(f"draw {seed} short tasks behind a long one: {100 * share:.1f} %", flush=True)


def sparrow() -> None:
    for name in PROTOCOLS:
        (response_ms,) = simulation_run(name, name, 0.8).measure(1, None)["response_ms"]
        print(f"{name}: {response_ms:.1f} ms", flush=True)


def speed(seconds: float) -> None:
    scale = paper_scale()
    changes = {"mean_duration_s": 5.0, "phase_s": seconds, "load_percent": (95,), "start": "cold"}
    workload = generate(scale.synthetic.model_copy(update=changes), 1)
    decision = scale.equal_capacity(20)
    groups = {
        "optimistic": greedy_group(scale, "latency_first", 20, decision=decision),
        "probing": probing_group(20).model_copy(update={"decision": decision}),
    }
    rates: dict[str, list[float]] = {name: [] for name in groups}
    for _ in range(3):
        for name, group in groups.items():
            rates[name].append(tasks_per_cpu_s(group, scale.partitions, workload))
    best = {name: max(of) for name, of in rates.items()}
    for name, rate in best.items():
        print(f"{name}: {rate:,.0f} tasks per CPU second ({rate / best['optimistic']:.2f})")


def tasks_per_cpu_s(group: GroupConfig, partitions: int, workload: Workload) -> float:
    arm = ArmConfig(name="arm", partitions=partitions, groups=(group,))
    placed = 0

    def take(record: Any) -> None:
        nonlocal placed
        if record.table == "tasks":
            placed += len(record.columns["task"])

    begun = time.process_time()
    run_virtual(arm.seeded(1, 1000, 100_000, live=False), workload, 0, take, lambda _: None, 500)
    return placed / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("closed-forms", "jobs", "sparrow", "speed"))
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--machines", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--probe-ratio", type=float, default=2.0)
    parser.add_argument("--without-replacement", action="store_true")
    parser.add_argument("--queue", default="first_come")
    parser.add_argument("--cases", default="")
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    if given.what == "closed-forms":
        closed_forms(given.machines or 2000, given.cases)
    elif given.what == "sparrow":
        sparrow()
    elif given.what == "speed":
        speed(given.seconds)
    else:
        machines, replaces = given.machines or 4000, not given.without_replacement
        percentiles(given.file, machines, given.seeds, given.probe_ratio, replaces, given.queue)


if __name__ == "__main__":
    main()
