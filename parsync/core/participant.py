"""What a runtime drives: participants, those beside the cell, at the machines, and agents."""

from __future__ import annotations

from typing import Any, Protocol

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.metrics.record import Record
from schedulers.interface import ContractBroken


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


class NodeSide(Participant, Protocol):
    """A protocol's queues at the machines, which are part of the worker pool.

    The pool hands them
    - Started at the start of the run, and events of the protocol, their own timers among them;
    - TasksStarted, AllocationsEnded and MachinesChanged: every task of any agent that starts or
      ends, and every machine that goes down or comes up. Tasks that run at time 0 start then, and
      machines are up at time 0. A start comes before its end, and each end exactly once. A machine
      goes down before its tasks end. If the pool has just reported a task as finished when the
      master evicts it, or loses its machine, the task ends as finished here;
    - RoomFreed: machines of which room that was held for offers is free again. Nothing tells them
      that room is held; a claim on it is rejected as HELD;
    - the CommitReply to each transaction that they sent for an agent of the protocol, after the
      starts that follow from it.

    They share the pool's fate: a live run in which the pool's process is killed ends.
    """


class Agent(Decider, Protocol):
    """A participant that owns submitted tasks until they are committed or given up.

    It receives TasksSubmitted from the arrivals, asks the master for places with CommitRequest, and
    records its measurements (parsync.metrics.record). The master tells it of evicted and lost
    tasks with TasksEnded, and of finished ones if its protocol or scheduler asks for that.
    """

    @property
    def name(self) -> str:
        """E.g. latency_first-3: the group's name and the agent's place in it."""
        ...

    @property
    def queued(self) -> int:
        """Tasks that were submitted and are neither committed nor given up."""
        ...

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words. May be asked from another thread."""
        ...

    @property
    def calling(self) -> str:
        """The scheduler's call that is under way, "" if none is. May be asked from another
        thread."""
        ...

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """The error that says that the scheduler's call takes longer than limit_s; None if no call
        is under way."""
        ...
