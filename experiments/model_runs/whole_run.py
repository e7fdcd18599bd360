"""The numbers of a whole slot simulation that are kept under the same names by all runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.model.slot_results import ConflictsAndScores

NAMES = tuple(field.name for field in fields(ConflictsAndScores))


def whole_run(found: ConflictsAndScores | None) -> dict[str, NDArray[Any]]:
    """Why claims conflicted, and how good the slots in use were: an array of one float64 for each
    of NAMES, nan where it is not known.

    Args:
        found: Of the run; None if there was none.
    """
    values = {name: None if found is None else getattr(found, name) for name in NAMES}
    return {
        name: np.array(np.nan if value is None else float(value)) for name, value in values.items()
    }
