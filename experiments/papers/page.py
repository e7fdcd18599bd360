"""The page of `agora reproduce`, and claims.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.analysis.model_files import write_model, writing
from experiments.analysis.statistics import interval_in_words
from experiments.analysis.summary_model import VERSION, Version
from experiments.figures import style
from experiments.papers.claims import ClaimResult, Verdict
from experiments.papers.figure import Paper, PaperFigure, Results, Table
from experiments.report.html import filled, save_page
from experiments.studies.model_runs.settings import ReproduceScale
from parsync.metrics.quantity import Figures
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
        claims: The claims of these figures, in order.
    """

    format: Version = VERSION
    version: str
    paper: str
    scale: Literal["smoke", "paper"]
    seeds: list[int]
    figures: list[str]
    claims: list[ClaimResult]


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure on the page.

    Attributes:
        id, source, title, notes: Of the figure.
        svg: Its drawing; None for a table.
        beyond: What the paper does not tell of its runs; None if there is nothing.
        live: Its live runs beside the same in virtual time; None if it has none.
    """

    id: str
    source: str
    title: str
    notes: tuple[str, ...]
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
    texts = (figure.id, figure.source, figure.title, figure.notes)
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
