"""A figure or table of a paper: what has to run for it, how it is drawn, and what the paper says.

The texts and claims of a chapter are in a TOML file:

    [texts]
    not_public = "The trace is not public."

    [fig5]
    title = "Performance of ParSync and StateSync"
    source = "Fig. 5, section 6.1"
    notes = ["{not_public}", "The cell is empty at first."]

    [fig5.claims.adaptive_bounded]
    source = "Fig. 5a, section 6.1"
    statement = "The delay of adaptive is bounded by tau, 2 s."
    paper_value = "at most 2 s"
    statistic = "highest mean delay of a phase, us"
    at_most = 2e6

The fields of a claim are those of claims.Claim. Its source is that of the figure unless it has one
of its own. Its limits are at_least, at_most or both, or else one of above and below, which leave
the limit itself out. Words in braces stand for entries of [texts], and for what the module gives,
so that one text serves several figures; a limit may be such a word. White space counts as one
blank. A figure may have a headline, which says ahead of the claims what comes out otherwise than in
the paper, and why; numbers that runs measured are words in it.

The module beside the file has the rest: the runs, for each claim the value that is computed of a
seed's runs, and the drawing. A new chapter has a place in registry.py.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field, model_validator

from experiments.config.run_config import RunConfig
from experiments.papers.claims import Claim, Limits, RunsOfSeed, Value
from experiments.studies.model_runs import ModelRun
from experiments.studies.model_settings import ReproduceScale
from parsync.spec.arm import ArmConfig
from parsync.strict_model import Strict
from shared_state.errors import AgoraError

Series = Mapping[str, NDArray[np.generic]]


def _available() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class FigureRun:
    """An arm that a figure needs, on the workload of a configuration.

    Attributes:
        label: Its name in the figure; unique there.
        config: Everything but the arm and the seed.
        arm: The arm.
        draws_series: Whether its time series of the first seed are drawn.
        keeps_mapreduce: Whether it keeps, under every seed, how long its MapReduce jobs ran and how
            much of the cell was in use (runs.py).
        live: It runs on Ray, in real time.
    """

    label: str
    config: RunConfig
    arm: ArmConfig
    draws_series: bool = True
    keeps_mapreduce: bool = False
    live: bool = False


Run = FigureRun | ModelRun


@dataclass(frozen=True, slots=True)
class Results:
    """What a figure's runs measured.

    Attributes:
        runs: The runs of the figure.
        seeds: What they measured by label, seed by seed: figures of an arm (SeedFigures), or the
            arrays of a run that keeps its MapReduce jobs, or of a run of a model.
        series: The time series of the first seed, by label (parsync.metrics.summary.series); none
            of runs of a model.
    """

    runs: tuple[Run, ...]
    seeds: tuple[RunsOfSeed, ...]
    series: Mapping[str, Series]

    def first(self, label: str) -> Any:
        """What a run measured under the first seed."""
        return self.seeds[0][label]

    def of(self, label: str) -> list[Any]:
        """What a run measured, seed by seed."""
        return [runs[label] for runs in self.seeds]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the paper's form, ours beside the paper's.

    Attributes:
        header: The names of the columns.
        rows: The cells of each row, as text.
        note: What a reader has to know about the table.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table of a paper.

    Attributes:
        id: Such as "fig5" or "table1".
        title: What it shows.
        source: Its place in the paper.
        runs: What has to run, at a scale: all of them arms on the platform, or all runs of models.
        claims: What the paper says of it.
        draw: Draws it in the paper's form; None for a table.
        table: Makes it, or for a figure the table of its numbers; None if there is none.
        notes: The paper's inconsistencies, and choices where the paper is silent.
        headline: What comes out otherwise than in the paper, and why, in a few sentences; None if
            there is nothing to say ahead of the claims.
        only_by_name: It is not made unless it is asked for by its id.
        unavailable: Why this machine cannot make it, in one sentence, such as a trace that is not
            there; "" if it can.
    """

    id: str
    title: str
    source: str
    runs: Callable[[ReproduceScale], tuple[Run, ...]]
    claims: tuple[Claim, ...]
    draw: Callable[[Results], Figure] | None = None
    table: Callable[[Results], Table] | None = None
    notes: tuple[str, ...] = ()
    headline: Callable[[Results], str] | None = None
    only_by_name: bool = False
    unavailable: Callable[[], str] = _available


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose figures can be reproduced.

    Attributes:
        id: As the command takes it.
        title: How the page calls it.
        smoke_note: What the runs at smoke scale are, in one sentence.
        figures: In the paper's order; their claims have ids of their own.
        kind_of_runs: What runs but for live figures, as a sentence begins.
    """

    id: str
    title: str
    smoke_note: str
    figures: tuple[PaperFigure, ...]
    kind_of_runs: str = "Runs in virtual time"

    def possible(self, ids: Sequence[str]) -> tuple[tuple[PaperFigure, ...], dict[str, str]]:
        """The chosen figures that this machine can make, and why it cannot make the others, by id.

        Raises:
            AgoraError: There is no such figure, or one that is asked for by its id cannot be made.
        """
        chosen = self.chosen(ids)
        reasons = {figure.id: figure.unavailable() for figure in chosen}
        left_out = {id: reason for id, reason in reasons.items() if reason}
        if ids and left_out:
            id, reason = next(iter(left_out.items()))
            raise AgoraError(f"FIGURE {id!r}: {reason}")
        return tuple(figure for figure in chosen if figure.id not in left_out), left_out

    def chosen(self, ids: Sequence[str]) -> tuple[PaperFigure, ...]:
        """Some figures, in the paper's order; if no ids are given, all but those that are made only
        by name.

        Raises:
            AgoraError: There is no such figure.
        """
        known = [figure.id for figure in self.figures]
        for one in ids:
            if one not in known:
                raise AgoraError(f"FIGURE {one!r}: expected some of {', '.join(known)}")
        return tuple(
            figure
            for figure in self.figures
            if (figure.id in ids if ids else not figure.only_by_name)
        )


Limit = float | str | None
_NO_WORDS: Mapping[str, Callable[[Results], str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Like:
    """A claim whose texts stand under another name, so that several claims have one text.

    Attributes:
        text: The name.
        words: For its texts, besides those of the figure.
    """

    text: str
    value: Value
    words: Mapping[str, Any]


def like(text: str, value: Value, **words: Any) -> Like:
    """A claim with the texts of another name, and words for them."""
    return Like(text, value, words)


class ClaimText(Strict):
    """What the file has of a claim."""

    source: str = ""
    statement: str
    paper_value: str = ""
    statistic: str
    at_least: Limit = None
    at_most: Limit = None
    above: Limit = None
    below: Limit = None
    only_at_paper_scale: bool = False
    incomparable: str = ""

    @model_validator(mode="after")
    def _one_kind_of_limits(self) -> Self:
        given = [limit is not None for limit in (self.at_least, self.at_most)]
        strict = [limit is not None for limit in (self.above, self.below)]
        if any(given) + sum(strict) != 1:
            raise ValueError(
                "limits: expected at_least, at_most or both, or else one of above and below"
            )
        return self


class FigureText(Strict):
    """What the file has of a figure."""

    title: str
    source: str
    headline: str = ""
    notes: tuple[str, ...] = Field(default=(), strict=False)
    claims: dict[str, ClaimText]


class Chapter:
    """The figures and claims of a file.

    Raises:
        ValueError: The file is not of this form.
    """

    def __init__(self, path: Path) -> None:
        content = tomllib.loads(path.read_text("utf-8"))
        self._texts: dict[str, str] = content.pop("texts", {})
        self.figures = {name: FigureText.model_validate(one) for name, one in content.items()}

    def figure(
        self,
        name: str,
        runs: Callable[[ReproduceScale], tuple[Run, ...]],
        claims: Mapping[str, Value | Like],
        draw: Callable[[Results], Figure] | None = None,
        table: Callable[[Results], Table] | None = None,
        *,
        id: str = "",
        notes: tuple[str, ...] = (),
        headline: Mapping[str, Callable[[Results], str]] = _NO_WORDS,
        unavailable: Callable[[], str] = _available,
        **words: Any,
    ) -> PaperFigure:
        """A figure of the file.

        Args:
            name: Of its texts.
            claims: By name, in order: the value of each.
            id: Of the figure; "": the name.
            notes: In place of the file's.
            headline: Words for its headline: what the runs measured, as text.
            unavailable: As of PaperFigure.
            words: For the texts of the figure and its claims.

        Raises:
            KeyError: The file has no such figure, claim or text.
        """
        texts = self.figures[name]
        stated = {
            one: claim if isinstance(claim, Like) else like(one, claim)
            for one, claim in claims.items()
        }
        return PaperFigure(
            id=id or name,
            title=self._filled(texts.title, words),
            source=self._filled(texts.source, words),
            runs=runs,
            claims=tuple(
                self._claim(f"{id or name}.{one}", texts, claim, {**words, **claim.words})
                for one, claim in stated.items()
            ),
            draw=draw,
            table=table,
            notes=tuple(self._filled(note, words) for note in notes or texts.notes),
            headline=self._headline(texts.headline, headline, words) if texts.headline else None,
            unavailable=unavailable,
        )

    def _headline(
        self,
        text: str,
        measured: Mapping[str, Callable[[Results], str]],
        words: Mapping[str, Any],
    ) -> Callable[[Results], str]:
        def filled(results: Results) -> str:
            return self._filled(text, {**words, **{k: v(results) for k, v in measured.items()}})

        return filled

    def _claim(self, id: str, figure: FigureText, claim: Like, words: Mapping[str, Any]) -> Claim:
        text = figure.claims[claim.text]
        return Claim(
            id=id,
            source=self._filled(text.source or figure.source, words),
            statement=self._filled(text.statement, words),
            paper_value=self._filled(text.paper_value, words),
            statistic=self._filled(text.statistic, words),
            limits=self._limits(text, words),
            value=claim.value,
            only_at_paper_scale=text.only_at_paper_scale,
            incomparable=self._filled(text.incomparable, words),
        )

    def _limits(self, text: ClaimText, words: Mapping[str, Any]) -> Limits:
        def number(limit: Limit) -> float | None:
            return float(self._filled(limit, words)) if isinstance(limit, str) else limit

        if text.above is not None or text.below is not None:
            return Limits(number(text.above), number(text.below), strict=True)
        return Limits(number(text.at_least), number(text.at_most))

    def _filled(self, text: str, words: Mapping[str, Any]) -> str:
        words = {**self._texts, **words}
        # twice: an entry of [texts] has words, too
        return " ".join(text.format_map(words).format_map(words).split())
