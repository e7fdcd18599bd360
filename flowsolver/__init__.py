"""Min-cost max-flow on integer networks, from scratch and incrementally. Knows nothing of clusters
or schedulers."""

from flowsolver.dimacs import (
    DimacsError,
    DimacsProblem,
    parse_dimacs,
    write_dimacs,
    write_dimacs_solution,
)
from flowsolver.incremental import IncrementalSolver
from flowsolver.network import FlowNetwork
from flowsolver.solution import (
    Certificate,
    CutCertificate,
    Solution,
    Stats,
    Status,
    algorithms,
    certify,
    certify_cut,
    misplaced_tasks,
    solve,
)

__all__ = [
    "Certificate",
    "CutCertificate",
    "DimacsError",
    "DimacsProblem",
    "FlowNetwork",
    "IncrementalSolver",
    "Solution",
    "Stats",
    "Status",
    "algorithms",
    "certify",
    "certify_cut",
    "misplaced_tasks",
    "parse_dimacs",
    "solve",
    "write_dimacs",
    "write_dimacs_solution",
]
