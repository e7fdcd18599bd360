"""A run that is cut off from Ray ends before Ray ends its process, with what it has; a host that
is cut off is replaced."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from parsync.runtime.live import run
from parsync.runtime.live.liveness import HEAD_S, LOOK_S, RayLiveness, RunStatus
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL, ActorStatus
from parsync.runtime.live.steps import Replaced
from parsync.workload.workload import Workload
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload


class Clock:
    s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def closed() -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address: tuple[str, int] = probe.getsockname()
        return address


def test_this_machine_s_node_is_gone_when_nothing_listens_there(server: socket.socket) -> None:
    there = server.getsockname()
    assert not RayLiveness(there, closed()).home_is_gone()
    assert RayLiveness(closed(), there).home_is_gone()


def test_a_head_node_may_be_away_for_a_moment(server: socket.socket) -> None:
    clock, there = Clock(), server.getsockname()
    liveness = RayLiveness(there, there, clock)
    clock.s += 2 * HEAD_S
    assert not liveness.head_is_gone(), "it answers"
    server.close()
    clock.s += HEAD_S - 0.1
    assert not liveness.head_is_gone()
    clock.s += 0.1
    assert liveness.head_is_gone()


def test_looks_are_a_second_apart() -> None:
    clock = Clock()
    liveness = RayLiveness(closed(), closed(), clock)
    assert not liveness.due()
    clock.s += LOOK_S
    assert liveness.due() and not liveness.due()


class Cut:
    """RayLiveness of which these are gone."""

    def __init__(self, home: bool, head: bool) -> None:
        self.home_is_gone, self.head_is_gone = (lambda: home), (lambda: head)


@pytest.fixture
def workload() -> Workload:
    return small_workload(phase_s=0.3, machines=60)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workload: Workload) -> FakeRay:
    """A run of 0.4 s so far, which disconnect() cuts off."""
    arm = small_arm()
    fake = FakeRay(monkeypatch, tmp_path, arm, workload, metrics_of(workload, arm))
    fake.pass_time(400_000)
    state = {"connected": True}
    monkeypatch.setattr(run, "connected", lambda: state["connected"])
    monkeypatch.setattr(run, "disconnect", lambda: state.update(connected=False))
    return fake


def test_without_its_node_a_run_asks_nobody_and_is_made_up_from_its_logs(fake: FakeRay) -> None:
    said = fake.live_run._cut_off(Cut(home=True, head=True))  # type: ignore[arg-type]
    assert said == "cell, workers, source and coordinator: their node is gone"
    placed = int((~fake.actors[CELL]._service.runtime.never_placed()).sum())
    for name in list(fake.actors):
        fake.lose(name)
    fake.call = lambda *_: pytest.fail("Ray is asked")  # type: ignore[method-assign]
    outcome = fake.finish(quiet=False, partial=True)
    assert outcome.partial
    assert {restart.actor for restart in outcome.restarts} == {
        *(CELL, WORKER_POOL, SOURCE, COORDINATOR_NAME),
        *(host.name for host in fake.live_run._plan.hosts),
    }
    assert outcome.metrics.count["committed"].sum() == placed > 0
    assert not fake.live_run.end(), "there is nobody to be kept"


def test_without_its_head_node_a_run_still_hears_its_actors(fake: FakeRay) -> None:
    assert fake.live_run._cut_off(Cut(home=False, head=False)) is None  # type: ignore[arg-type]
    said = fake.live_run._cut_off(Cut(home=False, head=True))  # type: ignore[arg-type]
    assert said == "Ray's head node has not answered for 10 s"
    outcome = fake.finish(quiet=False, partial=True)
    assert outcome.partial and outcome.restarts == ()
    assert outcome.metrics.count["committed"].sum() > 0
    assert not run.connected(), "before Ray ends this process"


def test_why_a_run_ends_before_its_time(fake: FakeRay) -> None:
    liveness = Cut(home=False, head=False)
    liveness.due = lambda: True
    status = RunStatus(400_000, None, -1, False, (), (), {})
    run = fake.live_run

    def reasons(**said: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(run._reasons_to_end(replace(status, **said), liveness))  # type: ignore

    assert reasons() == () and reasons(silent=(SOURCE, WORKER_POOL)) == (), "both answer"
    fake.lose(SOURCE)
    assert reasons() == (), "it may have reported all that it has to"
    assert reasons(silent=(SOURCE,)) == ("source: process is gone",)
    assert reasons(silent=(SOURCE,), errors=("workers: disk full",)) == ("workers: disk full",)
    assert not run._broken
    assert reasons(errors=("workers: disk full",), broken=("greedy-0: ...",)) == ("greedy-0: ...",)
    assert run._broken
    liveness.head_is_gone = lambda: True
    assert reasons(broken=("greedy-0: ...",)) == ("Ray's head node has not answered for 10 s",)


def test_a_host_that_was_cut_off_and_is_back_does_not_end_the_run(fake: FakeRay) -> None:
    name = "schedulers-0"
    cut_off = fake.actors[name]
    fake.kill(name)
    fake.restart(name)
    fake.pass_time(600_000)
    told: list[ActorStatus] = []
    cut_off._reporter = told.append
    with pytest.raises(Replaced):
        cut_off._live(threading.Event(), threading.Event())
    assert [report.error for report in told if report.error] == []
