"""Whole runs in which production tasks take the room of tasks of lower priority, whoever's they
are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import generate
from parsync.core import events
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.runtime.arm_directory import read_assembly, write_assembly
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.transaction import EvictionPolicy
from tests.fixtures.feature_runs import (
    CROWDED,
    RESOURCES,
    kubernetes_preempting,
    preempting,
    with_changes,
)
from tests.fixtures.overloaded_cell import arm, group
from tests.fixtures.watched_runs import WatchedRun, Watcher

SECONDS = {**CROWDED, "phase_s": 1.0, "mean_duration_s": 0.4}


class Losses(Watcher):
    """Who lost tasks to whom, and when each task was first committed."""

    def __init__(self, master: Any, tasks: int) -> None:
        super().__init__(master)
        self.of_others = 0
        self.commit_us = np.full(tasks, -1, np.int64)

    def seen(self, now_us: int, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            sent = getattr(effect, "event", None)
            if isinstance(sent, events.TasksStarted):
                self.commit_us[sent.task[self.commit_us[sent.task] < 0]] = now_us
            if isinstance(event, events.CommitRequest) and isinstance(sent, events.TasksEnded):
                self.of_others += effect.to != event.transaction.scheduler


def run_of(config: ArmConfig, workload: Workload, message_us: int = 0) -> WatchedRun:
    """A run to its end, whose master stands behind Losses."""
    run = WatchedRun(config, workload)
    run.master = Losses(run.master, len(workload.tasks))
    return run.run(20_000_000, message_us)


def delays_us(run: WatchedRun) -> tuple[float, float]:
    """The mean delay of production tasks, and of the others."""
    production = run.workload.tasks.priority > 0
    delay_us = run.master.commit_us - run.workload.tasks.submit_us
    return float(delay_us[production].mean()), float(delay_us[~production].mean())


def by_flow(**options: Any) -> ArmConfig:
    """Two flow schedulers that preempt by priority."""
    config = arm("state_aligned", group("flow", 2))
    flow = config.groups[0].model_copy(update={"options": {"priority_preemption": True, **options}})
    return config.model_copy(update={"groups": (flow,), "evictions": "lower_priority"})


def without_preemption(config: ArmConfig) -> ArmConfig:
    """The same schedulers, which let running tasks run."""
    groups = tuple(
        each.model_copy(update={"kind": "random"} if each.kind == "preempting" else {"options": {}})
        for each in config.groups
    )
    return config.model_copy(update={"groups": groups})


@pytest.mark.parametrize(
    ("config", "changes", "message_us"),
    [
        (preempting(strategy="adaptive"), {}, 0),
        (preempting("state_aligned"), {**RESOURCES, "batch_tasks": 10, "gang_permille": 200}, 1500),
        (preempting("every_attempt", losers="requeue", requeue_s=0.03), {}, 500),
        (preempting(conflict_check="sequence_number"), {}, 500),
        (by_flow(), {}, 0),
        (by_flow(preemption=True), {"batch_tasks": 10}, 500),
        (by_flow(), {**RESOURCES, "batch_tasks": 10, "gang_permille": 200}, 500),
        (kubernetes_preempting(), {}, 0),
        (kubernetes_preempting(round_tasks=1), {**RESOURCES, "batch_tasks": 10}, 500),
        (kubernetes_preempting(), {**RESOURCES, "batch_tasks": 10, "gang_permille": 200}, 1500),
    ],
    ids=[
        "adaptive",
        "resources",
        "omega",
        "sequence numbers",
        "flow",
        "flow that preempts its own, too",
        "flow, resources",
        "kubernetes",
        "kubernetes, one by one",
        "kubernetes, gangs",
    ],
)
def test_production_tasks_take_the_room_of_others(
    config: ArmConfig, changes: dict[str, Any], message_us: int
) -> None:
    workload = generate(with_changes(**SECONDS, **changes), 3)
    run = run_of(config, workload, message_us)
    counts = run.counts
    assert run.queued == counts.waiting == 0 and run.master.of_others > 0
    assert counts.evicted > 50 and counts.finished == counts.submitted
    without = run_of(without_preemption(config), workload, message_us)
    assert without.counts.evicted == 0
    production_us, others_us = delays_us(run)
    assert production_us < delays_us(without)[0] / 2 and production_us < others_us / 2


def test_production_tasks_preempt_across_quota_groups() -> None:
    """They do so within the grant of their own group."""
    shares = [{"name": "research", "share": 0.5}, {"name": "paid", "share": 0.5}]
    groups = QuotaGroup(name="research"), QuotaGroup(name="paid", weight=2)
    config = preempting().model_copy(update={"quotas": QuotaSpec(interval_s=0.02, groups=groups)})
    run = run_of(config, generate(with_changes(**SECONDS, quota_groups=shares), 3))
    assert run.queued == 0 and run.counts.submitted > 0


def test_the_policy_is_kept_with_the_arm(tmp_path: Any) -> None:
    spec = preempting().seeded(3, 1000, 50_000, live=False)
    write_assembly(tmp_path, spec, generate(with_changes(**SECONDS), 3), None)
    assembly, _ = read_assembly(tmp_path)
    assert assembly.arm.may_evict is EvictionPolicy.LOWER_PRIORITY
    assert "evictions" not in arm("diff_block", group()).model_dump()


def test_kinds_that_preempt_need_the_policy() -> None:
    config = arm("diff_block", group())
    tree = {**preempting().model_dump(), "evictions": "own"}
    assert ArmConfig.model_validate(config.model_dump())
    flow = {**by_flow().model_dump(), "evictions": "own"}
    for each in (tree, flow):
        with pytest.raises(
            (ValueError, AgoraError), match=r"expected evictions = \"lower_priority"
        ):
            ArmConfig.model_validate(each)
