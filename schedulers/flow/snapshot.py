"""A copy of a flow graph with its flow, as pure data: what there is to draw, to store or to check
after a round. Taking it changes nothing in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.graph import FlowGraph
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
        supply: int64[n], how many units begin there, negative where they end.
        potential: int64[n], the dual prices. The reduced cost of an arc, cost - potential[tail] +
            potential[head], is >= 0 where flow < capacity, and <= 0 where flow > 0.
        arc: int64[m], the solver's ids. An arc keeps its id as long as it stays in the graph.
        tail, head: int64[m], rows of the columns of nodes.
        capacity, cost, flow: int64[m].
        cost_scale: By what the policy's costs are multiplied in `cost`.
        total_cost: Of the flow, as the solver has it.
        proved: Whether the flow was proved optimal; None if the solver has not finished, and there
            is nothing to prove.
        waiting, running: int64, the ids of the tasks in the graph, ascending.
        machine: int64[running], where they run.
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


def snapshot(graph: FlowGraph, table: TaskTable) -> GraphSnapshot:
    """Copy the graph, after its solve and before its next update, and prove its flow optimal.

    Args:
        graph: The graph.
        table: Of its tasks.
    """
    network, node, arc = graph.solver.snapshot()
    nodes = graph.nodes
    row_of = np.full(int(node.max(initial=0)) + 1, -1, np.int64)
    row_of[node] = np.arange(len(node))
    kind = np.full(len(node), NodeKind.UNSCHEDULED, np.int8)
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
    are(NodeKind.TASK, table.node[in_graph], table.task[in_graph])

    tail, head = network.tail, network.head
    group = np.zeros(len(node), np.int64)
    group[row_of[table.node[in_graph]]] = nodes.policy.waiting_group(table.batch(in_graph))
    waits = (kind[tail] == NodeKind.TASK) & (kind[head] == NodeKind.UNSCHEDULED)
    number[head[waits]] = group[tail[waits]]

    runs = in_graph[table.node_state[in_graph] == TaskNodeState.RUNNING]
    runs = runs[np.argsort(table.task[runs])]
    waiting = table.task[table.node_state == TaskNodeState.WAITING]
    reached = graph.solver.flow_reached()
    return GraphSnapshot(
        kind=kind,
        number=number,
        name=tuple(
            _name(NodeKind(one), which, graph)
            for one, which in zip(kind.tolist(), number.tolist(), strict=True)
        ),
        supply=network.supply,
        potential=graph.solver.potential()[node],
        arc=arc,
        tail=tail,
        head=head,
        capacity=network.capacity,
        cost=network.cost,
        flow=reached[arc],
        cost_scale=nodes.scale,
        total_cost=graph.solver.cost,
        proved=_proved(graph),
        waiting=np.sort(waiting),
        running=table.task[runs].copy(),
        machine=table.machine[runs].copy(),
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


def _proved(graph: FlowGraph) -> bool | None:
    try:
        return graph.certificate(whole=True).ok
    except RuntimeError:  # the solver has not finished: there is no certificate
        return None
