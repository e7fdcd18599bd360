"""`agora actors [--address HOST:PORT]`: what the actors of live runs are doing."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def actors_command(
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Ray cluster to ask; auto: the one on this machine."
        ),
    ] = "auto",
) -> None:
    """Show what the actors of live runs are doing.

    Prints one line per actor of each live run, runs kept by --hold included.
    """
    from parsync.runtime.live.ray_glue.actors import statuses

    lines = statuses(address)
    print("\n".join(lines) if lines else "There is no actor of a live run.")
