"""A chapter of a paper: what it states, read from a TOML file beside the module of the chapter.

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
blank.

The module has the rest: the runs, for each claim the value that is computed of a seed's runs, and
the drawing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from matplotlib.figure import Figure
from pydantic import Field, model_validator

from experiments.papers.claims import Claim, Limits, Value
from experiments.papers.figure import PaperFigure, Results, Run, Table
from experiments.studies.model_runs.settings import ReproduceScale
from parsync.strict_model import Strict

Limit = float | str | None


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
        **words: Any,
    ) -> PaperFigure:
        """A figure of the file.

        Args:
            name: Of its texts.
            claims: By name, in order: the value of each.
            id: Of the figure; "": the name.
            notes: In place of the file's.
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
        )

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
