"""The answer of `agora explain`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.config.decision_basis import basis_titles
from experiments.explain.story import TaskStory, story_text, worst_table
from experiments.results.loaded_run import LoadedArm, LoadedRun, load_run
from shared_state.errors import AgoraError

WORST = 10  # tasks, unless the user says how many


def explain(run: Path, task: int | None, worst: int | None, arm: str | None, as_json: bool) -> str:
    """The stories of a task, or of the tasks with the worst conflicts, as text or JSON.

    If the run did not get to its end, or goes on, a line on standard error says so.

    Args:
        run: The run directory.
        task: The task; None: those with the worst conflicts.
        worst: How many tasks of each set of arms that may be compared; None: WORST.
        arm: The arm to look at; None: all.

    Raises:
        AgoraError: There is no such task or arm, both a task and a number are given, or the run or
            one of its tables cannot be read.
    """
    if task is not None and worst is not None:
        raise AgoraError("--task and --worst: expected one of them")
    loaded = load_run(run)
    if loaded.summary.partial:
        print(f"{run}: partial: {loaded.summary.partial_reason}", file=sys.stderr)
    sets = _sets(loaded) if arm is None else [("", [loaded.arm(arm)])]
    if task is not None:
        titled = [("", _of_task([one for _, arms in sets for one in arms], task))]
    else:
        titled = [(title, _worst(arms, WORST if worst is None else worst)) for title, arms in sets]
    stories = [story for _, some in titled for story in some]
    if as_json:
        return json.dumps([_plain(story) for story in stories], indent=1, ensure_ascii=False)
    if not stories:
        names = [one.name for _, arms in sets for one in arms]
        where = f"arm '{names[0]}'" if len(names) == 1 else "any arm"
        return f"There was no conflict in {where}."
    told = [(title, some) for title, some in titled if some]
    texts = []
    for title, some in told:
        if task is None:
            texts.append((f"{title}\n" if len(told) > 1 else "") + worst_table(some))
        texts += [story_text(story) for story in some]
    return "\n\n".join(texts)


def _sets(loaded: LoadedRun) -> list[tuple[str, list[LoadedArm]]]:
    """The arms in sets that may be compared, with their titles."""
    sets = loaded.summary.sets()
    titles = basis_titles([one.arms[0].basis for one in sets])
    return [
        (title, [loaded.arm(arm.slug) for arm in one.arms])
        for title, one in zip(titles, sets, strict=True)
    ]


def _worst(arms: Sequence[LoadedArm], count: int) -> list[TaskStory]:
    """The stories of the tasks with the worst conflicts in these arms."""
    stories = [story for one in arms for story in one.worst_conflicts(count)]
    return sorted(stories, key=lambda story: -story.conflict_us)[:count]


def _of_task(arms: Sequence[LoadedArm], task: int) -> list[TaskStory]:
    """The stories of a task in the arms that have it: what ran or waited at time 0 differs between
    arms. Raises AgoraError if none has."""
    having = [arm for arm in arms if 0 <= task < len(arm.workload.tasks)]
    return [arm.explain(task) for arm in having or arms[:1]]


def _plain(story: TaskStory) -> dict[str, Any]:
    """A story in JSON's own types, with what follows from it."""
    costs = story.costs
    return {
        **asdict(story),
        "conflicts": len(story.conflicts),
        "conflict_us": story.conflict_us,
        "is_bound": story.is_bound,
        "first_choice_cost": None if costs is None else costs[0],
        "placement_cost": None if costs is None else costs[1],
    }
