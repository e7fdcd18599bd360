"""Live runs whose time is over while a call of a scheduler is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parsync.runtime.live import liveness
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.liveness import SilentActors
from schedulers.interface import ContractBroken
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

HOSTS = [("schedulers-0", "finish"), ("schedulers-1", "finish")]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRay:
    """A run of 0.4 s so far."""
    arm, workload = small_arm(), small_workload(phase_s=0.3, machines=60)
    fake = FakeRay(monkeypatch, tmp_path, arm, workload, metrics_of(workload, arm))
    fake.pass_time(400_000)
    return fake


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
