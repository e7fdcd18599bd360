"""DIMACS minimum-cost flow files: bytes to network and back (format: native/dimacs.hpp)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, need_type
from flowsolver.network import FlowNetwork, core_of
from flowsolver.solution import STATUS_TEXT, Solution, Status


class DimacsError(ValueError):
    """A malformed file: `name`:`line` (from 1) and what is wrong there."""

    def __init__(self, name: str, line: int, what: str) -> None:
        super().__init__(f"{name}:{line}: {what}")
        self.name = name
        self.line = line


@dataclass(frozen=True)
class DimacsProblem:
    """A problem as read from a file.

    Lower bounds are removed from the network: the flow and the cost of the file's problem are the
    network's plus `low` (int64[m]) and `base_cost`.
    """

    network: FlowNetwork
    low: Int64Array
    base_cost: int

    @classmethod
    def without_bounds(cls, network: FlowNetwork, base_cost: int = 0) -> DimacsProblem:
        """A problem whose lower bounds are all 0."""
        return cls(network, np.zeros(network.num_arcs, dtype=np.int64), base_cost)


def parse_dimacs(text: bytes, name: str = "<input>") -> DimacsProblem:
    """Parse a DIMACS min file.

    Args:
        text: the content of the file.
        name: the file's name, for messages.

    Raises:
        DimacsError: names the file and the line.
    """
    need_type("text", text, bytes, "bytes")
    network, low, base_cost, line, error = native.parse_dimacs(text)
    if line > 0:
        raise DimacsError(name, line, error)
    return DimacsProblem(FlowNetwork(network), low, base_cost)


def write_dimacs(network: FlowNetwork, comments: Iterable[str] = ()) -> bytes:
    """The network as a DIMACS min file, after its comments, one line each."""
    return _comment_lines(comments) + native.write_dimacs(core_of(network))


def write_dimacs_solution(
    problem: DimacsProblem, solution: Solution, *, potentials: bool = False
) -> bytes:
    """The solution as text: `s <cost>` and a line `f <tail> <head> <flow>` per arc with flow.

    Cost and flow are those of the file's problem. For a solution that is BUDGET, a comment before
    the flow says so, and there are no potentials.

    Args:
        problem: the problem as read.
        solution: OPTIMAL or BUDGET.
        potentials: also write a line `p <node> <price>` per node in cs2's form: the least price is
            0, and cost + price[tail] - price[head] is >= 0 where flow can grow and <= 0 where it
            can shrink.

    Raises:
        ValueError: for any other status.
    """
    if solution.status not in (Status.OPTIMAL, Status.BUDGET):
        raise ValueError(f"no flow to write: {solution.status.name}")
    comments = []
    if solution.status is Status.BUDGET:
        comments.append(
            f"{STATUS_TEXT[Status.BUDGET]}: not optimal, "
            f"{unsent(problem.network, solution.flow)} units of supply not sent"
        )
    text = _comment_lines(comments) + b"s %d\n" % (solution.cost + problem.base_cost)
    text += native.write_dimacs_flow(problem.network.core, solution.flow + problem.low)
    if potentials and solution.status is Status.OPTIMAL and solution.potential.size > 0:
        price = solution.potential.max() - solution.potential
        text += b"".join(b"p %d %d\n" % line for line in enumerate(price.tolist(), start=1))
    return text


def unsent(network: FlowNetwork, flow: Int64Array) -> int:
    """The units of supply that the flow leaves at their source or at nodes in between."""
    excess = network.supply
    np.subtract.at(excess, network.tail, flow)
    np.add.at(excess, network.head, flow)
    return int(excess[excess > 0].sum())


def _comment_lines(comments: Iterable[str]) -> bytes:
    return "".join(f"c {comment}\n" for comment in comments).encode()
