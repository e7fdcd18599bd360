"""SchedulerAgent as it is when a protocol overrides nothing, against a scripted scheduler and a
real cell. (With the rules of a protocol: tests/replay/test_python_optimistic_agent.py.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.core.events import CommitReply, CommitRequest, QuotaRequest, SyncReply, SyncRequest
from parsync.metrics.tables import Waiting
from parsync.protocols.agent_view import AgentView
from parsync.protocols.optimistic.agent import make_queue
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.pending_queue import LoserPolicy
from parsync.protocols.scheduler_agent import SchedulerAgent
from parsync.protocols.spec import AgentEnvironment
from tests.fixtures.changed import changed as replace
from tests.unit import agent_bench
from tests.unit.agent_bench import POLICY, Bench


def bare(environment: AgentEnvironment, policy: OptimisticOptions, *others: Any) -> SchedulerAgent:
    """A SchedulerAgent with the queue of the policy."""
    shared, member = environment.shared, environment.member
    queue = make_queue(policy, member.capabilities, shared.table, shared.catalog)
    return SchedulerAgent(environment, AgentView(environment), queue)


@pytest.fixture(autouse=True)
def _bare_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_bench, "OptimisticAgent", bare)


def decided(bench: Bench, now_us: int) -> np.ndarray:
    """The tasks that the open round claims."""
    bench.decide(now_us)
    [request] = bench.sent(CommitRequest)
    tasks: np.ndarray = request.transaction.task
    return tasks


def refreshed(bench: Bench, now_us: int) -> Any:
    """The answer of the master to a request for everything."""
    [request] = bench.agent.view.request()
    asked = request.event
    columns = zip(asked.partition.tolist(), asked.version.tolist(), strict=True)
    deltas = tuple(bench.cell.delta_since(p, version, now_us, False) for p, version in columns)
    return SyncReply(0, deltas)


def test_tasks_are_planned_when_they_come_and_losers_come_first() -> None:
    bench = Bench()
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.submit(100, 3)  # while a round is decided
    assert decided(bench, 100).tolist() == [1, 2]
    bench.commit(400)
    assert bench.agent.queued == 2
    assert decided(bench, 400).tolist() == [1]
    bench.commit(600)
    assert decided(bench, 600).tolist() == [3]
    bench.commit(800)
    assert bench.agent.queued == 0 and not bench.started
    assert bench.agent.doing == "agent-0 idle, 0 queued, 3 rounds"


def test_a_task_without_room_waits_for_the_next_synchronisation() -> None:
    bench = Bench(machines=2)
    taken = bench.rival_takes(0, 1)
    bench.tell(50, refreshed(bench, 50))
    bench.submit(100, 1)
    bench.decide(100)
    assert not bench.started and not bench.sent(CommitRequest)
    assert bench.agent.doing == "agent-0 blocked on capacity, 1 queued, 1 rounds"
    bench.submit(200, 2)
    assert not bench.started, "the view is as it was"
    bench.cell.release(taken[:1], None, 350)
    bench.tell(400, refreshed(bench, 400))
    assert decided(bench, 400).tolist() == [1]


def test_after_a_restart_of_the_master_it_plans_on_no_empty_view() -> None:
    bench = Bench()
    bench.tell(10_000, SyncReply(1, ()))
    [request] = bench.sent(SyncRequest)
    assert request.version.tolist() == [0, 0]
    asked = bench.effects
    bench.submit(10_100, 1)
    assert not bench.started
    bench.effects = asked
    bench.sync(10_200, epoch=1)
    assert decided(bench, 10_200).tolist() == [1]


def test_an_answer_repeated_after_a_restart_changes_nothing() -> None:
    bench = Bench()
    bench.submit(100, 1)
    bench.decide(100)
    [request] = bench.sent(CommitRequest)
    answer = CommitReply(0, 0, bench.cell.commit(request.transaction, 300))
    bench.tell(300, answer)
    assert bench.agent.queued == 0
    assert bench.tell(400, answer) == [] and bench.agent.queued == 0


def test_what_waits_is_told_at_the_end() -> None:
    bench = Bench(machines=2)
    bench.submit(100, 1, 2, 3)
    bench.decide(100)
    bench.commit(500)
    records = {record.table: record.columns for record in bench.agent.finish(1000)}
    assert records["waiting"]["task"].tolist() == [3]
    assert records["waiting"]["why"].tolist() == [Waiting.NO_ROOM]
    assert records["agents"]["queued"].tolist() == [1]


def test_tasks_that_pause_need_a_timer_of_the_protocol() -> None:
    bench = Bench(policy=replace(POLICY, losers=LoserPolicy.REQUEUE))
    bench.rival_takes(0)
    bench.submit(100, 1)
    bench.decide(100)
    with pytest.raises(NotImplementedError, match="override on_paused"):
        bench.commit(300)


def test_what_no_protocol_handles_is_named() -> None:
    bench = Bench()
    with pytest.raises(TypeError, match="agent cannot handle QuotaRequest"):
        bench.tell(100, QuotaRequest(1))
