"""What an agent is, whatever its protocol: the participant that gets tasks and finds places for
them."""

from __future__ import annotations

from typing import Protocol

from parsync.core.participant import Decider
from schedulers.interface import ContractBroken


class Agent(Decider, Protocol):
    """A participant that owns submitted tasks until they are committed or given up.

    It receives TasksSubmitted from the arrivals, asks the master for places with CommitRequest, and
    records its measurements (parsync.metrics.agent_log). The master tells it of evicted and lost
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
