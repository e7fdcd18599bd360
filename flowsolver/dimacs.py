"""DIMACS minimum-cost flow files: bytes to network and back (native/dimacs.hpp has the format)."""

from __future__ import annotations

from dataclasses import dataclass

from flowsolver import _flowsolver as native
from flowsolver.network import FlowNetwork, Int64Array
from flowsolver.solution import Solution


class DimacsError(ValueError):
    """A malformed file: `name`:`line` (from 1) and what is wrong there."""

    def __init__(self, name: str, line: int, what: str) -> None:
        super().__init__(f"{name}:{line}: {what}")
        self.name = name
        self.line = line


@dataclass(frozen=True)
class DimacsProblem:
    """A problem as read. Lower bounds are taken out of the network: the flow and cost of the file's problem are the
    network's plus `low` (int64[m]) and `base_cost`."""

    network: FlowNetwork
    low: Int64Array
    base_cost: int


def parse_dimacs(text: bytes, name: str = "<input>") -> DimacsProblem:
    """Parses a DIMACS min file. `name` is for messages. Raises DimacsError."""
    network, low, base_cost, line, error = native.parse_dimacs(text)
    if line > 0:
        raise DimacsError(name, line, error)
    return DimacsProblem(FlowNetwork(network), low, base_cost)


def write_dimacs(network: FlowNetwork) -> bytes:
    """The network as a DIMACS min file."""
    return native.write_dimacs(network.core)


def write_dimacs_solution(problem: DimacsProblem, solution: Solution) -> bytes:
    """`s <cost>` and a line `f <tail> <head> <flow>` per arc with flow, in the terms of the file's problem.

    Raises ValueError when the solution is not OPTIMAL.
    """
    if solution.status is not native.Status.OPTIMAL:
        raise ValueError(f"no flow to write: {solution.status.name}")
    cost_line = b"s %d\n" % (solution.cost + problem.base_cost)
    return cost_line + native.write_dimacs_flow(problem.network.core, solution.flow + problem.low)
