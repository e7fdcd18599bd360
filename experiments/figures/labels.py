"""Names of arms as labels of figures: short enough for a legend, in letters that can be drawn."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from functools import cache

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

from experiments.analysis.run_directory import Run

LONGEST_LABEL = 40
FONT = "DejaVu Sans"  # which matplotlib brings along


def label(name: str) -> str:
    """A name shortened to at most LONGEST_LABEL characters.

    The middle is cut out: the ends of long names differ as often as their beginnings. A leading
    underscore gets a space before it, because legends leave out names that begin with one.
    """
    if len(name) > LONGEST_LABEL:
        end = LONGEST_LABEL // 2 - 1
        name = f"{name[: LONGEST_LABEL - end - 1]}…{name[-end:]}"
    return f" {name}" if name.startswith("_") else name


def in_drawable_letters(run: Run) -> Run:
    """The run with its arms named after their folders where their names cannot be drawn."""
    arms = [
        arm if is_drawable(arm.name) else arm.model_copy(update={"name": arm.slug})
        for arm in run.summary.arms
    ]
    return replace(run, summary=run.summary.model_copy(update={"arms": arms}))


def is_drawable(name: str) -> bool:
    """Whether matplotlib shows it as it is read: it has a font for it, and does not need to join
    its letters or to write from right to left."""
    return all(
        ord(character) in _characters() and unicodedata.bidirectional(character) not in ("R", "AL")
        for character in name
    )


@cache
def _characters() -> frozenset[int]:
    return frozenset(FT2Font(findfont(FontProperties(family=FONT))).get_charmap())
