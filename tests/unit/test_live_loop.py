"""Loops and runtimes of actors with a hand-driven clock, and what makes a process late."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parsync.core.addresses import MASTER
from parsync.core.codec import CORE, encode
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitRequest,
    DecisionDone,
    HeartbeatDue,
    SampleDue,
    Started,
    SyncReply,
    TasksSubmitted,
)
from parsync.metrics.record import Record
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.calls import Unavailable, Waker
from parsync.runtime.live.hosts import leave_out_of_collections
from parsync.runtime.live.loop import (
    LATENESS_US,
    ActorRuntime,
    HostLoop,
    Ticks,
    last_step,
)
from parsync.runtime.live.meters import (
    LoadMeter,
    MeteredDecider,
    StepWait,
    StepWaitRecorder,
    joined_waits,
)
from parsync.runtime.live.plan import LiveOptions, plan_hosts, plan_run
from parsync.runtime.live.steps import STALE, BackgroundSteps, Replaced, Step, StepClient
from shared_state.transaction import Transaction
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import mixed_arm, small_arm, small_workload
from tests.fixtures.steps_at_once import StepsAtOnce

ADDRESSES = Assembly.of(small_arm(), small_workload()).addresses


def not_logged(address: int, at_us: int, event: Event, effects: list[Effect]) -> None:
    """These runtimes keep no log."""


class HandClock:
    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


class Talker:
    """Sends its name at Started and at each timer, and sets the next timer 10 ms on."""

    def __init__(self, name: int) -> None:
        self.name = name
        self.seen: list[tuple[int, Event]] = []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        self.seen.append((now_us, event))
        if isinstance(event, Started | HeartbeatDue):
            return [Send(MASTER, SampleDue(self.name)), SetTimer(now_us + 10_000, HeartbeatDue())]
        return []

    def finish(self, now_us: int) -> list[Record]:
        return []


def runtime_of(
    clock: HandClock, participants: dict[int, Any], deciders: Any = None
) -> ActorRuntime:
    return ActorRuntime(participants, deciders or {}, ADDRESSES, clock, ignore, not_logged)


def run_loop(
    runtime: ActorRuntime,
    clock: HandClock,
    until_us: int,
    call: Callable[[bytes], bytes],
    spacing_us: int = 25_000,
    on_tick: Callable[[int], None] = ignore,
    on_step: Callable[[int], None] = ignore,
    talk_us: int = 0,
) -> None:
    """Run a loop with ticks at 5, 30, 55 ms ... whose steps are answered at once."""
    steps = StepsAtOnce(StepClient(CORE, 0, 1, call))
    ticks, load = Ticks(25_000, 5_000), LoadMeter(0, ignore)
    loop = HostLoop(
        runtime, steps, clock, ticks, 1_000, spacing_us, on_tick, load, on_step, talk_us
    )
    runtime.start()
    while clock.us <= until_us:
        clock.us += max(1, loop.run_once())


def test_one_step_per_tick_carries_everything_in_turn() -> None:
    clock = HandClock()
    talkers = {name: Talker(name) for name in range(3)}
    runtime = runtime_of(clock, talkers)
    steps: list[list[int]] = []
    told: list[tuple[int, bool]] = []

    def call(request: bytes) -> bytes:
        steps.append(
            [
                event.sample
                for _, event in Step.of(CORE, request).messages
                if isinstance(event, SampleDue)
            ]
        )
        return encode(((1, encode(SampleDue(99))),))

    def stepped(now_us: int) -> None:
        told.append((now_us, runtime.has_outgoing))

    run_loop(runtime, clock, 55_000, call, on_step=stepped)
    assert len(steps) == 3
    assert told == [(5_000, True), (30_000, True), (55_000, True)], "before it takes the messages"
    assert all(sorted(step) == sorted([0, 1, 2] * (len(step) // 3)) for step in steps)
    assert [step[0] for step in steps] == [0, 1, 2], (
        "another agent's claims come first at each tick"
    )
    answers = [at_us for at_us, event in talkers[1].seen if event == SampleDue(99)]
    assert answers == [5_000, 30_000, 55_000]


def test_who_talks_steps_on_until_nothing_has_come_for_a_while() -> None:
    clock = HandClock()
    runtime = runtime_of(clock, {0: Talker(0)})
    at_us: list[int] = []

    def call(request: bytes) -> bytes:
        at_us.append(clock.us)
        brings = 30_000 <= clock.us < 33_000
        return encode(((0, encode(SampleDue(99))),) if brings else ())

    def quiet(*_: object) -> list[Effect]:
        return []

    runtime.participants[0].handle = quiet  # type: ignore[method-assign]
    run_loop(runtime, clock, 60_000, call, spacing_us=2_000, talk_us=7_000)
    talk_us = [30_000, 32_000, 34_000, 36_000, 38_000]
    assert at_us == [5_000, *talk_us, 55_000]


def test_what_there_is_to_say_need_not_wait_for_its_tick() -> None:
    clock = HandClock()
    runtime = runtime_of(clock, {0: Talker(0)})
    said: list[tuple[int, int]] = []
    ticked: list[int] = []

    def call(request: bytes) -> bytes:
        said.append((clock.us, len(Step.of(CORE, request).messages)))
        return encode(())

    run_loop(runtime, clock, 56_000, call, 4_000, ticked.append)
    assert [at_us for at_us, _ in said] == [5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 55_000]
    assert [count for _, count in said] == [1, 1, 1, 1, 1, 1, 0]
    assert ticked == [5_000, 30_000, 55_000], "the rest of the actor keeps its regular pace"


def test_the_last_step_leaves_nothing_unsaid() -> None:
    clock = HandClock()
    talker = Talker(0)
    runtime = runtime_of(clock, {0: talker})
    said: list[int] = []

    def call(request: bytes) -> bytes:
        said.append(len(Step.of(CORE, request).messages))
        clock.us += 20_000  # a timer is due by the time the answer comes
        return encode(((0, encode(SampleDue(99))),))

    runtime.start()
    runtime.advance()
    last_step(runtime, BackgroundSteps(StepClient(CORE, 0, 1, call), NoConnection(), Waker()))
    assert said == [1] and talker.seen[-1][1] == SampleDue(99)
    assert runtime.take_outgoing(0) == []


class SlowSteps:
    """A cell that answers when it is told to."""

    number = 0

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.answer: list[tuple[int, Event]] | None = None

    def begin(self, messages: Iterable[tuple[int, Event]]) -> None:
        self.answer = None
        self.begun.append(len(list(messages)))

    def received(self) -> list[tuple[int, Event]] | None:
        return self.answer


def test_a_loop_goes_on_while_the_cell_has_not_answered() -> None:
    clock, talker, steps = HandClock(), Talker(0), SlowSteps()
    runtime = runtime_of(clock, {0: talker})
    records: list[Record] = []
    load = LoadMeter(0, records.append, lambda: 0)
    loop = HostLoop(
        runtime, steps, clock, Ticks(25_000, 0), 1_000, 2_000, lambda now_us: None, load
    )
    runtime.start()
    loop.run_once()
    assert steps.begun == [1]
    while clock.us < 60_000:  # past two ticks and six timers
        wait_us = loop.run_once()
        assert wait_us > 0, "the loop does not turn without something to do"
        clock.us += wait_us
    assert steps.begun == [1], "one step is under way at a time"
    timers = [at_us for at_us, event in talker.seen if isinstance(event, HeartbeatDue)]
    assert timers == [10_000, 20_000, 30_000, 40_000, 50_000]
    steps.answer = [(0, SampleDue(99))]
    loop.run_once()
    assert talker.seen[-1][1] == SampleDue(99)
    assert steps.begun == [1, 6], "what was said meanwhile goes along with the next step"


class NoConnection:
    """Every step is carried out in a thread."""

    def begin(self, request: bytes) -> int | None:
        return None

    def reply(self) -> bytes | None:
        raise AssertionError("nothing was begun")


def test_steps_in_the_background_wake_the_loop_and_raise_where_they_are_received() -> None:
    wake, answers = Waker(), iter([encode(((1, encode(SampleDue(7))),)), STALE])
    others = set(threading.enumerate())
    client = StepClient(CORE, 0, 1, lambda request: next(answers))
    steps = BackgroundSteps(client, NoConnection(), wake)
    (thread,) = set(threading.enumerate()) - others
    assert steps.received() is None
    steps.begin([])
    assert wake.wait(10)
    assert steps.received() == [(1, SampleDue(7))] and steps.number == 1
    assert steps.received() is None
    steps.begin([])
    assert wake.wait(10)
    with pytest.raises(Replaced):
        steps.received()
    del steps
    thread.join(10)
    assert not thread.is_alive(), "nobody uses it"


class Pipe:
    """A connection whose replies are written by hand; broken: they do not come any more."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.broken = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)

    def begin(self, request: bytes) -> int | None:
        if self.broken:
            return None
        self.requests.append(request)
        return self._read

    def answer(self, reply: bytes) -> None:
        os.write(self._write, reply)

    def reply(self) -> bytes | None:
        if self.broken:
            raise Unavailable("lost the connection")
        try:
            return os.read(self._read, 1000)
        except BlockingIOError:
            return None


def test_a_step_goes_over_the_connection_and_its_answer_wakes_the_loop() -> None:
    wake, pipe = Waker(), Pipe()

    def call(request: bytes) -> bytes:
        raise AssertionError("no thread is needed")

    steps = BackgroundSteps(StepClient(CORE, 0, 1, call), pipe, wake)
    for number in (1, 2):
        steps.begin([(MASTER, SampleDue(number))])
        assert Step.of(CORE, pipe.requests[-1]).messages == ((MASTER, SampleDue(number)),)
        assert steps.received() is None and not wake.wait(0.01)
        pipe.answer(encode(((1, encode(SampleDue(7))),)))
        assert wake.wait(10)
        assert steps.received() == [(1, SampleDue(7))]
        assert steps.received() is None and not wake.wait(0.01)


def test_a_step_whose_answer_does_not_come_is_repeated_as_it_was() -> None:
    wake, pipe, repeated = Waker(), Pipe(), list[bytes]()

    def call(request: bytes) -> bytes:
        repeated.append(request)
        return encode(())

    client = StepClient(CORE, 0, 1, call)
    steps = BackgroundSteps(client, pipe, wake)
    steps.begin([(MASTER, SampleDue(1))])
    pipe.broken = True
    assert steps.received() is None
    assert wake.wait(10) and steps.received() == []
    assert repeated == pipe.requests and client.repeats == 1
    assert client.round_trip_us == [], "the first attempt was not answered"
    steps.begin([])
    assert wake.wait(10) and steps.received() == []
    assert len(repeated) == 2 and client.repeats == 1 and len(client.round_trip_us) == 1


def test_a_last_step_waits_for_the_one_under_way() -> None:
    pipe = Pipe()
    steps = BackgroundSteps(StepClient(CORE, 0, 1, lambda request: encode(())), pipe, Waker())
    steps.begin([])
    answers = threading.Timer(0.05, pipe.answer, (encode(((1, encode(SampleDue(7))),)),))
    answers.start()
    send = pipe.begin

    def begin(request: bytes) -> int | None:
        pipe.answer(encode(((1, encode(SampleDue(8))),)))
        return send(request)

    pipe.begin = begin  # type: ignore[method-assign]
    assert steps.last([], 5.0) == [(1, SampleDue(7)), (1, SampleDue(8))]


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("least", [3, 2000])
def test_a_sleep_ends_when_a_watched_descriptor_can_be_read(
    least: int, many_descriptors: None
) -> None:
    wake = Waker()
    read, write = os.pipe()
    watched = fcntl.fcntl(read, fcntl.F_DUPFD, least)
    wake.watch(watched)
    assert not wake.wait(0.001)
    os.write(write, b"1")
    assert wake.wait(10) and wake.wait(10), "until it is read"
    wake.set()
    os.read(watched, 10)
    assert wake.wait(10) and not wake.wait(0.001)
    wake.watch(None)
    os.write(write, b"2")
    assert not wake.wait(0.001), "nobody watches it any more"
    for descriptor in (read, write, watched):
        os.close(descriptor)


def test_a_sleep_ends_when_another_thread_wakes_it() -> None:
    wake = Waker()
    assert not wake.wait(0.0)
    wake.set()
    wake.set()
    assert wake.wait(10) and not wake.wait(0.0), "once"
    timer = threading.Timer(0.02, wake.set)
    timer.start()
    assert wake.wait(10)


def test_missed_ticks_are_not_made_up_for() -> None:
    ticks = Ticks(25_000, 5_000)
    assert not ticks.due(4_999)
    assert ticks.due(5_000)
    assert ticks.due(103_000) and ticks.next_us == 105_000
    assert not ticks.due(104_999) and ticks.due(105_000)


def test_a_decision_is_delivered_no_earlier_than_its_time() -> None:
    clock = HandClock()
    assembly = Assembly.of(small_arm(), small_workload())
    agent, master = assembly.agent(0), assembly.master()
    master.handle(0, Started(0))
    runtime = runtime_of(clock, {0: agent}, {0: agent})
    runtime.start()
    runtime.advance()
    for _, request in runtime.take_outgoing(0):
        for effect in master.handle(0, request):
            if isinstance(effect, Send) and isinstance(effect.event, SyncReply):
                runtime.deliver(0, effect.event)
    task = assembly.workload.arrival_rows[:3]
    runtime.deliver(0, TasksSubmitted(task))
    runtime.advance()
    clock.us = agent.decision_us(0) - 1
    assert clock.us > 0
    runtime.advance()
    assert runtime.take_outgoing(0) == []
    clock.us += 1
    runtime.advance()
    assert len(runtime.take_outgoing(0)) == 1


def test_flow_schedulers_have_a_host_of_their_own() -> None:
    plans = plan_hosts(mixed_arm(), 2, 25_000)
    assert [(plan.name, plan.agents) for plan in plans] == [
        ("schedulers-0", (0,)),
        ("schedulers-1", (1,)),
        ("flow", (2,)),
    ]


def test_waits_are_from_submission_to_the_agent_and_from_decision_to_step() -> None:
    submit_us, one = np.array([1_000, 2_000, 2_000]), np.zeros(3, np.int32)
    meter = StepWaitRecorder(submit_us, one, ["optimistic"])
    meter.handled(5_000, TasksSubmitted(np.array([0, 1, 2])), [])
    assert meter.waited == {"optimistic": StepWait(3, submission_us=4_000 + 3_000 + 3_000)}
    none = np.zeros(0, np.int64)
    claims = Transaction(
        0, 1, np.arange(2), np.zeros(2, np.int32), np.ones((2, 1), np.int64), np.zeros(2, np.int64)
    )
    empty = Transaction(0, 2, none, none.astype(np.int32), none.reshape(0, 1), none)
    meter.handled(6_000, DecisionDone(1, 0), [Send(MASTER, CommitRequest(0, claims))])
    meter.handled(6_100, DecisionDone(2, 0), [Send(MASTER, CommitRequest(0, empty))])
    meter.stepped(6_700)
    meter.stepped(9_000)  # nothing waits
    assert meter.waited["optimistic"].claim_us == 2 * 700
    assert meter.waited["optimistic"].mean_us == (10_000 + 1_400) / 3
    empty_meter = StepWaitRecorder(none, none.astype(np.int32), ["optimistic"])
    assert empty_meter.waited["optimistic"].mean_us is None
    with pytest.raises(IndexError, match="task 3 of 3"):
        meter.handled(7_000, TasksSubmitted(np.array([3])), [])


def test_each_protocol_has_waits_of_its_own() -> None:
    protocol_of = np.array([1, 0, 0], np.int32)
    hosts = [StepWaitRecorder(np.zeros(3, np.int64), protocol_of, ["a", "b"]) for _ in range(2)]
    hosts[0].handled(5_000, TasksSubmitted(np.array([0])), [])
    hosts[1].handled(1_000, TasksSubmitted(np.array([1, 2])), [])
    column = np.zeros(2, np.int32)
    claims = Transaction(
        0, 1, np.array([1, 2]), column, np.ones((2, 1), np.int64), column.astype(np.int64)
    )
    hosts[1].handled(6_000, DecisionDone(1, 0), [Send(MASTER, CommitRequest(0, claims))])
    hosts[1].stepped(6_700)
    assert joined_waits(host.waited for host in hosts) == {
        "a": StepWait(2, submission_us=2_000, claim_us=1_400),
        "b": StepWait(1, submission_us=5_000),
    }
    with pytest.raises(ValueError, match="group_of: 2 of 2 groups"):
        StepWaitRecorder(np.zeros(1, np.int64), np.array([2], np.int32), ["a", "b"])


def test_the_lateness_of_a_stage_is_not_added_to_decisions_that_follow_each_other() -> None:
    arm = small_arm()
    protocol = arm.groups[0].protocol
    options = protocol.options.model_copy(update={"commit_pipelining": True})
    going_on = changed(arm.groups[0], protocol=changed(protocol, options=options))
    assembly = Assembly.of(changed(arm, groups=(going_on,)), small_workload())
    clock, master = HandClock(), assembly.master()
    handled: list[tuple[int, Event]] = []
    agent = assembly.agent(0)
    runtime = ActorRuntime(
        {0: agent},
        {0: agent},
        ADDRESSES,
        clock,
        ignore,
        lambda _, at_us, event, __: handled.append((at_us, event)),
    )
    master.handle(0, Started(0))
    runtime.start()
    runtime.advance()
    for _, sent in runtime.take_outgoing(0):
        for effect in master.handle(0, sent):
            if isinstance(effect, Send) and effect.to == 0:
                runtime.deliver(0, effect.event)
    runtime.advance()
    clock.us = 1_000
    for first in range(0, 70, 10):
        runtime.deliver(0, TasksSubmitted(np.arange(first, first + 10)))
    runtime.advance()
    assert runtime.next_due_us is not None
    taken_us = runtime.next_due_us - 1_000
    # Each decision is delivered late; the next one ends no later for it, up to the limit.
    for late_us in (300, LATENESS_US, 5_000):
        due_us = runtime.next_due_us
        clock.us = due_us + late_us
        runtime.advance()
        decided_us = [at_us for at_us, event in handled if isinstance(event, DecisionDone)]
        assert decided_us[-1] == clock.us
        start_us = max(due_us, clock.us - LATENESS_US)
        while start_us + taken_us <= clock.us:  # so late that another one ended meanwhile
            start_us += taken_us
        assert runtime.next_due_us == start_us + taken_us
    clock.us = runtime.next_due_us + 5_000
    runtime.advance()
    clock.us += 2_000
    runtime.deliver(0, TasksSubmitted(np.arange(70, 80)))
    runtime.advance()
    assert runtime.next_due_us == clock.us + taken_us, (
        "an agent that was idle starts when it is given something"
    )


DECISION_US = 5_000


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


def test_timers_and_decisions_come_in_the_order_of_their_times() -> None:
    clock = HandClock()
    decider = LoneDecider(clock, computing_us=0)
    runtime = runtime_of(clock, {0: decider}, {0: decider})
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
    metered = MeteredDecider(decider, LoadMeter(0, ignore, lambda: 0), measured)
    late: list[tuple[int, int]] = []
    runtime = ActorRuntime(
        {0: decider},
        {0: metered},
        {0},
        clock,
        ignore,
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


@pytest.mark.parametrize("hosts", [1, 2, 3, 9])
def test_every_agent_has_one_host_and_none_steps_when_samples_and_syncs_are_due(hosts: int) -> None:
    options = LiveOptions(Path("log"), hosts=hosts)
    plan = plan_run("run", Assembly.of(small_arm(), small_workload()), options)
    phases = [plan.source_phase_us, *(host.phase_us for host in plan.hosts), plan.workers_phase_us]
    assert phases == sorted(set(phases)) and phases[-1] < plan.tick_us
    assert sorted(agent for host in plan.hosts for agent in host.agents) == list(range(4))
    assert len(plan.hosts) == min(hosts, 4)
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
