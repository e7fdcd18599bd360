"""What a decision on a view, a scored node, a probe and an offer cost: `python -m
tests.benchmarks.architecture_costs`.

Processor time of this machine, in us, the median of many plans, draws or runs of the allocator.
A probe costs what a scheduler takes longer for each further one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.papers.sparrow.runs import probing_group
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core.events import DecisionDone, Started, TasksSubmitted
from parsync.runtime.assembly import Assembly
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.scoring.scheduler import ScoringScheduler
from tests.benchmarks.bench_score import SCHEDULERS, Site, batch_of
from tests.offer_oracle import Settings

MACHINES, SLOTS, LOAD = 2_000, 4, 0.8
FRAMEWORKS, BATCH = 8, 10
REPEATS, WARM_UP = 400, 40
PROBES = (1, 8)


def decision(kind: str, tasks: int) -> tuple[float, float]:
    """(us per plan of so many tasks, nodes scored per plan) of a kind."""
    site = Site(kind, MACHINES, LOAD)
    spent_ns, scored = [], []
    for turn in range(WARM_UP + REPEATS):
        batch = batch_of(tasks, 0, turn)
        begun_ns = time.thread_time_ns()
        site.plan(turn, batch)
        spent_ns.append(time.thread_time_ns() - begun_ns)
        scheduler = site.schedulers[turn % SCHEDULERS]
        scored.append(scheduler.work[3] if isinstance(scheduler, ScoringScheduler) else 0)
    return float(np.median(spent_ns[WARM_UP:])) / 1e3, float(np.mean(scored[WARM_UP:]))


def probe() -> tuple[float, float]:
    """(us per task without probes, us per probe) of a scheduler that is told of ten tasks, draws
    machines for them and sends the probes."""
    options = SyntheticOptions(
        machines=MACHINES,
        slots_per_machine=SLOTS,
        mean_duration_s=1.0,
        batch_tasks=BATCH,
        preference_groups=0,
        phase_s=5.0,
        load_percent=(round(100 * LOAD),),
        start="cold",
    )
    workload = generate(options, 1)
    few_us, many_us = (drawn(workload, float(d)) for d in PROBES)
    probe_us = (many_us - few_us) / (PROBES[1] - PROBES[0])
    return few_us - PROBES[0] * probe_us, probe_us


def drawn(workload: Workload, d: float) -> float:
    """us per task with d probes for each."""
    arm = ArmConfig(name="arm", partitions=1, groups=(probing_group(probe_ratio=d),))
    agent = Assembly.of(arm.seeded(1, 1_000, 100_000, live=False), workload).agent(0)
    agent.handle(0, Started(0))
    spent_us = []
    for turn in range(WARM_UP + REPEATS):
        tasks = TasksSubmitted(np.arange(BATCH) + turn * BATCH)
        begun_ns = time.thread_time_ns()
        agent.handle(turn, tasks)
        agent.decide(turn + 1, turn)
        agent.decision_us(0)
        agent.handle(turn, DecisionDone(turn + 1, 0))
        spent_us.append((time.thread_time_ns() - begun_ns) / 1e3 / BATCH)
    return float(np.median(spent_us[WARM_UP:]))


def offer() -> float:
    """us per offer of a run of the allocator that offers what is free on each machine."""
    allocator: Any = Settings([(SLOTS,)] * MACHINES).native()
    machines = np.arange(MACHINES, dtype=np.int32)
    free = np.random.default_rng(1).binomial(SLOTS, 1 - LOAD, (MACHINES, 1)).astype(np.int64)
    for number in range(FRAMEWORKS):
        allocator.add_framework(number, f"f{number}", "*")
        allocator.activate(number)
    spent_us = []
    for _ in range(WARM_UP + REPEATS):
        begun_ns = time.thread_time_ns()
        framework, _, amount = allocator.allocate(0, machines, free)
        allocator.on_offers_ended(framework, amount)
        spent_us.append((time.thread_time_ns() - begun_ns) / 1e3 / len(framework))
    return float(np.median(spent_us[WARM_UP:]))


def main() -> None:
    greedy_us, _ = decision("load_spreading", BATCH)
    print(f"a decision on a view, in batches of ten: {greedy_us / BATCH:.2f} us")
    score_us, scored = decision("kubernetes", 1)
    print(
        f"a decision by score (kubernetes): {score_us:.2f} us for {scored:.0f} scored nodes, "
        f"{1e3 * score_us / scored:.1f} ns each"
    )
    rest_us, probe_us = probe()
    print(f"a probe: {probe_us:.2f} us; a task beside its probes: {rest_us:.2f} us")
    print(f"an offer: {offer():.2f} us")


if __name__ == "__main__":
    main()
