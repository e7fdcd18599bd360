"""The stories of tasks as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from experiments.explain.story import COMMITTED, Claim, End, OtherClaim, TaskStory
from parsync.metrics.quantity import counted, duration
from parsync.runtime.arm_directory import seconds

MOST_COMMITS = 4  # of others on a machine, that are shown

_REASONS = {
    "stale": "the machine had changed",
    "full": "no room left",
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
