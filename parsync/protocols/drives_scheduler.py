"""What agents that drive a scheduler tell of it and of themselves."""

from __future__ import annotations

from enum import IntEnum

from schedulers.checked import CheckedScheduler
from schedulers.interface import ContractBroken


class DrivesScheduler:
    """A base class of agents (parsync.core.agent) that run a scheduler.

    Attributes:
        name: The group's name and the agent's place in it.
        scheduler: The scheduler.
    """

    name: str
    scheduler: CheckedScheduler

    def doing_text(self, activity: IntEnum, queued: int, rounds: int) -> str:
        """What it does at the moment, in a few words, with its queued tasks and its rounds so
        far."""
        doing = activity.name.lower().replace("_", " ")
        return f"{self.name} {doing}, {queued:,} queued, {rounds:,} rounds"

    @property
    def calling(self) -> str:
        """The scheduler's call that is under way, "" if none is."""
        return self.scheduler.calling

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """The error that says that the scheduler's call takes longer than limit_s; None if no call
        is under way."""
        return self.scheduler.overdue(limit_s)
