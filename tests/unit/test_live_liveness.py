"""Whether a run goes on: what actors report; a run that is cut off from Ray ends before Ray ends
its process, with what it has; calls of schedulers that do not return."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parsync.runtime.live import liveness, run
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.liveness import (
    HEAD_S,
    LOOK_S,
    RayLiveness,
    RunStatus,
    SilentActors,
    StatusMonitor,
)
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL, ActorStatus
from parsync.runtime.live.steps import Replaced
from parsync.workload.workload import Workload
from schedulers.interface import ContractBroken
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload


def settled_reports() -> tuple[StatusMonitor, ActorStatus, ActorStatus]:
    monitor = StatusMonitor({0: "host"}, "source", ("cell",))
    source = ActorStatus(1_000, 5, 0, True, None, None, {0: 7})
    host = ActorStatus(2_000, 7, 0, True, None)
    return monitor, source, host


def test_a_run_is_quiet_when_all_was_taken_and_placed() -> None:
    monitor, source, host = settled_reports()
    monitor.report("source", source)
    assert not monitor.run_status(2_000).quiet
    monitor.report("host", host)
    status = monitor.run_status(2_000)
    assert status.quiet and status.waiting == 0


@pytest.mark.parametrize(
    "host_change",
    [{"at_us": 500}, {"epoch": 8}, {"queued": 1, "settled": False}],
    ids=[
        "reported before the last submission",
        "another epoch than the source knows",
        "tasks queued",
    ],
)
def test_a_run_is_not_quiet(host_change: dict[str, int]) -> None:
    monitor, source, host = settled_reports()
    monitor.report("source", source)
    monitor.report("host", replace(host, **host_change))
    assert not monitor.run_status(2_000).quiet


def test_who_is_silent_and_who_failed_is_told() -> None:
    monitor, source, host = settled_reports()
    monitor.report("source", replace(source, at_us=9_000_000))
    monitor.report("host", replace(host, error="disk full"))
    status = monitor.run_status(9_000_000)
    assert set(status.silent) == {"host", "cell"}
    assert status.errors == ("host: disk full",)
    assert status.epochs == {"host": 1, "source": 1, "cell": 0}


def test_what_an_earlier_epoch_still_says_is_not_heard() -> None:
    monitor, _, host = settled_reports()
    monitor.report("host", replace(host, epoch=8))
    monitor.report("host", replace(host, epoch=7, at_us=9_000_000, error="replaced", queued=5))
    status = monitor.run_status(2_500)
    assert status.errors == () and status.epochs["host"] == 1


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


HOSTS = [("schedulers-0", "finish"), ("schedulers-1", "finish")]


def test_all_hosts_are_asked_to_finish_before_any_is_waited_for(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_by_then: list[list[tuple[str, str]]] = []

    def call(name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        if (name, method) in HOSTS:
            asked_by_then.append([asked for asked in fake.asked if asked in HOSTS])
        return FakeRay.call(fake, name, method, arguments)

    monkeypatch.setattr(fake, "call", call)
    fake.finish(quiet=False)
    assert asked_by_then == [HOSTS, HOSTS]


def test_a_call_that_is_under_way_when_a_run_is_stopped_is_named(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = fake.actors["schedulers-1"]
    agent = next(iter(host._agents.values()))
    agent.scheduler.calling = "plan()"
    stuck = type("Stuck", (), {"error": None, "stop": lambda self, timeout_s: False})
    host._thread = stuck()
    monkeypatch.setattr(host, "_last_step", lambda: pytest.fail("the loop may be in a step"))
    outcome = fake.finish(quiet=False, partial=True)
    (note,) = outcome.notes
    assert note.startswith("scheduler 'random-1' of kind 'random', ")
    assert note.endswith(": plan() has not returned after 15 s: the run ended meanwhile")


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_contract_broken_at_the_very_end_ends_that_arm_alone(
    fake: FakeRay, interrupted: bool
) -> None:
    error = ContractBroken("greedy-0", "random", 7, "plan.task: task 3 stands twice")
    ended = type("Ended", (), {"error": error, "stop": lambda self, timeout_s: True})
    fake.actors["schedulers-0"]._thread = ended()
    fake.live_run._interrupted = interrupted
    outcome = fake.finish(quiet=False)
    assert outcome.partial and outcome.broken is not interrupted
    assert outcome.notes == (str(error),)


class Host:
    """says: what each look at it finds."""

    def __init__(self, *says: str | None) -> None:
        self._says = iter(says)

    @property
    def overdue(self) -> Host:
        return self

    def remote(self, limit_s: float) -> str | None:
        return next(self._says)


def answer(said: str | None, timeout_s: float) -> str | None:
    if said == "away":
        raise Unavailable("process is away")
    return said


def test_a_run_is_held_up_by_the_calls_that_are_under_way_as_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "answer", answer)
    hosts = {
        "slow": Host("round 3", "round 3", None),
        "busy": Host("round 8", "round 9"),
        "idle": Host(None),
        "gone": Host("away"),
        "lost": Host("round 5", "away"),
    }
    held = SilentActors(hosts, {}, {}, 60.0)
    assert [held.held_up() for _ in range(4)] == [True, True, False, False]


def test_a_host_whose_call_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(liveness, "answer", answer)
    monkeypatch.setattr(liveness, "kill", ended.append)
    hosts = {"slow": Host("round 3"), "busy": Host(None), "stuck": Host("away", "away")}
    schedulers = {"stuck": ["greedy-4", "greedy-5"]}
    now_s = 0.0
    actors = SilentActors(hosts, schedulers, {}, 10.0, lambda: now_s)
    assert actors.overdue([*hosts, "source"]) == (), "they were heard of three seconds ago"
    now_s = 7.0
    assert actors.overdue([*hosts]) == ("round 3",)
    assert ended == [hosts["slow"]]
    assert [name for name in hosts if actors.was_ended(name)] == ["slow"]
    now_s = 7.0 + liveness.GRACE_S
    (line,) = actors.overdue(["stuck"])
    assert line.startswith("stuck: a call of one of its schedulers (greedy-4, greedy-5) has not ")
    assert actors.was_ended("stuck")
