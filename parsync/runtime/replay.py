"""The command `agora replay RUN...`: repeat what runs logged, and compare.

replay() repeats the logs of a live arm (live/log_replay.py), repeat() an arm in virtual time
(virtual/repeat.py).
"""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from parsync.runtime import command_line
from parsync.runtime.arm_file import read_arm
from parsync.runtime.event_logs import ENDED_FILE, VIRTUAL_LOG, ArmEnd, LogEnd
from parsync.runtime.live.cell_log import CELL_LOG
from parsync.runtime.live.log_replay import Replayed, replay
from parsync.runtime.run_directory import SUMMARY, Arm, find_arms, run_of
from parsync.runtime.virtual.repeat import Repeated, repeat
from schedulers.from_file import registered
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, InvariantViolation


class Status(IntEnum):
    """The exit status of the command: the greatest of those of all arms."""

    OK = 0
    DIVERGED = 1
    INCOMPLETE = 2


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def command(
    directories: Annotated[list[Path], typer.Argument(metavar="RUN", hidden=True)],
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="SPEC",
            help="Scheduler that the runs were given by --with: package.module:SPEC, or the file "
            "that has SPEC. May be repeated.",
        ),
    ] = None,
) -> None:
    """Check that runs are complete and can be repeated.

    Each RUN is a run directory, one arm of it (RUN/arms/ARM) or the logs of an arm. Prints one line
    per arm, and one for each thing that is missing or differs.

    Live arms: each log is compared with ended.json and summary.json, which record its number of
    events and its digest. Then the logged events are fed to the same participants, created from
    arm.json and the run's workload tables. Every effect must equal the logged one.

    Arms in virtual time keep no log. They are run again, and the digest of their events is
    compared. With the checks below, that takes up to several times as long as the first time.
    Paired seeds are not run again.

    In both cases no invariant of the cell may break, and quotas and limits must have been kept.

    Exit status 0 if everything is there and was repeated; 1 if the logs are complete, but effects
    differ or an invariant breaks; 2 if something is missing, has changed since the arm ended or
    cannot be read, and for runs that were interrupted or killed, whose files are checked as far as
    they go; 130 for Ctrl-C.

    Nothing in a run directory is executed. Schedulers of other packages are found by their
    registered kind, or given by --with.
    """
    _forget_code_in(directories)
    with registered(with_ or ()):
        raise typer.Exit(max(_check_all(directories)))


def _forget_code_in(directories: Sequence[Path]) -> None:
    """Remove run directories from sys.path.

    Python imports modules and finds entry points in the working directory, which may be the run of
    a stranger.
    """
    runs = [run_of(directory) for directory in directories if directory.is_dir()]
    sys.path[:] = [
        entry
        for entry in sys.path
        if not any(Path(entry or os.curdir).resolve().is_relative_to(run) for run in runs)
    ]


def _check_all(directories: Sequence[Path]) -> Iterator[Status]:
    for directory in directories:
        try:
            found = find_arms(directory)
        except AgoraError as error:
            yield _print_error(error)
            continue
        for gap in found.gaps:
            print(f"{directory}: {gap}")
            yield Status.INCOMPLETE
        if not found.arms:
            print(f"{directory}: no arm to replay")
            yield Status.INCOMPLETE
        for arm in found.arms:
            try:
                yield _check(arm)
            except AgoraError as error:
                yield _print_error(error)
            except InvariantViolation as error:
                print(f"{arm.label}: invariant broken: {error}")
                yield Status.DIVERGED


def _check(arm: Arm) -> Status:
    """Replay one arm and print what was found."""
    virtual = read_arm(arm.directory).virtual is not None
    with _progress(arm.label) as on_progress:
        if virtual:
            return _print_virtual(arm, repeat(arm.directory, on_progress, arm.digest))
        return _print_live(arm, replay(arm.directory, on_progress))


def _print_live(arm: Arm, found: Replayed) -> Status:
    gaps = [*found.gaps, *_end_gaps(arm, found.end, CELL_LOG, found.cell_log)]
    for gap in gaps:
        print(f"{arm.label}: {gap}")
    if found.divergence is not None:
        print(found.divergence)
        return Status.INCOMPLETE if gaps else Status.DIVERGED
    if found.counts is None:
        print(f"{arm.label}: nothing can be replayed without {CELL_LOG}")
        return Status.INCOMPLETE
    events = f"{sum(found.events.values()):,} events of {len(found.events)} other actors"
    epochs = f"{found.epochs} {'epoch' if found.epochs == 1 else 'epochs'} of the cell"
    what = f"{found.steps:,} steps, {epochs}, {events}, {_audited(found, found.counts)}"
    return _print_outcome(arm, not gaps, what)


def _print_virtual(arm: Arm, found: Repeated) -> Status:
    gaps = [*found.gaps, *_end_gaps(arm, found.end, VIRTUAL_LOG, None)]
    for gap in gaps:
        print(f"{arm.label}: {gap}")
    if found.divergence is not None:
        print(f"{arm.label}: {found.divergence}")
        return Status.INCOMPLETE if gaps else Status.DIVERGED
    if found.log is None or found.counts is None:
        print(f"{arm.label}: not run again: there is no digest to compare with")
        return Status.INCOMPLETE
    what = f"{found.log.events:,} events, {_audited(found, found.counts)}"
    return _print_outcome(arm, not gaps, f"run again in virtual time: {what}")


def _audited(found: Replayed | Repeated, counts: AuditCounts) -> str:
    text = f"{counts.accepted:,} of {counts.claims:,} claims accepted"
    if found.quota_rounds:
        text += f", quotas kept in {found.quota_rounds:,} rounds"
    if found.limited_commits:
        text += f", limits kept in {found.limited_commits:,} commits"
    return text


def _print_outcome(arm: Arm, whole: bool, what: str) -> Status:
    if whole:
        print(f"{arm.label}: ok: {what}")
        return Status.OK
    print(f"{arm.label}: incomplete; the part that could be checked was repeated: {what}")
    return Status.INCOMPLETE


def _end_gaps(arm: Arm, end: ArmEnd | None, name: str, found: LogEnd | None) -> list[str]:
    """Return what is missing or differs at the end of an arm, besides its logs.

    Args:
        end: The arm's ended.json, if it has one.
        name: The log whose digest is also in the summary.
        found: The state of that log.
    """
    recorded = arm.digest
    if end is not None:
        gaps = [f"the arm ended early: {end.stopped}"] if end.stopped else []
        found = end.logs.get(name)  # differences from that are among the gaps already
    elif recorded:
        gaps = [f"{ENDED_FILE} is missing"]
    else:
        gaps = [
            f"{ENDED_FILE} is missing: the arm was stopped or killed, or is still running; its "
            "last events may be missing"
        ]
    if found is not None and recorded not in (None, found.digest):
        gaps.append(f"{SUMMARY}: expected digest {found.digest}, got {recorded or 'none'}")
    return gaps


def _print_error(error: AgoraError) -> Status:
    return Status(command_line.print_error(str(error)))


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar, if standard error is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(label, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on these arguments (default: the process's). Return its exit status."""
    return command_line.run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
