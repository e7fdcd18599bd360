"""Two-level scheduling with a framework that decides slowly, beside shared state: a cell, jobs and
decision times like those that Omega's simulator was run with (1,000 machines of 4 cores, services
and batch jobs), by how much one framework is offered at a time.

    python -m tests.benchmarks.slow_frameworks [--seconds 3600]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from experiments.workloads import registry as workloads
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import Workload
from shared_state.tasks import TaskClass
from tests.fixtures.offers_runs import offers_arm, offers_group, run

SECOND = 1_000_000
THINK_S = (0.1, 1.0, 10.0, 100.0)  # of a service job; of a batch job: 10 ms; of a task: 5 ms
TASK_US = 5_000
BATCH = ModelledTime(job_us=10_000, task_us=TASK_US)
SHARED: dict[str, Any] = {  # Omega
    "kind": "optimistic",
    "sync": "every_attempt",
    "losers": "requeue",
    "retry_s": 1.0,
    "commit_pipelining": False,
}


def cell(seconds: int) -> Workload:
    """Jobs for so many seconds, on a cell that they fill to about a half."""
    spec = workloads.get("service_batch")
    options = {
        "machines": 1000,
        "duration_s": float(seconds),
        "initial_fill_percent": 20,
        "batch": {"interarrival_s": 1.98, "tasks_per_job": 20.0, "run_s": 60.0},
        "service": {"interarrival_s": 20.3, "tasks_per_job": 10.0, "run_s": 500.0},
    }
    workload: Workload = spec.load(spec.options.model_validate(options), 1)
    return workload


def arms(think_s: float) -> dict[str, ArmConfig]:
    """The architectures, with this decision time of a service job."""
    slow = ModelledTime(job_us=int(think_s * SECOND), task_us=TASK_US)
    offered = [
        offers_group(1, name, takes=name, decision=decision)
        for name, decision in (("batch", BATCH), ("service", slow))
    ]
    shared = [
        GroupConfig.model_validate(
            {
                "name": name,
                "kind": "random",
                "count": 1,
                "task_class": name,
                "protocol": SHARED,
                "decision": decision,
            }
        )
        for name, decision in (("batch", BATCH), ("service", slow))
    ]
    return {
        "offers, cell": offers_arm(*offered, granularity="cell", allocation_s=0.001),
        "offers, machine": offers_arm(*offered, allocation_s=0.001),
        "shared state": ArmConfig(name="arm", partitions=2, groups=tuple(shared)),
    }


def main() -> None:
    """Print a row per decision time and architecture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3600)
    seconds = parser.parse_args().seconds
    workload = cell(seconds)
    tasks = workload.tasks
    arrived = np.zeros(len(tasks), np.bool_)
    arrived[workload.arrival_rows] = True
    print("| service decision | architecture | batch wait | service wait | placed | held |")
    for think_s in THINK_S:
        for name, arm in arms(think_s).items():
            begun = time.process_time()
            ran = run(arm, workload, drain_us=0, heartbeat_us=SECOND // 10)
            row = [f"{think_s:g} s", name]
            parts = []
            for one in (TaskClass.BATCH, TaskClass.SERVICE):
                rows = arrived & (tasks.task_class == one)
                placed = rows & (ran.commit_us >= 0)
                wait_us = (ran.commit_us - tasks.submit_us)[placed]
                row.append(f"{wait_us.mean() / SECOND:.3g} s")
                parts.append(f"{placed.sum() / rows.sum():.0%}")
            held = ran.sum("held") / 1e6 / (seconds * SECOND)
            row += [" / ".join(parts), f"{held:.1%}"]
            print(f"| {' | '.join(row)} | ({time.process_time() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
