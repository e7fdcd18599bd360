"""Whole runs in which production tasks take the room of tasks of lower priority, whoever's they
are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core import events
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.metrics.record import Record
from parsync.runtime.arm_directory import read_assembly, write_assembly
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import CellAuditor
from parsync.runtime.virtual.run import VirtualRuntime, run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.invariants import CellAudit
from shared_state.observed_cell import ObservedCell
from shared_state.transaction import EvictionPolicy
from tests.fixtures.overloaded_cell import OPTIONS, arm, group

CROWDED = SyntheticOptions.model_validate(
    {
        **OPTIONS.model_dump(),
        "load_percent": (200, 30),
        "phase_s": 1.0,
        "mean_duration_s": 0.4,
        "production_permille": 200,
    }
)
RESOURCES = SyntheticOptions.model_validate(
    {
        **CROWDED.model_dump(),
        "slots_per_machine": 10,
        "machine_types": [{"capacity": {"cpu_milli": 4_000, "mem_mib": 8_192}}],
        "task_shapes": [
            {"request": {"cpu_milli": (500, 1_500), "mem_mib": 1_024}},
            {"request": {"cpu_milli": 500, "mem_mib": (1_024, 4_096)}},
        ],
        "gang_permille": 200,
    }
)


def preempting(sync: str = "diff_block", **protocol: Any) -> ArmConfig:
    config = arm(sync, group(**protocol))
    groups = tuple(each.model_copy(update={"kind": "preempting"}) for each in config.groups)
    return config.model_copy(update={"groups": groups, "evictions": "lower_priority"})


class Run:
    """An audited run to its end, and who lost tasks to whom."""

    def __init__(self, config: ArmConfig, workload: Workload, message_us: int = 0) -> None:
        assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
        self.audit = CellAudit(workload.cell, assembly.partitioning, assembly.eviction_priority)
        self.audit.submitted(workload.arrival_rows)
        master = assembly.master()
        master.cell = ObservedCell(master.cell, CellAuditor(self.audit))
        self.of_others = 0
        self.commit_us = np.full(len(workload.tasks), -1, np.int64)  # the first
        run = self

        class Watched:
            def handle(self, now_us: int, event: Event) -> list[Effect]:
                effects = master.handle(now_us, event)
                for sent in (getattr(effect, "event", None) for effect in effects):
                    if isinstance(sent, events.TasksStarted):
                        new = sent.task[run.commit_us[sent.task] < 0]
                        run.commit_us[new] = now_us
                if isinstance(event, events.CommitRequest):
                    ended = [
                        effect.to
                        for effect in effects
                        if isinstance(getattr(effect, "event", None), events.TasksEnded)
                    ]
                    run.of_others += sum(to != event.transaction.scheduler for to in ended)
                return effects

            def finish(self, now_us: int) -> list[Record]:
                return master.finish(now_us)

        agents = {index: assembly.agent(index) for index in range(assembly.arm.agents)}
        participants: dict[int, Any] = dict(agents)
        participants |= {
            MASTER: Watched(),
            WORKERS: assembly.workers(),
            COORDINATOR: assembly.coordinator(),
            ARRIVALS: assembly.arrivals(),
        }
        VirtualRuntime(participants, agents, lambda _: None, assembly.codec, message_us).run_until(
            20_000_000
        )
        self.waiting = sum(agent.queued for agent in agents.values())
        production = workload.tasks.priority > 0
        delay_us = self.commit_us - workload.tasks.submit_us
        self.delay_us = float(delay_us[production].mean()), float(delay_us[~production].mean())


@pytest.mark.parametrize(
    ("config", "options", "message_us"),
    [
        (preempting(strategy="adaptive"), CROWDED, 0),
        (preempting("state_aligned"), RESOURCES, 1500),
        (preempting("every_attempt", losers="requeue", requeue_s=0.03), CROWDED, 500),
        (preempting(conflict_check="sequence_number"), CROWDED, 500),
    ],
    ids=["adaptive", "resources", "omega", "sequence numbers"],
)
def test_production_tasks_take_the_room_of_others(
    config: ArmConfig, options: SyntheticOptions, message_us: int
) -> None:
    workload = generate(options, 3)
    run = Run(config, workload, message_us)
    assert run.waiting == 0 and run.of_others > 0
    counts = run.audit.finish(waiting=np.zeros(0, np.int64))
    assert counts.evicted > 50 and counts.finished == counts.submitted
    groups = tuple(g.model_copy(update={"kind": "random"}) for g in config.groups)
    without = Run(config.model_copy(update={"groups": groups}), workload, message_us)
    assert without.audit.finish().evicted == 0
    assert run.delay_us[0] < without.delay_us[0] / 2 and run.delay_us[0] < run.delay_us[1] / 2


def test_production_tasks_preempt_across_quota_groups() -> None:
    """They do so within the grant of their own group."""
    shares = [{"name": "research", "share": 0.5}, {"name": "paid", "share": 0.5}]
    options = SyntheticOptions.model_validate({**CROWDED.model_dump(), "quota_groups": shares})
    quotas = QuotaSpec(
        interval_s=0.02,
        groups=(QuotaGroup(name="research"), QuotaGroup(name="paid", weight=2)),
    )
    run = Run(preempting().model_copy(update={"quotas": quotas}), generate(options, 3))
    assert run.waiting == 0 and run.audit.finish().submitted > 0


def test_the_same_seed_gives_the_same_log_and_the_policy_is_kept_with_the_arm(
    tmp_path: Any,
) -> None:
    workload = generate(CROWDED, 3)
    spec = preempting().seeded(3, 1000, 50_000, live=False)
    digests = [
        run_virtual(spec, workload, 9_000_000, lambda _: None, lambda _: None).digest
        for _ in range(2)
    ]
    assert digests[0] == digests[1]
    write_assembly(tmp_path, spec, workload, None)
    assembly, _ = read_assembly(tmp_path)
    assert assembly.arm.may_evict is EvictionPolicy.LOWER_PRIORITY
    assert "evictions" not in arm("diff_block", group()).model_dump()


def test_kinds_that_preempt_need_the_policy() -> None:
    config = arm("diff_block", group())
    tree = {**preempting().model_dump(), "evictions": "own"}
    assert ArmConfig.model_validate(config.model_dump())
    with pytest.raises((ValueError, AgoraError), match=r"expected evictions = \"lower_priority\""):
        ArmConfig.model_validate(tree)
