"""What commands share: their options, and the names of metrics."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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
Long = Annotated[
    bool,
    typer.Option("--long", help="Start it even if it is expected to take more than a day."),
]
KnownSchedulers = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="SPEC",
        help="Scheduler of your own whose kind is used in FILE: a file that defines SPEC, or "
        "package.module:SPEC. May be repeated.",
    ),
]


def metric_names(incomplete: str = "") -> list[str]:
    """The names of all metrics' figures that begin with this text, in the order of the metrics."""
    from parsync.metrics import registry

    names = (quantity.key for metric in registry.metrics() for quantity in metric.quantities())
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


class CommandWithMetrics(TyperCommand):
    """A command whose help ends with the names of all metrics."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # of click, as typer has it
        with formatter.section("Metrics"):
            formatter.write_text(", ".join(metric_names()))
