"""What Omega's section 6 states of Figs. 15 and 16 (Schwarzkopf et al., EuroSys 2013).

The limits were set before the first run of these figures. The results of examples/omega/mapreduce,
which docs/mapreduce.md quoted, were known then: on another cell of 500 machines, 92 to 95 % of the
jobs gained; speed-ups at the median and at the 80th percentile were 3.4 and 5.8 with
max-parallelism, 2.7 and 3.4 with relative job size, 1.0 and 1.0 with the global cap on a busy cell,
and 3.8 and 6.8, 2.8 and 3.5, 3.1 and 5.6 on a lightly used one; max-parallelism raised the standard
deviation of the use of the busy cell from 0.10 to 0.17.

How many jobs gain, and how much, follows from how many more activities than workers they have. The
paper has that from traces of Google's jobs; here it is an assumption. So these numbers are shown
beside ours, and not judged.
"""

from __future__ import annotations

from experiments.papers.claims import Limits, ModelClaim
from experiments.papers.omega import mapreduce_statistics as statistic
from experiments.papers.omega.claims import MORE
from experiments.papers.omega.mapreduce import (
    BUSY,
    CELLS,
    GLOBAL_CAP,
    LIGHT,
    MAX_PARALLELISM,
    RELATIVE,
    REQUESTED,
    TARGET_USE,
    WITH_EXTRA,
    at_policy,
)

CONFIDENT = 0.8  # the percentile in which the paper has more confidence
GAINING = (0.5, 0.7)  # of the jobs
SPEEDUPS = (3.0, 4.0)  # at the 80th percentile, with max-parallelism
ALMOST = 0.8  # "almost as well"
QUITE = 0.5  # "also does quite well"
LITTLE = 1.2  # at most this speed-up is "little or no benefit"
USUALLY = 0.75  # of the time
HIGH_USE = 0.95  # the quantile of the use of a cell when jobs have extra workers

_TRACES = (
    "It is about traces of Google’s jobs, which are not public. Here nearly all jobs have many "
    "more activities than workers, by assumption."
)


def _at_80(cell: str, policy: str) -> statistic.Value:
    return statistic.speedup_at(cell, policy, CONFIDENT)


def fig15() -> tuple[ModelClaim, ...]:
    """Fig. 15: the speed-ups of MapReduce jobs."""
    others = [policy for policy in WITH_EXTRA if policy != MAX_PARALLELISM]
    return (
        ModelClaim(
            "fig15.jobs_gain",
            "Fig. 15, section 6.2",
            "50 to 70 % of MapReduce jobs can benefit from opportunistic resources.",
            "50 to 70 %",
            "share of the jobs that are at least 5 % faster with max-parallelism, the smaller one "
            "of both cells",
            Limits(*GAINING),
            statistic.least([statistic.gaining_share(cell, MAX_PARALLELISM) for cell in CELLS]),
            incomparable=_TRACES,
        ),
        ModelClaim(
            "fig15.speedup",
            "Fig. 15, section 6.2",
            "At the 80th percentile, max-parallelism speeds jobs up 3 to 4 times.",
            "3 to 4 times",
            "speed-up at the 80th percentile of the jobs, the smaller one of both cells",
            Limits(*SPEEDUPS),
            statistic.least([_at_80(cell, MAX_PARALLELISM) for cell in CELLS]),
            incomparable=_TRACES,
        ),
        ModelClaim(
            "fig15.max_parallelism_most",
            "Fig. 15, section 6.2",
            "Max-parallelism produces the largest improvements.",
            "",
            "least ratio of the speed-up at the 80th percentile, max-parallelism over another "
            "policy, over both cells",
            Limits(low=1.0, strict=True),
            statistic.least(
                [
                    statistic.ratio(_at_80(cell, MAX_PARALLELISM), _at_80(cell, policy))
                    for cell in CELLS
                    for policy in others
                ]
            ),
        ),
        ModelClaim(
            "fig15.relative_size_well",
            "Fig. 15, section 6.2",
            "Relative job size also does quite well.",
            "",
            "speed-up at the 80th percentile over that of max-parallelism, the smaller one of both "
            "cells",
            Limits(low=QUITE),
            statistic.least(
                [
                    statistic.ratio(_at_80(cell, RELATIVE), _at_80(cell, MAX_PARALLELISM))
                    for cell in CELLS
                ]
            ),
        ),
        ModelClaim(
            "fig15.cap_on_light_cell",
            "Fig. 15, section 6.2",
            "The global cap performs almost as well as max-parallelism in the small, "
            "under-utilised cluster D.",
            "almost as well",
            "speed-up at the 80th percentile over that of max-parallelism, on the lightly used "
            "cell",
            Limits(low=ALMOST),
            statistic.ratio(_at_80(LIGHT, GLOBAL_CAP), _at_80(LIGHT, MAX_PARALLELISM)),
        ),
        ModelClaim(
            "fig15.cap_on_busy_cell",
            "Fig. 15, section 6.2",
            "It achieves little or no benefit elsewhere.",
            "little or none",
            "speed-up at the 80th percentile of the jobs, global cap, on the busy cell",
            Limits(high=LITTLE),
            _at_80(BUSY, GLOBAL_CAP),
        ),
        ModelClaim(
            "fig15.use_above_cap",
            "section 6.2",
            "That is because the use of the cluster is usually above the threshold of 60 %.",
            "usually",
            "share of the time in which more than 60 % of the busy cell is in use, without extra "
            "workers",
            Limits(low=USUALLY),
            statistic.use_above(at_policy(BUSY, REQUESTED), TARGET_USE),
        ),
    )


def fig16() -> tuple[ModelClaim, ...]:
    """Fig. 16: the use of the busy cell, without extra workers and with max-parallelism."""
    without, extra = at_policy(BUSY, REQUESTED), at_policy(BUSY, MAX_PARALLELISM)
    return (
        ModelClaim(
            "fig16.use_higher",
            "Fig. 16, section 6.2",
            "The resources that are added to a job increase the use of the cluster until it is "
            "done.",
            "",
            "95th percentile of the use of the busy cell over time, max-parallelism over that "
            "without extra workers",
            Limits(low=MORE),
            statistic.ratio(statistic.use_at(extra, HIGH_USE), statistic.use_at(without, HIGH_USE)),
        ),
        ModelClaim(
            "fig16.use_more_variable",
            "Fig. 16, section 6.2",
            "The variability of the use of the cluster increases.",
            "",
            "standard deviation of the use of the busy cell over time, max-parallelism over that "
            "without extra workers",
            Limits(low=MORE),
            statistic.ratio(statistic.use_deviation(extra), statistic.use_deviation(without)),
        ),
    )
