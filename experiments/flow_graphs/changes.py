"""What differs between two rounds of a flow graph: nodes, arcs, costs, capacities, and flow."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.flow_graphs.recorder import RecordedRound
from schedulers.flow.snapshot import GraphSnapshot

NodeKey = tuple[int, int]  # kind and number: the same node in all rounds
ArcKey = tuple[NodeKey, NodeKey, int]  # tail, head, and the solver's id


@dataclass(frozen=True, slots=True)
class ArcState:
    """Capacity, cost and flow of an arc in a round."""

    capacity: int
    cost: int
    flow: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from the round before.

    Attributes:
        new_nodes, gone_nodes: The nodes that were not there before, and that are no longer.
        new_arcs, gone_arcs: The same of arcs; of gone arcs as they were.
        recosted, resized, moved: Arcs that differ in cost, capacity or flow: as they were. Only
            arcs that are in both rounds.
    """

    new_nodes: frozenset[NodeKey]
    gone_nodes: frozenset[NodeKey]
    new_arcs: frozenset[ArcKey]
    gone_arcs: dict[ArcKey, ArcState]
    recosted: dict[ArcKey, ArcState]
    resized: dict[ArcKey, ArcState]
    moved: dict[ArcKey, ArcState]


def node_keys(graph: GraphSnapshot) -> list[NodeKey]:
    """The key of each node."""
    return list(zip(graph.kind.tolist(), graph.number.tolist(), strict=True))


def arcs_by_key(graph: GraphSnapshot) -> dict[ArcKey, ArcState]:
    """The arcs of a graph, in its order."""
    keys = node_keys(graph)
    columns = (graph.tail, graph.head, graph.arc, graph.capacity, graph.cost, graph.flow)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        (keys[tail], keys[head], arc): ArcState(capacity, cost, flow)
        for tail, head, arc, capacity, cost, flow in rows
    }


def changes(before: RecordedRound, now: RecordedRound) -> Changes:
    """What `now` has that `before` has not, and the other way round."""
    old_nodes, new_nodes = set(node_keys(before.graph)), set(node_keys(now.graph))
    old, new = arcs_by_key(before.graph), arcs_by_key(now.graph)
    both = [(key, old[key], new[key]) for key in new if key in old]
    return Changes(
        new_nodes=frozenset(new_nodes - old_nodes),
        gone_nodes=frozenset(old_nodes - new_nodes),
        new_arcs=frozenset(new.keys() - old.keys()),
        gone_arcs={key: state for key, state in old.items() if key not in new},
        recosted={key: was for key, was, its in both if was.cost != its.cost},
        resized={key: was for key, was, its in both if was.capacity != its.capacity},
        moved={key: was for key, was, its in both if was.flow != its.flow},
    )
