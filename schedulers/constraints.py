"""Which tasks may run on some machines only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedulers.objective import placement_cost
from shared_state.errors import AgoraError
from shared_state.tasks import NOWHERE_ELSE, CellSpec, Int32, PreferenceCatalog


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
