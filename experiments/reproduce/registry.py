"""The papers whose figures can be reproduced. A new figure is a PaperFigure and a place here."""

from __future__ import annotations

from experiments.reproduce.figure import PaperFigure
from experiments.reproduce.section6 import FIGURES as SECTION6
from shared_state.errors import AgoraError

PAPERS: dict[str, tuple[PaperFigure, ...]] = {"parsync": SECTION6}


def chosen(paper: str, ids: list[str]) -> tuple[PaperFigure, ...]:
    """Some figures of a paper, in its order; all of them if no ids are given.

    Raises:
        AgoraError: There is no such paper or figure.
    """
    if paper not in PAPERS:
        raise AgoraError(f"PAPER {paper!r}: expected one of {', '.join(PAPERS)}")
    figures = PAPERS[paper]
    known = {figure.id: figure for figure in figures}
    for one in ids:
        if one not in known:
            raise AgoraError(f"FIGURE {one!r}: expected some of {', '.join(known)}")
    return tuple(figure for figure in figures if not ids or figure.id in ids)
