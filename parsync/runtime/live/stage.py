"""A stage: the participants of one actor, their timers and their mail. Real time comes from a
clock; nothing here knows Ray."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping

from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event, Priority
from parsync.core.events import DecisionDone, Started
from parsync.core.participant import Participant
from parsync.metrics.record import Record
from parsync.runtime.deciding import run_decision
from parsync.runtime.live.clock import Clock

LATENESS_US = 2_000

RecordListener = Callable[[Record], None]
HandledListener = Callable[[int, int, Event, list[Effect]], None]


def ignore_record(record: Record) -> None:
    """The listener of a stage whose participants measure nothing."""


class Stage:
    """Drives the participants of one actor. deliver() may be called from another thread than the
    rest.

    A decision that follows another at once starts when that one was due, not when this stage came
    to deliver it: decision times are the scheduler's, and the stage's lateness (about a
    millisecond) would add up round after round. It is never delivered before it is computed, and no
    more than LATENESS_US is made
    good: a stage that has too much to do must not pile decisions upon each other.

    Every message leaves the stage: take_outgoing() hands out what was sent since the last call.
    on_handled gets (address, time, event, effects) of every event in order, which is what a log
    needs.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        clock: Clock,
        on_record: RecordListener,
        on_handled: HandledListener,
    ) -> None:
        self.participants = dict(participants)
        self._clock = clock
        self._on_record = on_record
        self._on_handled = on_handled
        self._mail: deque[tuple[int, Event]] = deque()
        self._timers: list[tuple[int, int, int, int, Event]] = []
        self._decisions: list[tuple[int, int, int, Event]] = []
        self._sequence = 0
        self._outgoing: dict[int, list[Send]] = {address: [] for address in sorted(participants)}

    def start(self) -> None:
        """Every participant's first event."""
        for address in sorted(self.participants):
            self.deliver(address, Started(epoch=0))

    def deliver(self, address: int, event: Event) -> None:
        """Mail for a participant, handled by the next advance()."""
        self._mail.append((address, event))

    def advance(self) -> None:
        """Handle all mail, then every timer that is due, then the decisions, until nothing is left.

        Timers go before decisions: a sync that was due while its agent decided has been asked for
        when the next round is cut at the one after it.
        """
        while True:
            self.read_mail()
            now_us = self._clock.now_us()
            if self._timers and self._timers[0][0] <= now_us:
                due_us, priority, _, address, event = heapq.heappop(self._timers)
                # a round that follows a decision starts when that one was due (see above)
                start_us = max(due_us, now_us - LATENESS_US)
                self._handle(address, event, start_us if priority == Priority.START else None)
            elif self._decisions and self._decisions[0][0] <= now_us:
                due_us, _, address, event = heapq.heappop(self._decisions)
                self._handle(address, event, max(due_us, now_us - LATENESS_US))
            else:
                return

    def read_mail(self) -> None:
        """Handle all mail and no timer."""
        while self._mail:
            address, event = self._mail.popleft()
            self._handle(address, event)

    @property
    def next_due_us(self) -> int | None:
        """When the earliest timer or decision is due; None if there is none."""
        return min(
            (queue[0][0] for queue in (self._timers, self._decisions) if queue), default=None
        )

    @property
    def has_outgoing(self) -> bool:
        """True if a participant sent something since take_outgoing."""
        return any(self._outgoing.values())

    def take_outgoing(self, rotation: int) -> list[Send]:
        """What was sent since the last call: each sender's messages in order, senders in turn from
        place `rotation` on (or the first would always win)."""
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

    def _handle(self, address: int, event: Event, decided_us: int | None = None) -> None:
        """decided_us: when the next decision starts if it follows at once."""
        now_us = self._clock.now_us()
        effects = self.participants[address].handle(now_us, event)
        self._on_handled(address, now_us, event, effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._outgoing[address].append(effect)
            elif isinstance(effect, SetTimer):
                self._sequence += 1
                due = effect.event
                at_us = effect.at_us
                if due.priority == Priority.START and decided_us is not None:
                    at_us = decided_us
                timer = (at_us, due.priority, self._sequence, address, due)
                heapq.heappush(self._timers, timer)
            elif isinstance(effect, Record):
                self._on_record(effect)
            else:
                self._decide(now_us, now_us if decided_us is None else decided_us, address, effect)

    def _decide(self, now_us: int, start_us: int, address: int, effect: StartDecision) -> None:
        """Plan at once on the view as it stands; the answer waits until the decision time has
        passed since start_us."""
        elapsed_ns, taken_us = run_decision(self.participants[address], effect.decision, now_us)
        done = DecisionDone(effect.decision, elapsed_ns)
        self._sequence += 1
        heapq.heappush(self._decisions, (start_us + taken_us, self._sequence, address, done))
