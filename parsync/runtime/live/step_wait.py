"""How long tasks wait for the runtime and not for a decision: until their submission reaches their
agent, and claims until a step takes them along."""

from __future__ import annotations

from dataclasses import dataclass

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import CommitRequest, TasksSubmitted
from shared_state.tasks import Int64


@dataclass(frozen=True, slots=True)
class StepWait:
    """Sums over tasks. tasks: that reached their agent. submission_us: from their submission until
    then. claim_us: of claims (every attempt counts), from the end of the decision until the step
    that carried them."""

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
        """Per task; None if there were none."""
        return (self.submission_us + self.claim_us) / self.tasks if self.tasks else None


NO_WAIT = StepWait()


class StepWaitRecorder:
    """Of one host. submit_us: int64[tasks], by task id. Both parts of a task's wait lie between its
    submission and its commit, so that their sum is less than its delay."""

    def __init__(self, submit_us: Int64) -> None:
        self._submit_us = submit_us
        # (time, claims) of transactions that no step has taken along
        self._claims: list[tuple[int, int]] = []
        self.waited = NO_WAIT

    def handled(self, at_us: int, event: Event, effects: list[Effect]) -> None:
        """An agent handled an event."""
        if isinstance(event, TasksSubmitted) and len(event.task):
            late_us = at_us * len(event.task) - int(self._submit_us[event.task].sum())
            self.waited += StepWait(len(event.task), max(0, late_us))
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.event, CommitRequest):
                self._claims.append((at_us, len(effect.event.transaction)))

    def stepped(self, now_us: int) -> None:
        """A step leaves with everything that was to be said."""
        claim_us = sum((now_us - at_us) * claims for at_us, claims in self._claims)
        self._claims.clear()
        self.waited += StepWait(claim_us=claim_us)
