"""`agora replay RUN...`: check that runs are complete, can be repeated, and say what was measured.

replay() repeats the logs of a live arm (parsync/runtime/live/replay.py), repeat() an arm in
virtual time (parsync/runtime/virtual/repeat.py). What they measure is compared with the arm's
tables (parsync/runtime/recomputed_tables.py) and figures (experiments/verification.py).
"""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.analysis.run_directory import MANIFEST, changed_files, read_manifest
from experiments.command_line import forget_code_in, progress_bar
from experiments.interruption import stop_signals_noted
from experiments.verification import RunFigures, digest_only
from parsync.metrics.quantity import counted
from parsync.runtime import command_line
from parsync.runtime.arm_directory import (
    ARMS,
    ENDED_FILE,
    SUMMARY,
    VIRTUAL_LOG,
    Arm,
    ArmEnd,
    Found,
    LogEnd,
    find_arms,
    read_arm,
)
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.replay import Replayed, replay
from parsync.runtime.recomputed_tables import (
    Difference,
    RecomputedTables,
    ReplayedArm,
    compare_tables,
)
from parsync.runtime.virtual.repeat import repeat
from parsync.workload.workload import Workload
from schedulers.registry import registered
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, InvariantViolation
from shared_state.observed_cell import CellObserver


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
            help="Scheduler or flow policy of your own that the runs used (their --with): a file "
            "that defines SPEC, or package.module:SPEC. May be repeated.",
        ),
    ] = None,
) -> None:
    """Check that runs are complete, can be repeated, and hold what was measured.

    Each RUN is a run directory, one arm of it (RUN/arms/ARM) or the logs of an arm. Prints one line
    per arm, one for each thing that is missing or differs, and how each part was checked.

    Live arms: each log is compared with ended.json and summary.json, which record its number of
    events and its digest. Then the logged events are fed to the same participants, created from
    arm.json and the run's workload tables. Every effect must equal the logged one.

    Arms in virtual time keep no log. They are run again, and the digest of their events is
    compared. With the checks below, that takes up to several times as long as the first time.
    Paired seeds are not run again.

    In both cases the arm's tables (Parquet), its figures and its series are computed again from
    these events, and compared. No invariant of the cell may break, and quotas and limits must have
    been kept. What cannot be computed again is compared with the digests in manifest.json.

    Exit status 0 if everything is there and was repeated; 1 if the logs are complete, but effects
    differ or an invariant breaks; 2 if something is missing, has changed since the run ended,
    differs from what is computed again or cannot be read; 130 for Ctrl-C. Files of runs that were
    interrupted or killed are checked as far as possible; their status is 2.

    Nothing in a run directory is executed. Schedulers and flow policies of other packages are found
    by their registered name, or given by --with.
    """
    forget_code_in(directories)
    with registered(with_ or ()), stop_signals_noted() as interruption:
        try:
            with interruption.raised_at_once():  # removes the tables that are being made again
                status = max(_check_all(directories))
        except KeyboardInterrupt:
            raise typer.Exit(interruption.exit_status) from None
    raise typer.Exit(status)


def _check_all(directories: Sequence[Path]) -> Iterator[Status]:
    for directory in directories:
        try:
            found = find_arms(directory)
        except AgoraError as error:
            yield _print_error(error)
            continue
        yield from _RunCheck(directory, found).statuses()


class _RunCheck:
    """The check of a run directory, or of one arm.

    Args:
        directory: As the user named it.
        found: What is in it.
    """

    def __init__(self, directory: Path, found: Found) -> None:
        self._directory = directory
        self._found = found
        self._is_whole = (directory / ARMS).is_dir()
        self._run = directory if self._is_whole else next((arm.run for arm in found.arms), None)
        self._figures: RunFigures | None = None
        self._manifest: dict[str, dict[str, Any]] | None = None
        self._named: set[Path] = set()  # files with a line of their own

    def statuses(self) -> Iterator[Status]:
        """Check and print everything."""
        for gap in self._found.gaps:
            print(f"{self._directory}: {gap}")
            yield Status.INCOMPLETE
        if not self._found.arms:
            print(f"{self._directory}: no arm to replay")
            yield Status.INCOMPLETE
        yield from self._guarded(self._open)
        for arm in self._found.arms:
            yield from self._guarded(partial(self._arm, arm), arm.label)
        if self._is_whole and self._figures is not None:
            yield from self._guarded(partial(self._of_run, self._figures))
        yield from self._guarded(self._files)

    def _guarded(self, check: Callable[[], Status], label: str = "") -> Iterator[Status]:
        try:
            yield check()
        except AgoraError as error:
            yield _print_error(error)
        except InvariantViolation as error:
            print(f"{label}: invariant broken: {error}")
            yield Status.DIVERGED

    def _open(self) -> Status:
        """Read the manifest and the figures of the run."""
        if self._run is not None and (self._run / SUMMARY).is_file():
            self._manifest = read_manifest(self._run)
            self._figures = RunFigures(self._run)
        return Status.OK

    def _arm(self, arm: Arm) -> Status:
        """Replay one arm and print what was found."""
        with tempfile.TemporaryDirectory(prefix="agora-replay-") as made:
            if read_arm(arm.directory).virtual is not None:
                return self._virtual(arm, Path(made))
            with progress_bar(arm.label) as on_progress:
                found = replay(arm.directory, on_progress, arm.folder, Path(made))
            return self._live(arm, found)

    def _live(self, arm: Arm, found: Replayed) -> Status:
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
        digest = "" if found.cell_log is None else found.cell_log.digest
        compare = None
        if self._figures is not None and found.tables is not None:
            compare = partial(self._figures.of_arm, arm, found.tables, None, digest, None)
        return self._print_outcome(arm, bool(gaps), what, found.tables, compare)

    def _virtual(self, arm: Arm, made: Path) -> Status:
        figures = self._figures
        observers: list[CellObserver] = []

        def observer(workload: Workload) -> CellObserver | None:
            if figures is not None:
                observers.append(figures.observer(workload))
            return observers[0] if observers else None

        with progress_bar(arm.label) as on_progress:
            found = repeat(arm.directory, on_progress, arm.digest, made, observer)
        gaps = [*found.gaps, *_end_gaps(arm, found.end, VIRTUAL_LOG, None)]
        for gap in gaps:
            print(f"{arm.label}: {gap}")
        if found.divergence is not None:
            print(f"{arm.label}: {found.divergence}")
            return Status.INCOMPLETE if gaps else Status.DIVERGED
        if found.log is None or found.counts is None:
            print(f"{arm.label}: not run again: there is no digest to compare with")
            return Status.INCOMPLETE
        what = f"run again in virtual time: {found.log.events:,} events, "
        what += _audited(found, found.counts)
        compare = None
        if figures is not None and found.tables is not None and found.end is not None:
            compare = partial(
                figures.of_arm, arm, found.tables, found.outcome, found.log.digest, observers[0]
            )
        return self._print_outcome(arm, bool(gaps), what, found.tables, compare)

    def _print_outcome(
        self,
        arm: Arm,
        has_gaps: bool,
        what: str,
        made: RecomputedTables | None,
        compare_figures: Callable[[], list[Difference] | None] | None,
    ) -> Status:
        """Compare what an arm left with what its replay measured, and print how it stands."""
        again: list[str] = []
        by_digest: list[str] = []
        differences: list[Difference] = []
        if made is not None and (arm.digest is not None or any(arm.folder.glob("*.parquet"))):
            tables = compare_tables(arm.folder, made)
            differences += tables.differences
            if tables.equal:
                again.append(f"{counted(len(tables.equal), 'table')} ({tables.rows:,} rows)")
            by_digest += [
                f"{table}.parquet ({why})"
                for table, why in made.not_made.items()
                if (arm.folder / f"{table}.parquet").exists()
            ]
            if made.lost_agents:
                by_digest.append(f"rows of {counted(len(made.lost_agents), 'scheduler')}, killed")
        elif arm.digest is not None:
            by_digest.append("tables")
        wrong = None if compare_figures is None else compare_figures()
        differences += wrong or ()
        if wrong is None and arm.digest is not None:
            by_digest.append("the figures and series")
        elif wrong == []:
            again.append("the figures and series")
        self._print_differences(differences)
        if differences:
            files = counted(len({difference.path for difference in differences}), "file")
            verb = "differ" if " files" in files else "differs"
            print(f"{arm.label}: not ok, {files} {verb}; its events were repeated: {what}")
        elif has_gaps:
            print(f"{arm.label}: incomplete; the part that could be checked was repeated: {what}")
        else:
            print(f"{arm.label}: ok: {what}")
        self._print_how(arm.label, again, by_digest)
        return Status.INCOMPLETE if differences or has_gaps else Status.OK

    def _of_run(self, figures: RunFigures) -> Status:
        differences = figures.of_run()
        self._print_differences(differences)
        again = [] if differences else ["the facts of the workload"]
        if figures.summary.paired.seeds and not differences:
            again.append("the intervals over the seeds, from the figures of each")
        self._print_how(str(self._directory), again, digest_only(self._directory, figures.summary))
        return Status.INCOMPLETE if differences else Status.OK

    def _files(self) -> Status:
        """Compare the files with the manifest of the run."""
        run = self._run
        if run is None or not (run / SUMMARY).is_file():
            return Status.OK  # what is missing has been said
        known = self._manifest
        if known is None:
            print(
                f"{run}: no {MANIFEST}: the run was killed, or is of an older version of Agora; "
                "what is not computed again is not checked"
            )
            return Status.INCOMPLETE
        under = "" if self._is_whole else f"{ARMS}/{self._found.arms[0].slug}"
        changed = changed_files(run, known, under)
        fresh = [one for one in changed if one.path.resolve() not in self._named]
        self._print_differences(fresh)
        if not changed:
            of_arm = [name for name in known if name.startswith(f"{under}/")] if under else known
            what = counted(len(of_arm), "file")
            print(f"{self._directory}: {what} as at the end of the run, by {MANIFEST}")
        return Status.INCOMPLETE if changed else Status.OK

    def _print_how(self, label: str, again: Sequence[str], by_digest: Sequence[str]) -> None:
        if again:
            print(f"{label}: computed again, equal: {', '.join(again)}")
        if by_digest:
            how = f"not checked, without {MANIFEST}" if self._manifest is None else "by digest only"
            print(f"{label}: {how}: {', '.join(by_digest)}")

    def _print_differences(self, differences: Sequence[Difference]) -> None:
        for difference in differences:
            print(difference)
            self._named.add(difference.path.resolve())


def _audited(found: ReplayedArm, counts: AuditCounts) -> str:
    text = f"{counts.accepted:,} of {counts.claims:,} claims accepted"
    if found.quota_rounds:
        text += f", quotas kept in {found.quota_rounds:,} rounds"
    if found.limited_commits:
        text += f", limits kept in {found.limited_commits:,} commits"
    return text


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on these arguments (default: the process's). Return its exit status."""
    return command_line.run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
