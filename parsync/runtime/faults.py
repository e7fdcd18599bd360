"""Faults of code that users brought: whose fault an exception is, and calls that do not return.

What goes wrong in a user's protocol ends its arm with a ProtocolBroken, which is one line. An error
of our own code is a bug and stays as it is.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.participant import NodeSide, Participant
from parsync.metrics.record import Record
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.effect_interpreter import RecordListener, WrongEffect
from schedulers.checked import Overdue
from schedulers.entry_points import raised
from shared_state.errors import AgoraError
from shared_state.invariants import InvariantViolation

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ProtocolPart:
    """A participant of a protocol that users brought: the protocol, and its name for people."""

    protocol: str
    name: str


def blame(
    error: Exception, part: ProtocolPart | None, participant: object, event: Event | None
) -> None:
    """Raise ProtocolBroken if an exception is the fault of a protocol's participant. Otherwise
    return.

    Args:
        error: What was raised while it was called, or while its effects were carried out.
        part: Which participant it is; None: one of ours.
        participant: The participant itself.
        event: What it was handling; None: the end of the run.
    """
    ours = isinstance(error, (AgoraError, InvariantViolation))
    ours = ours and not isinstance(error, WrongEffect)
    if part is None or ours or isinstance(error, MemoryError):
        return
    when = "at the end of the run" if event is None else f"handling {type(event).__name__}"
    rule = error.what if isinstance(error, WrongEffect) else f"raised {raised(error, participant)}"
    raise ProtocolBroken(part.protocol, part.name, when, rule) from error


def made(part: ProtocolPart | None, make: Callable[[], Made], code: object) -> Made:
    """A new participant. Raises ProtocolBroken if the protocol's code, which is `code`, raises."""
    try:
        return make()
    except (AgoraError, MemoryError):
        raise
    except Exception as error:
        if part is None:
            raise
        rule = f"raised {raised(error, code)}"
        raise ProtocolBroken(part.protocol, part.name, "while it was created", rule) from error


def hand_out_last_records(
    participants: Mapping[int, Participant],
    parts: Mapping[int, ProtocolPart],
    now_us: int,
    on_record: RecordListener,
    broken: bool,
) -> None:
    """Hand out the measurements that participants still hold, by address.

    Args:
        participants: By address.
        parts: Those of the participants that are of protocols which users brought.
        now_us: The end of the run.
        on_record: Called with every Record.
        broken: Whether the run has ended with an error. What then goes wrong in a protocol of a
            user follows from that error and is passed over.

    Raises:
        ProtocolBroken: A participant of a protocol that users brought raises.
    """
    for address in sorted(participants):
        participant = participants[address]
        try:
            for record in participant.finish(now_us):
                on_record(record)
        except Exception as error:
            part = parts.get(address)
            if broken and part is not None:
                continue
            blame(error, part, participant, None)
            raise


class CheckedNodeSide:
    """Hands every call on to the queues at the machines of a protocol that users brought. Raises
    ProtocolBroken if they raise, or return no effects."""

    def __init__(self, node_side: NodeSide, part: ProtocolPart) -> None:
        self.node_side = node_side
        self._part = part

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        """As Participant.handle."""
        try:
            effects: list[Effect] | None = self.node_side.handle(now_us, event)
        except Exception as error:
            blame(error, self._part, self.node_side, event)
            raise
        if effects is None:
            blame(WrongEffect.none(self._part.name), self._part, self.node_side, event)
            return []
        return effects

    def finish(self, now_us: int) -> list[Record]:
        """As Participant.finish."""
        try:
            return self.node_side.finish(now_us)
        except Exception as error:
            blame(error, self._part, self.node_side, None)
            raise


PLAN_LIMIT_S = 60.0  # unless a run says otherwise
LONGEST_TICK_S = 1.0


@contextlib.contextmanager
def plan_limit(limit_s: float, call_under_way: Callable[[], int | None]) -> Iterator[None]:
    """Raise Overdue in a call of a scheduler, within the block, that takes longer than limit_s (to
    a quarter, at most a second, more).

    Takes SIGALRM. Only a process's main thread gets signals: elsewhere nothing is limited.

    Args:
        call_under_way: Returns the number of the call under way, another one for each; None while
            there is none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    tick_s = min(LONGEST_TICK_S, limit_s / 4)
    seen: int | None = None
    ticks = 0

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal seen, ticks
        call = call_under_way()
        ticks = ticks + 1 if call == seen else 0
        seen = call
        if call is not None and ticks * tick_s >= limit_s:
            raise Overdue(limit_s)

    handler_before = signal.signal(signal.SIGALRM, tick)
    timer_before = signal.setitimer(signal.ITIMER_REAL, tick_s, tick_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer_before)
        signal.signal(signal.SIGALRM, handler_before)
