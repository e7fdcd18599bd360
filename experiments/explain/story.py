"""The story of a task in one arm of a run: what it went through from its submission to its end.

All times are integer microseconds of the run. Two clocks meet in a claim: the cell's, at which it
was accepted or rejected, and that of its scheduler, which learns of the outcome a message later. A
delay ends when the scheduler knows that the task is placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class OtherClaim:
    """A claim by another scheduler that the cell committed on the machine.

    Attributes:
        scheduler: Its name.
        start_us: When the cell committed it.
        request: What it took of the machine, by resource dimension.
        by_rival: Whether the scheduler is the one that the cell named as the rival.
    """

    task: int
    scheduler: str
    start_us: int
    request: Mapping[str, int]
    by_rival: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a machine for the task, and its outcome.

    Attributes:
        number: 1, 2, ... since the task was submitted, or lost its place.
        scheduler: The name of the scheduler that made it.
        machine, rack: What it claimed.
        preferred: Whether the task prefers this machine.
        cost: The placement cost of the task there.
        outcome: "committed", or why the cell rejected it: "stale", "full", "evicted" (these are
            conflicts), "machine_down" or "gang".
        is_conflict: Whether it was rejected because another claim was first.
        round_us: When the decision round began; None if that is not on record.
        decision_us: How long the decision took; None if that is not on record.
        state_us: The cell's time of the state that the claim was planned on.
        age_us: How old that state was when the cell handled the claim.
        handled_us: When the cell handled it. If it was committed, the task ran from then on.
        learned_us: When its scheduler learned of the outcome.
        rival: The scheduler that last claimed the machine before, as the cell named it; None if no
            other had, or the outcome is another.
        others: The claims of other schedulers on the machine between the state that this one was
            planned on and its rejection, in order. Those of the microsecond of its rejection may
            have come after it. If the rival has none among them, its last one before.
        cost_us: The delay that a conflict added: the time until the outcome of the next claim for
            the task. 0 if it is no conflict.
        is_bound: The task was never claimed again, and cost_us goes up to when it was given up or
            the run was last seen.
    """

    number: int
    scheduler: str
    machine: int
    rack: int
    preferred: bool
    cost: int
    outcome: str
    is_conflict: bool
    round_us: int | None
    decision_us: int | None
    state_us: int
    age_us: int
    handled_us: int
    learned_us: int
    rival: str | None
    others: tuple[OtherClaim, ...]
    cost_us: int
    is_bound: bool


@dataclass(frozen=True, slots=True)
class End:
    """The end of a stretch in which the task ran.

    Attributes:
        at_us: When.
        machine: Where it ran.
        change: "finished", "evicted" or "lost" (its machine went down).
        due: It still ran when the run ended, and is due to finish then.
    """

    at_us: int
    machine: int
    change: str
    due: bool


@dataclass(frozen=True, slots=True)
class TaskStory:
    """What a task went through.

    Attributes:
        arm: The name of the arm.
        task, job: Ids, rows of the workload's tables.
        gang: Its gang's id; None if it has none.
        gang_tasks: How many tasks its gang has; 0 if it has none.
        scheduler: The name of its scheduler; "" if that is not on record.
        request: What it asks for, by resource dimension.
        preferred_machines: How many machines it prefers.
        submit_us: When it was submitted; None if it ran when the run began, or the run ended
            before.
        initial_machine: Where it ran when the run began; None if it did not.
        claims: Its claims in order, without those that came when it was placed already.
        ends: Its ends in order.
        given_up_us: When it was given up, or sorted out because it can never be placed; None if it
            was not.
        given_up: Why, "" if it was not.
        waits: Why it still waits when the run ends, line by line; none if it does not, or that is
            not on record.
        delay_us: From its submission to its first commit; None if it has none.
        seen_us: How far the run was seen.
    """

    arm: str
    task: int
    job: int
    gang: int | None
    gang_tasks: int
    scheduler: str
    request: Mapping[str, int]
    preferred_machines: int
    submit_us: int | None
    initial_machine: int | None
    claims: tuple[Claim, ...]
    ends: tuple[End, ...]
    given_up_us: int | None
    given_up: str
    waits: tuple[str, ...]
    delay_us: int | None
    seen_us: int

    @property
    def conflicts(self) -> tuple[Claim, ...]:
        """Its claims that were rejected because another was first."""
        return tuple(claim for claim in self.claims if claim.is_conflict)

    @property
    def conflict_us(self) -> int:
        """The delay that all its conflicts added."""
        return sum(claim.cost_us for claim in self.claims)

    @property
    def is_bound(self) -> bool:
        """Whether conflict_us is a lower bound: the task was not placed after its last conflict."""
        return any(claim.is_bound for claim in self.claims)

    @property
    def placed_us(self) -> int | None:
        """When its scheduler learned of its first commit; None if it has none."""
        return next((one.learned_us for one in self.claims if one.outcome == COMMITTED), None)

    @property
    def costs(self) -> tuple[int, int] | None:
        """The placement cost of its first choice and of the place it got first; None if it got
        none."""
        placed = next((one for one in self.claims if one.outcome == COMMITTED), None)
        return None if placed is None else (self.claims[0].cost, placed.cost)

    def __str__(self) -> str:
        from experiments.explain.text import story_text

        return story_text(self)
