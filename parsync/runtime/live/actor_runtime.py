"""The runtime of the participants of one actor: their messages, timers and decisions in real time.

Time comes from a clock. Nothing here knows Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from parsync.core._native import ActorLoop
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import DecisionDone, Started
from parsync.core.participant import Decider, Participant
from parsync.metrics.record import Record
from parsync.runtime.effects import DecisionInterpreter, RecordListener
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.handled_log import HandledLog
from parsync.runtime.live.meters import MeteredDecider
from parsync.runtime.live.step_wait import StepWaitRecorder
from parsync.runtime.protocol_faults import ProtocolPart, blame

LATENESS_US = 2_000

HandledListener = Callable[[int, int, Event, list[Effect]], None]
DecisionListener = Callable[[int, int], None]
Messages = list[tuple[int, Event]]


def ignore_record(record: Record) -> None:
    """The listener of a runtime whose participants measure nothing."""


def ignore_decision(late_us: int, decision_us: int) -> None:
    """The listener of a runtime whose lateness nobody measures."""


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
        on_decision: DecisionListener = ignore_decision,
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
