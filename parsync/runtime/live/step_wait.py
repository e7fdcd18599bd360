"""The time that tasks wait for the live runtime and not for a decision.

A submission waits until it reaches its agent; claims wait until a step carries them to the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsync.core._native import StepWaits


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


class StepWaitRecorder(StepWaits):
    """Adds up the waits of one host's tasks.

    Both parts of a task's wait lie between its submission and its commit, so their sum is less than
    its delay. `handled` takes note of an event that an agent handled; `stepped` of a step, which
    carries all claims made so far.

    Args:
        submit_us: int64[tasks], by task id.
    """

    @property
    def waited(self) -> StepWait:
        """The sums so far."""
        return StepWait(self.tasks, self.submission_us, self.claim_us)
