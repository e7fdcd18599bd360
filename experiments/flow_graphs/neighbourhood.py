"""The part of a graph around some tasks: the nodes on their ways, and all arcs between these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.flow_graphs.ways import Step, TaskWays, Way
from schedulers.flow.snapshot import GraphSnapshot, NodeKind

MOST_WAYS = (
    8  # of a task, the least costly ones; a task of Quincy's may prefer hundreds of machines
)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A part of a graph.

    Attributes:
        graph: The part, a graph of its own.
        hidden: Of each of its nodes, how many arcs there are not in it.
        ways: The ways of tasks, by row of its nodes.
    """

    graph: GraphSnapshot
    hidden: Sequence[int]
    ways: dict[int, TaskWays]


def whole(graph: GraphSnapshot, ways: Mapping[int, TaskWays]) -> Neighbourhood:
    """All of a graph. Of each task the least costly ways, at most MOST_WAYS."""
    few = {row: replace(its, others=its.others[:MOST_WAYS]) for row, its in ways.items()}
    return Neighbourhood(graph, [0] * len(graph.kind), few)


def neighbourhood(graph: GraphSnapshot, ways: Mapping[int, TaskWays]) -> Neighbourhood:
    """The part around the tasks whose ways these are (by row of the graph's nodes)."""
    shown = np.zeros(len(graph.kind), bool)
    shown[graph.kind == NodeKind.SINK] = True
    few = whole(graph, ways).ways
    for row, its in few.items():
        shown[row] = True
        arcs = [*its.taken]
        for way in its.others:
            arcs += [*way.path, *way.free, *(step.arc for step in way.steps)]
        shown[graph.tail[arcs]] = shown[graph.head[arcs]] = True
    node = np.flatnonzero(shown)
    arc = np.flatnonzero(shown[graph.tail] & shown[graph.head])
    node_row = np.full(len(shown), -1, np.int64)
    node_row[node] = np.arange(len(node))
    arc_row = np.full(len(graph.arc), -1, np.int64)
    arc_row[arc] = np.arange(len(arc))
    ends = np.concatenate([graph.tail, graph.head])
    of_whole = np.bincount(ends, minlength=len(shown))[node]
    part = replace(
        graph,
        kind=graph.kind[node],
        number=graph.number[node],
        name=tuple(graph.name[row] for row in node),
        supply=graph.supply[node],
        potential=graph.potential[node],
        arc=graph.arc[arc],
        tail=node_row[graph.tail[arc]],
        head=node_row[graph.head[arc]],
        capacity=graph.capacity[arc],
        cost=graph.cost[arc],
        flow=graph.flow[arc],
    )
    kept = np.bincount(np.concatenate([part.tail, part.head]), minlength=len(node))

    def moved(arcs: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(arc_row[one]) for one in arcs)

    def way_moved(way: Way) -> Way:
        steps = tuple(Step(int(arc_row[step.arc]), step.more) for step in way.steps)
        return replace(
            way,
            path=moved(way.path),
            full=moved(way.full),
            free=moved(way.free),
            steps=steps,
        )

    return Neighbourhood(
        part,
        (of_whole - kept).tolist(),
        {
            int(node_row[row]): TaskWays(
                int(node_row[row]),
                moved(its.taken),
                its.cost,
                its.rent,
                tuple(way_moved(way) for way in its.others),
            )
            for row, its in few.items()
        },
    )
