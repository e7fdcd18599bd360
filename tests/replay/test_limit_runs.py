"""Schedulers that limit themselves: what they hold and how many jobs they admit, in whole runs.
Logs of live runs with limits or quotas: replay checks that they were kept, and names who broke one,
when and by how much."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from parsync.core import coordinator
from parsync.core.coordinator import shares_and_limits
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import QuotaGrant
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.protocols.agent_quota import AgentLimit, AgentQuota, QuotaAccount
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.pending_queue import AgentQueue
from parsync.spec.arm import ArmConfig, SeededArm, check_protocols
from parsync.workload.workload import QuotaMembership, Workload
from shared_state.errors import AgoraError
from shared_state.tasks import Int64
from tests.fixtures.changed import changed
from tests.fixtures.commands import agora
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.live_runs import small_arm, small_workload
from tests.fixtures.service_batch_runs import OMEGA, group, made, modelled
from tests.fixtures.watched_runs import WatchedRun, Watcher

SMALL: dict[str, Any] = {
    "machines": 50,
    "duration_s": 200.0,
    "batch": {"interarrival_s": 1.0, "tasks_per_job": 10.0, "run_s": 10.0},
    "service": {"interarrival_s": 5.0, "tasks_per_job": 4.0, "run_s": 20.0},
}
HOUR_US = 3_600_000_000


class Limited(Watcher):
    """Stands before an agent: the most that its tasks held, and the most jobs they were of, by the
    audit's account."""

    def __init__(self, agent: Any, accounts: dict[int, Any], index: int) -> None:
        super().__init__(agent)
        self.accounts, self.index = accounts, index
        self.most_held, self.most_jobs = np.zeros(2, np.int64), 0

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        account = self.accounts[self.index]
        self.most_held = np.maximum(self.most_held, account.held)
        self.most_jobs = max(self.most_jobs, len(account.tasks_of))
        return super().handle(now_us, event)


def limited_run(
    groups: list[dict[str, Any]], message_us: int = 0
) -> tuple[np.ndarray, int, np.ndarray]:
    """Of a run in which every task ran to its end: the most that an agent held, the most jobs that
    it had, and the capacity of the cell."""
    workload = made(SMALL)
    arm = ArmConfig.model_validate({"name": "arm", "partitions": 5, "groups": groups})
    run = WatchedRun(arm, workload, heartbeat_us=10_000)
    limits: Any = run.audit._limits
    run.agents = [Limited(agent, limits._accounts, n) for n, agent in enumerate(run.agents)]
    run.run_all(HOUR_US, message_us)
    assert run.counts.finished == len(workload.arrival_rows) and run.audit.limited_commits > 20
    most_held = np.max([agent.most_held for agent in run.agents], axis=0)
    most_jobs = max(agent.most_jobs for agent in run.agents)
    return most_held, most_jobs, workload.cell.capacity.sum(axis=0)


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
    decision = modelled(5_000, 500.0)
    held, jobs, capacity = limited_run([group("all", protocol | limits, decision=decision)], 500)
    if "hold_max" in limits:
        assert (held <= capacity * 3 // 10).all()
        assert (held > capacity * 29 // 100).any(), "the limit is reached"
    else:
        assert jobs == 3


def test_both_limits_hold_for_each_scheduler_of_a_group() -> None:
    protocol = OMEGA | {"hold_max": 0.2, "jobs_max": 4}
    three = group("all", protocol, count=3, decision=modelled(5_000, 500.0))
    held, jobs, capacity = limited_run([three], 500)
    assert jobs == 4 and (held <= capacity // 5).all()


@pytest.mark.parametrize("kind", ["flow", "mapreduce"])
def test_kinds_that_keep_waiting_tasks_can_limit_their_jobs(kind: str) -> None:
    decision = modelled(100, 10.0)
    assert (
        limited_run([group("all", PERIODIC | {"jobs_max": 2}, kind=kind, decision=decision)])[1]
        == 2
    )


def test_limits_that_cannot_be_kept_are_refused() -> None:
    def check(kind: str, quotas: QuotaSpec | None = None, **limits: Any) -> None:
        arm = small_arm(kind)
        (first,) = arm.groups
        options = OptimisticOptions(sync="diff_block", gap_s=0.1, **limits)
        groups = (changed(first, protocol=changed(first.protocol, options=options)),)
        check_protocols(changed(arm, groups=groups, quotas=quotas))

    check("random", hold_max=0.5, jobs_max=2)
    check("flow", jobs_max=2)
    with pytest.raises(AgoraError, match=r"group 'flow': hold_max: .* keeps the tasks that wait"):
        check("flow", hold_max=0.5)
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


def quota_arm() -> SeededArm:
    arm = small_arm()
    groups = QuotaGroup(name="free", minimum=0.3), QuotaGroup(name="capped", maximum=0.1)
    return changed(arm, groups=(changed(arm.groups[0], count=3),), quotas=QuotaSpec(groups=groups))


def workload_of(arm: SeededArm) -> Workload:
    """With quotas, half of the jobs are of the group that may have a tenth of the 600 slots."""
    workload = small_workload(phase_s=0.4, machines=60)
    if arm.quotas is None:
        return workload
    group = (workload.tasks.job % 2).astype(np.int32)
    return replace(workload, quotas=QuotaMembership(("free", "capped"), group))


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        (limited_arm(hold_max=0.2, jobs_max=5), r", limits kept in \d+ commits"),
        (quota_arm(), "claims accepted, quotas kept in 15 rounds"),
    ],
    ids=["limits", "quotas"],
)
def test_a_run_that_keeps_them_is_replayed(arm: SeededArm, says: str, tmp_path: Path) -> None:
    write_run(tmp_path, arm, workload_of(arm))
    replayed = agora("replay", tmp_path)
    assert replayed.returncode == 0 and re.search(says, replayed.stdout)


def everything_fits(self: Any, grant: QuotaGrant | None = None, sequence: int = 0) -> None:
    """Of an AgentLimit or AgentQuota."""
    self.account.granted = np.full_like(self.account.granted, 1 << 40)
    self.account.look()


def all_are_admitted(self: AgentQueue, job: Int64, jobs_max: int) -> None:
    pass


def one_reports_less(self: QuotaAccount, agent: int, number: int) -> Any:
    nothing = np.zeros_like(self.held)
    return coordinator.QuotaReport(agent, number, nothing, self.waiting.copy())


def maximums(*arguments: Int64) -> tuple[Int64, Int64]:
    """Every group may take its maximum."""
    shares, limits = shares_and_limits(*arguments)
    return shares, arguments[3] if limits.ndim == 2 else limits


def larger(part: int) -> Callable[..., tuple[Int64, Int64]]:
    """Shares that are right, and limits that are too large: of the groups (part 0) or of the
    agents (part 1)."""

    def computed(*arguments: Int64) -> tuple[Int64, Int64]:
        shares, limits = shares_and_limits(*arguments)
        return shares, limits + 500 if limits.ndim - 2 == part else limits

    return computed


SCHEDULER = r"scheduler 'random-\d' at \d+ us: "
LIMIT_OF = r"coordinator at \d+ us: the limit"
Broken = tuple[SeededArm, Any, str, Callable[..., Any], str]
BROKEN: dict[str, Broken] = {
    "held": (
        limited_arm(hold_max=0.05),
        AgentLimit,
        "on_synced",
        everything_fits,
        SCHEDULER + r"holds and claims \d+ slots, expected at most 30 slots, its own limit$",
    ),
    "jobs": (
        limited_arm(jobs_max=1),
        AgentQueue,
        "limit_jobs",
        all_are_admitted,
        SCHEDULER + r"tasks of \d+ jobs hold resources, expected at most 1 jobs, its own limit$",
    ),
    "disobedient": (
        quota_arm(),
        AgentQuota,
        "on_grant",
        everything_fits,
        SCHEDULER + r"what it holds and claims of quota group '\w+': \d+ slots, expected at most "
        r"\d+ slots, its grant as the round began",
    ),
    "wrong report": (
        quota_arm(),
        QuotaAccount,
        "report",
        one_reports_less,
        SCHEDULER + r"what it holds of quota group '\w+': \d+ slots, expected at most 0 slots, "
        "what it reports",
    ),
    "limit": (
        quota_arm(),
        coordinator,
        "shares_and_limits",
        larger(0),
        LIMIT_OF + r" of quota group '\w+': [\d,]+ slots, expected at most \d+ slots, its maximum",
    ),
    "capacity": (
        quota_arm(),
        coordinator,
        "shares_and_limits",
        maximums,
        LIMIT_OF + "s of all quota groups: 660 slots, expected at most 600 slots, the capacity",
    ),
    "grants": (
        quota_arm(),
        coordinator,
        "shares_and_limits",
        larger(1),
        r"coordinator at \d+ us: all grants of quota group '\w+': [\d,]+ slots, expected at most "
        r"\d+ slots, its limit",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_log_of_a_run_that_broke_one_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effects are equal to the logged ones, as the same program wrote them."""
    arm, place, attribute, broken, message = BROKEN[name]
    monkeypatch.setattr(place, attribute, broken)
    write_run(tmp_path, arm, workload_of(arm))
    replayed = agora("replay", tmp_path)
    assert replayed.returncode == 1
    assert re.search(f"invariant broken: {message}", replayed.stdout, re.M), replayed.stdout
