"""What the paper does not tell of runs of the slot simulator: why claims conflicted, and how good
the slots in use were beside the best possible."""

from __future__ import annotations

from experiments.model_runs.run import number
from experiments.model_runs.searches import SearchRun
from experiments.model_runs.simulations import SimulationRun
from experiments.reproduce.figure import ModelResults, Table
from experiments.statistics import mean_interval
from experiments.sweeps.wording import interval_text
from parsync.metrics.quantity import Better, Quantity, Unit

_NOTE = (
    "Beyond the paper; whole runs. Conflicts in the same tick: the slot was taken at the same "
    "nanosecond. Over preferred slots: its weight is above the mean of the cell's slots. By "
    "staleness alone: all others. Visible conflicts are no fourth cause: the slot was in use when "
    "the claim was decided, so a younger view would have shown it. Score in use: the mean over the "
    "slots in use and over time. Best possible: the highest mean that as many slots of the cell "
    "could have had at every moment, if running tasks could move."
)
_AT_ANSWER = " Each row is the run with as many extra slots as the search found."
_COLUMNS = {
    "conflict_rate": ("Conflicts per claim", Unit.SHARE),
    "same_tick_conflict_share": ("In the same tick", Unit.SHARE),
    "quality_conflict_share": ("Over preferred slots", Unit.SHARE),
    "stale_conflict_share": ("By staleness alone", Unit.SHARE),
    "visible_conflict_share": ("Visible conflicts", Unit.SHARE),
    "score_in_use": ("Score in use", Unit.PLAIN),
    "best_score": ("Best possible", Unit.PLAIN),
}


def beyond_slots(results: ModelResults) -> Table | None:
    """A row for each run: means over the seeds, with half the width of their 95 % interval. None if
    these are not runs of the slot simulator."""
    runs = [run for run in results.runs if isinstance(run, SearchRun | SimulationRun)]
    if not runs:
        return None
    columns = [
        Quantity(key=key, label=label, unit=unit, better=Better.NEITHER, description=label)
        for key, (label, unit) in _COLUMNS.items()
    ]
    rows = tuple(
        (
            run.label,
            *(
                interval_text(
                    column,
                    mean_interval([number(one, column.key) for one in results.of(run.label)]),
                )
                for column in columns
            ),
        )
        for run in runs
    )
    searches = any(isinstance(run, SearchRun) for run in runs)
    note = _NOTE + _AT_ANSWER if searches else _NOTE
    return Table(("", *(column.label for column in columns)), rows, note)
