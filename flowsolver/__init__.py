"""Min-cost max-flow on integer networks, from scratch and incrementally. Knows nothing of clusters or schedulers."""

from flowsolver.incremental import IncrementalSolver
from flowsolver.network import FlowNetwork
from flowsolver.solution import Certificate, Solution, Stats, Status, algorithms, certify, solve

__all__ = [
    "Certificate",
    "FlowNetwork",
    "IncrementalSolver",
    "Solution",
    "Stats",
    "Status",
    "algorithms",
    "certify",
    "solve",
]
