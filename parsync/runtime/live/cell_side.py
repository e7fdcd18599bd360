"""The participants that live in the cell's process, driven by the cell's log alone.

They are the master and the cell sides of protocols. Time is that of the steps in the log, so the
same log always leads to the same states and effects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from parsync.core._native import CellLoop, EffectsDigest
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import Started
from parsync.core.participant import Participant
from parsync.metrics.record import Record
from parsync.runtime.effects import EffectInterpreter, RecordListener, no_receiver
from parsync.runtime.protocol_faults import ProtocolPart, blame

HandledListener = Callable[[int, Event, list[Effect]], None]


class CellSideLoop:
    """Drives the participants beside the cell.

    An event is handled to its end: the messages that these participants send each other because of
    it are delivered at once, in the order of sending, before the next event. Timers fire at the
    first step past their time. Subclasses override `handled_listener`, `outgoing`, `placed` and
    `record` to see what happens.

    Args:
        participants: By address, the master among them.
        addresses: Of the run's participants in other processes.
        on_record: Called with every Record as it is made.
        parts: Those of the participants that are of protocols which users brought.
        digest: Covers the messages within the process and the timers, as they are sent and set;
            None: nothing does.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        addresses: Collection[int],
        on_record: RecordListener,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        digest: EffectsDigest | None = None,
    ) -> None:
        self.participants = dict(participants)
        self._parts = parts
        self._on_record = on_record
        self._digest = digest
        self._everyone = frozenset(addresses) | self.participants.keys()
        self._loop = CellLoop(self.participants, addresses)

    @property
    def now_us(self) -> int:
        """The time of the step handled last."""
        return self._loop.now_us

    def start(self, epoch: int, at_us: int) -> None:
        """Begin an epoch: every participant handles Started, and earlier timers are forgotten."""
        self._run(self._loop.start, Started(epoch), at_us)

    def run(self, at_us: int, messages: Iterable[tuple[int, Event]]) -> None:
        """Handle the timers that are due at at_us, then the messages of a step in their order.

        Messages to participants in other processes go to outgoing().

        Raises:
            AgoraError: A message is addressed to nobody.
        """
        self._run(self._loop.run, messages, at_us)

    @property
    def handled_listener(self) -> HandledListener | None:
        """What is called with (address, event, effects) of every event that was handled, before its
        effects are carried out. None: nobody listens, and native participants are faster."""
        return None

    def outgoing(self, to: int, event: Event) -> None:
        """Called with every message to another process, in the order of sending."""

    def placed(self, event: Event) -> None:
        """Called with every message of the master about tasks that start or end."""

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """As Runtime.send."""
        self._loop.send(to, event, sender)

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """As Runtime.set_timer."""
        self._loop.set_timer(at_us, event, address)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)

    def _run(self, run: Callable[..., None], what: object, at_us: int) -> None:
        # Kept, the interpreter and the runtime would refer to each other, and the memory of a run
        # that has ended would wait for the garbage collector.
        rest = EffectInterpreter(self, self._everyone).carry_out
        outgoing, placed, on_handled = self.outgoing, self.placed, self.handled_listener
        try:
            run(what, at_us, rest, outgoing, _refuse, self._digest, placed, on_handled)
        except Exception as error:
            address, event = self._loop.address, self._loop.event
            if event is not None:
                blame(error, self._parts.get(address), self.participants[address], event)
            raise


def _refuse(to: int, event: Event) -> None:
    """Refuse a step's message to nobody."""
    raise no_receiver("a step", to, event)
