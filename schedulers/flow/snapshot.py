"""A copy of a flow graph with its flow, as pure data: what there is to draw, to store or to check
after a round. Taking it changes nothing in the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.graph import UNROUTED, FlowGraph
from schedulers.flow.solver_graph import NO_NODE, TaskNodeState, TaskTable
from shared_state.tasks import Int64


class NodeKind(IntEnum):
    TASK = 0
    AGGREGATOR = 1  # of the policy
    ENTRANCE = 2  # of a machine, before the arcs on which placements pay for slots
    MACHINE = 3
    UNSCHEDULED = 4  # U_j
    PATIENCE = 5  # W
    SINK = 6


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """A flow graph of n nodes and m arcs, with the flow of the last solve.

    Attributes:
        kind: int8[n], a NodeKind.
        number: int64[n], which node of its kind: the task's id, the aggregator's number, the
            machine's row (also of entrances), the number of the group that waits there.
        name: Of each node, n of them: T17, M3, S, or what the policy calls its aggregators.
        supply: int64[n], how many units begin there, negative where they end: at the sink, and at
            U_j as many as have to wait there (Policy.waiting_bounds).
        potential: int64[n], the dual prices. The reduced cost of an arc, cost - potential[tail] +
            potential[head], is >= 0 where flow < capacity, and <= 0 where flow > 0.
        arc: int64[m], the solver's ids. An arc keeps its id as long as it stays in the graph.
        tail, head: int64[m], rows of the columns of nodes.
        capacity, flow: int64[m].
        cost: int64[m], as the policy has it, times cost_scale.
        cost_scale: By what the policy's costs are multiplied in `cost`.
        total_cost: Of the flow.
        proved: Whether the flow was proved optimal; None if the round ended before the solver had
            finished. Its flow need not balance then, and its prices prove nothing.
        waiting, running: int64, the ids of the tasks in the graph, ascending.
        machine: int64[running], where they run.
        unrouted: int64, the ids of those tasks that the flow of an unfinished round takes nowhere.
    """

    kind: NDArray[np.int8]
    number: Int64
    name: tuple[str, ...]
    supply: Int64
    potential: Int64
    arc: Int64
    tail: Int64
    head: Int64
    capacity: Int64
    cost: Int64
    flow: Int64
    cost_scale: int
    total_cost: int
    proved: bool | None
    waiting: Int64
    running: Int64
    machine: Int64
    unrouted: Int64


def snapshot(graph: FlowGraph, table: TaskTable) -> GraphSnapshot:
    """Copy the graph, after its solve and before its next update, and prove its flow optimal if the
    solve ended. What only saves the solver work is left out: see _as_drawn.

    Args:
        graph: The graph.
        table: Of its tasks.
    """
    network, node, arc = graph.solver.snapshot()
    nodes = graph.nodes
    row_of = np.full(int(node.max(initial=0)) + 1, -1, np.int64)
    row_of[node] = np.arange(len(node))
    kind = np.zeros(len(node), np.int8)
    number = np.zeros(len(node), np.int64)

    def are(which: NodeKind, ids: Int64, numbers: Int64) -> None:
        kind[row_of[ids]] = which
        number[row_of[ids]] = numbers

    in_graph = np.flatnonzero(table.node_state != TaskNodeState.NONE)
    machines = np.arange(len(nodes.machine))
    aggregators = np.flatnonzero(nodes.aggregator != NO_NODE)
    are(NodeKind.SINK, np.array([nodes.sink]), np.zeros(1, np.int64))
    are(NodeKind.ENTRANCE, nodes.entrance, machines)
    are(NodeKind.MACHINE, nodes.machine, machines)  # where they are the same
    are(NodeKind.AGGREGATOR, nodes.aggregator[aggregators], aggregators)
    are(NodeKind.PATIENCE, nodes.patience, np.zeros(len(nodes.patience), np.int64))
    group, group_node, *_ = table.open_groups()
    are(NodeKind.UNSCHEDULED, group_node, group)
    are(NodeKind.TASK, table.node[in_graph], table.task[in_graph])

    runs = in_graph[table.node_state[in_graph] == TaskNodeState.RUNNING]
    runs = runs[np.argsort(table.task[runs])]
    waiting = table.task[table.node_state == TaskNodeState.WAITING]
    unrouted, proved = np.zeros(0, np.int64), None
    if graph.reached is None:
        proved = graph.solver.certify().ok
    else:
        unrouted = np.sort(table.task[in_graph[graph.reached[in_graph] == UNROUTED]])
    whole = GraphSnapshot(
        kind=kind,
        number=number,
        name=(),
        supply=network.supply,
        potential=graph.solver.potential()[node],
        arc=arc,
        tail=network.tail,
        head=network.head,
        capacity=network.capacity,
        cost=network.cost,
        flow=graph.solver.flow_reached()[arc],
        cost_scale=nodes.scale,
        total_cost=0,
        proved=proved,
        waiting=np.sort(waiting),
        running=table.task[runs].copy(),
        machine=table.machine[runs].copy(),
        unrouted=unrouted,
    )
    its = _as_drawn(whole, row_of[nodes.machine], row_of[nodes.placement], nodes.risen)
    kinds = zip(its.kind.tolist(), its.number.tolist(), strict=True)
    return replace(
        its,
        name=tuple(_name(NodeKind(one), which, graph) for one, which in kinds),
        total_cost=int(its.cost @ its.flow),
    )


def _as_drawn(its: GraphSnapshot, machine: Int64, placement: Int64, risen: int) -> GraphSnapshot:
    """A graph without what only saves the solver work: costs as the policy has them, and machines
    of one node.

    What has risen for all tasks alike is taken off again, off each path once, and off the
    potentials of all nodes before: reduced costs stay. Nodes for placements become one with their
    machines. An arc into one keeps a reduced cost of at least 0, as the machine's potential is at
    least that of the node; and the same where it carries flow, as both are equal there.

    Args:
        its: The solver's.
        machine, placement: int64[M], rows of nodes.
        risen: As in GraphNodes.
    """
    ends = np.isin(its.kind, (NodeKind.MACHINE, NodeKind.SINK))
    ends[placement] = placement == machine
    pays = ~ends[its.tail] & ends[its.head]
    merged = np.arange(len(its.kind))
    merged[placement] = machine
    kept = np.ones(len(its.kind), bool)
    kept[placement] = placement == machine
    row_of = np.cumsum(kept) - 1
    tail, head = merged[its.tail], merged[its.head]
    arcs = tail != head
    return replace(
        its,
        kind=its.kind[kept],
        number=its.number[kept],
        supply=its.supply[kept],
        potential=np.where(ends, its.potential, its.potential - risen)[kept],
        arc=its.arc[arcs],
        tail=row_of[tail[arcs]],
        head=row_of[head[arcs]],
        capacity=its.capacity[arcs],
        cost=np.where(pays, its.cost - risen, its.cost)[arcs],
        flow=its.flow[arcs],
    )


_LETTER = {
    NodeKind.TASK: "T",
    NodeKind.ENTRANCE: "E",
    NodeKind.MACHINE: "M",
    NodeKind.UNSCHEDULED: "U",
}


def _name(kind: NodeKind, number: int, graph: FlowGraph) -> str:
    if kind is NodeKind.SINK:
        return "S"
    if kind is NodeKind.PATIENCE:
        return "W"
    if kind is NodeKind.AGGREGATOR:
        return graph.nodes.policy.aggregator_name(number)
    return f"{_LETTER[kind]}{number}"
