"""`python -m flowsolver generate FAMILY`: scheduling graphs and general networks by seed."""

from __future__ import annotations

from typing import Annotated

import typer

from flowsolver.commands.common import put, refuse
from flowsolver.commands.convert import is_npz
from flowsolver.dimacs import DimacsProblem
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
from flowsolver.network import FlowNetwork
from flowsolver.problem_files import write_problem

generate = typer.Typer(
    help="""Write a graph in DIMACS form, the same for a seed on every machine.

    netgen is a general network; the others are a cell's at one moment: what
    runs, what waits, and where each task may go.
    """
)

Machines = Annotated[int, typer.Option(min=1, max=1_000_000, metavar="M")]
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
Slots = Annotated[int, typer.Option("--slots", min=1, max=1_000, metavar="N", help="per machine")]
PerRack = Annotated[int, typer.Option(min=1, metavar="N")]
Seed = Annotated[int, typer.Option(min=0, metavar="N")]
Out = Annotated[str, typer.Option(metavar="FILE", help="file to write (.npz: arrays), or - for standard output")]


@generate.command("quincy")
def quincy_command(
    machines: Machines = 1_000,
    percent_used: PercentUsed = 90,
    percent_pending: PercentPending = 2,
    slots: Slots = 12,
    machines_per_rack: PerRack = 40,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A cell under Quincy's locality policy: tasks have arcs to the machines and racks with their data."""
    _write_quincy("quincy", GraphOptions(machines, percent_used, percent_pending, slots, machines_per_rack), seed, out)


@generate.command("contended")
def contended_command(
    machines: Machines = 1_000,
    percent_used: PercentUsed = 90,
    percent_pending: PercentPending = 2,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """Quincy's policy on popular data with one replica: tasks compete for the machines that hold it."""
    _write_quincy("contended", contended_options(machines, percent_used, percent_pending), seed, out)


@generate.command("cold")
def cold_command(
    machines: Machines = 1_000,
    percent_used: PercentUsed = 90,
    slots: Slots = 12,
    machines_per_rack: PerRack = 40,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """Quincy's policy when all tasks wait and none runs."""
    _write_quincy("cold", GraphOptions(machines, percent_used, 100, slots, machines_per_rack), seed, out)


@generate.command("oversubscribed")
def oversubscribed_command(
    machines: Machines = 1_000,
    percent_used: PercentUsed = 105,
    percent_pending: PercentPending = 6,
    slots: Slots = 12,
    machines_per_rack: PerRack = 40,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """Quincy's policy with more tasks than slots: some wait."""
    options = GraphOptions(machines, percent_used, percent_pending, slots, machines_per_rack)
    _write_quincy("oversubscribed", options, seed, out)


@generate.command("load-spreading")
def load_spreading_command(
    machines: Machines = 1_000,
    new_tasks: Annotated[
        int, typer.Option(min=0, max=2**28, metavar="N", help="of one job that has just come")
    ] = 1_000,
    slots: Slots = 12,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A half-used cell and one new job, whose tasks go where the fewest tasks are."""
    graph = load_spreading_graph(machines, new_tasks, seed, slots)
    _write("load-spreading", graph.network, seed, out, _cell_comments(graph))


@generate.command("network-aware")
def network_aware_command(
    machines: Machines = 1_000,
    percent_used: PercentUsed = 90,
    percent_pending: PercentPending = 2,
    slots: Slots = 12,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A cell whose tasks request bandwidth: an arc for each that fits on a machine's link, the fuller the dearer."""
    graph = network_aware_graph(machines, seed, percent_used, percent_pending, slots)
    nodes = (
        f"nodes: 1 the sink, then {graph.requests.size} request aggregators, {machines} machines, "
        f"{graph.jobs} unscheduled aggregators, {graph.tasks} tasks"
    )
    _write("network-aware", graph.network, seed, out, [nodes])


@generate.command("netgen")
def netgen_command(
    nodes: Annotated[int, typer.Option(min=2, metavar="N")] = 1_000,
    arcs: Annotated[int, typer.Option(min=1, metavar="M")] = 10_000,
    sources: Annotated[int, typer.Option(min=1, metavar="N")] = 30,
    sinks: Annotated[int, typer.Option(min=1, metavar="N")] = 30,
    supply: Annotated[int, typer.Option(min=1, metavar="N", help="of all sources together")] = 100_000,
    transshipment_sources: Annotated[int, typer.Option(min=0, metavar="N", help="sources with arcs in")] = 0,
    transshipment_sinks: Annotated[int, typer.Option(min=0, metavar="N", help="sinks with arcs out")] = 0,
    min_cost: Annotated[int, typer.Option(metavar="C")] = 1,
    max_cost: Annotated[int, typer.Option(metavar="C")] = 10_000,
    percent_max_cost: Annotated[
        int, typer.Option(min=0, max=100, metavar="P", help="of the arcs that make it feasible: at the maximum cost")
    ] = 0,
    percent_capacitated: Annotated[
        int, typer.Option(min=0, max=100, metavar="P", help="of the arcs; the others have room for all supply")
    ] = 100,
    min_capacity: Annotated[int, typer.Option(min=0, metavar="K")] = 1,
    max_capacity: Annotated[int, typer.Option(min=0, metavar="K")] = 1_000,
    seed: Seed = 1,
    out: Out = "-",
) -> None:
    """A general network in the manner of NETGEN: a skeleton that makes it feasible, and random arcs."""
    try:
        options = NetgenOptions(
            nodes,
            arcs,
            sources,
            sinks,
            supply,
            transshipment_sources,
            transshipment_sinks,
            min_cost,
            max_cost,
            percent_max_cost,
            percent_capacitated,
            min_capacity,
            max_capacity,
        )
    except ValueError as error:
        field, rest = str(error).split(" = ", 1)
        refuse(f"--{field.replace('_', '-')} {rest}")
    _write("netgen", netgen_network(options, seed), seed, out, [str(options)])


def _write_quincy(family: str, options: GraphOptions, seed: int, out: str) -> None:
    graph = quincy_graph(options, seed)
    _write(family, graph.network, seed, out, [str(options), *_cell_comments(graph)])


def _cell_comments(graph: SchedulingGraph) -> list[str]:
    return [
        f"nodes: 1 the sink, 2 the cluster aggregator, then {graph.racks} racks, {graph.machines} machines, "
        f"{graph.jobs} unscheduled aggregators, {graph.tasks} tasks"
    ]


def _write(family: str, network: FlowNetwork, seed: int, out: str, comments: list[str]) -> None:
    problem = DimacsProblem.without_bounds(network)
    put(out, write_problem(problem, is_npz(out), [f"flowsolver generate {family} --seed {seed}", *comments]))
