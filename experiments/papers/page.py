"""The page of `agora reproduce` with its tables below figures, and claims.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from experiments.analysis.model_files import write_model, writing
from experiments.analysis.statistics import Interval, interval_in_words, median_interval
from experiments.analysis.summary_model import FORMAT, Version
from experiments.figures import style
from experiments.papers.chapter import FigureRun, Paper, PaperFigure, Results, Table
from experiments.papers.claims import ClaimResult, Verdict, named_run
from experiments.papers.runs import EvidenceOfSeed, LiveEvidence
from experiments.papers.statistics import figure_text
from experiments.report.html import filled, save_page
from experiments.studies.model_runs import SearchRun, SimulationRun, number
from experiments.studies.model_settings import ReproduceScale
from experiments.studies.sweeps.wording import interval_text
from parsync.metrics.kinds.conflicts import ConflictCauses, ConflictFigures
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.quantity import (
    MISSING,
    Better,
    Figures,
    Quantity,
    Unit,
    duration,
    quantities_of,
    share,
)
from shared_state.errors import AgoraError

CLAIMS, PAGE = "claims.json", "reproduce.html"
_WORDS = {
    Verdict.HOLDS: "holds",
    Verdict.DOES_NOT_HOLD: "does not hold",
    Verdict.NOT_COMPARABLE: "not comparable",
}


class Reproduction(Figures):
    """The content of claims.json.

    Attributes:
        version: The version of Agora.
        scale: Of the runs, but for those of live figures.
        seeds: The seeds of every run.
        figures: The ids of the figures that ran.
        left_out: Why others did not, by id: this machine lacks what they need.
        claims: The claims of these figures, in order.
    """

    format: Version = FORMAT
    version: str
    paper: str
    scale: Literal["smoke", "paper"]
    seeds: list[int]
    figures: list[str]
    left_out: dict[str, str] = Field(default_factory=dict)
    claims: list[ClaimResult]


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure on the page.

    Attributes:
        id, source, title, notes: Of the figure.
        headline: What comes out otherwise than in the paper; "" if there is nothing.
        svg: Its drawing; None for a table.
        beyond: What the paper does not tell of its runs; None if there is nothing.
        live: Its live runs beside the same in virtual time; None if it has none.
    """

    id: str
    source: str
    title: str
    notes: tuple[str, ...]
    headline: str
    claims: list[ClaimResult]
    svg: str | None
    table: Table | None
    beyond: Table | None
    live: Table | None


def show(
    figure: PaperFigure,
    results: Results,
    claims: list[ClaimResult],
    folder: Path,
    beyond: Table | None = None,
    live: Table | None = None,
) -> Shown:
    """Draw a figure, as <id>.png and <id>.svg in a folder, or make its table.

    Args:
        beyond: What the paper does not tell of its runs, if there is anything.
        live: Its live runs beside the same in virtual time, if it has any.

    Raises:
        AgoraError: It cannot be written.
    """
    svg = None
    if figure.draw is not None:
        drawn = figure.draw(results)
        try:
            folder.mkdir(exist_ok=True)
            _, path = style.save(drawn, drawn, folder, figure.id)
            svg = style.inline_svg(path, figure.title)
        except OSError as error:
            raise AgoraError(f"{folder}: cannot write {figure.id}: {error.strerror}") from error
    table = None if figure.table is None else figure.table(results)
    headline = "" if figure.headline is None else figure.headline(results)
    texts = (figure.id, figure.source, figure.title, figure.notes, headline)
    return Shown(*texts, claims, svg, table, beyond, live)


def write_claims(directory: Path, reproduction: Reproduction) -> None:
    """Write claims.json, whole or not at all. Raises AgoraError if it cannot be written."""
    write_model(directory / CLAIMS, reproduction)


def write_page(
    directory: Path, paper: Paper, reproduction: Reproduction, shown: Sequence[Shown]
) -> Path:
    """Write the page with all figures. Returns its path; raises AgoraError if it cannot be
    written."""
    path = directory / PAGE
    text = filled(
        "reproduce.html.j2",
        reproduction=reproduction,
        shown=shown,
        at_paper_scale=reproduction.scale == ReproduceScale.PAPER.value,
        paper=paper,
        counts=_counts(shown, live=False),
        live_counts=_counts(shown, live=True),
        words=_WORDS,
        ours=ours_text,
        interval=interval_in_words(len(reproduction.seeds)),
    )
    with writing(path):
        save_page(path, text)
    return path


def _counts(shown: Sequence[Shown], live: bool) -> list[tuple[Verdict, int]]:
    """How many claims have each verdict, of the live figures or of the others."""
    claims = [claim for one in shown if (one.live is not None) == live for claim in one.claims]
    return [(verdict, sum(claim.verdict == verdict for claim in claims)) for verdict in Verdict]


def ours_text(claim: ClaimResult) -> str:
    """The value of a claim's statistic with its interval, such as "1.213 [1.1, 1.326]"; a lower
    bound with "≥"."""
    ours = claim.ours
    if ours.estimate is None:
        return "not known"
    bounds = "" if ours.low is None else f" [{_number(ours.low)}, {_number(ours.high)}]"
    return f"{'≥ ' if ours.at_least else ''}{_number(ours.estimate)}{bounds}"


def _number(value: float | None) -> str:
    """A number to four digits, with thousands: three would hide on which side of a limit it is."""
    if value is None:
        return "?"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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
