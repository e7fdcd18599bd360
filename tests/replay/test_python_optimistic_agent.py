"""SchedulerAgent: the optimistic protocol written on it in Python runs as the native one does, to
the byte of the event log."""

from __future__ import annotations

import json

import pytest

from parsync.protocols.optimistic import protocol
from tests.fixtures.python_optimistic_agent import PythonOptimisticAgent
from tests.replay.test_golden_runs import GOLDEN, feature_run


@pytest.mark.parametrize(
    "name",
    [
        "quotas with reclaim at once, two groups",
        "quotas, gangs that hold the queue, left waiting",
        "hold_max",
        "jobs_max with requeue",
        "requeue until tasks are given up",
        "requeue, paused as the run ends",
        "long_strategy with requeue",
        "adaptive switching, freed at once",
        "patience by price",
        "evictions of lower priority, several resources, gangs",
        "all claims of a job or none, waiting for commits",
        "partitions of their own",
        "tasks at the start",
        "flow that preempts, several resources, gangs",
        "flow with failing machines, waiting tasks",
        "a sync policy with feedback",
        "claims on machines that are down",
        "calibrated, Omega with quotas and failing machines",
        "gangs that hold the queue, left waiting",
        "tasks that come before the first view",
        "tasks one by one",
    ],
)
def test_an_optimistic_agent_in_python_runs_as_the_native_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "OptimisticAgent", PythonOptimisticAgent)
    summary, _ = feature_run(name)
    assert summary == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
