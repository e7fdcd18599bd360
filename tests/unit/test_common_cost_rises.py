"""Rounds in which a second passes for thousands of machines: the price of progress makes all arcs
before them dearer at once. Every round is optimal."""

import numpy as np

from flowsolver import solve
from tests.flow_world import FlowWorld, quincy, slot_cell
from tests.unit.test_flow_scheduler import LOCAL, catalog_of, tasks_of


def test_every_round_is_optimal() -> None:
    spec = slot_cell(machines=2_100, slots=2, rack_size=30)
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL]), preemption=True))
    rng = np.random.default_rng(1)
    world.offer(tasks_of(np.arange(4_000), job=np.arange(4_000) // 9))
    for r in range(8):
        plan = world.plan()  # checks the certificate
        solver = world.scheduler.graph.solver
        live, _, _ = solver.snapshot()
        assert solver.cost == solve(live, "cost_scaling").cost
        assert solver.certify().ok
        world.commit(plan)
        ends = world.running(0)
        world.finish(rng.choice(ends, 20, replace=False))
        new = 4_000 + 20 * r + np.arange(20)
        world.offer(tasks_of(new, job=new, preference=r % 2))
        world.now_us += 1_000_000
        world.sync()
    assert solver.stats.rebuilds == 0 and solver.stats.repaired > 2_100
