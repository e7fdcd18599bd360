"""Maximum flow of minimum cost: the largest possible flow from the supplies, at the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flowsolver.arguments import Int64Array, as_budget
from flowsolver.network import FlowNetwork, core_of
from flowsolver.solution import Solution, Status, solve


@dataclass(frozen=True, eq=False)
class MaxFlow:
    """The answer of `solve_max_flow`.

    Args:
        solution: status, cost, flow int64[m] and potential int64[n], as `solve` returns them.
        amount: units that reach a sink.
        supply: int64[n], what each node sends (> 0) or receives (< 0).

    `amount` and `supply` are meaningful only if the status is OPTIMAL. `certify` then proves the
    solution on a copy of the network with these supplies.
    """

    solution: Solution
    amount: int
    supply: Int64Array


def solve_max_flow(
    network: FlowNetwork,
    algorithm: str | Sequence[str] = "incremental_ssp",
    *,
    deterministic: bool = False,
    max_operations: int | None = None,
    max_seconds: float | None = None,
) -> MaxFlow:
    """Find a flow of least cost among those that send as much as possible from sources to sinks.

    Supplies are upper bounds here and need not sum to zero. The arguments are those of `solve`. Two
    networks are solved, each with the whole budget. Never ends INFEASIBLE or UNBALANCED.

    Method: two minimum-cost flows on the network with additional nodes. In the first, units that
    are not sent go to an additional node at a cost of 1 each and all other arcs are free, so its
    cost is the number of units that cannot be sent. In the second, exactly that many units are not
    sent, and the costs are those of the network.
    """
    core_of(network)
    as_budget(max_operations, max_seconds)

    def solved(problem: FlowNetwork) -> Solution:
        return solve(
            problem,
            algorithm,
            deterministic=deterministic,
            max_operations=max_operations,
            max_seconds=max_seconds,
        )

    n, m = network.num_nodes, network.num_arcs
    supply = network.supply
    sources, sinks = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0)
    offered, wanted = _total(supply[sources]), -_total(supply[sinks])
    if max(offered, wanted) > np.iinfo(np.int64).max:
        return _stopped(solved(network), n, m)  # out of range, which a solve says first

    most = FlowNetwork()
    most.add_nodes([*supply, wanted - offered])
    most.add_arcs(network.tail, network.head, network.capacity, 0)
    most.add_arcs(sources, np.full(sources.size, n), supply[sources], 1)
    most.add_arcs(np.full(sinks.size, n), sinks, -supply[sinks], 0)
    first = solved(most)
    if first.status is not Status.OPTIMAL:
        return _stopped(first, n, m)
    amount = offered - first.cost

    cheapest = FlowNetwork()
    cheapest.add_nodes([*supply, amount - offered, wanted - amount])
    cheapest.add_arcs(network.tail, network.head, network.capacity, network.cost)
    kept = cheapest.add_arcs(sources, np.full(sources.size, n), supply[sources], 0)
    missed = cheapest.add_arcs(np.full(sinks.size, n + 1), sinks, -supply[sinks], 0)
    second = solved(cheapest)
    if second.status is not Status.OPTIMAL:
        return _stopped(second, n, m)
    sent = supply.copy()
    sent[sources] -= second.flow[kept]
    sent[sinks] += second.flow[missed]
    return MaxFlow(_restricted(second, n, m), amount, sent)


def _total(values: Int64Array) -> int:
    """The exact sum, whatever the values."""
    return sum(values.tolist())


def _restricted(solution: Solution, n: int, m: int) -> Solution:
    """The solution without the nodes and arcs that were added."""
    return replace(solution, flow=solution.flow[:m], potential=solution.potential[:n])


def _stopped(solution: Solution, n: int, m: int) -> MaxFlow:
    return MaxFlow(_restricted(solution, n, m), 0, np.zeros(n, dtype=np.int64))
