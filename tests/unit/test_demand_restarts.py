"""Live runs without Ray in which the cell and scheduler hosts are killed: in the end every
scheduler that shares demand knows every task, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from experiments.commands.replay import replay
from parsync.core.addresses import CELL_SIDE
from parsync.protocols.optimistic.shared_demand import DemandLedger
from parsync.runtime.live import replay as log_replay
from parsync.runtime.live.plan import CELL
from parsync.spec.arm import SeededArm
from schedulers.greedy.scheduler import GreedyScheduler
from schedulers.prices.kinds import MembershipPrices
from tests.fixtures.changed import changed
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.killed_actors import cell_and_tasks, make_run, to_the_end
from tests.fixtures.live_runs import mixed_arm, small_arm

TASK = 1 << 32  # the unit of demand
GAP_US = 200_000


def sharing(arm: SeededArm) -> SeededArm:
    """The arm with prices that forget nothing."""
    options = {"prices": "membership", "share_demand": True}
    return changed(arm, groups=tuple(changed(group, options=options) for group in arm.groups))


def totals(ray: FakeRay) -> Iterator[int]:
    """How many tasks the prices of each scheduler rest on."""
    for host in ray.live_run._plan.hosts:
        for agent in ray.actors[host.name]._agents.values():
            scheduler = agent.scheduler._scheduler
            assert isinstance(scheduler, GreedyScheduler)
            estimator = scheduler.shared_demand
            assert isinstance(estimator, MembershipPrices)
            estimator.demand.advance(0)
            yield estimator.demand._counts.total / TASK


@pytest.mark.parametrize("killed", [(), (CELL,), ("schedulers-0",), ("schedulers-0", CELL)])
def test_everybody_knows_every_task_once_whoever_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, killed: tuple[str, ...]
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, sharing(small_arm()), workload)
    for at_us in (600_000, 1_150_000):
        ray.pass_time(at_us)
        for name in killed:
            ray.kill(name)
        if CELL in killed:  # the others wait for it
            ray.restart(CELL)
        ray.pass_time(at_us + 30_000)  # but not for a host
        if "schedulers-0" in killed:
            ray.restart("schedulers-0")
    while not ray.idle:
        assert ray.clock.us < 10_000_000
        ray.pass_time(ray.clock.us + 50_000)
    ray.pass_time(ray.clock.us + 3 * GAP_US)
    ledger = ray.actors[CELL]._service.runtime.participants[CELL_SIDE]
    assert isinstance(ledger, DemandLedger)
    tasks = len(workload.tasks)
    preference = workload.tasks.preference
    assert np.array_equal(ledger.state[2], np.bincount(preference, minlength=len(ledger.state[2])))
    assert list(totals(ray)) == [tasks] * 4
    outcome = to_the_end(ray)
    assert not outcome.partial
    replayed = replay(tmp_path / "log")
    assert replayed.divergence is None


def test_a_run_whose_cell_comes_back_from_a_checkpoint_is_replayed(tmp_path: Path) -> None:
    write_run(tmp_path, sharing(mixed_arm()))
    replayed = log_replay.replay(tmp_path)
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.counts is not None and replayed.counts.accepted > 100
