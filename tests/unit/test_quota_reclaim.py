"""What agents give back: when the coordinator asks for it, and which tasks end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np

from parsync.core.effects import Send
from parsync.core.events import QuotaGrant, QuotaReport, TasksAdopted, TasksEnded
from parsync.core.quota_rounds import QuotaRounds
from parsync.core.quotas import Capacity, QuotaGroup, QuotaSpec, TaskQuotas
from parsync.protocols.agent_quota import AgentQuota, Reclaimer
from parsync.protocols.spec import AgentEnvironment
from tests.unit.agent_bench import make_table

GROUPS = (QuotaGroup(name="a"), QuotaGroup(name="b"))
CELL = Capacity(np.array([0]), np.array([[100]]))


class World:
    """A coordinator's rounds with two agents, of which the second holds nothing."""

    def __init__(self, after_us: int | None) -> None:
        after_s = None if after_us is None else after_us / 1e6
        quotas = QuotaSpec(groups=GROUPS, interval_s=0.001, reclaim_after_s=after_s)
        self.rounds = QuotaRounds(quotas, CELL, agents=2)
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


def test_nothing_is_reclaimed_unless_the_quotas_say_so() -> None:
    world = World(None)
    assert [world.reclaimed([90, 0], [0, 50]) for _ in range(9)] == [[0, 0]] * 9


def test_what_is_held_above_the_grant_is_reclaimed_after_a_while() -> None:
    world = World(2000)
    assert world.reclaimed([90, 0], [0, 0]) == [0, 0]  # b wants nothing
    assert world.reclaimed([90, 0], [0, 50]) == [0, 0]
    assert world.reclaimed([90, 0], [0, 50]) == [0, 0]
    assert world.reclaimed([80, 0], [0, 50]) == [30, 0]
    assert world.reclaimed([60, 40], [0, 10]) == [0, 0]  # it has as long again


def test_who_came_below_its_grant_meanwhile_has_the_whole_time_again() -> None:
    world = World(1000)
    assert world.reclaimed([90, 0], [0, 50]) == [0, 0]
    assert world.reclaimed([40, 0], [0, 50]) == [0, 0]
    assert world.reclaimed([90, 0], [0, 50]) == [0, 0]
    assert world.reclaimed([90, 0], [0, 50]) == [40, 0]


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
