"""The commands that write problems: `python -m flowsolver convert IN OUT`, from one file format to
another, and `generate FAMILY`, scheduling graphs and general networks by seed.
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Annotated, NoReturn

import typer

from flowsolver.commands.common import display_name, read_problem, refuse, write_file
from flowsolver.generate import (
    GraphOptions,
    NetgenOptions,
    SchedulingGraph,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from flowsolver.grid_networks import (
    GotoOptions,
    GridgenOptions,
    RoadOptions,
    goto_network,
    gridgen_network,
    road_network,
)
from flowsolver.network import FlowNetwork, packed
from flowsolver.problem_files import DimacsProblem, write_problem


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


generate = typer.Typer(
    help="""Write a graph to solve, the same for a seed on every machine.

    netgen, goto, gridgen and road are general networks. The others show a cell
    at one moment, under the policies of Quincy and Firmament: what runs, what
    waits, and where each task may go. A task is a node of supply 1. Costs are the
    data to be moved and the seconds waited (quincy, contended, cold,
    oversubscribed), the tasks on a machine (load-spreading), or the MB/s on its
    link (network-aware).
    """
)

Machines = Annotated[int, typer.Option(min=1, max=1_000_000, metavar="M", help="in the cell")]
PercentUsed = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000,
        metavar="U",
        help="tasks, running and waiting, in percent of the slots; above 100: more than fit",
    ),
]
PercentPending = Annotated[
    int, typer.Option(min=0, max=100, metavar="P", help="tasks that wait, in percent of all tasks")
]
Slots = Annotated[
    int, typer.Option("--slots", min=1, max=1_000, metavar="N", help="tasks that fit on a machine")
]
PerRack = Annotated[int, typer.Option(min=1, metavar="N", help="machines in a rack")]
Replicas = Annotated[
    int,
    typer.Option(
        min=1,
        max=3,
        metavar="1|3",
        help="copies of a block of data; 3: two in one rack, one anywhere",
    ),
]
Skew = Annotated[
    int,
    typer.Option(
        min=1,
        max=100,
        metavar="K",
        help="1: data lie anywhere; above: ever fewer machines hold most",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="of the random draws")]
Out = Annotated[
    str, typer.Option(metavar="FILE", help="file to write (.npz: arrays), or - for standard output")
]


def _quincy_command(family: str, what: str, usual: GraphOptions) -> None:
    """Adds a command for Quincy graphs whose options unset are the usual ones."""

    @generate.command(family, help=what)
    def command(
        context: typer.Context,
        machines: Machines = usual.machines,
        percent_used: PercentUsed = usual.percent_used,
        percent_pending: PercentPending = usual.percent_pending,
        slots: Slots = usual.slots_per_machine,
        machines_per_rack: PerRack = usual.machines_per_rack,
        replicas: Replicas = usual.replicas,
        skew: Skew = usual.skew,
        seed: Seed = 1,
        out: Out = "-",
    ) -> None:
        try:
            options = GraphOptions(
                machines, percent_used, percent_pending, slots, machines_per_rack, replicas, skew
            )
            graph = quincy_graph(options, seed)
        except ValueError as error:
            _refuse_field(error)
        _write(context, graph.network, out, _nodes_of(graph))


_quincy_command(
    "quincy",
    "Tasks go where their data lie (Quincy's policy).",
    GraphOptions(1_000),
)
_quincy_command(
    "contended",
    "Quincy's policy when many want the same machines: popular data, one copy of each block.",
    contended_options(1_000),
)
_quincy_command(
    "cold",
    "Quincy's policy when all tasks wait and none runs.",
    GraphOptions(1_000, percent_pending=100),
)
_quincy_command(
    "oversubscribed",
    "Quincy's policy with more tasks than slots: some wait.",
    GraphOptions(1_000, 105, 6),
)


@generate.command("load-spreading")
def load_spreading_command(
    context: typer.Context,
    machines: Machines = 1_000,
    new_tasks: Annotated[
        int, typer.Option(min=0, max=2**28, metavar="N", help="of one job that has just come")
    ] = 1_000,
    slots: Slots = 12,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """One new job spreads evenly over a half-used cell."""
    try:
        graph = load_spreading_graph(machines, new_tasks, seed, slots)
    except ValueError as error:
        _refuse_field(error)
    _write(context, graph.network, out, _nodes_of(graph))


@generate.command("network-aware")
def network_aware_command(
    context: typer.Context,
    machines: Machines = 1_000,
    percent_used: PercentUsed = 90,
    percent_pending: PercentPending = 2,
    slots: Slots = 12,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """Tasks request bandwidth: the fuller a link, the dearer.

    Unit arcs lead to a machine from the aggregator of each request, one for
    each task of that request that its link has room for.
    """
    try:
        graph = network_aware_graph(machines, seed, percent_used, percent_pending, slots)
    except ValueError as error:
        _refuse_field(error)
    nodes = (
        f"nodes: 1 the sink, then {graph.requests.size} request aggregators, {machines} machines, "
        f"{graph.jobs} unscheduled aggregators, {graph.tasks} tasks"
    )
    _write(context, graph.network, out, nodes)


@generate.command("netgen")
def netgen_command(
    context: typer.Context,
    nodes: Annotated[
        int, typer.Option(min=2, metavar="N", help="sources and sinks included")
    ] = 1_000,
    arcs: Annotated[
        int, typer.Option(min=1, metavar="M", help="no two of the same tail and head")
    ] = 10_000,
    sources: Annotated[int, typer.Option(min=1, metavar="N", help="nodes with supply")] = 30,
    sinks: Annotated[int, typer.Option(min=1, metavar="N", help="nodes with demand")] = 30,
    supply: Annotated[
        int, typer.Option(min=1, metavar="N", help="of all sources together")
    ] = 100_000,
    transshipment_sources: Annotated[
        int, typer.Option(min=0, metavar="N", help="sources that may have arcs in")
    ] = 0,
    transshipment_sinks: Annotated[
        int, typer.Option(min=0, metavar="N", help="sinks that may have arcs out")
    ] = 0,
    min_cost: Annotated[int, typer.Option(metavar="C", help="least cost of an arc")] = 1,
    max_cost: Annotated[int, typer.Option(metavar="C", help="greatest cost of an arc")] = 10_000,
    percent_max_cost: Annotated[
        int,
        typer.Option(
            min=0,
            max=100,
            metavar="P",
            help="of the arcs that make it feasible: at the greatest cost",
        ),
    ] = 0,
    percent_capacitated: Annotated[
        int,
        typer.Option(
            min=0, max=100, metavar="P", help="of the arcs; the others have room for all supply"
        ),
    ] = 100,
    min_capacity: Annotated[
        int, typer.Option(min=0, metavar="K", help="least capacity of those")
    ] = 1,
    max_capacity: Annotated[
        int, typer.Option(min=0, metavar="K", help="greatest capacity of those")
    ] = 1_000,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A general network in the manner of NETGEN.

    A skeleton of arcs makes it feasible, the others are random.
    """
    try:
        named = {each.name: context.params[each.name] for each in fields(NetgenOptions)}
        network = netgen_network(NetgenOptions(**named), seed)
    except ValueError as error:
        _refuse_field(error)
    between = nodes - sources - sinks
    _write(context, network, out, f"nodes: {sources} sources, {between} between, {sinks} sinks")


Rows = Annotated[int, typer.Option(min=2, metavar="N", help="of the grid")]
Columns = Annotated[int, typer.Option(min=2, metavar="N", help="of the grid")]
GridArcs = Annotated[
    int, typer.Option(min=1, metavar="M", help="those of the grid and random ones beside them")
]
MaxCost = Annotated[int, typer.Option(min=1, metavar="C", help="greatest cost; the least is 1")]
MaxCapacity = Annotated[
    int, typer.Option(min=1, metavar="K", help="greatest capacity; the least is 1")
]


@generate.command("goto")
def goto_command(
    context: typer.Context,
    rows: Rows = 10,
    columns: Columns = 100,
    arcs: GridArcs = 8_000,
    max_cost: MaxCost = 4_096,
    max_capacity: MaxCapacity = 16_384,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A grid on a torus in the manner of GOTO.

    One source sends to one sink half the torus away as much as the arcs from
    column to column hold. Long arcs and chains of short ones compete.
    """
    try:
        network = goto_network(GotoOptions(rows, columns, arcs, max_cost, max_capacity), seed)
    except ValueError as error:
        _refuse_field(error)
    _write(context, network, out, f"nodes: columns 1 to {columns}, {rows} nodes each")


@generate.command("gridgen")
def gridgen_command(
    context: typer.Context,
    rows: Rows = 32,
    columns: Columns = 32,
    arcs: GridArcs = 8_192,
    sources: Annotated[int, typer.Option(min=1, metavar="N", help="nodes with supply")] = 32,
    sinks: Annotated[int, typer.Option(min=1, metavar="N", help="nodes with demand")] = 32,
    supply: Annotated[
        int, typer.Option(min=1, metavar="N", help="of all sources together")
    ] = 32_000,
    max_cost: MaxCost = 10_000,
    max_capacity: MaxCapacity = 1_000,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A grid of one-way streets in the manner of GRIDGEN.

    Random arcs lie across it. A dear detour from all sources to all sinks
    makes it feasible.
    """
    try:
        options = GridgenOptions(
            rows, columns, arcs, sources, sinks, supply, max_cost, max_capacity
        )
        network = gridgen_network(options, seed)
    except ValueError as error:
        _refuse_field(error)
    nodes = f"nodes: rows 1 to {rows}, {columns} nodes each, then the detour"
    _write(context, network, out, nodes)


@generate.command("road")
def road_command(
    context: typer.Context,
    rows: Rows = 50,
    columns: Columns = 50,
    trips: Annotated[
        int, typer.Option(min=1, metavar="N", help="pairs of a source and a sink")
    ] = 50,
    per_trip: Annotated[int, typer.Option(min=1, metavar="N", help="units of each pair")] = 10,
    percent_closed: Annotated[
        int,
        typer.Option(min=0, max=100, metavar="P", help="of the streets between two rows: missing"),
    ] = 40,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A road network: few two-way arcs per node, and travel times as costs.

    Streets, arterials and motorways differ in speed and capacity.
    """
    try:
        options = RoadOptions(rows, columns, trips, per_trip, percent_closed)
        network = road_network(options, seed)
    except ValueError as error:
        _refuse_field(error)
    _write(context, network, out, f"nodes: rows 1 to {rows}, {columns} crossings each")


def _refuse_field(error: ValueError) -> NoReturn:
    """Refuse an invalid option by its name on the command line."""
    field, equals, rest = str(error).partition(" = ")
    refuse(f"--{field.replace('_', '-')} {rest}" if equals else str(error))


def _nodes_of(graph: SchedulingGraph) -> str:
    return (
        f"nodes: 1 the sink, 2 the cluster aggregator, then {graph.racks} racks, "
        f"{graph.machines} machines, "
        f"{graph.jobs} unscheduled aggregators, {graph.tasks} tasks"
    )


def _write(context: typer.Context, network: FlowNetwork, out: str, nodes: str) -> None:
    """Write the graph. In DIMACS, comments give the command that makes it and the meaning of its
    nodes.
    """
    options = [each for each in context.command.params if each.name != "out"]
    chosen = " ".join(f"{each.opts[0]} {context.params[each.name or '']}" for each in options)
    comments = [f"flowsolver generate {context.info_name} {chosen}", nodes]
    problem = DimacsProblem.without_bounds(network)
    write_file(out, write_problem(problem, is_npz(out), comments))
