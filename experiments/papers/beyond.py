"""Tables below a figure: what the paper does not tell of its runs, and live runs beside the same in
virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.statistics import Interval, median_interval
from experiments.papers.claims import named_run
from experiments.papers.figure import FigureRun, Results, Table
from experiments.papers.live_runs import EvidenceOfSeed, LiveEvidence
from experiments.papers.statistics import figure_text
from experiments.studies.model_runs.run import number
from experiments.studies.model_runs.searches import SearchRun
from experiments.studies.model_runs.simulations import SimulationRun
from experiments.studies.sweeps.wording import interval_text
from parsync.metrics.conflicts import ConflictCauses, ConflictFigures
from parsync.metrics.quantity import (
    MISSING,
    Better,
    Quantity,
    Unit,
    duration,
    quantities_of,
    share,
)
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

    def median(label: str, column: Quantity) -> str:
        found = [getattr(run.overall, column.key) for run in results.of(label)]
        return interval_text(column, median_interval(found))

    columns = [_QUANTITIES[key] for key in _KEYS]
    labels = [run.label for run in results.runs]
    rows = tuple((label, *(median(label, column) for column in columns)) for label in labels)
    return Table(("", *(column.label for column in columns)), rows, _NOTE)


_SLOTS_NOTE = (
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


def beyond_slots(results: Results) -> Table | None:
    """A row for each run: medians over the seeds, with their intervals. None if these are not runs
    of the slot simulator."""
    runs = [run for run in results.runs if isinstance(run, SearchRun | SimulationRun)]
    if not runs:
        return None

    def median(label: str, key: str) -> Interval:
        return median_interval([number(arrays, key) for arrays in results.of(label)])

    rows = tuple(
        (
            run.label,
            *(interval_text(one, median(run.label, one.key)) for one in _SHARES),
            *(_score_text(median(run.label, key)) for key in _SCORES),
        )
        for run in runs
    )
    header = ("", *(one.label for one in _SHARES), *_SCORES.values())
    searches = any(isinstance(run, SearchRun) for run in runs)
    note = _SLOTS_NOTE + _AT_ANSWER if searches else _SLOTS_NOTE
    return Table(header, rows, note)


def _score_text(score: Interval) -> str:
    """Two decimals: strategies differ by tenths."""
    if score.estimate is None:
        return MISSING
    if score.spread is None:
        return f"{score.estimate:.2f}"
    return f"{score.estimate:.2f} ({score.spread[0]:.2f} to {score.spread[1]:.2f})"


_LIVE_NOTE = (
    "Each cell: live, then the same arm in virtual time. A run that is not valid says nothing of "
    "its arm; the same command does it again."
)
_FIRST, _PEAK = 0, 2  # phases of 50 and 95 %
_LIVE_COLUMNS = (
    ("mean delay in phase 1", _FIRST, "delay_mean_us", duration),
    ("in phase 3", _PEAK, "delay_mean_us", duration),
    ("conflicts per claim", None, "conflict_rate", share),
    ("on preferred machines", None, "preferred_share", share),
)


def beside_virtual_time(results: Results, evidence: Sequence[EvidenceOfSeed]) -> Table:
    """A row for each live arm: whether it was disturbed, and its figures beside those of the same
    arm in virtual time, as medians over the seeds.

    Args:
        results: Of the live runs, and of the same runs in virtual time.
        evidence: Of the live runs, seed by seed.
    """
    arms = [run for run in results.runs if isinstance(run, FigureRun)]
    virtual = {run.arm.name: run.label for run in arms if not run.live}
    rows = []
    for run in arms:
        if run.live:
            both = (run.label, virtual[run.arm.name])
            figures = [
                " / ".join(figure_text(results, label, phase, key, text) for label in both)
                for _, phase, key, text in _LIVE_COLUMNS
            ]
            of_run = [of_seed[run.label] for of_seed in evidence]
            rows.append((run.label, _seconds(of_run), *figures))
    header = ("", "seconds disturbed", *(name for name, *_ in _LIVE_COLUMNS))
    causes = [
        f" {named_run(label, seed, len(evidence))} was disturbed in {its.validity.text}."
        for seed, of_seed in enumerate(evidence, start=1)
        for label, its in of_seed.items()
        if its.validity.is_disturbed
    ]
    return Table(header, tuple(rows), "".join((_LIVE_NOTE, *causes)))


def _seconds(of_seeds: Sequence[LiveEvidence]) -> str:
    disturbed = sum(len(one.validity.disturbed) for one in of_seeds)
    seconds = sum(one.validity.seconds for one in of_seeds)
    verdict = "not valid" if any(one.why_not_valid() for one in of_seeds) else "valid"
    return f"{disturbed} of {seconds}: {verdict}"
