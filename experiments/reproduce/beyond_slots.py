"""What the paper does not tell of runs of the slot simulator: why claims conflicted, and how good
the slots in use were beside the best possible."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.campaign.task import Arrays
from experiments.model_runs.run import number
from experiments.model_runs.searches import SearchRun
from experiments.model_runs.simulations import SimulationRun
from experiments.reproduce.figure import ModelResults, Table
from experiments.statistics import Interval, median_interval
from experiments.sweeps.wording import interval_text
from parsync.metrics.quantity import MISSING, Better, Quantity, Unit

_NOTE = (
    "Beyond the paper; whole runs. Conflicts in the same tick: the slot was taken at the same "
    "nanosecond. Over preferred slots: its weight is above the mean of the cell's slots. By "
    "staleness alone: all others. Visible conflicts are no fourth cause: the slot was in use when "
    "the claim was decided, so a younger view would have shown it. Score in use: the mean over the "
    "slots in use and over time. Best possible: the highest mean that as many slots of the cell "
    "could have had at every moment, if running tasks could move."
)
_AT_ANSWER = " Each row is the run with as many extra slots as the search found."
_SHARES = tuple(
    Quantity(key=key, label=label, unit=Unit.SHARE, better=Better.NEITHER, description=label)
    for key, label in (
        ("conflict_rate", "Conflicts per claim"),
        ("same_tick_conflict_share", "In the same tick"),
        ("quality_conflict_share", "Over preferred slots"),
        ("stale_conflict_share", "By staleness alone"),
        ("visible_conflict_share", "Visible conflicts"),
    )
)
_SCORES = {"score_in_use": "Score in use", "best_score": "Best possible"}


def beyond_slots(results: ModelResults) -> Table | None:
    """A row for each run: medians over the seeds, with their intervals. None if
    these are not runs of the slot simulator."""
    runs = [run for run in results.runs if isinstance(run, SearchRun | SimulationRun)]
    if not runs:
        return None
    rows = []
    for run in runs:
        found = results.of(run.label)
        shares = [interval_text(one, _median(found, one.key)) for one in _SHARES]
        rows.append((run.label, *shares, *(_score_text(_median(found, key)) for key in _SCORES)))
    header = ("", *(one.label for one in _SHARES), *_SCORES.values())
    searches = any(isinstance(run, SearchRun) for run in runs)
    note = _NOTE + _AT_ANSWER if searches else _NOTE
    return Table(header, tuple(rows), note)


def _median(found: Sequence[Arrays], key: str) -> Interval:
    return median_interval([number(arrays, key) for arrays in found])


def _score_text(score: Interval) -> str:
    """Two decimals: strategies differ by tenths."""
    if score.estimate is None:
        return MISSING
    if score.spread is None:
        return f"{score.estimate:.2f}"
    return f"{score.estimate:.2f} ({score.spread[0]:.2f} to {score.spread[1]:.2f})"
