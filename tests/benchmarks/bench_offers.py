"""Offers: one run of the allocator, and whole runs at paper scale.

A run of the allocator is over 12,500 machines and 8 frameworks, a cell of the size of that of
Google's 2011 trace; peer: the allocator in plain Python that the tests use.

Half of each machine is used on average. Every framework has refused every third machine, so that
filters are looked at. In each round the run's offers are declined again. Task-sized grants: each
framework wants 2,500 tasks. The peer stands beside whole machines only: it adds up the cell for
each offer under a guarantee, and tries each machine for each task.

Whole runs: committed tasks per second of processor time, of 20 schedulers in virtual time at 95 %
load. The cell is the paper's, 200,000 machines of one slot, or has as many slots on 12,500
machines. An offer is all that is free on a machine, or room for one task. Peer: optimistic
schedulers, latency-first, on the same workload.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from experiments.config.presets import greedy_group, mesos_arm, paper_scale
from experiments.workloads.synthetic import generate
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from tests.offer_oracle import Amount, Oracle, Role, Settings

MACHINES, FRAMEWORKS, TASKS = 12_500, 8, 2_500
CAPACITY = (16_000, 65_536)  # millicores and MiB
REFUSED, FAR_US = (1 << 20, 1 << 20), 1 << 50
ROUNDS, WARM_UP = 50, 5
GROUP = "offers: one run, 12,500 machines, 8 frameworks, "
PEER_KIND = "whole machines"
KINDS: dict[str, dict[str, Any]] = {
    "whole machines": {},
    "whole machines, random order": {"random": True},
    "whole machines, a guarantee": {"roles": [Role("r0", guarantee=(16_000_000, 0))]},
    "whole cell": {"machines_per_turn": MACHINES},
    "task-sized grants": {"task_sized": True},
}


def free_amounts() -> np.ndarray:
    rng = np.random.default_rng(1)
    used = np.clip(rng.normal(0.5, 0.25, (MACHINES, 2)), 0, 0.98)
    return ((1 - used) * CAPACITY).astype(np.int64)


def task_of(framework: int) -> Amount:
    return 200 + 100 * framework, 4_096 - 400 * framework


def add_frameworks(allocator: Any) -> None:
    for number in range(FRAMEWORKS):
        allocator.add_framework(number, f"f{number}", f"r{number % 4}")


@pytest.mark.parametrize("kind", KINDS)
def test_allocate(benchmark: Any, kind: str) -> None:
    benchmark.group = GROUP + kind
    allocator, free = Settings([CAPACITY] * MACHINES, **KINDS[kind]).native(), free_amounts()
    machines = np.arange(MACHINES, dtype=np.int32)
    add_frameworks(allocator)
    for number in range(FRAMEWORKS):
        refused = machines[number % 3 :: 3]
        allocator.refuse(number, refused, np.tile(REFUSED, (len(refused), 1)), FAR_US)
    made = []

    def want() -> None:
        for number in range(FRAMEWORKS):
            allocator.want(number, np.array([task_of(number)]), np.array([TASKS]))

    def run() -> None:
        made.append(allocator.allocate(0, machines, free))

    def decline() -> None:
        framework, _, amount = made.pop()
        allocator.on_offers_ended(framework, amount)

    benchmark.pedantic(run, setup=want, teardown=decline, rounds=ROUNDS, warmup_rounds=WARM_UP)
    benchmark.extra_info.update(unit="ms", target=5 if kind == PEER_KIND else None)


def test_peer(benchmark: Any) -> None:
    benchmark.group = GROUP + PEER_KIND
    benchmark.extra_info.update(label="plain Python")
    oracle = Oracle(Settings([CAPACITY] * MACHINES))
    add_frameworks(oracle)
    for number in range(FRAMEWORKS):
        for machine in range(number % 3, MACHINES, 3):
            oracle.refuse(number, machine, REFUSED, FAR_US)
    rows: list[Amount] = [tuple(of) for of in free_amounts().tolist()]
    benchmark.pedantic(lambda: oracle.allocate(0, list(range(MACHINES)), rows), rounds=1)


CELLS = {"200,000 machines of 1 slot": (200_000, 1), "12,500 machines of 16": (12_500, 16)}
SECONDS, DRAIN_US = 2.0, 60_000_000


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("party", ["agora", "optimistic"])
@pytest.mark.parametrize("granularity", ["machine", "task"])
@pytest.mark.parametrize("cell", CELLS)
def test_speed(benchmark: Any, cell: str, granularity: str, party: str) -> None:
    benchmark.group = f"offers: whole runs, 20 schedulers, {cell}, granularity = {granularity}"
    scale = paper_scale()
    machines, slots = CELLS[cell]
    changes = {
        "machines": machines,
        "slots_per_machine": slots,
        "load_percent": (95,),
        "phase_s": SECONDS,
    }
    workload = generate(scale.synthetic.model_copy(update=changes), 1)
    arm = mesos_arm(scale, scale.schedulers)
    options = arm.protocols["offers"].model_copy(update={"granularity": granularity})
    arm = arm.model_copy(update={"protocols": {"offers": options}})
    if party == "optimistic":
        group = greedy_group(scale, "latency_first", scale.schedulers)
        arm = ArmConfig(name=party, partitions=scale.partitions, groups=(group,))
    spec = arm.seeded(1, 1000, 100_000, live=False)

    def run() -> None:
        taken = run_virtual(spec, workload, DRAIN_US, lambda _: None, lambda _: None, 500)
        assert taken.drained

    benchmark.pedantic(run, rounds=3)
    benchmark.extra_info.update(unit="tasks/s", amount=len(workload.tasks), label=party)
