"""The coordinator: how it divides the cell among quota groups, whom it asks and when, what it
grants, and what agents give back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from pydantic import ValidationError

from parsync.core.coordinator import (
    LARGEST_AMOUNT,
    Coordinator,
    QuotaRounds,
    fair_shares,
    shares_and_limits,
)
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.events import (
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
    Started,
    TasksAdopted,
    TasksEnded,
)
from parsync.core.quotas import Capacity, QuotaGroup, QuotaSpec, TaskQuotas
from parsync.protocols.agent_quota import AgentQuota, Reclaimer
from parsync.protocols.spec import AgentEnvironment
from parsync.strict_model import first_error
from parsync.workload.workload import QuotaMembership
from shared_state.errors import AgoraError
from shared_state.tasks import Int64
from tests.unit.agent_bench import make_table


def divided(
    capacity: int, floor: list[int], ceiling: list[int], weight: list[int] | None = None
) -> list[int]:
    weights = np.array(weight or [1] * len(floor), np.int64)
    shares = fair_shares(np.array(capacity, np.int64), np.array(floor), np.array(ceiling), weights)
    return [int(share) for share in shares]


@pytest.mark.parametrize(
    ("capacity", "floor", "ceiling", "weight", "expected"),
    [
        pytest.param(12, [0, 0, 0], [99, 99, 99], None, [4, 4, 4], id="equal"),
        pytest.param(12, [0, 0, 0], [2, 99, 99], None, [2, 5, 5], id="who wants little gets it"),
        pytest.param(12, [0, 0, 0], [1, 2, 3], None, [1, 2, 3], id="enough for all"),
        pytest.param(12, [0, 0], [99, 99], [1, 3], [3, 9], id="by weight"),
        pytest.param(12, [8, 0, 0], [99, 99, 99], None, [8, 2, 2], id="a floor above the level"),
        pytest.param(12, [3, 0, 0], [99, 99, 99], None, [4, 4, 4], id="a floor below the level"),
        pytest.param(10, [0, 0, 0], [99, 99, 99], None, [4, 3, 3], id="ties go to the first"),
        pytest.param(11, [0, 0, 0], [99, 99, 99], None, [4, 4, 3], id="two units left"),
        pytest.param(1, [0, 0], [9, 9], [1, 1000], [0, 1], id="the heavier one's unit is smaller"),
        pytest.param(100, [0, 0], [90, 50], [1000, 1], [90, 10], id="who weighs little, the rest"),
        pytest.param(100, [0, 0], [200, 50], [1000, 1], [100, 0], id="who weighs little, nothing"),
        pytest.param(6, [9, 3], [20, 20], None, [3, 3], id="floors that do not fit"),
        pytest.param(0, [0, 0], [5, 5], None, [0, 0], id="nothing to divide"),
        pytest.param(7, [0], [5], None, [5], id="one claimant"),
    ],
)
def test_known_divisions(
    capacity: int,
    floor: list[int],
    ceiling: list[int],
    weight: list[int] | None,
    expected: list[int],
) -> None:
    assert divided(capacity, floor, ceiling, weight) == expected


def test_large_amounts_are_exact() -> None:
    """Shares of amounts beyond the integers that floating point holds."""
    capacity = LARGEST_AMOUNT // 4 + 1
    ceiling = [LARGEST_AMOUNT // 2] * 2
    first, second = divided(capacity, [0, 0], ceiling, [999, 1000])
    assert first + second == capacity
    # the next unit would have gone to neither sooner
    assert second * 999 <= (first + 1) * 1000
    assert first * 1000 <= (second + 1) * 999


def test_several_divisions_at_once() -> None:
    """Each resource dimension is divided by itself."""
    shares = fair_shares(
        np.array([12, 10]),
        np.zeros((2, 2), np.int64),
        np.array([[99, 2], [1, 99]]),
        np.ones(2, np.int64),
    )
    assert shares.tolist() == [[10, 2], [1, 9]]


@pytest.mark.parametrize(
    ("capacity", "floor", "ceiling", "weight", "named"),
    [
        (5, [0], [1], [0], "weight"),
        (5, [0], [1], [1001], "weight"),
        (-1, [0], [1], [1], "capacity"),
        (5, [2], [1], [1], "floor"),
        (5, [-1], [1], [1], "floor"),
        (5, [0], [LARGEST_AMOUNT + 1], [1], "ceiling"),
    ],
)
def test_bad_arguments_are_named(
    capacity: int, floor: list[int], ceiling: list[int], weight: list[int], named: str
) -> None:
    with pytest.raises(ValueError, match=f"^{named}:"):
        divided(capacity, floor, ceiling, weight)


@pytest.mark.parametrize(
    ("capacity", "minimum", "wanted", "maximum", "shares", "limits"),
    [
        pytest.param(
            *(100, [0, 0], [10, 30], [100, 100]),
            *([10, 30], [40, 60]),
            id="what nobody wants is dealt out on top of the shares",
        ),
        pytest.param(*(100, [0, 0], [90, 5], [20, 60], [20, 5], [20, 60]), id="up to the maximum"),
        pytest.param(
            *(90, [60, 0, 0], [99, 99, 10], [100, 100, 100], [60, 20, 10], [60, 20, 10]),
            id="under overload, limits are the shares",
        ),
        pytest.param(
            *(90, [60, 0], [0, 200], [90, 90], [0, 90], [0, 90]),
            id="a minimum that nobody wants is lent",
        ),
    ],
)
def test_limits(
    capacity: int,
    minimum: list[int],
    wanted: list[int],
    maximum: list[int],
    shares: list[int],
    limits: list[int],
) -> None:
    arrays = [np.array(part) for part in (capacity, minimum, wanted, maximum)]
    divided = shares_and_limits(*arrays, np.ones(len(minimum), np.int64))
    assert [part.tolist() for part in divided] == [shares, limits]


# --- rounds ---

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
    assert coordinator.handle(1000, report(0, 1, [10, 10], [0, 0])) == []
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


# --- what is given back ---

GROUPS = (QuotaGroup(name="a"), QuotaGroup(name="b"))


class World:
    """A coordinator's rounds with two agents, of which the second holds nothing."""

    def __init__(self, after_us: int | None) -> None:
        after_s = None if after_us is None else after_us / 1e6
        quotas = QuotaSpec(groups=GROUPS, interval_s=0.001, reclaim_after_s=after_s)
        self.rounds = QuotaRounds(quotas, Capacity(np.array([0]), np.array([[100]])), agents=2)
        self.number = -1

    def reclaimed(self, held: list[int], waiting: list[int]) -> list[int]:
        """What the first agent is to give back in the next round, by group."""
        self.number += 1
        now_us = self.number * 1000
        self.rounds.begin(now_us, self.number)
        none = np.zeros((2, 1), np.int64)
        amounts = np.array(held)[:, None], np.array(waiting)[:, None]
        self.rounds.on_report(now_us, QuotaReport(0, self.number, *amounts))
        effects = self.rounds.on_report(now_us, QuotaReport(1, self.number, none, none))
        [grant] = [
            effect.event
            for effect in effects
            if isinstance(effect, Send) and effect.to == 0 and isinstance(effect.event, QuotaGrant)
        ]
        return [int(amount) for amount in grant.reclaim[:, 0]]


@pytest.mark.parametrize(
    ("after_us", "rounds"),
    [
        pytest.param(
            None, [((90, 0), (0, 50), [0, 0])] * 9, id="unless the quotas say so, nothing"
        ),
        pytest.param(
            2000,
            [
                ((90, 0), (0, 0), [0, 0]),  # b wants nothing
                ((90, 0), (0, 50), [0, 0]),
                ((90, 0), (0, 50), [0, 0]),
                ((80, 0), (0, 50), [30, 0]),
                ((60, 40), (0, 10), [0, 0]),  # it has as long again
            ],
            id="what is held above the grant for a while",
        ),
        pytest.param(
            1000,
            [
                ((90, 0), (0, 50), [0, 0]),
                ((40, 0), (0, 50), [0, 0]),  # below its grant: it has the whole time again
                ((90, 0), (0, 50), [0, 0]),
                ((90, 0), (0, 50), [40, 0]),
            ],
            id="of who stays above it",
        ),
    ],
)
def test_what_is_reclaimed(
    after_us: int | None, rounds: list[tuple[list[int], list[int], list[int]]]
) -> None:
    world = World(after_us)
    for held, waiting, reclaimed in rounds:
        assert world.reclaimed(held, waiting) == reclaimed


def test_low_priority_first_then_the_last_submitted_until_it_is_enough() -> None:
    table = make_table(100)
    priority = np.zeros(100, np.int32)
    priority[[3, 4]] = -1
    request = table.request.copy()
    request[4] = 3
    table = replace(table, priority=priority, request=request, submit_us=np.arange(100))
    quotas = TaskQuotas(2, (np.arange(100) >= 50).astype(np.int32), True)
    reclaimer = Reclaimer(quotas, table)
    tasks = np.array([1, 3, 2, 4, 60, 61])
    reclaimer.on_started(100 + tasks, tasks, np.zeros(6, np.int32))

    def ended(*amount: int) -> list[int]:
        asked = reclaimer.transaction(7, 1, np.array(amount)[:, None])
        if asked is None:
            return []
        assert asked.scheduler == 7 and len(asked) == 0 and asked.evict is not None
        return [int(allocation) - 100 for allocation in asked.evict]

    assert ended(1, 0) == [4]  # the last of the lowest priority, though larger than needed
    assert ended(4, 0) == [4, 3]
    assert ended(5, 1) == [4, 3, 2, 61]
    assert ended(99, 0) == [4, 3, 2, 1]
    reclaimer.on_ended(np.array([104, 103]))
    assert ended(1, 0) == [2]
    reclaimer.on_ended(np.array([102, 101]))
    assert ended(1, 0) == []


def test_tasks_that_lost_their_machines_before_a_restart_hold_nothing() -> None:
    """A restarted agent is told of them, to run them again, but never held anything for them."""
    quotas = TaskQuotas(1, np.zeros(10, np.int32))
    shared = SimpleNamespace(quotas=quotas, table=make_table(10))
    quota = AgentQuota(cast(AgentEnvironment, SimpleNamespace(shared=shared, index=0)))
    quota.on_adopted(TasksAdopted(np.array([1, 2]), np.array([5, 6]), np.zeros(2, np.int32)))
    for task, allocation, held in (([7, 8], -1, 2), ([1], 5, 1)):
        rows = np.array(task)
        ended = np.full(len(rows), allocation)
        request = np.ones((len(rows), 1), np.int64)
        quota.on_ended(TasksEnded(2, rows, ended, ended.astype(np.int32), request, ended))
        assert quota.account.held.tolist() == [[held]]
