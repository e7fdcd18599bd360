"""What happens at one instant: freed slots, syncs and commits first, and the decisions that start
see all of it. So it makes no difference whether an agent waits for a commit that takes no time."""

from __future__ import annotations

from typing import Any

import pytest

from parsync.protocols.optimistic import sync as sync_policies
from parsync.runtime.virtual.run import run_virtual
from parsync.workload.workload import Workload
from tests.fixtures.outcome_digest import DigestObserver, OutcomeDigest
from tests.fixtures.overloaded_cell import OPTIONS, arm, failing_workload, group

GANGS = OPTIONS.model_copy(update={"load_percent": (60, 130, 20), "gang_permille": 500})
CHOICES: dict[str, dict[str, Any]] = {
    "quality-first": {"strategy": "quality_first"},
    "adaptive": {"strategy": "adaptive", "tau_s": 0.02},
    "sequence numbers": {"conflict_check": "sequence_number", "strategy": "latency_first"},
    "requeue": {"losers": "requeue", "requeue_s": 0.02},
    "uncut, freed at once": {"cut_at_sync": False, "freed_at_once": True},
    "gangs": {"commit_mode": "all_or_nothing"},
}


def outcome(workload: Workload, sync: str, **options: Any) -> OutcomeDigest:
    """Commits, syncs and ends, in order, with tasks, machines, times and outcomes."""
    observed = OutcomeDigest()
    run_virtual(
        arm(sync, group(**options)).seeded(3, 1000, 50_000, live=False),
        workload,
        5_000_000,
        lambda _: None,
        lambda _: None,
        observer=DigestObserver(observed),
    )
    return observed


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("sync", sync_policies.kinds())
def test_waiting_for_a_commit_that_takes_no_time_changes_nothing(sync: str, name: str) -> None:
    workload = failing_workload(GANGS if name == "gangs" else OPTIONS)
    waiting = outcome(workload, sync, commit_pipelining=False, **CHOICES[name])
    pipelining = outcome(workload, sync, commit_pipelining=True, **CHOICES[name])
    assert waiting.rejected > 20, "it was put to the test"
    assert (waiting.commits, waiting.rejected) == (pipelining.commits, pipelining.rejected)
    assert waiting.hexdigest() == pipelining.hexdigest()


def test_with_message_time_it_does() -> None:
    """The test above can fail."""
    workload = failing_workload()
    digests = set()
    for commit_pipelining in (False, True):
        observed = OutcomeDigest()
        own = group(commit_pipelining=commit_pipelining, strategy="quality_first")
        run_virtual(
            arm("diff_block", own).seeded(3, 1000, 50_000, live=False),
            workload,
            5_000_000,
            lambda _: None,
            lambda _: None,
            message_us=300,
            observer=DigestObserver(observed),
        )
        digests.add(observed.hexdigest())
    assert len(digests) == 2
