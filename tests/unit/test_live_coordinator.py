"""The coordinator's host: phases reach the cell and every scheduler host, and phases that no longer
come are reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parsync.core.codec import encode
from parsync.core.events import PhaseBegan
from parsync.runtime.assembly import Assembly
from parsync.runtime.live import coordinator_host, ports
from parsync.runtime.live.coordinator_host import CoordinatorHost
from parsync.runtime.live.monitor import Overview
from parsync.runtime.live.plan import LiveOptions, Substance, plan_run
from parsync.runtime.live.steps import Step
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

WAIT_S = 10.0


class Remote:
    """A method of an actor's handle: called at once, in this thread."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.remote = body


class Handle:
    """An actor's handle with one method."""

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        setattr(self, name, Remote(body))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CoordinatorHost:
    arm, workload = small_arm(), small_workload(phase_s=0.2)
    substance = Substance(Assembly.of(arm, workload), partial(metrics_of, workload, arm))
    monkeypatch.setattr(coordinator_host, "share", lambda value: [value])
    monkeypatch.setattr(coordinator_host, "shared", lambda handle: handle[0])
    monkeypatch.setattr(ports.ray, "get", lambda value, timeout: value)
    plan = plan_run("nowhere", substance.assembly, LiveOptions(tmp_path))
    return CoordinatorHost(plan, substance)


def overview_when(host: CoordinatorHost, condition: Callable[[Overview], bool]) -> Overview:
    begun_s = time.monotonic()
    while not condition(overview := host.overview()):
        assert time.monotonic() - begun_s < WAIT_S, overview
        time.sleep(0.01)
    return overview


def test_phases_reach_the_cell_and_the_hosts(host: CoordinatorHost) -> None:
    told: list[int] = []
    steps: list[Step] = []

    def step(request: bytes) -> bytes:
        steps.append(Step.of(request))
        return encode(())

    host.attach(
        Handle("step", step),
        [Handle("notify", lambda event: told.append(event.phase))],
        time.time_ns(),
    )
    overview = overview_when(host, lambda overview: len(told) >= 2)
    assert host.finish() is None and overview.errors == () and overview.phase == 1
    assert (
        told
        == [event.phase for step in steps for event in step.events if type(event) is PhaseBegan]
        == [0, 1]
    )


def test_phases_that_no_longer_come_are_an_error(host: CoordinatorHost) -> None:
    def step(request: bytes) -> bytes:
        raise RuntimeError("no more")

    host.attach(Handle("step", step), [], time.time_ns())
    said = "coordinator: RuntimeError: no more"
    assert overview_when(host, lambda overview: bool(overview.errors)).errors == (said,)
    assert host.finish() == said
