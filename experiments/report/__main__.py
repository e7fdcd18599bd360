"""python -m experiments.report RUN...: draw the figures of run directories again and write their
reports, also of runs that were killed."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.command_line import run_command
from experiments.killed_runs import finish_killed
from experiments.report.page import write_report
from experiments.summary import SUMMARY, read_summary


def main(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
) -> None:
    """Draw the figures of run directories again and write their reports.

    If a run was killed, its summary is made from what it left behind, and one line says what is
    missing. Exit status 2 if there is nothing to report.
    """
    for run in runs:
        if not (run / SUMMARY).is_file():
            finish_killed(run)
        summary = read_summary(run)
        if summary["partial"]:
            print(f"{run}: partial: {summary['partial_reason']}", file=sys.stderr)
        print(write_report(run))


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    run_command(app)
