"""The time that tasks wait for the live runtime and not for a decision.

A submission waits until it reaches its agent; claims wait until a step carries them to the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import CommitRequest, TasksSubmitted
from shared_state.tasks import Int64


@dataclass(frozen=True, slots=True)
class StepWait:
    """Sums over tasks.

    Attributes:
        tasks: That reached their agent.
        submission_us: From their submission until then.
        claim_us: From the end of a decision until the step that carried its claims; every attempt
            counts.
    """

    tasks: int = 0
    submission_us: int = 0
    claim_us: int = 0

    def __add__(self, other: StepWait) -> StepWait:
        return StepWait(
            self.tasks + other.tasks,
            self.submission_us + other.submission_us,
            self.claim_us + other.claim_us,
        )

    @property
    def mean_us(self) -> float | None:
        """The mean wait of a task; None if there were no tasks."""
        return (self.submission_us + self.claim_us) / self.tasks if self.tasks else None


NO_WAIT = StepWait()


class StepWaitRecorder:
    """Adds up the waits of one host's tasks.

    Both parts of a task's wait lie between its submission and its commit, so their sum is less than
    its delay.

    Args:
        submit_us: int64[tasks], by task id.
    """

    def __init__(self, submit_us: Int64) -> None:
        self._submit_us = submit_us
        # (time, claims) of transactions that no step has taken along
        self._claims: list[tuple[int, int]] = []
        self.waited = NO_WAIT

    def handled(self, at_us: int, event: Event, effects: list[Effect]) -> None:
        """Take note of an event that an agent handled."""
        if isinstance(event, TasksSubmitted) and len(event.task):
            late_us = at_us * len(event.task) - int(self._submit_us[event.task].sum())
            self.waited += StepWait(len(event.task), max(0, late_us))
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.event, CommitRequest):
                self._claims.append((at_us, len(effect.event.transaction)))

    def stepped(self, now_us: int) -> None:
        """Take note of a step, which carries all claims made so far."""
        claim_us = sum((now_us - at_us) * claims for at_us, claims in self._claims)
        self._claims.clear()
        self.waited += StepWait(claim_us=claim_us)
