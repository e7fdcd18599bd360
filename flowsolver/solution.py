"""What a solve returns, and how to check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_budget, as_int64, as_names, need_type
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

    cost: exact total cost. flow: int64[m] by arc id. potential: int64[n]; reduced cost = cost -
    potential[tail] + potential[head] is >= 0 where flow < capacity and <= 0 where flow > 0. All
    three mean something only when status is OPTIMAL (for BUDGET see `solve`). stats: counted work
    (searches, settled, scanned, ...), the same on every machine.
    winner: the algorithm whose answer this is. stop_seconds: in a race, the time from its end until
    all others had stopped.
    cut: when status is INFEASIBLE, its proof: the nodes whose supply cannot leave, int64[k] of node
    ids, ascending. Their supplies sum to more than the capacities of the arcs from them to other
    nodes. Empty for any other status.
    """

    status: native.Status
    cost: int
    flow: Int64Array
    potential: Int64Array
    stats: native.Stats
    winner: str = ""
    stop_seconds: float = 0.0
    cut: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def solve(
    network: FlowNetwork,
    algorithm: str | Sequence[str] = "incremental_ssp",
    *,
    deterministic: bool = False,
    max_operations: int | None = None,
    max_seconds: float | None = None,
) -> Solution:
    """Solves `network` from scratch. Releases the GIL. ValueError for an unknown algorithm; see
    `algorithms`.

    Several algorithms race, each in a thread; the first answer wins and the others are stopped.
    With `deterministic` all of them go on until no other can win by fewer counted operations
    (`Stats.operations`): winner and answer are then the same at every call.

    With a budget of counted operations (deterministic) or of time, the status may be BUDGET: the
    flow is then the best there was, within capacities but not necessarily balanced, and cost that
    flow's; of several algorithms, that of the first one. `misplaced_tasks` tells how far it is from
    an optimum.

    Ctrl-C in the main thread ends the solve with KeyboardInterrupt. The network must not be changed
    by another thread meanwhile.
    """
    budget = as_budget(max_operations, max_seconds)
    result, winner, stopping = native.solve(
        core_of(network), as_names(algorithm), deterministic, *budget
    )
    return Solution(
        result.status,
        result.cost,
        result.take_flow(),
        result.take_potential(),
        result.stats,
        winner,
        stopping,
        result.take_cut(),
    )


def misplaced_tasks(network: FlowNetwork, flow: ArrayLike, optimum: ArrayLike) -> int:
    """Tasks (nodes of supply 1) that `flow` does not deliver, or to another machine than the flow
    `optimum` does.

    A task's machine is the last node before the demand its unit meets. Units that pass an
    aggregator are alike; of the ways to tell whose is whose, one is taken by which the flows agree
    much. The count is thus an upper bound of the least one, and 0 for equal flows
    (native/misplacement.hpp). `flow` need not balance. ValueError for a wrong length.
    """
    return native.misplaced_tasks(
        core_of(network), as_int64("flow", flow), as_int64("optimum", optimum)
    )


def algorithms() -> dict[str, str]:
    """Name -> one-line summary of every algorithm `solve` knows."""
    return dict(native.algorithms())


def certify(network: FlowNetwork, solution: Solution) -> Certificate | CutCertificate:
    """Checks the answer in one exact pass, whichever way it was found.

    An optimum must have a feasible flow, complementary slackness, and claimed == primal == dual
    cost. For INFEASIBLE, the cut's `nodes` must have more `supply` than the `capacity` of the arcs
    out of them, and its ids must be nodes of the network, each named once (otherwise they are
    counted in `unknown_nodes`). Any other status is checked like an optimum, and fails.

    `certificate.ok` is the verdict; the other fields say what was found or violated. ValueError
    if the arrays do not have the network's lengths.
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
    """Whether the nodes `cut`, int64[k], prove the network infeasible: their supplies exceed the
    capacities of the arcs that leave them. Sums are exact, also beyond 64 bits."""
    return native.certify_cut(core_of(network), as_int64("cut", cut))


def explain(network: FlowNetwork, solution: Solution) -> str:
    """The status in words; for an INFEASIBLE solution, also the gap that its cut proves."""
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
