"""The one placement cost: what a task of a preference set costs on a machine, for every scheduler
and every report; which placements it forbids; and the least cost at which a set of tasks could be
placed, against which decisions are measured."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import shared_state._native  # noqa: F401  (schedulers._native speaks of its types)
from schedulers import _native
from shared_state.errors import AgoraError
from shared_state.tasks import NOWHERE_ELSE, CellSpec, Int32, Int64, PreferenceCatalog

UNPLACED = -1
_NATIVE: WeakKeyDictionary[PreferenceCatalog, tuple[Int32, object]] = WeakKeyDictionary()


def placement_cost(
    catalog: PreferenceCatalog, rack: Int32, preference: Int32, machine: Int32
) -> tuple[Int64, NDArray[np.bool_]]:
    """The cost int64[n] of tasks of sets preference int32[n] on machine int32[n] of a cell with
    rack int32[M], and whether each is preferred, bool[n].

    The machine's cost where it is listed for the set (preferred is true only there), else its
    rack's cost where that is listed, else elsewhere_cost; for UNPLACED tasks unscheduled_cost,
    without what they pay for waiting. O(n log set size): the catalog is not copied. Raises
    ValueError for a set or machine that does not exist.
    """
    cost: Int64
    preferred: NDArray[np.bool_]
    cost, preferred = _native.placement_cost(*_columns(catalog), rack, preference, machine)
    return cost, preferred


def native_catalog(catalog: PreferenceCatalog, cell: CellSpec) -> object:
    """The catalog as placement kernels take it, its machines grouped by cost. Shares the arrays.
    ValueError naming a malformed set.

    Where there are many sets, making it takes as long as hundreds of decisions. So all schedulers
    of a process share one, which lives as long as the catalog.
    """
    rack, handle = _NATIVE.get(catalog, (None, None))
    if rack is not cell.rack:
        handle = _native.Catalog(native_columns(catalog, cell))
        _NATIVE[catalog] = cell.rack, handle
    return handle


def native_columns(catalog: PreferenceCatalog, cell: CellSpec) -> object:
    """The catalog as native code takes it that needs the costs of placements alone. Shares the
    arrays; cheap to make."""
    handle: object = _native.CatalogColumns(
        *_columns(catalog), np.ascontiguousarray(cell.rack, np.int32)
    )
    return handle


def _columns(catalog: PreferenceCatalog) -> tuple[Int64 | Int32, ...]:
    return (
        catalog.machine_offsets,
        catalog.machine,
        catalog.machine_cost,
        catalog.rack_offsets,
        catalog.rack,
        catalog.rack_cost,
        catalog.elsewhere_cost,
        catalog.unscheduled_cost,
    )


@dataclass(frozen=True, slots=True)
class PlacementConstraints:
    """The constraints among the preference sets of a catalog.

    Attributes:
        catalog: With at least one constraint.
        rack: int32[M], the rack of each machine.
    """

    catalog: PreferenceCatalog
    rack: Int32

    @staticmethod
    def of(catalog: PreferenceCatalog, cell: CellSpec) -> PlacementConstraints | None:
        """The constraints of a catalog; None if it has none."""
        return PlacementConstraints(catalog, cell.rack) if catalog.has_constraints else None

    def first_broken(self, preference: Int32, machine: Int32) -> int:
        """The first of n placements that its task's preference set does not allow; -1 if there is
        none.

        Args:
            preference: int32[n], the set of each task.
            machine: int32[n], machines of the cell.
        """
        cost, _ = placement_cost(self.catalog, self.rack, preference, machine)
        broken = np.flatnonzero(cost == NOWHERE_ELSE)
        return int(broken[0]) if len(broken) else -1


def refuse_constraints(catalog: PreferenceCatalog, what: str) -> None:
    """Raise AgoraError, naming `what` cannot keep constraints, if a catalog has any."""
    if catalog.has_constraints:
        raise AgoraError(
            f"{what}: expected a workload without constraints (pickiness), as it ignores them"
        )


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least possible cost, or a lower bound on it if not exact."""

    cost: int
    exact: bool


class BestPlacement:
    """The least cost at which a set of tasks could be placed in one cell, by one catalog. It keeps
    nothing from one call to the next.

    It is a min-cost flow on the workload's own costs over classes of equal tasks and groups of
    machines that look alike to them (native/objective.hpp), so the network is small however large
    the cell is.

    The flow is the optimum when all tasks ask for the same amount, none belongs to a gang, and no
    catalog set lists a machine above its rack or a rack above elsewhere. Otherwise packing is hard
    and the flow is a relaxation of it, so its cost is a lower bound and what is measured against it
    an upper one: a machine takes as many tasks as fit it of the set's smallest requests, dimension
    by dimension; gangs may be torn; the cheaper of two prices counts.

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
