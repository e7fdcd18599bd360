"""`python -m flowsolver convert IN OUT`: from one file format to another."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from flowsolver.commands.common import display_name, read_problem, refuse, write_file
from flowsolver.dimacs import DimacsProblem
from flowsolver.packing import packed
from flowsolver.problem_files import write_problem


class Format(StrEnum):
    """The file formats that can be written."""

    DIMACS = "dimacs"
    NPZ = "npz"


def is_npz(file: str, chosen: Format | None = None) -> bool:
    """Whether to write .npz: the chosen format, else by the extension of the file's name."""
    return chosen is Format.NPZ if chosen is not None else file.endswith(".npz")


def convert_command(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="DIMACS min file or .npz, or - for standard input")
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="file to write, or - for standard output")
    ] = "-",
    to: Annotated[
        Format | None,
        typer.Option(help="format to write; unset: npz for a name in .npz, else dimacs"),
    ] = None,
    pack: Annotated[
        bool,
        typer.Option(
            "--pack",
            help="join parallel arcs of equal cost, drop arcs and nodes that cannot matter, "
            "and renumber the rest; the optimal cost is the same",
        ),
    ] = False,
) -> None:
    """Rewrite a problem as DIMACS, or as .npz, which is much smaller.

    A .npz has the arrays tail, head, capacity, cost (an entry per arc) and
    supply (one per node); nodes are numbered from 0.

    Lower bounds are taken out: DIMACS output says in a comment by how much its
    costs are lower; .npz keeps them in two arrays more (low, base_cost), and
    solve puts them back. Exit status 2 for bad input, with one line on standard
    error.
    """
    problem = read_problem(source)
    if pack:
        try:
            problem = DimacsProblem.without_bounds(packed(problem.network), problem.base_cost)
        except ValueError as error:
            refuse(f"{display_name(source)}: {error}")
    write_file(target, write_problem(problem, is_npz(target, to)))
