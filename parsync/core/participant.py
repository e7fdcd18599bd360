"""What a runtime drives: participants, and among them those that decide."""

from __future__ import annotations

from typing import Any, Protocol

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.metrics.record import Record


class Participant(Protocol):
    """A core of the system, without I/O: no clock, no Ray, no global state.

    The same events at the same times lead to the same effects, which is what a replay relies on.
    """

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        """Handle one event.

        Args:
            now_us: The runtime's time, never earlier than at the last event.
            event: A message or a timer. The first one is Started.

        Returns:
            What the runtime is to carry out, in this order.

        Raises:
            TypeError: It does not handle events of this class.
        """
        ...

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds. Called once, at the end of a run."""
        ...


class CellSide(Participant, Protocol):
    """A participant in the cell's process: the master, or a protocol's own one beside it.

    A killed cell comes back with the state of these participants: from the newest checkpoint, and
    by handling the events of the log after that once more. Then each handles Started with the next
    epoch. Its timers of the epoch before are gone, so Started has to set them again.
    """

    def checkpoint(self) -> Any:
        """The whole state: numbers, bytes, arrays, events, and tuples of these, for a codec."""
        ...

    def restore(self, state: Any) -> None:
        """Take the state of the same run's participant that checkpoint() returned.

        Raises:
            AgoraError: It is the state of another run.
        """
        ...


class Decider(Participant, Protocol):
    """A participant that takes decisions: an agent with a scheduler."""

    def decide(self, decision: int, now_us: int) -> None:
        """Compute the decision of a StartDecision on the state as it stands now."""
        ...

    def decision_us(self, elapsed_ns: int) -> int:
        """The time that the decision just computed takes, in us.

        Args:
            elapsed_ns: The wall time that decide() took; only measured clocks use it.
        """
        ...
