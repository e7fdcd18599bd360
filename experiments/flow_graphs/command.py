"""What `agora draw` does with its options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.command_line import forget_code_in, progress_bar
from experiments.flow_graphs.example import example
from experiments.flow_graphs.page import About, drawing, page
from experiments.flow_graphs.recorder import MOST_ROUNDS, Recording, Wanted
from experiments.flow_graphs.sources import rounds_of_file, rounds_of_run
from experiments.report.html import save_page
from parsync.metrics.quantity import counted
from schedulers.registry import registered
from shared_state.errors import AgoraError

ROUNDS = 20  # unless the user says how many
FOREVER = 1 << 62


def draw(
    source: Path | None,
    policy: str | None,
    arm: str | None,
    scheduler: str,
    rounds: str | None,
    tasks: Sequence[int],
    with_: Sequence[str],
    out: Path,
) -> str:
    """Write a page, or an image, and say where.

    Args:
        source: A run directory, an arm's, or a configuration; None with `policy`.
        policy: The policy whose example is drawn.
        rounds: "FIRST:END"; None: the default.
        with_: Schedulers and policies of the user's own, as for schedulers.registry.registered.

    Raises:
        AgoraError: An option is wrong, nothing can be drawn, or the file cannot be written.
    """
    if (source is None) == (policy is None):
        raise AgoraError("expected a run, a configuration (FILE.toml), or --example POLICY")
    if out.suffix not in (".html", ".svg"):
        raise AgoraError(f"--out {out}: expected a name that ends in .html or .svg")
    wanted = _wanted(rounds, tasks)
    if policy is not None:
        if arm is not None or scheduler or tasks:
            raise AgoraError("--arm, --scheduler, --task: have no effect with --example")
        with registered(with_):
            recording, about = _of_example(policy, wanted, rounds)
    else:
        assert source is not None
        if source.is_dir():
            forget_code_in([source])
        of = rounds_of_run if source.is_dir() else rounds_of_file
        with registered(with_), progress_bar(str(source)) as on_progress:
            recording, about = of(source, arm, scheduler, wanted, on_progress)
    text = drawing(recording.rounds[0]) if out.suffix == ".svg" else page(recording, about)
    try:
        save_page(out, text)
    except OSError as error:
        raise AgoraError(f"{out}: {error.strerror or error}") from error
    drawn = recording.rounds
    span = f"round {drawn[0].number}"
    if out.suffix == ".html" and len(drawn) > 1:
        span = f"{counted(len(drawn), 'round')}, {drawn[0].number} to {drawn[-1].number}"
    return f"{out}: {about.scheduler}, {span}"


def _wanted(rounds: str | None, tasks: Sequence[int]) -> Wanted:
    chosen = frozenset(tasks)
    if rounds is None:
        return Wanted(0, FOREVER if chosen else ROUNDS, chosen)
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", rounds)
    if match is None:
        raise AgoraError(f"--rounds {rounds}: expected FIRST:END, such as 0:20")
    first, end = int(match[1]), int(match[2])
    if not 0 < end - first <= (FOREVER if chosen else MOST_ROUNDS):
        raise AgoraError(
            f"--rounds {rounds}: expected END above FIRST, and at most {MOST_ROUNDS} rounds"
        )
    return Wanted(first, end, chosen)


def _of_example(policy: str, wanted: Wanted, rounds: str | None) -> tuple[Recording, About]:
    recording = example(policy)
    kept = recording.rounds[wanted.first : wanted.end]
    if not kept:
        raise AgoraError(f"--rounds {rounds}: the example has {len(recording.rounds)} rounds")
    what = (
        "four machines of one slot and 1,000 Mbit/s in two racks, two jobs of three and two tasks "
        "of 200 and 400 Mbit/s, under preemption"
    )
    return replace(recording, rounds=kept), About(what, f"policy {policy}")
