"""The coordinator's host: phases reach the cell and every scheduler host, and phases that no longer
come are reported; the inputs that it keeps are good for every actor."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parsync.core.addresses import COORDINATOR, MASTER, WORKERS
from parsync.core.codec import CORE, encode
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import PhaseDue, SampleDue, Started
from parsync.runtime.assembly import Assembly
from parsync.runtime.live import hosts
from parsync.runtime.live.hosts import CoordinatorHost
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.plan import LiveOptions, RunInputs, plan_run
from parsync.runtime.live.ray_glue import actors as ports
from parsync.runtime.live.steps import Step
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

WAIT_S = 10.0


class Remote:
    """A method of an actor's handle: called at once, in this thread."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.remote = body


class Handle:
    """The handle of an actor with these methods."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        for name, body in methods.items():
            setattr(self, name, Remote(body))


class Cell:
    """Takes the coordinator's steps, and has a message for it at the first."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.waiting: tuple[tuple[int, bytes], ...] = ()

    def step(self, request: bytes) -> bytes:
        self.steps.append(Step.of(CORE, request))
        reply, self.waiting = encode(self.waiting), ()
        return reply

    def endpoint(self) -> None:
        """Steps are calls of Ray."""


@pytest.fixture
def cell() -> Cell:
    return Cell()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cell: Cell) -> CoordinatorHost:
    arm, workload = small_arm(), small_workload(phase_s=0.2)
    inputs = RunInputs(Assembly.of(arm, workload), partial(metrics_of, workload, arm))
    monkeypatch.setattr(hosts, "share", lambda value: [value])
    monkeypatch.setattr(hosts, "shared", lambda handle: handle[0])
    monkeypatch.setattr(
        hosts,
        "member",
        lambda namespace, name: Handle(step=cell.step, endpoint=cell.endpoint),
    )
    monkeypatch.setattr(ports.ray, "get", lambda value, timeout: value)
    plan = plan_run("nowhere", inputs.assembly, LiveOptions(tmp_path))
    return CoordinatorHost(plan, inputs)


def status_when(host: CoordinatorHost, condition: Callable[[RunStatus], bool]) -> RunStatus:
    begun_s = time.monotonic()
    while not condition(status := host.run_status()):
        assert time.monotonic() - begun_s < WAIT_S, status
        time.sleep(0.01)
    return status


def test_phases_are_followed(host: CoordinatorHost) -> None:
    host.attach(time.time_ns())
    status = status_when(host, lambda _: "load phase 2 of 2" in host.status())
    assert host.finish() is None and status.errors == ()


def test_the_coordinator_sends_and_receives(host: CoordinatorHost, cell: Cell) -> None:
    """As every other participant does."""
    handled: list[Event] = []

    def handle(now_us: int, event: Event) -> list[Effect]:
        handled.append(event)
        return [Send(MASTER, SampleDue(len(handled))), Send(WORKERS, PhaseDue(len(handled)))]

    host._coordinator.handle = handle  # type: ignore[method-assign]
    cell.waiting = ((COORDINATOR, encode(PhaseDue(7))),)
    host.attach(time.time_ns())
    status_when(host, lambda _: len(cell.steps) >= 2)
    assert host.finish() is None
    assert handled == [Started(0), PhaseDue(7)]
    assert [step.messages for step in cell.steps[:2]] == [
        ((MASTER, SampleDue(1)), (WORKERS, PhaseDue(1))),
        ((MASTER, SampleDue(2)), (WORKERS, PhaseDue(2))),
    ]
    assert {step.host for step in cell.steps} == {COORDINATOR}


def test_a_message_to_nobody_ends_the_coordinator_with_one_clear_line(
    host: CoordinatorHost,
) -> None:
    def handle(now_us: int, event: Event) -> list[Effect]:
        return [Send(99, PhaseDue(3))]

    host._coordinator.handle = handle  # type: ignore[method-assign]
    host.attach(time.time_ns())
    status = status_when(host, lambda status: bool(status.errors))
    line = "coordinator: coordinator: sent PhaseDue to address 99, which no participant has"
    assert status.errors == (line,)


def test_phases_that_no_longer_come_are_an_error(
    host: CoordinatorHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance() -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(host._runtime, "advance", advance)
    host.attach(time.time_ns())
    said = "coordinator: RuntimeError: no more"
    assert status_when(host, lambda status: bool(status.errors)).errors == (said,)
    assert host.finish() == said


def test_actors_work_with_inputs_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray shares them without a copy, and read-only."""

    def as_shared(value: Any) -> Any:
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])

    arm, workload = small_arm(), small_workload(0.3)
    assembly = as_shared(Assembly.of(arm, workload))
    monkeypatch.setattr(Assembly, "of", lambda arm, workload: assembly)
    ray = FakeRay(monkeypatch, tmp_path, arm, workload, as_shared(metrics_of(workload, arm)))
    ray.pass_time(400_000)
    outcome = ray.finish(quiet=False, partial=True)
    assert outcome.notes == () and outcome.metrics.count["committed"].sum() > 0
