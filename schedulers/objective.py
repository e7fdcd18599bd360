"""The one placement cost: what a task of a preference set costs on a machine, for every scheduler
and every report."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import shared_state._native  # noqa: F401  (schedulers._native speaks of its types)
from schedulers import _native
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog

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
