"""The papers whose figures can be reproduced. A new figure has a place here."""

from __future__ import annotations

from experiments.reproduce.controls import FIGURES as CONTROLS
from experiments.reproduce.figure import AnyFigure
from experiments.reproduce.figure1 import FIGURES as FIGURE1
from experiments.reproduce.model_section import FIGURES as MODELS
from experiments.reproduce.section6 import FIGURES as SECTION6
from experiments.reproduce.section51 import FIGURES as SECTION51
from shared_state.errors import AgoraError

PAPERS: dict[str, tuple[AnyFigure, ...]] = {
    "parsync": (*FIGURE1, *MODELS, *SECTION51, *SECTION6, *CONTROLS)
}


def chosen(paper: str, ids: list[str]) -> tuple[AnyFigure, ...]:
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
