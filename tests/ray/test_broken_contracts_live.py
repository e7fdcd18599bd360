"""Schedulers that break their contract on the real Ray: the run ends with what there is, and says
which scheduler, round and rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.commands import replay
from parsync.runtime.live import liveness
from parsync.runtime.live.calls import ActorFailed
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.run import LiveOutcome, run_live
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload
from tests.fixtures.schedulers.bad_schedulers import FAULTS

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def run(
    directory: Path,
    fault: str,
    after: int = 5,
    plan_limit_s: float = 60.0,
    drain_us: int = 5_000_000,
) -> LiveOutcome:
    workload = small_workload()
    arm = small_arm("bad")
    (group,) = arm.groups
    arm = changed(arm, groups=(changed(group, options={"fault": fault, "after": after}),))
    options = LiveOptions(directory / "journal", directory / "records", plan_limit_s=plan_limit_s)
    return run_live(arm, workload, options, drain_us, metrics_of(workload, arm), lambda _: None)


@pytest.mark.parametrize("fault", ["asks_for_nothing", "raises"])
def test_a_plan_that_breaks_a_rule(tmp_path: Path, fault: str) -> None:
    outcome = run(tmp_path, fault)
    assert outcome.partial and outcome.broken and not outcome.interrupted
    for note in outcome.notes:  # of each host whose scheduler came that far
        told = re.fullmatch(r"scheduler 'bad-[0-3]' of kind 'bad', round \d+: (.*)", note)
        assert told is not None and re.search(FAULTS[fault], told[1]), note
    assert 0 < outcome.metrics.count["committed"].sum() < outcome.metrics.count["submitted"].sum()
    assert replay.replay(outcome.journal_dir).divergence is None  # it breaks it there again


def test_a_plan_that_never_returns(tmp_path: Path) -> None:
    """The run's time is over before the limit."""
    outcome = run(tmp_path, "loops", plan_limit_s=3.5, drain_us=0)
    assert outcome.partial and outcome.broken
    assert re.fullmatch(
        r"scheduler 'bad-[0-3]' of kind 'bad', round \d+: plan\(\) has not returned after 3\.5 s",
        outcome.notes[0],
    )


def test_c_code_that_never_returns_and_lets_nothing_else_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "GRACE_S", 1.0)
    monkeypatch.setattr(liveness, "ANSWER_S", 1.0)
    outcome = run(tmp_path, "keeps_python_s_lock", plan_limit_s=3.5)
    assert outcome.partial and outcome.broken
    assert re.fullmatch(
        r"schedulers-[01]: a call of one of its schedulers \(bad-[01], bad-[23]\) has not returned "
        r"after \d+ s, and lets no other code of its process run",
        outcome.notes[0],
    )


def test_a_scheduler_that_cannot_be_made(tmp_path: Path) -> None:
    says = r"scheduler 'bad-\d' of kind 'bad', before its first round: build\(\) raised KeyError"
    with pytest.raises(ActorFailed, match=says):
        run(tmp_path, "constructor_raises")
