"""The story of a task in one arm of a run: what it went through from its submission to its end, and
that as lines of text.

All times are integer microseconds of the run. Two clocks meet in a claim: the cell's, at which it
was accepted or rejected, and that of its scheduler, which learns of the outcome a message later. A
delay ends when the scheduler knows that the task is placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from parsync.metrics.quantity import counted, duration
from parsync.runtime.arm_directory import seconds

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
        outcome: "committed", or why the cell rejected it: "stale", "full", "evicted", "held"
            (these are conflicts), "machine_down" or "gang".
        is_conflict: Whether it was rejected because another claim was first.
        round_us: When the decision round began; None if that is not on record.
        decision_us: How long the decision took; None if that is not on record.
        state_us: The cell's time of the state that the claim was planned on.
        age_us: How old that state was when the cell handled the claim.
        handled_us: When the cell handled it. If it was committed, the task ran from then on.
        learned_us: When its scheduler learned of the outcome.
        rival: The scheduler that last claimed the machine before, or for which its room was held,
            as the cell named it; None if no other had, or the outcome is another.
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
    rival: str | None = None
    others: tuple[OtherClaim, ...] = ()
    cost_us: int = 0
    is_bound: bool = False


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
        return story_text(self)


MOST_COMMITS = 4  # of others on a machine, that are shown

_REASONS = {
    "stale": "the machine had changed",
    "full": "no room left",
    "held": "the room was held for an offer",
    "evicted": "a task it was to evict was gone, or another scheduler's",
    "machine_down": "the machine was down",
    "gang": "another task of its gang found no place",
}


def story_text(story: TaskStory) -> str:
    """A story, one line for each thing that happened, and further ones that explain it."""
    wants = (
        f"prefers {counted(story.preferred_machines, 'machine')}"
        if story.preferred_machines
        else "prefers no machine"
    )
    by = f", scheduler {story.scheduler}" if story.scheduler else ""
    unit = f"job {story.job}"
    if story.gang is not None:
        unit += f" and of gang {story.gang} with {counted(story.gang_tasks, 'task')}"
    task = f"Task {story.task} of {unit} (asks for {_amounts(story.request)}; {wants})"
    lines = [f"{task} in arm '{story.arm}'{by}", *(f"  {one}" for one in _verdict(story))]
    for at_us, text, details in sorted(_events(story), key=lambda event: event[0]):
        lines.append(f"{seconds(at_us):>15}  {text}")
        lines += [f"{'':>15}    {detail}" for detail in details]
    return "\n".join(lines)


def worst_table(stories: Sequence[TaskStory]) -> str:
    """A table of tasks: what their conflicts cost."""
    names = ("Task", "Arm", "Scheduler", "Conflicts", "Delay added", "Delay", "Placement cost")
    rows = [names, *(_row(story) for story in stories)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(names))]
    to_the_left = (1, 2)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in to_the_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _row(story: TaskStory) -> tuple[str, ...]:
    costs = story.costs
    return (
        str(story.task),
        story.arm,
        story.scheduler,
        str(len(story.conflicts)),
        ("≥ " if story.is_bound else "") + duration(story.conflict_us),
        "never placed" if story.delay_us is None else duration(story.delay_us),
        "–" if costs is None else _change(*costs),
    )


def _verdict(story: TaskStory) -> Iterator[str]:
    """What conflicts cost the task, in a few sentences."""
    delay = None if story.delay_us is None else duration(story.delay_us)
    if not story.claims:
        if story.initial_machine is not None:
            yield "It ran when the run began, and was never claimed."
        elif story.submit_us is None:
            yield "The run ended before it was submitted."
        elif story.given_up_us is not None:
            yield f"No scheduler claimed a machine for it: it is {story.given_up}."
        else:
            yield "No scheduler claimed a machine for it."
    elif not story.conflicts:
        yield "It had no conflict." + ("" if delay is None else f" Its delay was {delay}.")
    else:
        what = counted(len(story.conflicts), "conflict")
        added = ("at least " if story.is_bound else "") + duration(story.conflict_us)
        yield f"{what} added {added}" + ("." if delay is None else f" to its delay of {delay}.")
        if story.costs is None:
            yield "It was never placed."
        else:
            first, placed = story.costs
            yield (
                f"Its placement costs {placed:,}; its first choice would have cost "
                + (f"{first:,}." if first != placed else "the same.")
            )


_Event = tuple[int, str, Sequence[str]]


def _events(story: TaskStory) -> Iterator[_Event]:
    """Everything that happened, not in order: when, what, and lines that explain it."""
    if story.initial_machine is not None:
        yield 0, f"runs on machine {story.initial_machine} as the run begins", ()
    elif story.submit_us is not None:
        yield story.submit_us, "submitted", ()
    for claim in story.claims:
        yield claim.learned_us, _claim(claim), tuple(_details(claim))
    for end in story.ends:
        yield end.at_us, _end(end), ()
    if story.given_up_us is not None:
        yield story.given_up_us, f"taken out of the queue: {story.given_up}", ()
    elif story.submit_us is not None and story.placed_us is None:
        yield story.seen_us, "still waits when the run ends", story.waits


def _claim(claim: Claim) -> str:
    where = f"machine {claim.machine} (rack {claim.rack}, cost {claim.cost:,}"
    where += ", preferred)" if claim.preferred else ")"
    by = f"claim {claim.number} by {claim.scheduler}, {where}"
    if claim.outcome == COMMITTED:
        return f"{by}: committed"
    return f"{by}: rejected ({_REASONS[claim.outcome]})"


def _details(claim: Claim) -> Iterator[str]:
    """What explains the outcome of a claim, and what it cost."""
    old = f"planned on a state that was {duration(claim.age_us)} old when the cell"
    if claim.outcome == COMMITTED:
        yield f"{old} committed it; it runs from {seconds(claim.handled_us)} on"
        return
    yield f"{old} rejected it at {seconds(claim.handled_us)}"
    if claim.decision_us is not None and claim.round_us is not None:
        began = f"the decision began at {seconds(claim.round_us)}"
        yield f"{began} and took {duration(claim.decision_us)}"
    if not claim.is_conflict:
        return
    yield from _rivals(claim)
    if claim.is_bound:
        yield f"cost: at least {duration(claim.cost_us)}; there was no further claim for the task"
    else:
        yield f"cost: {duration(claim.cost_us)}, until the outcome of the next claim"


def _rivals(claim: Claim) -> Iterator[str]:
    """Who had claimed the machine meanwhile."""
    if claim.rival is None and claim.outcome in ("stale", "full"):
        yield f"no other scheduler had claimed machine {claim.machine}"
    elif claim.outcome == "held":
        yield f"it was held for {claim.rival or 'its own scheduler'}"
    elif claim.rival is not None and not any(one.by_rival for one in claim.others):
        yield f"the rival is {claim.rival}; which task it placed there is not on record"
    commits = [
        list(claims)
        for _, claims in groupby(claim.others, key=lambda one: (one.start_us, one.scheduler))
    ]
    hidden = len(commits) - MOST_COMMITS
    if hidden > 0:
        yield f"{counted(hidden, 'commit')} of others there after that state, and then:"
    yield from (_others(claims, claim) for claims in commits[-MOST_COMMITS:])


def _others(claims: Sequence[OtherClaim], claim: Claim) -> str:
    """The claims of one scheduler that were committed together."""
    first = claims[0]
    who = f"the rival {first.scheduler}" if first.by_rival else first.scheduler
    tasks = ", ".join(str(one.task) for one in claims)
    what = f"{who} placed task{'' if len(claims) == 1 else 's'} {tasks} there"
    before_us = claim.handled_us - first.start_us
    when = f"{duration(before_us)} earlier" if before_us else "in the same microsecond"
    known = ""
    if first.start_us == claim.state_us:
        known = ", just when the state was read that was planned on"
    elif first.start_us < claim.state_us:
        known = ", before the state that was planned on"
    return f"{what} at {seconds(first.start_us)}, {when}{known}"


def _end(end: End) -> str:
    if end.due:
        return f"due to finish on machine {end.machine}; the run ended before"
    what = {"finished": "finished on", "evicted": "evicted from", "lost": "lost with"}[end.change]
    return f"{what} machine {end.machine}"


def _amounts(request: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount:,}" for name, amount in request.items())


def _change(first: int, placed: int) -> str:
    return f"{placed:,}" if first == placed else f"{first:,} → {placed:,}"
