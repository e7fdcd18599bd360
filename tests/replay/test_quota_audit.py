"""Logs of live runs with quotas: replay checks that the quotas were kept, and names who broke one,
when and by how much."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.commands import replay
from parsync.core import coordinator
from parsync.core.coordinator import shares_and_limits
from parsync.core.events import QuotaGrant
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.protocols.agent_quota import AgentQuota, QuotaAccount
from parsync.spec.arm import SeededArm
from parsync.workload.workload import QuotaMembership, Workload
from shared_state.tasks import Int64
from tests.fixtures.changed import changed
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.live_runs import small_arm, small_workload

GROUPS = QuotaGroup(name="free", minimum=0.3), QuotaGroup(name="capped", maximum=0.1)


def quota_arm() -> SeededArm:
    arm = small_arm()
    return changed(arm, groups=(changed(arm.groups[0], count=3),), quotas=QuotaSpec(groups=GROUPS))


def quota_workload() -> Workload:
    """Half of the jobs are of the group that may have a tenth of the 600 slots."""
    workload = small_workload(phase_s=0.4, machines=60)
    group = (workload.tasks.job % 2).astype(np.int32)
    return replace(workload, quotas=QuotaMembership(("free", "capped"), group))


def everything_fits(self: AgentQuota, grant: QuotaGrant, sequence: int) -> None:
    self.account.granted = np.full_like(grant.amount, 1 << 40)
    self.account.look()


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


def test_a_run_that_keeps_its_quotas_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, quota_arm(), quota_workload())
    assert replay.main([str(tmp_path)]) == 0
    assert "claims accepted, quotas kept in 15 rounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "name", "broken", "message"),
    [
        (
            AgentQuota,
            "on_grant",
            everything_fits,
            r"scheduler 'random-\d' at \d+ us: what it holds and claims of quota group '\w+': "
            r"\d+ slots, expected at most \d+ slots, its grant as the round began",
        ),
        (
            QuotaAccount,
            "report",
            one_reports_less,
            r"scheduler 'random-\d' at \d+ us: what it holds of quota group '\w+': \d+ slots, "
            "expected at most 0 slots, what it reports",
        ),
        (
            coordinator,
            "shares_and_limits",
            larger(0),
            r"coordinator at \d+ us: the limit of quota group '\w+': [\d,]+ slots, expected at "
            r"most \d+ slots, its maximum",
        ),
        (
            coordinator,
            "shares_and_limits",
            maximums,
            r"coordinator at \d+ us: the limits of all quota groups: 660 slots, expected at most "
            "600 slots, the capacity",
        ),
        (
            coordinator,
            "shares_and_limits",
            larger(1),
            r"coordinator at \d+ us: all grants of quota group '\w+': [\d,]+ slots, expected at "
            r"most \d+ slots, its limit",
        ),
    ],
    ids=["disobedient", "wrong report", "limit", "capacity", "grants"],
)
def test_a_log_of_a_run_that_broke_a_quota_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: Any,
    name: str,
    broken: Callable[..., Any],
    message: str,
) -> None:
    """The effects are equal to the logged ones, as the same program wrote them."""
    monkeypatch.setattr(place, name, broken)
    write_run(tmp_path, quota_arm(), quota_workload())
    assert replay.main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert re.search(f"invariant broken: {message}", out), out
