"""The virtual runtime: one process, an event heap on integer microseconds; the same seed gives the
same event log on any machine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from parsync.core.codec import Codec
from parsync.core.effects import Send, SetTimer, StartDecision
from parsync.core.event import Event, Priority
from parsync.core.events import DecisionDone, Started
from parsync.core.participant import Participant
from parsync.metrics.record import Record
from parsync.runtime.deciding import run_decision

RecordListener = Callable[[Record], None]


class VirtualRuntime:
    """Drives participants by address. A message takes message_us one way; a decision takes the time
    its clock gives it.

    on_record gets every Record as it is made. The digest covers every handled event in order, with
    its time and address.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        on_record: RecordListener,
        codec: Codec,
        message_us: int = 0,
    ) -> None:
        self._message_us = message_us
        self._participants = participants
        self._on_record = on_record
        self._heap: list[tuple[int, int, int, int, Event]] = []
        self._sequence = 0
        self._digest = codec.log_digest()
        self.now_us = 0
        self.events = 0
        for address in sorted(participants):
            self._push(0, Priority.FREE, address, Started(epoch=0))

    @property
    def digest(self) -> str:
        """Hex digest of all events handled so far."""
        return self._digest.hexdigest()

    def run_until(self, until_us: int) -> None:
        """Handle every event up to and including until_us."""
        heap, participants, message_us = self._heap, self._participants, self._message_us
        digest = self._digest.update
        while heap and heap[0][0] <= until_us:
            at_us, _, _, address, event = heapq.heappop(heap)
            self.now_us = at_us
            self.events += 1
            digest(address, at_us, event)
            for effect in participants[address].handle(at_us, event):
                if isinstance(effect, Send):
                    sent = effect.event
                    self._push(at_us + message_us, sent.priority, effect.to, sent)
                elif isinstance(effect, SetTimer):
                    timer = effect.event
                    self._push(max(effect.at_us, at_us), timer.priority, address, timer)
                elif isinstance(effect, Record):
                    self._on_record(effect)
                else:
                    self._decide(at_us, address, effect)
        self.now_us = until_us

    def under_way(self, *kinds: type) -> list[tuple[int, Event]]:
        """The messages of these kinds that are sent and not delivered, with the times they would
        be, in that order."""
        return [
            (at_us, event)
            for at_us, _, _, _, event in sorted(self._heap)
            if isinstance(event, kinds)
        ]

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        for address in sorted(self._participants):
            for record in self._participants[address].finish(self.now_us):
                self._on_record(record)

    def _push(self, at_us: int, priority: Priority, address: int, event: Event) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at_us, priority, self._sequence, address, event))

    def _decide(self, at_us: int, address: int, effect: StartDecision) -> None:
        _, taken_us = run_decision(self._participants[address], effect.decision, at_us)
        # The measured time stays out of the event: a virtual run repeats, log and all.
        self._push(at_us + taken_us, Priority.DECIDE, address, DecisionDone(effect.decision, 0))
