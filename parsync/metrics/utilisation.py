"""How much of the cell is in use."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity


class UtilisationFigures(Figures):
    """The use of the cell's first resource, over the samples in the windows; the same for all
    agents."""

    utilisation_mean: Number | None = quantity(
        "Utilisation",
        Unit.SHARE,
        Better.NEITHER,
        "Of the cell's first resource, averaged over samples.",
    )
    utilisation_max: Number | None = quantity(
        "Highest utilisation", Unit.SHARE, Better.NEITHER, "Largest sample."
    )


class UtilisationMetric(Metric):
    """Use of the cell's first resource."""

    kind = "utilisation"
    description = "How much of the cell is in use."
    figures_model = UtilisationFigures
    keeps: ClassVar[TableColumns] = {"cell": ("at_us", "running", "machines_up", "used_permille")}

    def figures(self, scope: Scope) -> UtilisationFigures:
        rows, inside = scope.rows("cell")
        if not inside.any():
            return UtilisationFigures(utilisation_mean=None, utilisation_max=None)
        used = rows["used_permille"][inside]
        return UtilisationFigures(
            utilisation_mean=float(used.mean()) / 1000, utilisation_max=int(used.max()) / 1000
        )
