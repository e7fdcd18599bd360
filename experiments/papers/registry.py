"""The papers whose figures can be reproduced, chapter by chapter."""

from __future__ import annotations

from experiments.papers.chapter import Paper
from experiments.papers.firmament import algorithms, optimisations
from experiments.papers.mesos import figures as mesos
from experiments.papers.omega import figures, mapreduce
from experiments.papers.parsync import controls, models, section6
from experiments.papers.quincy import figures as quincy
from experiments.papers.sparrow import figures as sparrow
from experiments.papers.sparrow import google
from shared_state.errors import AgoraError

PARSYNC = Paper(
    "parsync",
    "ParSync",
    "These runs have a tenth of the paper’s cell, and most have shorter phases.",
    (*models.FIGURES, *section6.FIGURES, *controls.FIGURES),
)
OMEGA = Paper(
    "omega",
    "Omega",
    "These runs have cells of up to 1,000 machines, and one or two hours in place of days.",
    (*figures.FIGURES, *mapreduce.FIGURES),
)
FIRMAMENT = Paper(
    "firmament",
    "Firmament",
    "These runs have a fifth of the paper’s machines, and jobs a fifth of the tasks.",
    (*algorithms.FIGURES, *optimisations.FIGURES),
    "Timed rounds of the flow scheduler",
)
QUINCY = Paper(
    "quincy",
    "Quincy",
    "These runs have fewer rounds, and a smaller cell for the variants.",
    quincy.FIGURES,
    "Timed rounds of the flow scheduler",
)
SPARROW = Paper(
    "sparrow",
    "Sparrow",
    "These runs are shorter and have fewer draws, and those beside queueing theory a smaller cell.",
    (*sparrow.FIGURES, *google.FIGURES),
)
MESOS = Paper(
    "mesos",
    "Mesos",
    "These runs are shorter and have fewer draws, and one of them has a smaller cell.",
    mesos.FIGURES,
)
PAPERS: dict[str, Paper] = {
    paper.id: paper for paper in (PARSYNC, OMEGA, FIRMAMENT, QUINCY, SPARROW, MESOS)
}


def paper_of(name: str) -> Paper:
    """The paper of an id. AgoraError if there is none."""
    if name not in PAPERS:
        raise AgoraError(f"PAPER {name!r}: expected one of {', '.join(PAPERS)}")
    return PAPERS[name]
