"""The least cost at which a set of tasks could be placed: decisions are measured against it.

A min-cost flow on the workload's own costs (objective.py) over classes of equal tasks and groups of
machines that look alike to them (native/optimum.hpp), so the network is small however large the
cell is.

The flow is the optimum when all tasks ask for the same amount, none belongs to a gang, and no
catalog set lists a machine above its rack or a rack above elsewhere. Otherwise packing is hard and
the flow is a relaxation of it, so its cost is a lower bound and what is measured against it an
upper one: a machine takes as many tasks as fit it of the set's smallest requests, dimension by
dimension; gangs may be torn; the cheaper of two prices counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from schedulers import _native
from schedulers.objective import native_columns
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least possible cost, or a lower bound on it if not exact."""

    cost: int
    exact: bool


class BestPlacement:
    """Solves for one cell and catalog; keeps nothing from one call to the next.

    Attributes:
        native: The same, for native code.
    """

    def __init__(self, cell: CellSpec, catalog: PreferenceCatalog) -> None:
        self.native = _native.BestPlacement(native_columns(catalog, cell))
        self._dimensions = len(cell.dimensions)

    def cost(self, room: Int64, preference: Int32, request: Int64) -> Optimum:
        """The best placement of tasks of sets preference int32[n] that ask for request int64[n, R],
        on room int64[M, R] (below 0: none).

        A task left waiting costs its unscheduled_cost. ValueError for arrays that do not go
        together, a set that does not exist, and costs beyond the solver's range
        (flowsolver.STATUS_TEXT).
        """
        return Optimum(*self.native.cost(room, preference, request, self._dimensions))
