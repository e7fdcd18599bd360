"""The coordinator's rounds: whom it asks, when it computes, and what it grants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from parsync.core.coordinator import Coordinator
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.events import (
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
    Started,
)
from parsync.core.quota_rounds import QuotaRounds
from parsync.core.quotas import Capacity, QuotaGroup, QuotaSpec
from parsync.strict_model import first_error
from parsync.workload.workload import QuotaMembership
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

SPEC = QuotaSpec(
    groups=(QuotaGroup(name="a", minimum=0.5), QuotaGroup(name="b", maximum=0.8)), interval_s=0.001
)
CELL = Capacity(np.array([0, 5000]), np.array([[100], [60]]))


def make() -> Coordinator:
    return Coordinator((0,), QuotaRounds(SPEC, CELL, agents=2))


def report(agent: int, number: int, held: list[int], waiting: list[int]) -> QuotaReport:
    return QuotaReport(agent, number, np.array(held)[:, None], np.array(waiting)[:, None])


def sent(effects: list[Effect], kind: type) -> dict[int, Int64]:
    """By receiver: the amounts of its grant, or nothing for other messages."""
    return {
        effect.to: effect.event.amount[:, 0].tolist()
        if isinstance(effect.event, QuotaGrant)
        else effect.event
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.event, kind)
    }


def test_every_agent_is_asked_and_the_shares_follow_the_last_answer() -> None:
    coordinator = make()
    effects = coordinator.handle(0, Started(0))
    assert sent(effects, QuotaRequest) == {0: QuotaRequest(0), 1: QuotaRequest(0)}
    assert SetTimer(1000, QuotaRoundDue(1)) in effects
    assert coordinator.handle(1, report(0, 0, [10, 60], [90, 0])) == []
    effects = coordinator.handle(2, report(1, 0, [0, 20], [0, 40]))
    # a wants 100, b 120 of at most 80; b has to give back what it holds above its half
    [shares] = sent(effects, QuotaShares).values()
    assert isinstance(shares, QuotaShares)
    assert shares.wanted[:, 0].tolist() == [100, 80 + 40]
    assert shares.share[:, 0].tolist() == shares.limit[:, 0].tolist() == [50, 50]
    assert sent(effects, QuotaGrant) == {0: [50, 30], 1: [0, 20]}


def test_who_does_not_answer_counts_with_its_last_answer() -> None:
    coordinator = make()
    coordinator.handle(0, Started(0))
    coordinator.handle(1, report(0, 0, [10, 10], [0, 0]))
    effects = coordinator.handle(1000, QuotaRoundDue(1))
    assert len(sent(effects, QuotaGrant)) == 2 and len(sent(effects, QuotaRequest)) == 2
    # late, but not for the round that is open
    assert coordinator.handle(1001, report(1, 0, [30, 0], [0, 0])) == []
    effects = coordinator.handle(2000, QuotaRoundDue(2))
    [shares] = sent(effects, QuotaShares).values()
    assert isinstance(shares, QuotaShares) and shares.wanted[:, 0].tolist() == [40, 10]


def test_a_late_coordinator_skips_rounds() -> None:
    coordinator = make()
    coordinator.handle(0, Started(0))
    assert SetTimer(8000, QuotaRoundDue(8)) in coordinator.handle(7400, QuotaRoundDue(1))


def test_machines_that_are_down_are_not_divided() -> None:
    coordinator = make()
    coordinator.handle(5000, QuotaRoundDue(5))
    for agent in range(2):
        effects = coordinator.handle(5001, report(agent, 5, [0, 0], [90, 90]))
    assert sent(effects, QuotaGrant) == {0: [25, 5], 1: [25, 5]}


def test_the_timer_of_a_coordinator_without_quotas_is_nobodys() -> None:
    with pytest.raises(TypeError):
        Coordinator((0,)).handle(0, QuotaRoundDue(1))


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([], "groups: Tuple should have at least 1 item"),
        ([{"name": "a"}] * 2, "two groups have the same name"),
        (
            [{"name": "a", "minimum": 0.6, "maximum": 0.5}],
            "group 'a': expected 0 <= minimum <= maximum <= 1",
        ),
        ([{"name": "a", "maximum": 0.0001}], "group 'a': maximum: expected more than 0"),
        ([{"name": "a", "weight": 0}], "groups.0.weight: Input should be greater than or equal"),
        (
            [{"name": "a", "minimum": 0.6}, {"name": "b", "minimum": 0.5}],
            "the minimums sum to 1.1 of the cell, expected at most 1",
        ),
    ],
)
def test_quotas_that_make_no_sense_are_refused(groups: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        QuotaSpec.model_validate({"groups": groups})
    assert first_error(refused.value).startswith(says)


def test_the_groups_of_tasks_are_those_of_the_arm() -> None:
    quotas = SPEC.of_tasks(QuotaMembership(("b", "a"), np.array([0, 1, 1], np.int32)))
    assert quotas.of_task.tolist() == [1, 0, 0]
    assert quotas.held(np.array([0, 2]), np.array([[3], [4]])).tolist() == [[4], [3]]
    with pytest.raises(AgoraError, match="the workload's group 'c' is missing, got a, b"):
        SPEC.of_tasks(QuotaMembership(("a", "c"), np.zeros(1, np.int32)))
    with pytest.raises(AgoraError, match="belong to no quota groups"):
        SPEC.of_tasks(None)
