"""python -m experiments.report RUN...: draw the figures of run directories again and write their reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.report.page import write_report
from shared_state.errors import AgoraError


def main(runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")]) -> None:
    """Draw the figures of run directories again and write their reports."""
    for run in runs:
        try:
            print(write_report(run))
        except AgoraError as error:
            print(error, file=sys.stderr)
            raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
