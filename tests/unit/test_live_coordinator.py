"""The coordinator's host: phases reach the cell and every scheduler host, and phases that no longer
come are reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parsync.runtime.assembly import Assembly
from parsync.runtime.live import coordinator_host, ports
from parsync.runtime.live.coordinator_host import CoordinatorHost
from parsync.runtime.live.monitor import Overview
from parsync.runtime.live.plan import LiveOptions, Substance, plan_run
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


def test_phases_are_followed(host: CoordinatorHost) -> None:
    host.attach(time.time_ns())
    overview = overview_when(host, lambda overview: overview.phase == 1)
    assert host.finish() is None and overview.errors == ()


def test_phases_that_no_longer_come_are_an_error(
    host: CoordinatorHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance() -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(host._stage, "advance", advance)
    host.attach(time.time_ns())
    said = "coordinator: RuntimeError: no more"
    assert overview_when(host, lambda overview: bool(overview.errors)).errors == (said,)
    assert host.finish() == said
