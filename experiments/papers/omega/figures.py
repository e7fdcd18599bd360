"""The figures of Omega's sections 4 to 6 (Schwarzkopf et al., EuroSys 2013)."""

from __future__ import annotations

from experiments.papers.figure import MapReduceFigure, PaperFigure
from experiments.papers.omega import (
    claims,
    conflict_claims,
    drawings,
    mapreduce_claims,
    mapreduce_drawings,
)
from experiments.papers.omega.mapreduce import mapreduce_runs
from experiments.papers.omega.runs import (
    architecture_runs,
    commit_runs,
    interference_runs,
    rate_runs,
    scheduler_runs,
    split_runs,
)

_CELL_NOTE = (
    "The workloads of the paper’s cells A, B and C are not public. At paper scale the example of "
    "Omega’s simulator stands in for them, on 10,000 machines of which 60 % are taken from the "
    "start."
)
_TRACE_NOTE = (
    "The paper’s figure rests on a trace of Google’s cells and on Google’s placement algorithm. "
    "Neither is public. The synthetic workload stands in for them, so only shapes and ratios are "
    "judged."
)
_WAIT_NOTE = (
    "Rings are lower bounds: jobs were still waiting at the end of the run. Waits of zero are not "
    "drawn."
)
_SERVICE_NOTE = "Batch and service schedulers have t_job = 0.1 s and t_task = 5 ms."
_JOBS_NOTE = (
    "The paper replays traces of clusters A, C and D, which are not public. A busy cell stands in "
    "for A and C, and a lightly used one, a quarter as large, for D. How many activities the jobs "
    "have, how long these run, and how much of the cells is in use are assumptions."
)
_ACTIVITIES_NOTE = (
    "In the paper a worker is a task that stays. Here each activity is a task, so a worker gives "
    "its room back after each. Setting up a worker takes no time, as in the paper’s model."
)


# Fig. 7 needs Mesos' offers.
FIGURES = (
    PaperFigure(
        "fig5",
        "The wait of jobs in three architectures",
        "Fig. 5, section 4",
        architecture_runs,
        claims.fig5(),
        draw=drawings.fig5,
        notes=(
            _CELL_NOTE,
            _WAIT_NOTE,
        ),
    ),
    PaperFigure(
        "fig6",
        "The busyness of schedulers in three architectures",
        "Fig. 6, section 4",
        architecture_runs,
        claims.fig6(),
        draw=drawings.fig6,
        notes=(
            "Values are medians over days, and error bars their median absolute deviation; at "
            "smoke scale tenths of the run stand for days.",
        ),
    ),
    PaperFigure(
        "fig8",
        "Shared state as batch jobs arrive more often",
        "Fig. 8, section 4.3",
        rate_runs,
        claims.fig8(),
        draw=drawings.fig8,
        notes=(_SERVICE_NOTE,),
    ),
    PaperFigure(
        "fig9",
        "Shared state with 1 to 32 batch schedulers",
        "Fig. 9, section 4.3",
        scheduler_runs,
        claims.fig9(),
        draw=drawings.fig9,
        notes=(_SERVICE_NOTE, "Batch jobs go to the schedulers in turn; in the paper by a hash."),
    ),
    PaperFigure(
        "fig12",
        "Interference as decisions on service jobs become slower",
        "Fig. 12, section 5.1",
        interference_runs,
        conflict_claims.fig12(),
        draw=drawings.fig12,
        notes=(_TRACE_NOTE,),
    ),
    PaperFigure(
        "fig13",
        "Batch jobs on one and on three schedulers",
        "Fig. 13, section 5.1",
        split_runs,
        conflict_claims.fig13(),
        draw=drawings.fig13,
        notes=(
            _TRACE_NOTE,
            "The paper’s x axis is t_job(batch). Here it is divided by the mean time between two "
            "batch jobs: 10 s, or 2 s at smoke scale.",
        ),
    ),
    PaperFigure(
        "fig14",
        "All-or-nothing scheduling and coarse-grained conflict detection",
        "Fig. 14, section 5.2",
        commit_runs,
        conflict_claims.fig14(),
        draw=drawings.fig14,
        notes=(
            _TRACE_NOTE,
            "All or nothing is for all jobs: a job’s claims in one transaction are accepted "
            "together or not at all.",
            "The paper does not say whether coarse-grained detection costs 2 to 3 times under "
            "incremental or under all-or-nothing commits. The claims are about incremental ones, "
            "which it recommends.",
        ),
    ),
    MapReduceFigure(
        "fig15",
        "The speed-up of MapReduce jobs on idle resources",
        "Fig. 15, section 6.2",
        mapreduce_runs,
        mapreduce_claims.fig15(),
        draw=mapreduce_drawings.fig15,
        table=mapreduce_drawings.fig15_table,
        notes=(_JOBS_NOTE, _ACTIVITIES_NOTE),
    ),
    MapReduceFigure(
        "fig16",
        "The use of the cell with MapReduce jobs on idle resources",
        "Fig. 16, section 6.2",
        mapreduce_runs,
        mapreduce_claims.fig16(),
        draw=mapreduce_drawings.fig16,
        table=mapreduce_drawings.fig16_table,
        notes=(
            _JOBS_NOTE,
            "The shaded part, in which the cell fills up, is left out of the statistics. What is "
            "drawn is the use of processors, of which tasks ask for most.",
        ),
    ),
)
