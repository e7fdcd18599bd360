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
of its own. Its limits are at_least and at_most, or one of above and below, which leave the limit
itself out. Words in braces stand for entries of [texts], and for what the module gives, so that one
text serves several figures; a limit may be such a word. White space counts as one blank.

The module has the rest: for each claim, by its name, the value that is computed of a seed's runs;
the runs, and the drawing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pydantic import Field

from experiments.papers.claims import Claim, Limits, Value
from experiments.papers.figure import PaperFigure, ReproduceScale, Results, Run, Table
from experiments.strict_model import Strict

Limit = float | str | None


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
        claims: Mapping[str, Value] | tuple[Claim, ...],
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
            claims: The value of each of its claims by name, or the claims themselves.
            id: Of the figure; "": the name.
            notes: In place of the file's.
            words: For the texts of the figure and its claims.

        Raises:
            KeyError: The file has no such figure, claim or text.
        """
        texts = self.figures[name]
        if isinstance(claims, Mapping):
            claims = self.claims(name, claims, figure=id, **words)
        return PaperFigure(
            id or name,
            self._filled(texts.title, words),
            self._filled(texts.source, words),
            runs,
            claims,
            draw,
            table,
            tuple(self._filled(note, words) for note in notes or texts.notes),
        )

    def claims(
        self,
        name: str,
        values: Mapping[str, Value],
        *,
        figure: str = "",
        id: str = "{name}",
        **words: Any,
    ) -> tuple[Claim, ...]:
        """Claims of a figure, in the order of their values.

        Args:
            name: Of the figure's texts.
            values: By the name of the claim.
            figure: Its id; "": the name.
            id: Of a claim in the figure, where several claims have one text.
            words: For the texts.

        Raises:
            KeyError: The file has no such figure, claim or text.
        """
        of, found = self.figures[name], []
        for claim, value in values.items():
            text = of.claims[claim]
            found.append(
                Claim(
                    id=f"{figure or name}.{id.format(name=claim)}",
                    source=self._filled(text.source or of.source, words),
                    statement=self._filled(text.statement, words),
                    paper_value=self._filled(text.paper_value, words),
                    statistic=self._filled(text.statistic, words),
                    limits=self._limits(text, words),
                    value=value,
                    only_at_paper_scale=text.only_at_paper_scale,
                    incomparable=self._filled(text.incomparable, words),
                )
            )
        return tuple(found)

    def texts(self, *names: str) -> tuple[str, ...]:
        """Some of [texts]. Raises KeyError if there is no such text."""
        return tuple(self._filled(self._texts[name], {}) for name in names)

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
