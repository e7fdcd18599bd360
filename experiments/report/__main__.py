"""python -m experiments.report RUN...: draw the figures of run directories again and write their
reports."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

from pathlib import Path
from typing import Annotated

import typer

from experiments.command_line import run_command
from experiments.report.page import write_report


def main(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
) -> None:
    """Draw the figures of run directories again and write their reports."""
    for run in runs:
        print(write_report(run))


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    run_command(app)
