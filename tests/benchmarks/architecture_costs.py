"""What a decision on a view, a scored node, a probe and an offer cost: `python -m
tests.benchmarks.architecture_costs`.

Processor time of this machine, in us: of decisions and scored nodes the median of plans, of offers
the median of runs of the allocator. What a probe costs, everything that it causes included, is how
much longer a run in virtual time takes per task for each further probe.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.papers.sparrow.runs import probing_group
from experiments.workloads.synthetic import SyntheticOptions, generate
from schedulers.scoring.scheduler import ScoringScheduler
from tests.benchmarks.bench_probing import tasks_per_cpu_s
from tests.benchmarks.bench_score import SCHEDULERS, Site, batch_of
from tests.offer_oracle import Settings

MACHINES, SLOTS, LOAD = 2_000, 4, 0.8
FRAMEWORKS = 8
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
    """(us per task without probes, us per probe)."""
    options = SyntheticOptions(
        machines=MACHINES,
        slots_per_machine=SLOTS,
        mean_duration_s=1.0,
        batch_tasks=10,
        preference_groups=0,
        phase_s=10.0,
        load_percent=(round(100 * LOAD),),
        start="cold",
    )
    workload = generate(options, 1)
    spent_us = [
        1e6 / max(tasks_per_cpu_s(group, 1, workload) for _ in range(5))
        for group in (probing_group(FRAMEWORKS, probe_ratio=float(d)) for d in PROBES)
    ]
    slope = (spent_us[1] - spent_us[0]) / (PROBES[1] - PROBES[0])
    return spent_us[0] - slope * PROBES[0], slope


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
    greedy_us, _ = decision("load_spreading", 10)
    print(f"a decision on a view, in batches of ten: {greedy_us / 10:.2f} us")
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
