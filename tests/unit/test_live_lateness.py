"""What makes a process late, and what does not: a plan that takes long, work at round times, and
garbage collections."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsync.core.effects import Effect, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import DecisionDone, SampleDue, Started
from parsync.metrics.record import Record
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.hosts import leave_out_of_collections
from parsync.runtime.live.loop import ActorRuntime, ignore_record
from parsync.runtime.live.meters import LoadMeter, MeteredDecider
from parsync.runtime.live.plan import LiveOptions, plan_run
from tests.fixtures.live_runs import small_arm, small_workload

DECISION_US = 5_000


class HandClock:
    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


class LoneDecider:
    """Starts a decision and two timers, which are due before and after the decision's end."""

    def __init__(self, clock: HandClock, computing_us: int) -> None:
        self._clock = clock
        self._computing_us = computing_us
        self.seen: list[Event] = []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        self.seen.append(event)
        if isinstance(event, Started):
            return [SetTimer(4_000, SampleDue(4)), SetTimer(6_000, SampleDue(6)), StartDecision(1)]
        return []

    def decide(self, decision: int, now_us: int) -> None:
        self._clock.us += self._computing_us

    def decision_us(self, elapsed_ns: int) -> int:
        return DECISION_US

    def finish(self, now_us: int) -> list[Record]:
        return []


def not_logged(address: int, at_us: int, event: Event, effects: list[Effect]) -> None:
    """These runtimes keep no log."""


def test_timers_and_decisions_come_in_the_order_of_their_times() -> None:
    clock = HandClock()
    decider = LoneDecider(clock, computing_us=0)
    runtime = ActorRuntime({0: decider}, {0: decider}, {0}, clock, ignore_record, not_logged)
    runtime.start()
    runtime.advance()
    clock.us = 7_000
    runtime.advance()
    _, before, decided, after = decider.seen
    assert (before, after) == (SampleDue(4), SampleDue(6)) and isinstance(decided, DecisionDone)


@pytest.mark.parametrize(
    ("measured", "waited_us", "late_us"), [(False, 0, 10), (False, 900, 910), (True, 900, 10)]
)
def test_a_decision_whose_plan_takes_longer_is_late_by_the_time_without_a_processor(
    measured: bool, waited_us: int, late_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    decider = LoneDecider(clock, computing_us=8_000)
    metered = MeteredDecider(decider, LoadMeter(0, ignore_record, lambda: 0), measured)
    late: list[tuple[int, int]] = []
    runtime = ActorRuntime(
        {0: decider},
        {0: metered},
        {0},
        clock,
        ignore_record,
        not_logged,
        on_decision=lambda late_us, decision_us: late.append((late_us, decision_us)),
        metered={0: metered},
    )
    thread_us = iter([0, 8_000 - waited_us])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock.us * 1_000)
    monkeypatch.setattr(time, "thread_time_ns", lambda: next(thread_us) * 1_000)
    runtime.start()
    runtime.handle_messages()
    clock.us += 10
    runtime.advance()
    assert late == [(late_us, DECISION_US)]


@pytest.mark.parametrize("hosts", [1, 2, 3, 4])
def test_no_process_steps_at_a_round_time_when_samples_and_syncs_are_due(hosts: int) -> None:
    options = LiveOptions(Path("log"), hosts=hosts)
    plan = plan_run("run", Assembly.of(small_arm(), small_workload()), options)
    phases = [plan.source_phase_us, *(host.phase_us for host in plan.hosts), plan.workers_phase_us]
    assert phases == sorted(set(phases)) and phases[-1] < plan.tick_us
    for phase_us in phases:
        assert all(phase_us % (plan.tick_us // parts) for parts in (1, 2, 4, 5, 8))


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_full_collection_leaves_out_what_a_process_was_built_with(thawed: None) -> None:
    before = len(gc.get_objects())
    leave_out_of_collections()
    assert len(gc.get_objects()) < before / 10
