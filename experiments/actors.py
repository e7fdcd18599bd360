"""python -m experiments.actors [--address HOST:PORT]: what the actors of live runs are doing."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.command_line import run_command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    address: Annotated[
        str, typer.Option(help="HOST:PORT of the Ray to ask; auto: the Ray on this machine")
    ] = "auto",
) -> None:
    """Print what each actor of each live run is doing, one line per actor. Runs that --hold keeps
    are included."""
    from parsync.runtime.live.dashboard import statuses

    lines = statuses(address)
    print("\n".join(lines) if lines else "no actors of a live run found")


if __name__ == "__main__":
    run_command(app)
