"""The participants that live in the cell's process, driven by the cell's log alone.

They are the master and the cell sides of protocols. Time is that of the steps in the log, so the
same log always leads to the same states and effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from parsync.core.addresses import address_name
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import Started
from parsync.core.participant import Participant
from parsync.metrics.record import Record
from parsync.runtime.effects import EffectInterpreter, RecordListener, WrongEffect, no_receiver
from parsync.runtime.protocol_faults import ProtocolPart, blame
from parsync.runtime.timers import TimerQueue


class CellSideLoop:
    """Drives the participants beside the cell.

    An event is handled to its end: the messages that these participants send each other because of
    it are delivered at once, in the order of sending, before the next event. Timers fire at the
    first step past their time. Subclasses override `handled`, `outgoing` and the methods of the
    Runtime protocol to see what happens.

    Args:
        participants: By address, the master among them.
        addresses: Of the run's participants in other processes.
        on_record: Called with every Record as it is made.
        parts: Those of the participants that are of protocols which users brought.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        addresses: Collection[int],
        on_record: RecordListener,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
    ) -> None:
        self.participants = dict(participants)
        self._parts = parts
        self.now_us = 0
        self._addresses = frozenset(addresses)
        self._on_record = on_record
        everyone = self._addresses | self.participants.keys()
        self._interpreter = EffectInterpreter(self, everyone)
        self._inbox: deque[tuple[int, Event]] = deque()
        self._timers = TimerQueue()

    def start(self, epoch: int, at_us: int) -> None:
        """Begin an epoch: every participant handles Started, and earlier timers are forgotten."""
        self.now_us = max(self.now_us, at_us)
        self._timers.clear()
        for address in sorted(self.participants):
            self._inbox.append((address, Started(epoch)))
        self._handle_messages()

    def run(self, at_us: int, messages: Iterable[tuple[int, Event]]) -> None:
        """Handle the timers that are due at at_us, then the messages of a step in their order.

        Messages to participants in other processes go to outgoing().

        Raises:
            AgoraError: A message is addressed to nobody.
        """
        self.now_us = max(self.now_us, at_us)
        while due := self._timers.take_due(self.now_us):
            _, address, event = due
            self._inbox.append((address, event))
            self._handle_messages()
        for to, event in messages:
            if to in self.participants:
                self._inbox.append((to, event))
                self._handle_messages()
            elif to in self._addresses:
                self.outgoing(to, event)
            else:
                raise no_receiver("a step", to, event)

    def handled(self, address: int, event: Event, effects: list[Effect]) -> None:
        """Called with every event that was handled, before its effects are carried out."""

    def outgoing(self, to: int, event: Event) -> None:
        """Called with every message to another process, in the order of sending."""

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """As Runtime.send."""
        if to in self.participants:
            self._inbox.append((to, event))
        else:
            self.outgoing(to, event)

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """As Runtime.set_timer."""
        self._timers.set(at_us, address, event)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)

    def _handle_messages(self) -> None:
        while self._inbox:
            address, event = self._inbox.popleft()
            participant = self.participants[address]
            try:
                effects: list[Effect] | None = participant.handle(self.now_us, event)
                if effects is None:
                    raise WrongEffect.none(address_name(address))
                self.handled(address, event, effects)
                self._interpreter.carry_out(self.now_us, address, effects)
            except Exception as error:
                blame(error, self._parts.get(address), participant, event)
                raise
