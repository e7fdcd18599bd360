"""What the commands that run many runs in virtual time share: their options."""

from __future__ import annotations

from typing import Annotated

import typer

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster to run on; auto: the one that this machine is a node of. "
        "Default: processes of this machine.",
    ),
]
