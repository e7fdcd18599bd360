"""Schedulers that limit themselves: what they hold and how many jobs they admit, in whole runs and
in the logs of live ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from experiments.commands import replay
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.participant import Participant
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.protocols.agent_quota import AgentLimit
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.pending_queue import AgentQueue
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import AuditedMaster, limit_audit
from parsync.runtime.virtual.run import VirtualRuntime
from parsync.spec.arm import ArmConfig, SeededArm, check_protocols
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, CellAudit
from shared_state.tasks import Int64
from tests.fixtures.changed import changed
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.live_runs import small_arm, small_workload
from tests.fixtures.service_batch_runs import OMEGA, group, made, modelled

SMALL: dict[str, Any] = {
    "machines": 50,
    "duration_s": 200.0,
    "batch": {"interarrival_s": 1.0, "tasks_per_job": 10.0, "run_s": 10.0},
    "service": {"interarrival_s": 5.0, "tasks_per_job": 4.0, "run_s": 20.0},
}
HOUR_US = 3_600_000_000


class Watched:
    """An agent whose limits are audited, and that counts what its tasks hold at most."""

    def __init__(self, agent: Participant, index: int, audit: Any, run: Run) -> None:
        self._agent, self._index, self._audit, self._run = agent, index, audit, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        effects = self._agent.handle(now_us, event)
        if self._audit is not None:
            self._audit.handled(self._index, now_us, event, effects)
            account = self._audit._accounts[self._index]
            self._run.most_held = np.maximum(self._run.most_held, account.held)
            self._run.most_jobs = max(self._run.most_jobs, len(account.tasks_of))
        return effects


class Run:
    """An audited run in virtual time."""

    def __init__(
        self, workload: Workload, groups: list[dict[str, Any]], message_us: int = 0
    ) -> None:
        arm = ArmConfig.model_validate({"name": "arm", "partitions": 5, "groups": groups})
        spec = arm.seeded(seed=1, heartbeat_us=10_000, sample_us=1_000_000, live=False)
        assembly = Assembly.of(spec, workload)
        self.audit = limit_audit(assembly)
        self.most_held, self.most_jobs = np.zeros(2, np.int64), 0
        agents: dict[int, Any] = {
            index: Watched(assembly.agent(index), index, self.audit, self)
            for index in range(spec.agents)
        }
        audit = CellAudit(workload.cell, assembly.partitioning)
        audit.submitted(workload.arrival_rows)
        participants: dict[int, Participant] = {
            **agents,
            MASTER: AuditedMaster(assembly.master(), audit),
            WORKERS: assembly.workers(),
            COORDINATOR: assembly.coordinator(),
            ARRIVALS: assembly.arrivals(),
        }
        runtime = VirtualRuntime(
            participants, agents, lambda record: None, assembly.codec, message_us
        )
        runtime.run_until(HOUR_US)
        self.counts: AuditCounts = audit.finish(np.zeros(0, np.int64))
        self.agents = agents


PERIODIC = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.5}
PROTOCOLS = {
    "omega": OMEGA,
    "omega, blocking": OMEGA | {"losers": "block"},
    "parsync": PERIODIC,
    "freed at once": OMEGA | {"freed_at_once": True},
}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("limits", [{"hold_max": 0.3}, {"jobs_max": 3}], ids=["held", "jobs"])
def test_limits_are_reached_and_never_exceeded_and_all_jobs_run(
    protocol: dict[str, Any], limits: dict[str, Any]
) -> None:
    workload = made(SMALL)
    run = Run(workload, [group("all", protocol | limits, decision=modelled(5_000, 500.0))], 500)
    assert run.audit is not None and run.audit.commits > 20
    assert run.counts.finished == len(workload.arrival_rows)
    capacity = workload.cell.capacity.sum(axis=0)
    if "hold_max" in limits:
        assert (run.most_held <= capacity * 3 // 10).all()
        assert (run.most_held > capacity * 29 // 100).any(), "the limit is reached"
    else:
        assert run.most_jobs == 3


def test_both_limits_hold_for_each_scheduler_of_a_group() -> None:
    workload = made(SMALL)
    protocol = OMEGA | {"hold_max": 0.2, "jobs_max": 4}
    run = Run(workload, [group("all", protocol, count=3, decision=modelled(5_000, 500.0))], 500)
    assert run.counts.finished == len(workload.arrival_rows)
    assert run.most_jobs == 4
    assert (run.most_held <= workload.cell.capacity.sum(axis=0) // 5).all()


def test_kinds_that_keep_waiting_tasks_can_limit_their_jobs() -> None:
    workload = made(SMALL)
    for kind in ("quincy", "mapreduce"):
        limited = group("all", PERIODIC | {"jobs_max": 2}, kind=kind)
        run = Run(workload, [limited | {"decision": modelled(100, 10.0)}])
        assert run.counts.finished == len(workload.arrival_rows)
        assert run.most_jobs == 2


def test_limits_that_cannot_be_kept_are_refused() -> None:
    def check(kind: str, quotas: QuotaSpec | None = None, **limits: Any) -> None:
        arm = small_arm(kind)
        (first,) = arm.groups
        options = OptimisticOptions(sync="diff_block", gap_s=0.1, **limits)
        groups = (changed(first, protocol=changed(first.protocol, options=options)),)
        check_protocols(changed(arm, groups=groups, quotas=quotas))

    check("random", hold_max=0.5, jobs_max=2)
    check("quincy", jobs_max=2)
    with pytest.raises(AgoraError, match=r"group 'quincy': hold_max: .* keeps the tasks that wait"):
        check("quincy", hold_max=0.5)
    quotas = QuotaSpec(groups=(QuotaGroup(name="all"),))
    for limits in ({"hold_max": 0.5}, {"jobs_max": 2}):
        with pytest.raises(AgoraError, match="with these options does not obey them"):
            check("random", quotas, **limits)
    for wrong in ({"hold_max": 0.0}, {"hold_max": 1.5}, {"jobs_max": 0}):
        with pytest.raises(ValidationError):
            check("random", **wrong)


# --- logs of live runs ---


def limited_arm(**limits: Any) -> SeededArm:
    arm = small_arm()
    (first,) = arm.groups
    options = first.protocol.options.model_copy(update=limits)
    protocol = changed(first.protocol, options=options)
    return changed(arm, groups=(changed(first, count=3, protocol=protocol),))


def everything_fits(self: AgentLimit) -> None:
    self.account.granted = np.full_like(self.account.granted, 1 << 40)
    self.account.look()


def all_are_admitted(self: AgentQueue, job: Int64, jobs_max: int) -> None:
    pass


def test_a_run_that_keeps_its_limits_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = limited_arm(hold_max=0.2, jobs_max=5)
    write_run(tmp_path, arm, small_workload(phase_s=0.4, machines=60))
    assert replay.main([str(tmp_path)]) == 0
    assert re.search(r", limits kept in \d+ commits", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("limits", "place", "name", "broken", "message"),
    [
        (
            {"hold_max": 0.05},
            AgentLimit,
            "on_synced",
            everything_fits,
            r"scheduler 'random-\d' at \d+ us: holds and claims \d+ slots, expected at most 30 "
            r"slots, its own limit",
        ),
        (
            {"jobs_max": 1},
            AgentQueue,
            "limit_jobs",
            all_are_admitted,
            r"scheduler 'random-\d' at \d+ us: tasks of \d+ jobs hold resources, expected at most "
            r"1 jobs, its own limit",
        ),
    ],
    ids=["held", "jobs"],
)
def test_a_scheduler_that_exceeds_its_limit_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limits: dict[str, Any],
    place: type,
    name: str,
    broken: Callable[..., Any],
    message: str,
) -> None:
    monkeypatch.setattr(place, name, broken)
    write_run(tmp_path, limited_arm(**limits), small_workload(phase_s=0.4, machines=60))
    assert replay.main([str(tmp_path)]) == 1
    assert re.search(rf"invariant broken: {message}$", capsys.readouterr().out, re.M)
