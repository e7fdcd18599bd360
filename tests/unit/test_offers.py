"""The protocol of offers: every offer ends once, what is offered is nobody else's, and nothing
stays held; starts by an independent model; slow frameworks, hoarders, delay scheduling, rivals,
failures, and options that make no sense."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.campaign.expected_time import expected_run_s
from experiments.config.presets import optimistic
from experiments.papers.mesos.runs import SEED, HeldRoom, offers_arm, offers_group, run
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core.addresses import CELL_SIDE
from parsync.core.codec import decode, encode
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import HoldReply, Started, TasksSubmitted
from parsync.protocols.offers.events import (
    AllocationDue,
    IntervalDue,
    Offers,
    OffersAnswered,
    OffersRescinded,
    Revive,
    Subscribe,
    Suppress,
    TasksWanted,
)
from parsync.runtime.assembly import Assembly
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import Workload
from schedulers.unplaceable import Unplaceable
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG
from tests.fixtures.offers_runs import modelled_fates, modelled_starts
from tests.fixtures.unit_workloads import Unit, unit_workload
from tests.fixtures.watched_runs import WatchedRun, Watcher, Witness

FIXTURES = Path(__file__).parents[1] / "fixtures"
MS = 1000
SECOND = 1_000_000


def rivals(count: int = 2) -> GroupConfig:
    return GroupConfig(
        name="rival",
        kind="random",
        count=count,
        protocol=optimistic("state_aligned", 0.05),
        decision=ModelledTime(task_us=50),
    )


def jobs(
    count: int, machines: int = 6, slots: int = 3, gap_ms: int = 40, run_us: int = SECOND // 2
) -> Workload:
    """Jobs of one to four tasks at even gaps."""
    units = [
        Unit(((1,),) * (1 + number % 4), number * gap_ms * MS, is_gang=False, run_us=run_us)
        for number in range(count)
    ]
    return unit_workload([[slots]] * machines, units)


class OfferWitness(Watcher):
    """Stands before the allocator and keeps its own books of every offer, from messages alone.

    Attributes:
        live: The offers without an answer: (agent, machine, amount).
        ended: How often each way of ending was seen.
        kept: Of offers that have ended, the sum of room and how long they kept it.
    """

    def __init__(self, allocator: Any, locks: bool) -> None:
        super().__init__(allocator)
        self.locks = locks
        self.live: dict[int, tuple[int, int, int]] = {}
        self.seen_ids: set[int] = set()
        self.epoch: dict[int, int] = {}
        self.ended = {"accepted": 0, "declined": 0, "rescinded": 0}
        self.made_us: dict[int, int] = {}
        self.kept, self.now_us = 0, 0

    def end(self, offer: int, how: str) -> None:
        _, _, amount = self.live.pop(offer)  # a KeyError: it ended twice
        self.kept += amount * (self.now_us - self.made_us[offer])
        self.ended[how] += 1

    def seen(self, now_us: int, event: Event, effects: list[Effect]) -> None:
        kind, self.now_us = type(event).__name__, now_us
        if isinstance(event, Subscribe):
            if event.epoch > self.epoch.get(event.agent, -1):
                self.epoch[event.agent] = event.epoch
                for offer in [one for one, row in self.live.items() if row[0] == event.agent]:
                    self.end(offer, "rescinded")
        elif isinstance(event, OffersAnswered) and event.epoch == self.epoch[event.agent]:
            for how in ("accepted", "declined"):
                for offer in getattr(event, how).tolist():
                    if offer in self.live:  # or it was rescinded before the answer came
                        self.end(offer, how)
        elif kind == "HoldsEnded":
            told = {
                offer
                for effect in effects
                if isinstance(effect, Send) and isinstance(effect.event, OffersRescinded)
                for offer in effect.event.offer.tolist()
            }
            for offer in event.hold.tolist():  # type: ignore[attr-defined]
                if offer in self.live and offer not in told:
                    self.end(offer, "accepted")
        for effect in effects:
            if not isinstance(effect, Send):
                continue
            if isinstance(effect.event, OffersRescinded):
                for offer in effect.event.offer.tolist():
                    self.end(offer, "rescinded")
            elif isinstance(effect.event, Offers):
                one = effect.event
                columns = one.offer, one.machine, one.amount[:, 0]
                for offer, machine, amount in zip(*(c.tolist() for c in columns), strict=True):
                    assert offer not in self.seen_ids, "an id is given twice"
                    assert amount > 0
                    self.seen_ids.add(offer)
                    self.live[offer] = effect.to, machine, amount
                    self.made_us[offer] = one.made_us


class CellWitness(Witness):
    """The witness of the cell, which also knows the offers: what is offered and held is never
    taken by anybody else."""

    offers: OfferWitness

    def commit(self, event: Any, answers: list[Event]) -> None:
        super().commit(event, answers)
        if not self.offers.locks:
            return
        named = event.transaction.holds
        ends = set() if named is None else set(named.tolist())
        for machine in set(event.transaction.machine.tolist()):
            held = sum(
                amount
                for offer, (_, on, amount) in self.offers.live.items()
                if on == machine and offer not in ends
            )
            assert self.used[machine] + held <= self.capacity[machine], "held room was taken"


def watched(
    arm: ArmConfig, workload: Workload, until_us: int, message_us: int = 700
) -> tuple[WatchedRun, CellWitness, OfferWitness]:
    """A run with both witnesses, under every audit."""
    ran = WatchedRun(arm, workload)
    cell = CellWitness(ran.master, workload)
    address = CELL_SIDE - [*arm.protocol_kinds].index("offers")
    offers = OfferWitness(ran.cell_side[address], arm.protocols["offers"].lock)
    cell.offers = offers
    ran.master, ran.cell_side[address] = cell, offers
    ran.run(until_us, message_us)
    return ran, cell, offers


SHARED: list[dict[str, Any]] = [
    {},
    {"lock": False},
    {"granularity": "cell"},
    {"granularity": "machines", "machines_per_offer": 2, "sorter": "random", "rivals": "role"},
    {"granularity": "task", "freed_room_triggers": True},
    {"offer_timeout_s": 0.003, "allocation_s": 0.001},
    {"lock": False, "offer_timeout_s": 0.0015, "freed_room_triggers": True},
]
OWN: list[dict[str, Any]] = [{}, {"suppress": False, "refuse_s": 0.0}, {"kind": "flow"}]


@pytest.mark.parametrize("shared", SHARED, ids=str)
@pytest.mark.parametrize("own", OWN, ids=str)
@pytest.mark.parametrize("beside", [True, False])
def test_every_offer_ends_once_and_nothing_stays_held(
    shared: dict[str, Any], own: dict[str, Any], beside: bool
) -> None:
    if shared.get("freed_room_triggers") and "refuse_s" in own:
        own = {**own, "refuse_s": 0.5}
    workload = jobs(60)
    downs = [(900 * MS, m, False) for m in range(2)]
    ups = [(1500 * MS, m, True) for m in range(2)]
    workload = with_events(workload, *downs, *ups)
    groups = (offers_group(3, **own), *((rivals(),) if beside else ()))
    ran, cell, offers = watched(offers_arm(*groups, **shared), workload, 25 * SECOND)
    assert set(cell.ended) == set(range(len(workload.tasks))) and not ran.queued
    rows = ran.tables["offers"]
    ends = {name: int(rows[name].sum()) for name in ("accepted", "declined")}
    ends["rescinded"] = int(rows["rescinded"].sum() + rows["expired"].sum())
    if own.get("suppress", True):
        assert not offers.live
    assert offers.ended == ends
    held = rows["held"].sum() / 1e6 * workload.cell.capacity.sum()
    kept = sum(
        amount * (25 * SECOND - offers.made_us[offer])
        for offer, (_, _, amount) in offers.live.items()
    )
    assert held == pytest.approx(offers.kept + kept, rel=1e-3)
    assert len(offers.seen_ids) == sum(ends.values()) + len(offers.live) == rows["made"].sum()
    on_hand = {} if not offers.locks else {m: a for _, m, a in offers.live.values()}
    np.testing.assert_array_equal(
        np.flatnonzero(ran.cell.held.any(axis=1)) if offers.locks else [], sorted(set(on_hand))
    )


def with_events(workload: Workload, *events: tuple[int, int, bool]) -> Workload:
    at_us, machine, up = zip(*events, strict=True)
    changed = type(workload.machine_events)(
        np.array(at_us), np.array(machine, np.int32), np.array(up)
    )
    return replace(workload, machine_events=changed)


def test_without_locks_a_rival_may_take_what_is_offered_and_the_claim_fails() -> None:
    workload = jobs(200, machines=3, gap_ms=15, run_us=60 * MS)
    failed = {}
    for lock in (True, False):
        slow = offers_group(2, decision=ModelledTime(job_us=20_000, task_us=50))
        ran = run(offers_arm(slow, rivals(), lock=lock, interval_s=0.05), workload, 700)
        assert ran.outcome.drained
        failed[lock] = ran.sum("failed", "offer_waits")
    assert failed[True] == 0 < failed[False]


@pytest.mark.parametrize(
    ("protocol", "expires"),
    [
        ({"kind": "probing"}, False),
        ({"kind": "probing"}, True),
        ({"kind": "probing", "binding": "random"}, False),
        ({"kind": "machine_queues"}, False),
    ],
    ids=str,
)
def test_queues_at_machines_go_on_when_held_room_is_free_again(
    protocol: dict[str, Any], expires: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines of six slots are held from 0 s to the end of a decision, of which one slot is
    then used for long, or until the offers expire. No task ends meanwhile."""
    monkeypatch.syspath_prepend(FIXTURES / "protocols")
    units = [
        Unit(((1,),), 0, is_gang=False, run_us=100 * SECOND),
        Unit(((1,),) * 5, 50 * MS, is_gang=False, run_us=100 * SECOND),
    ]
    workload = unit_workload([[6], [6]], units)
    task_class = np.array([1, 0, 0, 0, 0, 0], np.int8)
    workload = replace(workload, tasks=replace(workload.tasks, task_class=task_class))
    decision = ModelledTime(job_us=200 * MS, task_us=50)
    waiting = GroupConfig(
        name="waiting",
        count=1,
        protocol=protocol,
        decision=ModelledTime(task_us=50),
        task_class="batch",
    )
    slow = offers_group(1, takes="service", decision=decision)
    arm = offers_arm(slow, waiting, offer_timeout_s=0.1 if expires else None)
    ran = run(arm, workload, drain_us=10 * SECOND)
    assert ran.rejections > 0
    freed_us = (100 if expires else 200) * MS
    assert freed_us <= ran.start_us[1:].min() and ran.start_us[1:].max() <= freed_us + 5 * MS


def test_a_killed_agents_offers_end_with_its_epoch() -> None:
    """By hand: the allocator on a cell of two machines."""
    ran = WatchedRun(offers_arm(offers_group(), lock=False), jobs(1, machines=2))
    allocator = ran.cell_side[CELL_SIDE]

    allocator.handle(0, Started(0))
    allocator.handle(0, Subscribe(0, 0, False))
    made = [one.event for one in allocator.handle(0, AllocationDue()) if isinstance(one, Send)]
    assert sorted(made[0].machine.tolist()) == [0, 1]
    allocator.handle(5, Subscribe(0, 1, False))
    again = [one.event for one in allocator.handle(5, AllocationDue()) if isinstance(one, Send)]
    assert sorted(again[0].machine.tolist()) == [0, 1] and again[0].epoch == 1
    none, amount = np.zeros(0, np.int64), np.zeros((0, 1), np.int64)
    late = OffersAnswered(0, 0, none, amount, made[0].offer)
    assert allocator.handle(6, late) == [], "an answer of the agent before"
    assert allocator.handle(7, Subscribe(0, 1, False)) == [], "it has begun already"
    assert len(set(made[0].offer.tolist()) | set(again[0].offer.tolist())) == 4


def offered(effects: list[Effect]) -> list[int]:
    """The machines that are offered."""
    return sorted(
        machine
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.event, Offers)
        for machine in effect.event.machine.tolist()
    )


def test_what_was_declined_comes_back_after_its_time_or_when_offers_are_revived() -> None:
    """By hand: of two machines one is declined, at 1 s for 5 s."""
    arm = offers_arm(offers_group(refuse_s=5.0), lock=False)
    allocator = WatchedRun(arm, jobs(1, machines=2)).cell_side[CELL_SIDE]
    none, amount = np.zeros(0, np.int64), np.zeros((0, 1), np.int64)

    def decline(now_us: int, effects: list[Effect]) -> None:
        (sent,) = (one.event for one in effects if isinstance(one, Send))
        one = OffersAnswered(0, 0, none, amount, sent.offer)
        assert offered(allocator.handle(now_us, one)) == []

    allocator.handle(0, Started(0))
    allocator.handle(0, Subscribe(0, 0, False))
    decline(SECOND, allocator.handle(0, AllocationDue()))
    seen = {at: allocator.handle(at * SECOND, IntervalDue()) for at in range(2, 8)}
    assert [at for at, effects in seen.items() if offered(effects)] == [7]
    assert offered(seen[7]) == [0, 1]
    decline(7 * SECOND, seen[7])
    allocator.handle(7 * SECOND, Suppress(0, 0))
    assert offered(allocator.handle(20 * SECOND, IntervalDue())) == []
    allocator.handle(21 * SECOND, Revive(0, 0))
    assert offered(allocator.handle(21 * SECOND, AllocationDue())) == [0, 1]


def test_the_allocator_comes_back_from_a_checkpoint() -> None:
    slow = offers_group(3, decision=ModelledTime(job_us=400 * MS, task_us=50))
    arm = offers_arm(slow, rivals(), offer_timeout_s=2.0)
    ran = WatchedRun(arm, jobs(60)).run(1_700 * MS, 700)
    allocator = ran.cell_side[CELL_SIDE]
    kept = encode(allocator.checkpoint())
    other = WatchedRun(arm, jobs(60)).cell_side[CELL_SIDE]
    other.restore(decode(kept))
    assert encode(other.checkpoint()) == kept
    assert ran.cell.holds().hold.tolist() == decode(kept)[3][0].tolist() != []


# Beside an independent model.


@pytest.mark.parametrize("frameworks", [1, 3])
@pytest.mark.parametrize("load", [0.4, 1.2])
def test_tasks_start_when_the_model_says(frameworks: int, load: float) -> None:
    machines, n = 12, 150
    rng = np.random.default_rng(7)
    gaps = rng.exponential(2.5 * 700 * MS / (load * machines), n)
    at_us = 1 + np.cumsum(gaps).astype(np.int64)
    units = [
        Unit(((1,),) * int(size), int(at), is_gang=False, run_us=int(run_us))
        for size, at, run_us in zip(
            rng.integers(1, 5, n), at_us, rng.integers(1, 1400 * MS, n), strict=True
        )
    ]
    workload = unit_workload([[1]] * machines, units)
    decision = ModelledTime(job_us=3_000, task_us=500)
    arm = offers_arm(offers_group(frameworks, decision=decision, refuse_s=0.0))
    ran = run(arm, workload, heartbeat_us=1)
    owner, _ = Assembly.of(arm.seeded(SEED, 1, SECOND, live=False), workload).owners()
    model = modelled_starts(workload, owner.tolist(), frameworks, SECOND, 3_000, 500)
    assert ran.outcome.drained
    np.testing.assert_array_equal(ran.start_us, model)


# Slow frameworks.


def two_classes(seconds: int, service_gap_s: float, slots: int = 4) -> Workload:
    """A batch job of two tasks every 200 ms and a service task at these gaps, on ten machines."""
    batch = [
        Unit(((1,), (1,)), 1 + number * 200 * MS, is_gang=False, run_us=SECOND)
        for number in range(seconds * 5)
    ]
    service = [
        Unit(((1,),), 2 + int(number * service_gap_s * SECOND), is_gang=False, run_us=2 * SECOND)
        for number in range(int(seconds / service_gap_s))
    ]
    workload = unit_workload([[slots]] * 10, [*batch, *service])
    of_job = np.bincount(workload.tasks.job)[workload.tasks.job]
    task_class = np.where(of_job == 1, 1, 0).astype(np.int8)
    return replace(workload, tasks=replace(workload.tasks, task_class=task_class))


def waits_s(ran: Any) -> tuple[float, float]:
    """The mean waits of batch and service tasks that were placed."""
    tasks = ran.workload.tasks
    waits = (ran.commit_us - tasks.submit_us) / SECOND
    placed = ran.commit_us >= 0
    return tuple(  # type: ignore[return-value]
        float(waits[placed & (tasks.task_class == one)].mean()) for one in (0, 1)
    )


def test_a_slow_framework_starves_others_most_if_it_is_offered_the_whole_cell() -> None:
    """What Omega section 3.3 says of two-level scheduling, and what finer offers change."""
    workload = two_classes(120, service_gap_s=10)
    batch_wait = {}
    for granularity in ("machine", "cell"):
        for think_s in (0.01, 5.0):
            fast = offers_group(1, "batch", takes="batch")
            decision = ModelledTime(job_us=int(think_s * SECOND), task_us=50)
            slow = offers_group(1, "service", takes="service", decision=decision)
            ran = run(offers_arm(fast, slow, granularity=granularity), workload)
            assert ran.outcome.drained
            batch_wait[granularity, think_s] = waits_s(ran)[0]
    # half of the time the slow framework holds what was free when its job came
    assert batch_wait["cell", 5.0] > 2 * batch_wait["cell", 0.01]
    assert batch_wait["machine", 0.01] < batch_wait["machine", 5.0] < batch_wait["cell", 5.0]


@pytest.mark.parametrize("granularity", ["machine", "cell"])
def test_a_framework_cannot_decide_for_longer_than_there_is_time(granularity: str) -> None:
    """Decisions of 100 s for tasks that come every 20 s: a fifth of them can be decided. (In
    Omega's simulator of Mesos decisions overlap, and all are.)"""
    workload = two_classes(400, service_gap_s=20)
    fast = offers_group(1, "batch", takes="batch")
    decision = ModelledTime(job_us=100 * SECOND, task_us=50)
    slow = offers_group(1, "service", takes="service", decision=decision)
    arm = offers_arm(fast, slow, granularity=granularity)
    ran = run(arm, workload, drain_us=SECOND)
    service = workload.tasks.task_class == 1
    placed = int((ran.commit_us[service] >= 0).sum())
    assert 1 <= placed <= 4 and not ran.outcome.drained


# Delay scheduling.


def test_jobs_wait_for_preferred_machines_as_long_as_they_were_told() -> None:
    options = SyntheticOptions(
        machines=40,
        slots_per_machine=4,
        machines_per_rack=8,
        mean_duration_s=2,
        batch_tasks=4,
        phase_s=20,
        load_percent=(60,),
    )
    workload = generate(options, 1)
    catalog, preference = workload.catalog, workload.tasks.preference
    share, delay = [], []
    for wait_s in (0.0, 3.0, 30.0):
        group = offers_group(2, node_wait_s=wait_s, refuse_s=1.0)
        ran = run(offers_arm(group, interval_s=0.1), workload)
        assert ran.outcome.drained
        hits = [
            int(ran.machine[task])
            in catalog.machine[slice(*catalog.machine_offsets[preference[task] :][:2])]
            for task in workload.arrival_rows.tolist()
        ]
        share.append(float(np.mean(hits)))
        waited = (ran.commit_us - workload.tasks.submit_us)[workload.arrival_rows]
        delay.append(float(waited.mean()))
    assert share[0] < share[1] <= share[2] and share[2] > 0.95
    assert delay[0] < delay[2]


# Gangs.


def gangs(count: int, size: int, gap_ms: int = 1) -> Workload:
    units = [Unit(((1,),) * size, number * gap_ms * MS) for number in range(count)]
    return unit_workload([[1]] * 6, units)


@pytest.mark.parametrize("how", ["wait", "hoard"])
def test_a_gang_runs_together_or_not_at_all(how: str) -> None:
    workload = gangs(8, 4)
    ran = run(offers_arm(offers_group(1, gangs=how)), workload)
    assert ran.outcome.drained
    gang = workload.tasks.gang
    assert (gang != NO_GANG).all()
    for one in np.unique(gang):
        assert len(set(ran.commit_us[gang == one].tolist())) == 1


def test_task_sized_offers_hold_gangs_of_unlike_tasks() -> None:
    """And a task too large for what is left keeps no smaller one waiting."""
    units = [
        Unit(((3, 1), (1, 3), (0, 2)), 0),
        Unit(((4, 4),), 0, is_gang=False, run_us=10 * SECOND),
        Unit(((4, 4),), 0, is_gang=False),
        Unit(((1, 1),), 0, is_gang=False),
    ]
    ran = run(
        offers_arm(offers_group(kind="best_fit"), granularity="task"),
        unit_workload([[4, 4], [5, 5]], units),
        drain_us=60 * SECOND,
    )
    assert ran.outcome.drained
    large = ran.start_us[3:5]
    assert ran.start_us[5] < large.max(), "the small one was behind it"


def test_tasks_are_wanted_again_when_the_room_granted_for_them_is_gone() -> None:
    """Offers expire, and rivals are faster than the allocator; the second by hand."""
    group = offers_group(2, gangs="hoard", kind="best_fit")
    shared = {"granularity": "task", "offer_timeout_s": 3.0, "sorter": "random"}
    ran = run(offers_arm(group, **shared), gangs(20, 4, gap_ms=0), drain_us=200 * SECOND)
    assert ran.outcome.drained and ran.sum("expired") > 0
    arm = offers_arm(offers_group(), granularity="task")
    by_hand = WatchedRun(arm, jobs(1, machines=2))
    agent, allocator = by_hand.agents[0], by_hand.cell_side[CELL_SIDE]
    agent.handle(0, Started(0))
    agent.handle(0, TasksSubmitted(np.array([0])))
    (said,) = (one.event for one in agent.handle(5, OffersRescinded(0, np.zeros(0, np.int64))))
    assert isinstance(said, TasksWanted) and said.tasks.tolist() == [1]
    allocator.handle(0, Started(0))
    allocator.handle(0, Subscribe(0, 0, False))
    allocator.handle(0, TasksWanted(0, 0, np.array([[1]]), np.array([1])))
    (asked,) = (one.event for one in allocator.handle(0, AllocationDue()) if isinstance(one, Send))
    refused = HoldReply(asked.sequence, np.full(1, -1))
    for sequence in (asked.sequence - 1, asked.sequence + 1):
        with pytest.raises(ValueError, match="HoldReply: expected the answer to the last request"):
            allocator.handle(0, replace(refused, sequence=sequence))
    (told,) = (one for one in allocator.handle(0, refused) if isinstance(one, Send))
    assert isinstance(told.event, OffersRescinded) and told.to == 0 and len(told.event.offer) == 0


def test_hoarders_may_wait_for_each_other_for_ever_and_a_timeout_ends_that() -> None:
    """Gangs of four tasks on six machines: who has three keeps them."""
    group = offers_group(2, gangs="hoard", kind="best_fit")
    even = run(offers_arm(group), gangs(2, 4, gap_ms=0), drain_us=100 * SECOND)
    assert not even.outcome.drained and (even.commit_us < 0).all()
    assert even.sum("made") == 6 and even.sum("accepted") == even.sum("declined") == 0
    assert 99 * SECOND < even.sum("held") / 1_000_000 <= 101 * SECOND, "the whole cell is held"
    workload = gangs(20, 4, gap_ms=0)
    drawn = run(offers_arm(group, sorter="random"), workload, drain_us=100 * SECOND)
    assert not drawn.outcome.drained
    ends = offers_arm(group, offer_timeout_s=3.0, sorter="random")
    ran = run(ends, workload, drain_us=100 * SECOND)
    assert ran.outcome.drained and ran.sum("expired") > 0


def test_freed_room_may_start_a_timer_in_place_of_filters() -> None:
    """As in Omega's simulator: a run of the allocator begins with a request, an answer or an end,
    and takes a second. By hand: the second job finds no room until tasks of the first end."""
    units = [
        Unit(((1,),) * 4, at_ms * MS, is_gang=False, run_us=2 * SECOND) for at_ms in (100, 500)
    ]
    shared = {"allocation_s": 1.0, "freed_room_triggers": True, "interval_s": 60.0}
    arm = offers_arm(offers_group(refuse_s=0.0), granularity="cell", **shared)
    ran = run(arm, unit_workload([[1]] * 6, units))
    assert ran.outcome.drained
    decision_us = 50
    first = 1_100 * MS + 6 * decision_us  # two tasks of the second job, too
    second = first + 2 * SECOND + MS  # the end is told at the next heartbeat
    second = second // MS * MS + SECOND
    assert sorted(set(ran.start_us.tolist())) == [first, second + 2 * decision_us]


# Jobs that are given up.


def given_up(ran: Any) -> list[tuple[int, int]]:
    """When each task was given up: (task, at_us)."""
    table = ran.tables["unplaceable"]
    chosen = table["abandoned"] == 1
    return list(zip(table["task"][chosen].tolist(), table["at_us"][chosen].tolist(), strict=True))


def test_a_job_is_given_up_after_its_attempts_and_nothing_stays_held() -> None:
    """A machine of four slots, two of them taken for long. The allocator offers the others once a
    second: (task, attempt that gives it up)."""
    taken = Unit(((1,), (1,)), 0, is_gang=False, run_us=100 * SECOND)
    late = SECOND // 2
    cases: list[tuple[Unit, list[int], int]] = [
        (Unit(((3,),), late, is_gang=False), [2], 3),  # no task of it is placed
        (Unit(((1,), (3,)), late, is_gang=False, run_us=100 * SECOND), [3], 5),  # one is
        (Unit(((1,), (1,), (1,)), late), [2, 3, 4], 3),  # a gang
    ]
    group = offers_group(1, refuse_s=0.0, attempts_max=5, attempts_max_unplaced=3)
    for job, tasks, attempts in cases:
        workload = unit_workload([[4]], [taken, job])
        ran, _, offers = watched(offers_arm(group, partitions=1), workload, 20 * SECOND)
        gone = given_up(ran)
        assert [task for task, _ in gone] == tasks
        # the first attempt comes with the job, the others with the allocator's interval
        (last_s,) = {at_us / SECOND for _, at_us in gone}
        assert attempts - 1 <= last_s < attempts
        assert not offers.live and not ran.cell.held.any() and not ran.queued


def test_a_job_that_loses_a_machine_still_counts_as_one_that_placed_tasks() -> None:
    """Its one task was placed, and makes its attempts anew on a machine without room for it."""
    units = [
        Unit(((3,),), 0, allowed=(1,), is_gang=False, run_us=100 * SECOND),
        Unit(((2,),), SECOND // 2, is_gang=False, run_us=100 * SECOND),
    ]
    workload = unit_workload([[2], [4]], units, [(10 * SECOND, 0, False)])
    fates = {}
    for unplaced in (None, 2):
        group = offers_group(1, refuse_s=0.0, attempts_max=5, attempts_max_unplaced=unplaced)
        ran, _, _ = watched(offers_arm(group, partitions=1), workload, 30 * SECOND)
        fates[unplaced] = given_up(ran)
    assert fates[2] == fates[None]
    ((task, at_us),) = fates[2]
    assert task == 1 and 14 * SECOND < at_us < 16 * SECOND


def test_offers_of_a_whole_cell_are_expected_to_take_time_for_each_machine_and_job() -> None:
    made, expected_s = {}, {}
    for machines in (10, 1000):
        workload = jobs(40, machines)
        for granularity in ("task", "cell"):
            arm = offers_arm(offers_group(refuse_s=0.0), granularity=granularity)
            made[granularity, machines] = run(arm, workload).sum("made")
            expected_s[granularity, machines] = expected_run_s(arm, workload, None)
    more_s = {n: expected_s["cell", n] - expected_s["task", n] for n in (10, 1000)}
    assert more_s[1000] > 0.2e-6 * made["cell", 1000]
    assert more_s[1000] == pytest.approx(100 * more_s[10])


def test_a_resource_that_is_used_up_counts_only_for_those_who_request_it() -> None:
    units = [
        Unit(((1, 1),), 0, is_gang=False, run_us=100 * SECOND),
        Unit(((4, 0),), SECOND // 2, is_gang=False),
        Unit(((1, 1),), SECOND // 2, is_gang=False),
    ]
    group = offers_group(1, refuse_s=0.0, attempts_max_unplaced=2)
    ran, _, _ = watched(
        offers_arm(group, partitions=1), unit_workload([[4, 1]], units), 20 * SECOND
    )
    assert [task for task, _ in given_up(ran)] == [1]


def test_a_hoarder_without_new_offers_makes_no_attempt() -> None:
    """So it keeps what it has, until its offers time out: then attempts follow each other."""
    taken = Unit(((1,), (1,)), 0, is_gang=False, run_us=100 * SECOND)
    workload = unit_workload([[4]], [taken, Unit(((1,), (1,), (1,)), SECOND // 2)])
    group = offers_group(1, gangs="hoard", attempts_max_unplaced=3)
    ran, _, offers = watched(offers_arm(group, partitions=1), workload, 20 * SECOND)
    assert "unplaceable" not in ran.tables and len(offers.live) == 1
    shared = {"partitions": 1, "offer_timeout_s": 2.0}
    ran, _, offers = watched(offers_arm(group, **shared), workload, 20 * SECOND)
    assert [task for task, _ in given_up(ran)] == [2, 3, 4]
    assert not offers.live and not ran.cell.held.any()


def given_up_us(ran: Any) -> list[int]:
    """When each task was given up; -1: it was not."""
    found = np.full(len(ran.workload.tasks), -1)
    at_us, task, why = (ran.column(name, "unplaceable") for name in ("at_us", "task", "abandoned"))
    assert len(np.unique(task)) == len(task), "a task is given up twice"
    assert (ran.commit_us[task] < 0).all() and (why == Unplaceable.ABANDONED).all()
    found[task] = at_us
    return found.tolist()  # type: ignore[no-any-return]


_limits = st.none() | st.integers(1, 5)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 900), st.integers(1, 6000)),
        min_size=1,
        max_size=12,
    ),
    _limits,
    _limits,
)
def test_jobs_are_given_up_when_the_model_says(
    drawn: list[tuple[int, int, int, int]], most: int | None, unplaced: int | None
) -> None:
    """Jobs of so many tasks of one size, at gaps and with run times in ms, on one machine."""
    at_us, units = 1, []
    for number, (tasks, size, gap_ms, run_ms) in enumerate(drawn):
        at_us += gap_ms * MS + 7 * number
        run_us = run_ms * MS + 13 * number
        units.append(Unit(((size,),) * tasks, at_us, is_gang=False, run_us=run_us))
    workload = unit_workload([[4]], units)
    limits = {"attempts_max": most, "attempts_max_unplaced": unplaced}
    group = offers_group(
        decision=ModelledTime(job_us=3_001, task_us=503), refuse_s=0.0, kind="first_fit", **limits
    )
    held = HeldRoom()
    ran = run(offers_arm(group, partitions=1), workload, heartbeat_us=1, observer=held)
    start_us, over_us = modelled_fates(workload, SECOND, 3_001, 503, **limits)
    assert ran.outcome.drained and held.now() == 0
    assert ran.start_us.tolist() == start_us
    assert given_up_us(ran) == over_us


def test_a_job_waits_for_a_preferred_machine_without_an_attempt() -> None:
    units = [
        Unit(((2,),), 0, allowed=(0,), is_gang=False, run_us=9 * SECOND),
        Unit(((1,),), 10 * MS, allowed=(0,), is_gang=False),
    ]
    workload = unit_workload([[2], [2]], units)
    fates = {}
    for wait_s in (0.0, 60.0):
        group = offers_group(refuse_s=0.0, node_wait_s=wait_s, attempts_max_unplaced=3)
        fates[wait_s] = run(offers_arm(group), workload).start_us.tolist()
    assert fates[0.0][1] == -1 and fates[60.0][1] > 9 * SECOND


def test_only_jobs_whose_turn_it_was_have_made_an_attempt() -> None:
    """Two slots are free: the first job is too large for them, the second uses them up."""
    one = ((1,),)
    units = [
        Unit(((1,), (1,)), 0, is_gang=False, run_us=100 * SECOND),
        Unit(((3,),), SECOND // 2, is_gang=False),
        Unit(((1,), (1,)), SECOND // 2, is_gang=False, run_us=5 * SECOND),
        Unit(one, SECOND // 2, is_gang=False),
    ]
    group = offers_group(1, refuse_s=0.0, attempts_max_unplaced=1)
    ran, cell, _ = watched(
        offers_arm(group, partitions=1), unit_workload([[4]], units), 20 * SECOND
    )
    assert [task for task, _ in given_up(ran)] == [2]
    assert 5 in cell.ended, "it waited for its turn"


# Roles.


def test_roles_share_the_cell_by_weight_and_within_their_limits() -> None:
    """Two groups that want all of a cell of 40 slots at once."""
    units = [Unit(((1,),) * 40, 1, is_gang=False, run_us=100 * SECOND) for _ in range(4)]
    workload = unit_workload([[1]] * 40, units)
    running = {}
    for name, roles in {
        "weight": {"heavy": {"weight": 3.0}},
        "limit": {"heavy": {"weight": 3.0, "limit": 0.25}},
        "guarantee": {"light": {"guarantee": 0.5}, "heavy": {"weight": 3.0}},
    }.items():
        groups = [
            offers_group(1, one, role=one, share=0.5, refuse_s=0.0) for one in ("light", "heavy")
        ]
        arm = offers_arm(*groups, roles=roles)
        owner, _ = Assembly.of(arm.seeded(SEED, 1000, SECOND, live=False), workload).owners()
        assert set(owner.tolist()) == {0, 1}
        ran = run(arm, workload, drain_us=10 * SECOND)
        of_task = np.repeat(owner, 40)
        placed = ran.commit_us >= 0
        running[name] = [int((placed & (of_task == one)).sum()) for one in (0, 1)]
    assert running["weight"] == [10, 30]
    assert running["limit"] == [30, 10]
    assert running["guarantee"] == [20, 20]


# Options that make no sense.


@pytest.mark.parametrize(
    ("group", "shared", "message"),
    [
        ({"kind": "quincy"}, {}, "cannot drive a scheduler that ends running tasks"),
        ({"kind": "flow", "node_wait_s": 1.0}, {}, "node_wait_s: not for a kind of scheduler"),
        ({"kind": "flow", "gangs": "hoard"}, {}, "gangs: expected 'wait', got 'hoard'"),
        ({"kind": "flow", "attempts_max": 9}, {}, "attempts_max_unplaced: not for a kind of"),
        ({"attempts_max_unplaced": 0}, {}, "Input should be greater than or equal to 1"),
        ({"gangs": "hoards"}, {}, "option 'gangs': Input should be 'wait' or 'hoard'"),
        ({}, {"granularity": "rack"}, "option 'granularity': Input should be 'machine', 'cell'"),
        ({}, {"granularity": "machines"}, "machines_per_offer: missing; granularity = 'machines'"),
        ({}, {"machines_per_offer": 3}, "machines_per_offer: has no effect unless granularity"),
        ({}, {"rolls": {}}, "has no shared option 'rolls' (did you mean 'roles'?)"),
        ({"role": "rivals"}, {"rivals": "role"}, "role: 'rivals' is that of other schedulers"),
        ({"role": "a//b"}, {}, "option 'role': expected names with '/' between them"),
        (
            {"refuse_s": 0.0},
            {"freed_room_triggers": True},
            "refuse_s: expected more than 0 with freed_room_triggers",
        ),
        (
            {},
            {"roles": {"a": {"guarantee": 0.6}, "b": {"guarantee": 0.6}}},
            "roles: guarantees: expected at most 1 together, got 1.2",
        ),
        ({}, {"roles": {"a": {"guarantee": 0.6, "limit": 0.5}}}, "limit: expected at least"),
        ({}, {"roles": {"*": {"limit": 0}}}, "Input should be greater than 0"),
        (
            {"role": "a/b"},
            {"roles": {"a": {"weight": 2}, "a/c": {"weight": 2}}},
            "shared option 'roles': no group has the role 'a/c'; the groups' roles: a, a/b",
        ),
    ],
)
def test_wrong_options_are_one_clear_line(
    group: dict[str, Any], shared: dict[str, Any], message: str
) -> None:
    """They are refused before anything runs."""
    with pytest.raises((AgoraError, ValueError), match=re.escape(message)) as error:
        offers_arm(offers_group(1, **group), **shared)
    if isinstance(error.value, AgoraError):
        assert "\n" not in str(error.value)


def test_what_can_never_be_placed_holds_up_nobody() -> None:
    units = [
        Unit(((9,),), 0, is_gang=False),
        Unit(((3,),), 0, allowed=(0,), is_gang=False),
        Unit(((1,),), 1, is_gang=False),
    ]
    ran = run(offers_arm(offers_group()), unit_workload([[1], [4]], units))
    assert ran.outcome.drained
    assert ran.start_us.tolist()[:2] == [-1, -1] and ran.start_us[2] >= 0


def test_the_same_seed_gives_the_same_run() -> None:
    digests = {
        run(offers_arm(offers_group(3), rivals(), sorter="random"), jobs(40), 700).outcome.digest
        for _ in range(2)
    }
    assert len(digests) == 1
