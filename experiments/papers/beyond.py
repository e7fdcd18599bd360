"""What papers do not tell of their figures: why claims conflicted in each run, and how far its
placements were from the best possible."""

from __future__ import annotations

from experiments.papers.figure import Results, Table
from experiments.statistics import median_interval
from experiments.sweeps.wording import interval_text
from parsync.metrics.conflict_causes import ConflictCauses
from parsync.metrics.conflicts import ConflictFigures
from parsync.metrics.quantity import quantities_of
from parsync.metrics.regret import RegretMeans

_NOTE = (
    "Beyond the paper. Conflicts in the same tick: the other claim was decided at the same "
    "microsecond. Over preferred machines: both tasks prefer the machine. By staleness alone: all "
    "others. System regret: how much more the placements of all tasks of the cell cost than the "
    "best possible ones, at random instants."
)
_KEYS = (
    "conflict_rate",
    *ConflictCauses.model_fields,
    "system_regret",
    "system_regret_moving",
)
_QUANTITIES = {
    one.key: one
    for model in (ConflictFigures, ConflictCauses, RegretMeans)
    for one in quantities_of(model)
}


def beyond_the_paper(results: Results) -> Table:
    """A row for each run: medians over the seeds, with their intervals."""
    columns = [_QUANTITIES[key] for key in _KEYS]
    rows = tuple(
        (
            run.label,
            *(
                interval_text(
                    column,
                    median_interval(
                        [getattr(one.overall, column.key) for one in results.of(run.label)]
                    ),
                )
                for column in columns
            ),
        )
        for run in results.runs
    )
    return Table(("", *(column.label for column in columns)), rows, _NOTE)
