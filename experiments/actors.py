"""python -m experiments.actors [--address HOST:PORT]: what the actors of live runs are doing."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.command_line import run_command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    address: Annotated[
        str, typer.Option(help="of the Ray they run on; auto: the one on this machine")
    ] = "auto",
) -> None:
    """Print what each actor of each live run is doing: of runs under way, and of those that --hold
    keeps."""
    from parsync.runtime.live.dashboard import statuses

    lines = statuses(address)
    print("\n".join(lines) if lines else "no live run has actors there")


if __name__ == "__main__":
    run_command(app)
