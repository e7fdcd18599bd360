"""The solution of a network, how to check it, and the maximum flow of minimum cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_budget, as_int64, need_type
from flowsolver.choices import Choices, as_native
from flowsolver.network import FlowNetwork, core_of

Status = native.Status
Stats = native.Stats
Certificate = native.Certificate
CutCertificate = native.CutCertificate

STATUS_TEXT: Mapping[native.Status, str] = MappingProxyType(
    {
        Status.OPTIMAL: "optimal",
        Status.INFEASIBLE: "infeasible: no flow meets the supplies",
        Status.UNBALANCED: "unbalanced: the supplies do not sum to zero",
        Status.BAD_COST_RANGE: (
            "cost out of range: max|cost| * (nodes + 1) exceeds 2^59, or the optimal cost int64"
        ),
        Status.BAD_CAPACITY_RANGE: (
            "capacity out of range: supplies and capacities at a node sum beyond 2^61"
        ),
        Status.CANCELLED: "cancelled",
        Status.BUDGET: "stopped at its budget",
        Status.UNBOUNDED: "unbounded: a cycle of negative cost over arcs of unbounded capacity",
    }
)
"""What each status means, as one line for people."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of `solve`.

    Args:
        status: how the solve ended.
        cost: exact total cost. Like flow and potential, it is meaningful only if the status is
            OPTIMAL; for BUDGET see `solve`.
        flow: int64[m] by arc id.
        potential: int64[n] by node id. The reduced cost, cost - potential[tail] + potential[head],
            is >= 0 where flow < capacity and <= 0 where flow > 0.
        stats: counted work, the same on every machine.
        winner: the algorithm that gave this answer.
        stop_seconds: in a race, the time from the winner's end until all others had stopped.
        racer_operations: of each algorithm, the operations that it had counted when it ended or was
            stopped. In a race that is not deterministic this depends on timing; in a deterministic
            one, no loser counts more than the winner.
        cut: if the status is INFEASIBLE, its proof: the nodes whose supply cannot leave, int64[k]
            of node ids, ascending. Their supplies sum to more than the capacities of the arcs from
            them to other nodes. Empty for any other status.
    """

    status: native.Status
    cost: int
    flow: Int64Array
    potential: Int64Array
    stats: native.Stats
    winner: str = ""
    stop_seconds: float = 0.0
    racer_operations: Mapping[str, int] = field(default_factory=dict)
    cut: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def solve(
    network: FlowNetwork,
    algorithm: Choices = "incremental_ssp",
    *,
    deterministic: bool = False,
    max_operations: int | None = None,
    max_seconds: float | None = None,
) -> Solution:
    """Solve `network` from scratch. Releases the GIL.

    Several algorithms race, each in a thread. The first answer wins and the others are stopped.
    With `deterministic`, the answer with the fewest counted operations (`Stats.operations`) wins:
    winner and answer are then the same at every call.

    With a budget the status may be BUDGET. The flow is then the best one reached, within capacities
    but not necessarily balanced, and `cost` is its cost; in a race, it is that of the algorithm
    named first. `misplaced_tasks` tells how far it is from an optimum.

    Ctrl-C in the main thread ends the solve with KeyboardInterrupt. No other thread may change the
    network meanwhile.

    Args:
        network: the network.
        algorithm: a name or an `AlgorithmChoice`, or several for a race; see `algorithms`.
        deterministic: whether the winner of a race is the one with the fewest operations.
        max_operations: budget of counted operations, deterministic; None: unlimited.
        max_seconds: budget of time; None: unlimited.

    Returns:
        The solution. An infeasible network or one out of range is a status, not an exception.

    Raises:
        TypeError, ValueError: as `algorithm_choices`; for a budget that is not positive.
    """
    budget = as_budget(max_operations, max_seconds)
    choices = as_native(algorithm)
    result, winner, stopping, operations = native.solve(
        core_of(network), choices, deterministic, *budget
    )
    return Solution(
        result.status,
        result.cost,
        result.take_flow(),
        result.take_potential(),
        result.stats,
        winner,
        stopping,
        dict(zip((name for name, *_ in choices), operations, strict=True)),
        result.take_cut(),
    )


def misplaced_tasks(network: FlowNetwork, flow: ArrayLike, optimum: ArrayLike) -> int:
    """Count the tasks that a flow does not deliver, or delivers to another machine than an optimum.

    A task is a node of supply 1. Its machine is the last node before the demand that its unit
    reaches. Units that pass an aggregator are interchangeable; one decomposition of the flows is
    used for which they mostly agree. So the count is an upper bound of the least one, and 0 for
    equal flows (Firmament, OSDI 2016, section 5.1; native/certificate.hpp).

    Args:
        network: the network.
        flow: int64[m], >= 0; need not balance.
        optimum: int64[m], a feasible flow.

    Returns:
        The number of misplaced tasks.

    Raises:
        ValueError: for a wrong length or a negative flow.
    """
    return native.misplaced_tasks(
        core_of(network), as_int64("flow", flow), as_int64("optimum", optimum)
    )


def algorithms() -> dict[str, str]:
    """The algorithms that `solve` knows: name -> one-line summary. The first one is the default."""
    return dict(native.algorithms())


def certify(network: FlowNetwork, solution: Solution) -> Certificate | CutCertificate:
    """Check an answer in one exact pass, independently of how it was found.

    An optimum must have a feasible flow, complementary slackness, and claimed == primal == dual
    cost. For INFEASIBLE, the `nodes` of the cut must have more `supply` than the `capacity` of the
    arcs out of them, and its ids must be distinct nodes of the network (others are counted in
    `unknown_nodes`). Any other status is checked like an optimum, and fails.

    Returns:
        The certificate. `certificate.ok` is the verdict; the other fields say what was found.

    Raises:
        ValueError: if the arrays do not have the network's lengths.
    """
    need_type("solution", solution, Solution, "a Solution")
    if solution.status is Status.INFEASIBLE:
        return certify_cut(network, solution.cut)
    return native.certify(
        core_of(network),
        as_int64("flow", solution.flow),
        as_int64("potential", solution.potential),
        solution.cost,
    )


def certify_cut(network: FlowNetwork, cut: ArrayLike) -> CutCertificate:
    """Check whether nodes prove the network infeasible.

    They do if their supplies exceed the capacities of the arcs that leave them. Sums are exact,
    also beyond 64 bits.

    Args:
        network: the network.
        cut: node ids, int64[k].
    """
    return native.certify_cut(core_of(network), as_int64("cut", cut))


def explain(network: FlowNetwork, solution: Solution) -> str:
    """The status in words; for INFEASIBLE, also the gap that the cut proves."""
    text = STATUS_TEXT[solution.status]
    if solution.status is not Status.INFEASIBLE:
        return text
    return f"{text}: {describe_cut(certify_cut(network, solution.cut))}"


def describe_cut(certificate: CutCertificate) -> str:
    """The gap that a cut proves, in words."""
    one = certificate.nodes == 1
    return (
        f"{certificate.nodes} {'node has' if one else 'nodes have'} a supply of "
        f"{certificate.supply}, and arcs of capacity {certificate.capacity} out of "
        f"{'it' if one else 'them'}"
    )


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
    algorithm: Choices = "incremental_ssp",
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
    """The exact sum."""
    return sum(values.tolist())


def _restricted(solution: Solution, n: int, m: int) -> Solution:
    """The solution without the nodes and arcs that were added."""
    return replace(solution, flow=solution.flow[:m], potential=solution.potential[:n])


def _stopped(solution: Solution, n: int, m: int) -> MaxFlow:
    return MaxFlow(_restricted(solution, n, m), 0, np.zeros(n, dtype=np.int64))
