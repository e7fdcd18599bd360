"""`agora report RUN...`: draw figures again and write reports, also of runs that were killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def report_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", hidden=True)],
) -> None:
    """Draw the figures of runs again and write their reports.

    Each RUN is a run directory. Prints the path of each report. If a run was killed, its summary is
    made from the files that it left, and one line on standard error says what is missing. Exit
    status 2 if there is nothing to report.
    """
    from experiments.analysis.run_directory import SUMMARY, read_summary, renew_manifest
    from experiments.report.page import FIGURES_FOLDER, write_report
    from experiments.studies.run.killed_runs import finish_killed

    for run in runs:
        if not (run / SUMMARY).is_file():
            finish_killed(run)
        summary = read_summary(run)
        if summary.partial:
            print(f"{run}: partial: {summary.partial_reason}", file=sys.stderr)
        path = write_report(run)
        renew_manifest(run, [path, *sorted((run / FIGURES_FOLDER).iterdir())])
        print(path)
