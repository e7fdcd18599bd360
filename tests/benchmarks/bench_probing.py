"""The probing protocol against closed forms with many machines, against jobs of a file, and its
speed beside optimistic schedulers at paper scale.

    python -m tests.benchmarks.bench_probing closed-forms [--machines N] [--cases TEXT]
    python -m tests.benchmarks.bench_probing jobs FILE [--machines N]
    python -m tests.benchmarks.bench_probing sparrow
    python -m tests.benchmarks.bench_probing speed

closed-forms: machines of one slot, a task per job, exponential gaps and run times, no delays. Mean
responses in mean run times, for late binding and for the least queue, with half-widths of 95 % from
20 batch means. Jobs submitted in the first 100 run times do not count (one probe: 1,000). How many
are measured depends on load and probes: half-widths are to be at most 0.7 %. TEXT: only the cases
whose lines contain it, such as "load 0.9 late".

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
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.config.presets import greedy_group, paper_scale
from experiments.workloads.synthetic import generate
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.workload.workload import Workload
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int64, TaskClass
from tests.fixtures.probing_runs import jobs_workload, poisson_jobs, probing_arm, probing_group, run
from tests.unit.test_probing import least_work, shortest_queue

SERVICE_US = 10_000_000
WARM_UP = 100  # in mean run times
MEASURED = {0.5: 600, 0.8: 1200, 0.9: 2000}  # by load
ONE_PROBE_WARM_UP = 1000
ONE_PROBE_MEASURED = {0.5: 600, 0.8: 2000, 0.9: 5000}
BATCHES = 20
SPARROW: dict[str, dict[str, Any]] = {
    "late": {"cancellation": False},
    "late, cancellation": {},
    "least queue, batch": {"binding": "least_queue"},
    "least queue, per task": {"binding": "least_queue", "sampling": "per_task"},
    "random": {"binding": "random"},
}
STUDENT = 2.093  # 95 %, 19 degrees of freedom


def closed_forms(machines: int, only: str) -> None:
    """Print how far means are from closed forms. One probe is last: such queues forget slowly, so
    more is dropped and measured."""
    cases = [(d, "late", least_work, WARM_UP, MEASURED) for d in (2, 3, 4)]
    cases += [(d, "least_queue", shortest_queue, WARM_UP, MEASURED) for d in (2, 3, 4)]
    cases += [(1, "late", least_work, ONE_PROBE_WARM_UP, ONE_PROBE_MEASURED)]
    for d, binding, form, warm_up, measured in cases:
        for load, times in measured.items():
            case = f"load {load} {binding} d {d}"
            if only not in case:
                continue
            mean, half = response(machines, load, d, binding, warm_up, times)
            expected = form(load, d)
            print(
                f"{case}: {mean:.4f} +- {half:.4f} ({100 * half / mean:.2f} %), closed form "
                f"{expected:.4f}, {100 * (mean / expected - 1):+.2f} %",
                flush=True,
            )


def response(
    machines: int, load: float, d: int, binding: str, warm_up: int, measured: int
) -> tuple[float, float]:
    """The mean response in mean run times, and its half-width."""
    jobs = int(load * machines * (warm_up + measured))
    workload = poisson_jobs(machines, 1, load, jobs, SERVICE_US)
    options: dict[str, Any] = {"probe_ratio": float(d), "binding": binding}
    ran = run(probing_arm(probing_group(**options), hop_s=0), workload, heartbeat_us=1000)
    first = jobs * warm_up // (warm_up + measured)
    # the mean run time is known, and need not be measured
    wait_us = ran.start_us - workload.tasks.submit_us
    parts = np.array_split(wait_us[first:] / SERVICE_US, BATCHES)
    means = np.array([1 + part.mean() for part in parts])
    return float(means.mean()), STUDENT * float(means.std(ddof=1)) / math.sqrt(BATCHES)


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
    task_class = np.repeat(
        np.where(mean_s > 500, TaskClass.SERVICE, TaskClass.BATCH),
        np.diff(workload.arrival_offsets),
    )
    tasks = replace(workload.tasks, task_class=task_class.astype(np.int8))
    workload = replace(workload, tasks=tasks)
    for seed in range(1, seeds + 1):
        # the seed of the arm's streams is that of its name: another group draws other machines
        group = probing_group(name=f"probing{seed}", probe_ratio=d, with_replacement=replaces)
        ran = run(probing_arm(group, queue=queue), workload, heartbeat_us=1000)
        ends = ran.start_us + workload.duration_us
        offsets = workload.arrival_offsets[:-1]
        response_s = (np.maximum.reduceat(ends, offsets) - workload.arrival_us) / 1e6
        for name, chosen in (("short", mean_s <= 500), ("long", mean_s > 500)):
            of = np.sort(response_s[chosen])
            at = [of[math.ceil(p * len(of)) - 1] for p in (0.5, 0.9, 0.99)]
            print(
                f"draw {seed} {name:5}",
                " / ".join(f"{one:.0f}" for one in at),
                ran.sums,
                flush=True,
            )
        share = ran.sums["behind_long"] / ran.sums["given_short"]
        print(f"draw {seed} short tasks behind a long one: {100 * share:.1f} %", flush=True)


def sparrow() -> None:
    jobs, tasks, mean_us, load = 4000, 100, 100_000, 0.8
    gaps = Stream(stream_key(1, "gaps")).exponential(jobs) * tasks * mean_us / (load * 40_000)
    times = Stream(stream_key(1, "times")).exponential(jobs * tasks) * mean_us
    submit_us = np.cumsum(gaps).astype(np.int64)
    sizes = np.full(jobs, tasks)
    workload = jobs_workload(10_000, 4, submit_us, sizes, np.maximum(1, times).astype(np.int64))
    for name, options in SPARROW.items():
        ran = run(probing_arm(probing_group(**options)), workload, heartbeat_us=100)
        ends = ran.start_us + workload.duration_us
        response_us = np.maximum.reduceat(ends, workload.arrival_offsets[:-1]) - submit_us
        print(f"{name}: {response_us[submit_us > 500_000].mean() / 1000:.1f} ms", flush=True)


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
