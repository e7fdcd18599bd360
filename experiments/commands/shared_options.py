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
SeedCount = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        metavar="N",
        help="Number of seeds; they are 1 to N. Five or more give intervals.",
    ),
]
