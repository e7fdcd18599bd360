"""The papers whose figures can be reproduced. A new paper has a place here, a new figure one in its
paper's module."""

from __future__ import annotations

from experiments.papers.figure import Paper
from experiments.papers.omega.figures import FIGURES as OMEGA_FIGURES
from experiments.papers.parsync.controls import FIGURES as CONTROLS
from experiments.papers.parsync.figure1 import FIGURES as FIGURE1
from experiments.papers.parsync.models import FIGURES as MODELS
from experiments.papers.parsync.section6 import FIGURES as SECTION6
from experiments.papers.parsync.section6_live import FIGURES as LIVE
from experiments.papers.parsync.section51 import FIGURES as SECTION51
from shared_state.errors import AgoraError

PARSYNC = Paper(
    "parsync",
    "ParSync",
    "These runs have a tenth of the paper’s cell, and most have shorter phases.",
    (*FIGURE1, *MODELS, *SECTION51, *SECTION6, *LIVE, *CONTROLS),
)
OMEGA = Paper(
    "omega",
    "Omega",
    "These runs have cells of up to 1,000 machines, and one or two hours in place of days.",
    OMEGA_FIGURES,
)
PAPERS: dict[str, Paper] = {paper.id: paper for paper in (PARSYNC, OMEGA)}


def paper_of(name: str) -> Paper:
    """The paper of an id. AgoraError if there is none."""
    if name not in PAPERS:
        raise AgoraError(f"PAPER {name!r}: expected one of {', '.join(PAPERS)}")
    return PAPERS[name]
