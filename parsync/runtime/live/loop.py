"""The loop of an actor: it drives the actor's participants in real time, and steps to the cell.

ActorRuntime handles messages, timers and decisions. HostLoop decides when the actor steps. Time
comes from a clock, and the steps from whoever makes them: nothing here knows Ray, and the virtual
runtime drives the same loops (parsync/runtime/virtual/stepped.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from parsync.core._native import ActorLoop
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import DecisionDone, Started
from parsync.core.participant import Decider, Participant
from parsync.metrics.record import Record
from parsync.runtime.effect_interpreter import DecisionInterpreter, RecordListener, ignore
from parsync.runtime.faults import ProtocolPart, blame
from parsync.runtime.live.calls import Waker
from parsync.runtime.live.logs import HandledLog
from parsync.runtime.live.meters import LoadMeter, MeteredDecider, StepWaitRecorder
from parsync.runtime.live.steps import BackgroundSteps, Messages, Steps

# A decision that follows another at once is back-dated by at most so much (ActorRuntime).
LATENESS_US = 2_000
# Timers of scheduler hosts are looked at no more often than this between ticks. A decision is at
# most so much late for it.
WAKE_US = 300
LONGEST_WAIT_US = 100_000
LAST_STEP_S = 5.0

HandledListener = Callable[[int, int, Event, list[Effect]], None]
DecisionListener = Callable[[int, int], None]


class Clock(Protocol):
    """What a loop needs of time; tests put a hand-driven one in its place."""

    def now_us(self) -> int: ...


class LiveClock:
    """The run's clock: microseconds since an origin that every actor of a run shares, never going
    back within an actor.

    Wall time is read once, then the monotonic clock carries on. Before begin() it shows BEFORE_US.
    """

    BEFORE_US = -1_000_000_000

    def __init__(self) -> None:
        self._shift_ns: int | None = None

    def begin(self, origin_ns: int) -> None:
        """Set the run's time 0, from which on times are run times.

        Args:
            origin_ns: The wall-clock time of the run's time 0, in ns since the Unix epoch; it may
                lie ahead.
        """
        self._shift_ns = time.time_ns() - time.monotonic_ns() - origin_ns

    def now_us(self) -> int:
        """The run time, negative before the run begins."""
        if self._shift_ns is None:
            return self.BEFORE_US
        return (time.monotonic_ns() + self._shift_ns) // 1000


class ActorRuntime:
    """Drives the participants of one actor in real time.

    Decisions are delivered about a millisecond late. If the next decision started at that moment,
    the lateness would add up round after round and lower a scheduler's modelled capacity. So a
    decision that follows another at once starts when that one was due. At most LATENESS_US are
    compensated: longer delays mean that the actor is overloaded, which its figures must show. A
    decision is never delivered before it is computed.

    Every message leaves the runtime, also one to a participant of the same actor. The cell delivers
    all messages, and its log holds them in one order. take_outgoing() returns what was sent since
    the last call. deliver() may be called from another thread than the rest.

    Args:
        participants: By address.
        deciders: Those of them that take decisions.
        addresses: Of all participants of the run.
        clock: The actor's.
        on_record: Called with every Record as it is made.
        on_handled: Called with (address, time, event, effects) of every event in order, before the
            effects are carried out; None: nobody listens, and native participants are faster.
        parts: Those of the participants that are of protocols which users brought.
        on_decision: Called with (late_us, decision_us) of every decision that is delivered.
        metered: The deciders that know when their decisions were over; the others' are over when
            they are due.
        log: Of every event in order, written before its effects are carried out; None: there is
            none.
        waits: Takes note of every event as well; None: nobody does.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        addresses: Collection[int],
        clock: Clock,
        on_record: RecordListener,
        on_handled: HandledListener | None = None,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        on_decision: DecisionListener = ignore,
        metered: Mapping[int, MeteredDecider] = MappingProxyType({}),
        log: HandledLog | None = None,
        waits: StepWaitRecorder | None = None,
    ) -> None:
        self.participants = dict(sorted(participants.items()))
        self._loop = ActorLoop(self.participants, addresses, LATENESS_US)
        self._addresses = addresses
        self._deciders = deciders
        self._parts = parts
        self._clock = clock
        self._on_record = on_record
        self._log = log
        self._waits = waits
        self._on_handled = on_handled
        self._on_decision = on_decision
        self._metered = metered
        self.computed_us = clock.now_us()

    def start(self, epoch: int = 0) -> None:
        """Deliver every participant's first event. epoch: of an actor that may be restarted."""
        for address in sorted(self.participants):
            self.deliver(address, Started(epoch))

    def deliver(self, address: int, event: Event) -> None:
        """Take a message for a participant. The next advance() handles it."""
        self._loop.deliver(address, event)

    def advance(self) -> None:
        """Handle all messages, and timers and decisions that are due in the order of their times,
        until none is left.

        A sync that was due while its agent decided has then been asked for when the agent composes
        its next round.
        """
        self._run(self._loop.advance)

    def handle_messages(self) -> None:
        """Handle all messages and no timer."""
        self._run(self._loop.handle_messages)

    @property
    def next_due_us(self) -> int | None:
        """When the earliest timer or decision is due; None if there is none."""
        return self._loop.next_due_us

    @property
    def unhandled(self) -> int:
        """How many messages wait to be handled."""
        return self._loop.unhandled

    def messages(self) -> Messages:
        """The messages that wait to be handled, or to be taken along by a step."""
        return self._loop.messages()

    @property
    def has_outgoing(self) -> bool:
        """Whether a participant sent something since take_outgoing."""
        return self._loop.has_outgoing

    def take_outgoing(self, rotation: int) -> Messages:
        """Take what was sent since the last call, as (to, event).

        Each sender's messages come in the order of sending. Senders come in turn from place
        `rotation` on, or the first would always win.
        """
        return self._loop.take_outgoing(rotation)

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        now_us = self._clock.now_us()
        for address in sorted(self.participants):
            for record in self.participants[address].finish(now_us):
                self._on_record(record)

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """As Runtime.send: the next step takes the message along."""
        self._loop.send(to, event, sender)

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """As Runtime.set_timer."""
        self._loop.set_timer(at_us, event, address)

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """As DecidingRuntime.finish_decision."""
        follows_us = self._loop.decision_start_us
        start_us = now_us if follows_us is None else follows_us
        self.computed_us = self._clock.now_us()
        due_us = start_us + decision_us
        meter = self._metered.get(address)
        over_us = due_us if meter is None else meter.over_us(due_us, self.computed_us)
        done = DecisionDone(decision, elapsed_ns)
        self._loop.add_decision(due_us, address, done, decision_us, over_us)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)

    def _run(self, run: Callable[..., None]) -> None:
        """Let the loop handle what is due."""
        # Kept, the interpreter and the runtime would refer to each other, and the memory of a run
        # that has ended would wait for the garbage collector.
        rest = DecisionInterpreter(self, self._addresses, self._deciders).carry_out
        log = self._log
        frames, write = (None, None) if log is None else (log.frames, log.write)
        now_us, on_decision = self._clock.now_us, self._on_decision
        try:
            run(now_us, rest, on_decision, frames, write, self._waits, self._on_handled)
        except Exception as error:
            address, event = self._loop.address, self._loop.event
            if event is not None:
                blame(error, self._parts.get(address), self.participants[address], event)
            raise


class Ticks:
    """The times at which an actor steps: tick k is at k * tick_us + phase_us.

    Ticks that pass while the actor is busy are skipped.
    """

    def __init__(self, tick_us: int, phase_us: int) -> None:
        self.tick_us = tick_us
        self._phase_us = phase_us
        self.next_us = phase_us

    def due(self, now_us: int) -> bool:
        """Return True once per tick that has come."""
        if now_us < self.next_us:
            return False
        self.next_us = (
            (now_us - self._phase_us) // self.tick_us + 1
        ) * self.tick_us + self._phase_us
        return True


class HostLoop:
    """The loop of every actor but the cell.

    A step carries what the actor's participants have sent to the cell, and brings back what the
    cell has for them. One step per tick would be the least work. But a decision that ends just
    after a tick would then wait for the next one before its claims leave, and a commit cycle is as
    short as a decision: at a gap of G/N = 25 ms between syncs, such waits halve an agent's
    capacity. So a loop with something to send steps as soon as spacing_us have passed since the
    last step, and does not wait for the tick. The spacing keeps a busy host from stepping for every
    message. A host with nothing to send steps at each tick all the same, because its messages come
    with the reply.

    Schedulers and queues at the machines ask each other several times before a task starts. So
    with talk_us, a step that carries or brings messages is followed by others in spacing_us, until
    none has done so for talk_us.

    One step is under way at a time. The loop does not wait for its answer: it goes on to handle
    messages and timers and to deliver decisions. If the cell is away, the step is repeated until it
    is back.

    Args:
        runtime: The actor's participants.
        steps: Where their messages go. An answer wakes the loop.
        clock: The actor's.
        ticks: The times of the regular steps.
        wake_us: Timers between ticks are looked at no more often than this.
        spacing_us: The least time between steps that do not wait for their tick; a tick or more:
            every step waits.
        on_tick: Called with the time after each tick's step.
        load: The actor's meter.
        talk_us: How long steps do not wait for their tick after one with messages.
        on_step: Called with the time just before each step.
    """

    def __init__(
        self,
        runtime: ActorRuntime,
        steps: Steps,
        clock: Clock,
        ticks: Ticks,
        wake_us: int,
        spacing_us: int,
        on_tick: Callable[[int], None],
        load: LoadMeter,
        on_step: Callable[[int], None] = ignore,
        talk_us: int = 0,
    ) -> None:
        self._runtime = runtime
        self._steps = steps
        self._clock = clock
        self._ticks = ticks
        self._on_step = on_step
        self._wake_us = wake_us
        self._spacing_us = spacing_us
        # the earliest time of a step that does not wait for its tick
        self._early_us = ticks.next_us
        self._talk_us = talk_us
        self._talks_until_us = clock.now_us()
        self._on_tick = on_tick
        self._load = load
        self._begun_us: int | None = None  # of the step under way
        self._for_tick = False  # whether it is a tick's
        self._answered_us = clock.now_us()

    def run_once(self) -> int:
        """Do what is due.

        Returns:
            How long to wait until something may be due again, in us.

        Raises:
            AgoraError: The cell stays away, or a participant sends to nobody.
        """
        self._load.unhandled(self._runtime.unhandled)
        self._runtime.advance()
        self._finish_step()
        now_us = self._clock.now_us()
        if self._begun_us is None:
            due_us = self._ticks.next_us
            self._for_tick = self._ticks.due(now_us)
            if self._for_tick:
                self._load.tick(self._late_us(due_us, now_us))
            if self._for_tick or (self._has_cause(now_us) and now_us >= self._early_us):
                self._begin_step(now_us)
                self._finish_step()
        return self._wait_us()

    def _late_us(self, due_us: int, now_us: int) -> int:
        """How late a tick is. The time of decisions contains that of computing their plans, and a
        step that was under way serves a tick as well, unless it took another tick's time."""
        answered_us = min(self._answered_us, due_us + self._ticks.tick_us)
        return now_us - max(due_us, self._runtime.computed_us, answered_us)

    def _has_cause(self, now_us: int) -> bool:
        """Whether there is a reason to step before the tick."""
        return self._runtime.has_outgoing or now_us < self._talks_until_us

    def _begin_step(self, now_us: int) -> None:
        self._early_us = now_us + self._spacing_us
        self._on_step(now_us)
        self._begun_us = now_us
        outgoing = self._runtime.take_outgoing(self._steps.number)
        if outgoing:
            self._talks_until_us = now_us + self._talk_us
        self._steps.begin(outgoing)

    def _finish_step(self) -> None:
        """Handle what the step under way brought, if its answer is there."""
        received = None if self._begun_us is None else self._steps.received()
        if self._begun_us is None or received is None:
            return
        self._answered_us = self._clock.now_us()
        self._load.step(self._answered_us - self._begun_us)
        self._begun_us = None
        if received:
            self._talks_until_us = self._answered_us + self._talk_us
        for address, event in received:
            self._runtime.deliver(address, event)
        self._runtime.advance()
        if self._for_tick:
            now_us = self._clock.now_us()
            self._on_tick(now_us)
            self._load.sample(now_us)

    def _wait_us(self) -> int:
        now_us = self._clock.now_us()
        if self._begun_us is not None:
            wait_us = LONGEST_WAIT_US  # the answer wakes the loop
        else:
            wait_us = self._ticks.next_us - now_us
            if self._has_cause(now_us):
                wait_us = min(wait_us, max(0, self._early_us - now_us))
        due_us = self._runtime.next_due_us
        if due_us is not None:
            wait_us = min(wait_us, max(due_us - now_us, self._wake_us))
        return max(0, wait_us)


def last_step(runtime: ActorRuntime, steps: BackgroundSteps) -> None:
    """Step once more after the loop has ended, and handle the cell's answers.

    No timer fires: what it led to could not be sent any more.
    """
    for address, event in steps.last(runtime.take_outgoing(steps.number), LAST_STEP_S):
        runtime.deliver(address, event)
    runtime.handle_messages()


class LoopThread:
    """A thread that runs an actor's loop until it is stopped.

    Attributes:
        wake: Lets a sleeping loop run at once.
        error: What ended the loop early, if anything did.
    """

    def __init__(self, name: str, body: Callable[[threading.Event, Waker], None]) -> None:
        self.wake = Waker()
        self._stopping = threading.Event()
        self._body = body
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._body(self._stopping, self.wake)
        except BaseException as error:  # kept for the question that comes next
            self.error = error

    def stop(self, timeout_s: float) -> bool:
        """Ask the loop to end, and wait for it. Returns whether it has ended."""
        self._stopping.set()
        self.wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def run_loop(
    run_once: Callable[[], int], stopping: threading.Event, wake: Waker, load: LoadMeter
) -> None:
    """Call run_once until `stopping` is set, and sleep in between for as long as it returns, or
    until something wakes it. The meter learns how much longer each sleep was than asked for."""
    while not stopping.is_set():
        wait_us = run_once()
        if wait_us > 0:
            begun_ns = time.monotonic_ns()
            if not wake.wait(wait_us / 1e6):
                load.slept((time.monotonic_ns() - begun_ns) // 1000 - wait_us)
