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
from flowsolver.max_flow import MaxFlow, solve_max_flow
from flowsolver.network import UNBOUNDED, FlowNetwork
from flowsolver.solution import (
    STATUS_TEXT,
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
    "STATUS_TEXT",
    "UNBOUNDED",
    "Certificate",
    "CutCertificate",
    "DimacsError",
    "DimacsProblem",
    "FlowNetwork",
    "IncrementalSolver",
    "MaxFlow",
    "Solution",
    "Stats",
    "Status",
    "algorithms",
    "certify",
    "certify_cut",
    "misplaced_tasks",
    "parse_dimacs",
    "solve",
    "solve_max_flow",
    "write_dimacs",
    "write_dimacs_solution",
]
