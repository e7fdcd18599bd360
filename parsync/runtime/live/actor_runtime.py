"""The runtime of the participants of one actor: their messages, timers and decisions in real time.

Time comes from a clock. Nothing here knows Ray.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from parsync.core.addresses import address_name
from parsync.core.effects import Effect, Send
from parsync.core.event import Event, Priority
from parsync.core.events import DecisionDone, Started
from parsync.core.participant import Decider, Participant
from parsync.metrics.record import Record
from parsync.runtime.effects import DecisionInterpreter, RecordListener, WrongEffect
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.load_meter import MeteredDecider
from parsync.runtime.protocol_faults import ProtocolPart, blame
from parsync.runtime.timers import TimerQueue

LATENESS_US = 2_000

HandledListener = Callable[[int, int, Event, list[Effect]], None]


DecisionListener = Callable[[int, int], None]


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
            effects are carried out. That is what a log needs.
        parts: Those of the participants that are of protocols which users brought.
        on_decision: Called with (late_us, decision_us) of every decision that is delivered.
        metered: The deciders that know when their decisions were over; the others' are over when
            they are due.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        addresses: Collection[int],
        clock: Clock,
        on_record: RecordListener,
        on_handled: HandledListener,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        on_decision: DecisionListener = ignore_decision,
        metered: Mapping[int, MeteredDecider] = MappingProxyType({}),
    ) -> None:
        self.participants = dict(participants)
        self._interpreter = DecisionInterpreter(self, addresses, deciders)
        self._parts = parts
        self._clock = clock
        self._on_record = on_record
        self._on_handled = on_handled
        self._inbox: deque[tuple[int, Event]] = deque()
        self._timers = TimerQueue()
        self._on_decision = on_decision
        self._metered = metered
        self.computed_us = clock.now_us()
        # due, number, address, event, decision time, when it was over
        self._decisions: list[tuple[int, int, int, Event, int, int]] = []
        self._decisions_made = 0
        self._decision_start_us: int | None = None  # of one that follows another at once
        self._outgoing: dict[int, list[Send]] = {address: [] for address in sorted(participants)}

    def start(self, epoch: int = 0) -> None:
        """Deliver every participant's first event. epoch: of an actor that may be restarted."""
        for address in sorted(self.participants):
            self.deliver(address, Started(epoch))

    def deliver(self, address: int, event: Event) -> None:
        """Take a message for a participant. The next advance() handles it."""
        self._inbox.append((address, event))

    def advance(self) -> None:
        """Handle all messages, and timers and decisions that are due in the order of their times,
        until none is left.

        A sync that was due while its agent decided has then been asked for when the agent composes
        its next round.
        """
        while True:
            self.handle_messages()
            now_us = self._clock.now_us()
            decided_us = self._decisions[0][0] if self._decisions else now_us
            timer = self._timers.take_due(min(decided_us, now_us))
            if timer is not None:
                due_us, address, event = timer
                if event.priority == Priority.START:  # of a round that follows a decision
                    self._decision_start_us = max(due_us, now_us - LATENESS_US)
                self._handle(address, event)
                self._decision_start_us = None
            elif self._decisions and decided_us <= now_us:
                due_us, _, address, event, took_us, over_us = heapq.heappop(self._decisions)
                self._decision_start_us = max(due_us, now_us - LATENESS_US)
                self._on_decision(now_us - over_us, took_us)
                self._handle(address, event)
                self._decision_start_us = None
            else:
                return

    def handle_messages(self) -> None:
        """Handle all messages and no timer."""
        while self._inbox:
            address, event = self._inbox.popleft()
            self._handle(address, event)

    @property
    def next_due_us(self) -> int | None:
        """When the earliest timer or decision is due; None if there is none."""
        due_us = self._timers.next_us
        if not self._decisions:
            return due_us
        decided_us = self._decisions[0][0]
        return decided_us if due_us is None else min(due_us, decided_us)

    @property
    def unhandled(self) -> int:
        """How many messages wait to be handled."""
        return len(self._inbox)

    def messages(self) -> list[tuple[int, Event]]:
        """The messages that wait to be handled, or to be taken along by a step."""
        sends = [send for waiting in self._outgoing.values() for send in waiting]
        return [*self._inbox, *((send.to, send.event) for send in sends)]

    @property
    def has_outgoing(self) -> bool:
        """Whether a participant sent something since take_outgoing."""
        return any(self._outgoing.values())

    def take_outgoing(self, rotation: int) -> list[Send]:
        """Take what was sent since the last call.

        Each sender's messages come in the order of sending. Senders come in turn from place
        `rotation` on, or the first would always win.
        """
        senders = list(self._outgoing)
        first = rotation % len(senders)
        taken: list[Send] = []
        for address in senders[first:] + senders[:first]:
            taken += self._outgoing[address]
            self._outgoing[address] = []
        return taken

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        now_us = self._clock.now_us()
        for address in sorted(self.participants):
            for record in self.participants[address].finish(now_us):
                self._on_record(record)

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """As Runtime.send: the next step takes the message along."""
        self._outgoing[sender].append(Send(to, event))

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """As Runtime.set_timer."""
        if event.priority == Priority.START and self._decision_start_us is not None:
            at_us = self._decision_start_us
        self._timers.set(at_us, address, event)

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """As DecidingRuntime.finish_decision."""
        start_us = now_us if self._decision_start_us is None else self._decision_start_us
        done = DecisionDone(decision, elapsed_ns)
        self._decisions_made += 1
        self.computed_us = self._clock.now_us()
        due_us = start_us + decision_us
        meter = self._metered.get(address)
        over_us = due_us if meter is None else meter.over_us(due_us, self.computed_us)
        entry = (due_us, self._decisions_made, address, done, decision_us, over_us)
        heapq.heappush(self._decisions, entry)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)

    def _handle(self, address: int, event: Event) -> None:
        now_us = self._clock.now_us()
        participant = self.participants[address]
        try:
            effects: list[Effect] | None = participant.handle(now_us, event)
            if effects is None:
                raise WrongEffect.none(address_name(address))
            self._on_handled(address, now_us, event, effects)
            self._interpreter.carry_out(now_us, address, effects)
        except Exception as error:
            blame(error, self._parts.get(address), participant, event)
            raise
