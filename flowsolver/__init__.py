"""Min-cost flow on integer networks, from scratch and incrementally.

The package is independent of clusters and schedulers. Each name is imported when it is first used,
because `python -m flowsolver` imports this module before it can handle stop signals, and importing
numpy takes a while.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowsolver.choices import AlgorithmChoice, algorithm_choices, parse_algorithms
    from flowsolver.incremental import IncrementalSolver
    from flowsolver.network import UNBOUNDED, FlowNetwork
    from flowsolver.problem_files import (
        DimacsError,
        DimacsProblem,
        parse_dimacs,
        write_dimacs,
        write_dimacs_solution,
    )
    from flowsolver.solution import (
        STATUS_TEXT,
        Certificate,
        CutCertificate,
        MaxFlow,
        Solution,
        Stats,
        Status,
        algorithms,
        certify,
        certify_cut,
        misplaced_tasks,
        solve,
        solve_max_flow,
    )

__all__ = [
    "STATUS_TEXT",
    "UNBOUNDED",
    "AlgorithmChoice",
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
    "algorithm_choices",
    "algorithms",
    "certify",
    "certify_cut",
    "misplaced_tasks",
    "parse_algorithms",
    "parse_dimacs",
    "solve",
    "solve_max_flow",
    "write_dimacs",
    "write_dimacs_solution",
]

_MODULES = ("choices", "incremental", "network", "problem_files", "solution")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"flowsolver.{name}")
    if name in __all__:
        for module in map(import_module, (f"flowsolver.{each}" for each in _MODULES)):
            if name in vars(module):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_MODULES, *__all__]
