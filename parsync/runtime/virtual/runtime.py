"""The virtual runtime: one process, an event heap on integer microseconds; the same seed gives the
same event log on any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeGuard

from parsync.core._native import EventQueue, NativeParticipant
from parsync.core.addresses import address_name, is_beside_cell
from parsync.core.codec import Codec
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import DecisionDone, SampleDue, Started, SyncReply, SyncRequest
from parsync.core.participant import Decider, Participant
from parsync.metrics.record import Measurements, Record
from parsync.protocols.optimistic.events import SyncDue
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.audit import RunAudit
from parsync.runtime.effects import DecisionInterpreter, RecordListener
from parsync.runtime.protocol_faults import ProtocolPart, blame, hand_out_last_records

Handler = Callable[[int, Event], list[Effect]]
# What goes on whether or not anything happens in the cell.
PERIODIC = (SampleDue, SyncDue, SyncRequest, SyncReply)


class VirtualRuntime:
    """Drives all participants of an arm in virtual time.

    A decision takes the time that its decider's clock gives it. The digest covers every handled
    event in order, with its time and address.

    Args:
        participants: By address.
        deciders: Those of them that take decisions.
        on_record: Called with every Record as it is made.
        codec: Encodes the events of the arm's protocols.
        message_us: How long a message takes from one participant to another. Those that live
            beside the cell share a process, so a message between two of them takes no time.
        parts: Those of the participants that are of protocols which users brought.
        audit: Checks what comes of every event, before it is carried out.
        gathered: Takes over the rows that native participants hand out, which on_record does not
            get then. None: it gets all.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        on_record: RecordListener,
        codec: Codec,
        message_us: int = 0,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        audit: RunAudit | None = None,
        gathered: Measurements | None = None,
    ) -> None:
        self._gathered = gathered
        beside_cell = frozenset(filter(is_beside_cell, participants))
        self._queue = EventQueue(message_us, beside_cell)
        self.send = self._queue.send
        self.set_timer = self._queue.set_timer
        self._message_us = message_us
        self._participants = participants
        self._parts = parts
        self._codec = codec
        self._audit = audit
        self._broken = False
        self._on_record = on_record
        self._deciders = deciders
        self._digest = codec.log_digest()
        for address in sorted(participants):
            self.set_timer(0, 0, Started(epoch=0), address)

    @property
    def digest(self) -> str:
        """Hex digest of all events handled so far."""
        return self._digest.hexdigest()

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self._queue.now_us

    @property
    def events(self) -> int:
        """How many events were handled so far."""
        return self._queue.handled

    def run_until(self, until_us: int) -> None:
        """Handle every event up to and including until_us.

        Raises:
            ProtocolBroken: A participant of a protocol that users brought breaks its contract.
            AgoraError: Another participant sends to an address without a participant, or decides
                without being a decider.
        """
        queue, digest = self._queue, self._digest
        handlers = {
            address: self._handler(address, participant)
            for address, participant in self._participants.items()
        }
        # Kept, the interpreter and the runtime would refer to each other, and the memory of a run
        # that has ended would wait for the garbage collector.
        carry_out = DecisionInterpreter(self, self._participants, self._deciders).carry_out
        try:
            hash_frames, gathered = digest.hash_frames, self._gathered
            queue.run_until(until_us, digest.frames, handlers, carry_out, hash_frames, gathered)
        except Exception as error:
            self._broken = True
            address, event = queue.address, queue.event
            if event is not None:
                self._check_encodable(address, event)
                blame(error, self._parts.get(address), self._participants[address], event)
            raise

    def next_activity_us(self) -> int | None:
        """When the earliest event is due that is not PERIODIC; None if there is none."""
        times_us = (at_us for at_us, _, event in self._queue.waiting() if _is_activity(event))
        return next(times_us, None)

    def rest_until(self, until_us: int, interval_us: int) -> None:
        """As run_until, for a time in which nothing but PERIODIC events are due.

        Agents then synchronise once per interval, just before its end, and at until_us: all
        synchronisations that are due meanwhile are done together, as where a runtime is late. No
        view misses anything by that, because no row of the cell changes.

        Args:
            until_us: The last time in which nothing else is due.
            interval_us: The length of the intervals, which begin at multiples of it.
        """
        before_us = min(4 * self._message_us + 1000, interval_us // 2)  # for question and answer
        self._queue.begin_rest(SyncDue, until_us, interval_us, before_us)
        try:
            self.run_until(until_us)
        finally:
            self._queue.end_rest()

    def _handler(self, address: int, participant: Participant) -> Handler | NativeParticipant:
        handle, audit = participant.handle, self._audit
        if audit is None:
            return participant if _is_native(participant) else handle

        def audited(now_us: int, event: Event) -> list[Effect]:
            effects = handle(now_us, event)
            audit.handled(address, now_us, event, effects)
            return effects

        return audited

    def _check_encodable(self, address: int, event: Event) -> None:
        """Raise ProtocolBroken if the event that a participant was to handle is one of a protocol
        that users brought and cannot be encoded."""
        receiver = self._parts.get(address)
        kinds = {part.protocol for part in self._parts.values()}
        kind = getattr(event, "kind", None) if receiver is None else receiver.protocol
        if kind not in kinds:
            return
        try:
            self._codec.log_frame(address, self.now_us, event)
        except Exception as error:
            name = address_name(address) if receiver is None else receiver.name
            rule = (
                f"{' '.join(str(error).split())}; expected an event of ProtocolSpec.events, with "
                "fields of numbers, arrays and tuples"
            )
            raise ProtocolBroken(kind, name, f"receiving {type(event).__name__}", rule) from error

    def under_way(self, to: int, *kinds: type) -> list[tuple[int, Event]]:
        """The messages of these kinds to a participant that are sent and not delivered, with the
        times they would be, in that order."""
        return [
            (at_us, event)
            for at_us, address, event in self._queue.waiting()
            if address == to and isinstance(event, kinds)
        ]

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        hand_out_last_records(
            self._participants, self._parts, self.now_us, self._on_record, self._broken
        )

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """As DecidingRuntime.finish_decision."""
        # The measured time stays out of the event: a virtual run repeats, log and all.
        self.set_timer(now_us, now_us + decision_us, DecisionDone(decision, 0), address)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)


def _is_native(participant: object) -> TypeGuard[NativeParticipant]:
    """Whether it handles events in native code: a subclass may have a handle() of its own."""
    return getattr(type(participant), "handle", None) is NativeParticipant.handle


def _is_activity(event: Event) -> bool:
    return not isinstance(event, PERIODIC)
