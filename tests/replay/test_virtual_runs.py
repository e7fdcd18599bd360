"""Whole runs in virtual time: the same seed gives the same event log, and no run breaks an
invariant of the cell.

The cell is rebuilt here from the master's messages alone, in plain dictionaries: an oracle that
shares no code with it.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import generate
from parsync.core import events
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.participant import Agent, Participant
from parsync.metrics.record import Record
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.agent import OptimisticAgent
from parsync.runtime.assembly import Assembly
from parsync.runtime.virtual.run import VirtualRuntime, run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import ChangeKind
from tests.fixtures.overloaded_cell import (
    OPTIONS,
    arm,
    failing_workload,
    group,
    locking_arm,
    locking_group,
)

SHARED = {"prices": "implied", "share_demand": True}
ARMS = {
    "aligned quality-first": arm("state_aligned", group(strategy="quality_first")),
    "staggered latency-first": arm("state_staggered", group(strategy="latency_first")),
    "parsync adaptive": arm("diff_block", group(strategy="adaptive", tau_s=0.02)),
    "single partitions, freed at once": arm(
        "diff_single", group(strategy="quality_first", freed_at_once=True)
    ),
    "same blocks, not cut": arm("same_block", group(strategy="latency_first", cut_at_sync=False)),
    "omega": arm(
        "every_attempt",
        group(
            "randomized_first_fit",
            losers="requeue",
            requeue_s=0.05,
            conflict_check="sequence_number",
        ),
    ),
    "every attempt, losers at once": arm("every_attempt", group(strategy="quality_first")),
    "every attempt, flow": arm("every_attempt", group("quincy", 1)),
    "all or nothing": arm(
        "diff_block", group(commit_mode="all_or_nothing", losers="requeue", requeue_s=0.02)
    ),
    "best fit and spreading": arm("diff_block", group("best_fit", 2), group("load_spreading", 2)),
    "parsync, waiting for commits": arm(
        "diff_block", group(strategy="quality_first", commit_pipelining=False)
    ),
    "first fit": arm("state_aligned", group("first_fit")),
    "patient": arm(
        "diff_block",
        group(strategy="adaptive", tau_s=0.02, freed_at_once=True, options={"patience_s": 0.02}),
    ),
    "patient, all or nothing": arm(
        "state_aligned",
        group(
            "preferred_first",
            commit_mode="all_or_nothing",
            min_retry_interval_s=0.005,
            options={"patience_s": 0.02},
        ),
    ),
    "preferred first": arm("diff_block", group("preferred_first", 2), group("random", 2)),
    "shared demand": arm(
        "diff_block",
        group("random", 2, options=SHARED),
        group("quincy", 1, options=SHARED),
        group("first_fit", 1),
    ),
    "every attempt, shared demand": arm("every_attempt", group(options=SHARED)),
    "every attempt, patient": arm(
        "every_attempt", group("load_spreading", options={"patience_s": 0.02})
    ),
    "patient flow": arm(
        "state_aligned",
        group("quincy", 1, min_retry_interval_s=0.005, options={"patience_s": 0.02}),
    ),
    "flow": arm("state_aligned", group("quincy", 1)),
    "locks on two partitions": locking_arm(locking_group(locked_partitions=2, hold_s=0.001)),
    "locks on all partitions": locking_arm(locking_group("preferred_first", 3)),
    "locks beside optimists": locking_arm(
        locking_group(count=2, locked_partitions=1), group(count=2)
    ),
    "mix with flow": arm(
        "diff_block", group(strategy="adaptive", share=0.75), group("quincy", 1, share=0.25)
    ),
}


def run(config: ArmConfig, workload: Workload) -> tuple[str, list[Record]]:
    records: list[Record] = []
    outcome = run_virtual(
        config.seeded(3, 1000, 50_000, live=False),
        workload,
        5_000_000,
        records.append,
        lambda _: None,
    )
    assert outcome.drained, f"{outcome.waiting} tasks were never placed"
    return outcome.digest, records


@pytest.mark.parametrize("name", ARMS)
def test_the_same_seed_gives_the_same_event_log(name: str) -> None:
    first, _ = run(ARMS[name], failing_workload())
    again, _ = run(ARMS[name], failing_workload())
    assert first == again
    other, _ = run(ARMS[name], failing_workload(seed=4))
    assert first != other


@pytest.mark.parametrize("name", ["every attempt, losers at once", "every attempt, flow"])
def test_schedulers_that_sync_at_every_attempt_find_room_that_comes_free_while_nothing_happens(
    name: str,
) -> None:
    """More work than the cell holds when the last task arrives: no submission, no sync and no end
    tells those that wait."""
    run(ARMS[name], generate(OPTIONS.model_copy(update={"load_percent": (60, 180)}), 3))


def test_schedulers_that_see_their_freed_room_at_once_use_it_sooner() -> None:
    """In a full cell, where the only room is that of tasks that end, those that hear of it at the
    next sync wait for that."""
    full = generate(OPTIONS.model_copy(update={"load_percent": (100, 140)}), 3)
    delays: dict[bool, float] = {}
    for freed_at_once in (False, True):
        config = arm(
            "state_aligned", group(count=2, strategy="quality_first", freed_at_once=freed_at_once)
        )
        _, records = run(config, full)
        tasks = [r.columns for r in records if r.table == "tasks"]
        delays[freed_at_once] = float(
            np.concatenate([c["commit_us"] - c["submit_us"] for c in tasks]).mean()
        )
    assert delays[True] < delays[False] / 2


@pytest.mark.parametrize("message_us", [0, 1500])
@pytest.mark.parametrize("commit_pipelining", [True, False])
@pytest.mark.parametrize("sync", sync_policies.kinds())
def test_one_scheduler_alone_has_no_conflicts_with_itself(
    sync: str, commit_pipelining: bool, message_us: int
) -> None:
    """Whatever it knows late of its own claims, it knows that it made them."""
    alone = group(
        count=1,
        strategy="quality_first",
        conflict_check="sequence_number",
        commit_pipelining=commit_pipelining,
    )
    crowded = OPTIONS.model_copy(
        update={"machines": 24, "slots_per_machine": 10, "load_percent": (60, 130)}
    )
    records: list[Record] = []
    spec = arm(sync, alone).seeded(3, 1000, 50_000, live=False)
    outcome = run_virtual(
        spec, generate(crowded, 3), 5_000_000, records.append, lambda _: None, message_us
    )
    assert outcome.drained
    commits = [r.columns for r in records if r.table == "commits"]
    claims, *conflicts = (
        int(sum(c[name].sum() for c in commits)) for name in ("claims", "stale", "full", "evicted")
    )
    assert claims > 200 and conflicts == [0, 0, 0]


@pytest.mark.parametrize("message_us", [0, 2000])
@pytest.mark.parametrize("stop_us", [303_000, 700_000])
def test_every_allocation_has_one_end_even_if_the_run_stops_before_or_while_that_is_told(
    message_us: int, stop_us: int
) -> None:
    """Stopped in the middle of things, just after machines failed: starts, ends and losses are
    under way to those who keep the books."""
    workload = replace(failing_workload(), end_us=stop_us)
    records: list[Record] = []
    spec = ARMS["staggered latency-first"].seeded(3, 1000, 1000, live=False)
    outcome = run_virtual(spec, workload, 0, records.append, lambda _: None, message_us)
    assert outcome.ended_us == stop_us
    started: Counter[int] = Counter(
        t for r in records if r.table == "tasks" for t in r.columns["task"].tolist()
    )
    ends = [r.columns for r in records if r.table == "ends"]
    ended = Counter(task for columns in ends for task in columns["task"].tolist())
    due = [at for columns in ends for at in columns["end_us"][columns["due"] == 1].tolist()]
    assert len(started) > 200 and len(due) > 20 and min(due) > outcome.ended_us - 1000
    # Granted tasks whose agent has not heard of it yet have an end and no start.
    assert not started - ended and sum((ended - started).values()) <= (0 if message_us == 0 else 20)


class Witness:
    """Stands before the master and keeps its own books of what every message means for the cell."""

    def __init__(self, master: Participant, workload: Workload) -> None:
        self.master = master
        self.capacity = workload.cell.capacity[:, 0]
        self.request = workload.tasks.request[:, 0]
        self.used: Counter[int] = Counter()
        self.down: set[int] = set()
        self.running: dict[int, tuple[int, int]] = {}  # allocation -> (task, machine)
        self.placed: set[int] = set()
        self.lost: set[int] = set()  # allocations
        self.ended: Counter[int] = Counter()
        self.claims = 0
        self.answered = 0
        self.synced: dict[tuple[int, int], int] = {}
        self.snapshots: Counter[tuple[int, int]] = Counter()

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        effects = self.master.handle(now_us, event)
        if isinstance(event, events.MachinesChanged):
            for machine, up in zip(event.machine.tolist(), event.up.tolist(), strict=True):
                (self.down.discard if up else self.down.add)(machine)
            self.lose()
        if isinstance(event, events.TasksFinished):
            for allocation in event.allocation.tolist():
                self.end(allocation)
        if isinstance(event, events.CommitRequest):
            self.commit(event, effects)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.event, events.SyncReply):
                for delta in effect.event.deltas:
                    key = (effect.to, delta.partition)
                    held = self.synced.get(key, 0)
                    assert delta.from_version in (0, held) and held <= delta.to_version
                    self.snapshots[key] += delta.from_version == 0 < delta.to_version
                    self.synced[key] = delta.to_version
        return effects

    def finish(self, now_us: int) -> list[Record]:
        return self.master.finish(now_us)  # type: ignore[attr-defined,no-any-return]

    def commit(self, event: events.CommitRequest, effects: list[Effect]) -> None:
        asked = event.transaction
        [result] = [
            e.event.result
            for e in effects
            if isinstance(e, Send) and isinstance(e.event, events.CommitReply)
        ]
        started = [
            e.event
            for e in effects
            if isinstance(e, Send) and isinstance(e.event, events.TasksStarted)
        ]
        assert len(result.reason) == len(asked)
        self.claims += len(asked)
        self.answered += int((result.reason == 0).sum()) + int((result.reason != 0).sum())
        granted = np.flatnonzero(result.reason == 0)
        told = [] if not started else started[0].task.tolist()
        assert told == asked.task[granted].tolist()
        for row in granted.tolist():
            task, machine, allocation = (
                int(asked.task[row]),
                int(asked.machine[row]),
                int(result.allocation[row]),
            )
            assert task not in self.placed, "placed twice"
            assert machine not in self.down, "placed on a machine that is down"
            assert allocation not in self.running
            self.used[machine] += int(self.request[task])
            assert self.used[machine] <= self.capacity[machine], "over-committed"
            self.running[allocation] = (task, machine)
            self.placed.add(task)

    def end(self, allocation: int) -> None:
        if allocation in self.lost:
            # its end and its machine's failure crossed: the cell has offered it again already
            return
        task, machine = self.running.pop(allocation)
        self.used[machine] -= int(self.request[task])
        self.ended[task] += 1

    def lose(self) -> None:
        for allocation in [a for a, (_, machine) in self.running.items() if machine in self.down]:
            task, machine = self.running.pop(allocation)
            self.used[machine] -= int(self.request[task])
            self.placed.discard(task)
            self.lost.add(allocation)


@pytest.mark.parametrize("message_us", [0, 1500])
@pytest.mark.parametrize("name", ARMS)
def test_no_task_is_lost_or_doubled_and_no_machine_overfilled(name: str, message_us: int) -> None:
    workload = failing_workload(seed=4)
    config = ARMS[name]
    assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
    agents = [assembly.agent(i) for i in range(assembly.arm.agents)]
    master = assembly.master()
    witness = Witness(master, workload)
    records: list[Record] = []
    participants: dict[int, Participant] = {
        **dict(enumerate(agents)),
        MASTER: witness,
        WORKERS: assembly.workers(),
        COORDINATOR: assembly.coordinator(),
        ARRIVALS: assembly.arrivals(),
        **assembly.cell_side(master.cell),
    }
    deciders = dict(enumerate(agents))
    runtime = VirtualRuntime(participants, deciders, records.append, assembly.codec, message_us)
    runtime.run_until(30_000_000)
    runtime.finish()
    assert sum(agent.queued for agent in agents) == 0
    assert set(witness.ended) == set(range(len(workload.tasks))), "every task ran to its end"
    assert max(witness.ended.values()) == 1, "and only once"
    optimists = {i for i, agent in enumerate(agents) if isinstance(agent, OptimisticAgent)}
    again = [key for key, count in witness.snapshots.items() if count > 1 and key[0] in optimists]
    assert not again, "a partition that a view holds is not sent whole again"
    assert not witness.running and witness.claims == witness.answered > 0
    firsts = np.concatenate(
        [r.columns["task"][r.columns["first"] == 1] for r in records if r.table == "tasks"]
    )
    assert sorted(firsts.tolist()) == list(range(len(workload.tasks))), (
        "every task has one first commit"
    )
    claims = sum(int(r.columns["claims"].sum()) for r in records if r.table == "commits")
    assert claims == witness.claims
    lost = sum(
        int((r.columns["change"] == ChangeKind.LOST).sum()) for r in records if r.table == "ends"
    )
    recommits = sum(int((r.columns["first"] == 0).sum()) for r in records if r.table == "tasks")
    assert lost == recommits > 0, "what a failed machine ran was placed again"


def test_messages_that_take_time_delay_every_commit_by_at_least_two() -> None:
    """Arrival to agent and agent to cell; the order of messages between two participants is kept
    (the invariants above)."""
    message_us = 1500
    config, workload = ARMS["aligned quality-first"], failing_workload()
    delays: dict[int, np.ndarray] = {}
    for way_us in (0, message_us):
        records: list[Record] = []
        spec = config.seeded(3, 1000, 50_000, live=False)
        assert run_virtual(
            spec, workload, 5_000_000, records.append, lambda _: None, way_us
        ).drained
        tasks = [r.columns for r in records if r.table == "tasks"]
        delays[way_us] = np.concatenate([c["commit_us"] - c["submit_us"] for c in tasks])
    # The commit itself is one message after the decision; the record's time is the answer's.
    assert delays[message_us].min() >= delays[0].min() + 2 * message_us
    assert delays[message_us].mean() > delays[0].mean()


def test_the_memory_of_a_run_does_not_wait_for_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[weakref.ref[object]] = []
    make_agent = Assembly.agent

    def witnessed(self: Assembly, *arguments: Any) -> Agent:
        agent = make_agent(self, *arguments)
        made.append(weakref.ref(agent))
        return agent

    monkeypatch.setattr(Assembly, "agent", witnessed)
    gc.disable()
    try:
        run(ARMS["parsync adaptive"], failing_workload())
        assert made and all(agent() is None for agent in made)
    finally:
        gc.enable()


def test_a_run_waits_for_a_batch_that_is_on_its_way_at_the_end_of_the_workload() -> None:
    """A batch is submitted in the last microsecond, when nothing else waits, and the run looks
    whether it is done before the message has arrived."""
    config = arm("state_aligned", group("random", 1))
    workload = generate(OPTIONS.model_copy(update={"load_percent": (20,)}), 3)
    at_us = workload.arrival_us.copy()
    at_us[-1] = workload.end_us - 1
    at_us[:-1] = np.minimum(at_us[:-1], workload.end_us // 2)
    records: list[Record] = []
    outcome = run_virtual(
        config.seeded(3, 1000, workload.end_us // 4, live=False),
        replace(workload, arrival_us=at_us),
        5_000_000,
        records.append,
        lambda _: None,
        message_us=500,
    )
    committed = sum(len(r.columns["task"]) for r in records if r.table == "tasks")
    assert outcome.drained and committed == len(workload.arrival_rows)
