"""What Omega's section 5 states of Figs. 12 to 14 (Schwarzkopf et al., EuroSys 2013).

The limits were set before the first run of these figures, as in omega_claims.py. Absolute numbers
of the section are about traces of Google's cells. These are not public, so such claims are shown
beside ours and not judged.
"""

from __future__ import annotations

from experiments.papers import statistics as statistic
from experiments.papers.claims import Claim, Limits
from experiments.papers.omega.claims import MORE, SATURATED, SLO_S
from experiments.papers.omega.runs import (
    COARSE_GANG,
    COARSE_INCREMENTAL,
    FINE_GANG,
    FINE_INCREMENTAL,
    LOADS,
    SLOW_TASKS,
    SPLIT,
    at_load,
    at_t_job,
)
from experiments.papers.statistics import (
    BATCH_BUSY,
    BATCH_CONFLICTS,
    BATCH_WAIT,
    DAILY_SERVICE_CONFLICTS,
    SERVICE_CONFLICTS,
    SERVICE_WAIT,
    Points,
    service_share,
    without_conflicts,
)

ONE, THREE = SPLIT
# the largest t_job of Fig. 13 at which the schedulers keep up
KEEPS_UP = {ONE: 0.7, THREE: 2.0}

_NOT_PUBLIC = "It is about a trace of Google’s cells, which is not public."


def load_points(schedulers: int) -> Points:
    """The runs of Fig. 13 with so many batch schedulers, over t_job in parts of the mean time
    between two batch jobs."""
    return [(load, at_load(schedulers, load)) for load in LOADS]


def fig12() -> tuple[Claim, ...]:
    """Fig. 12 and section 5.1: the interference of slow service decisions."""
    fine_1_s, fine_10_s = at_t_job(FINE_INCREMENTAL, 1.0), at_t_job(FINE_INCREMENTAL, 10.0)
    return (
        Claim(
            "fig12.conflicts_grow",
            "Fig. 12b, section 5.1",
            "The conflict fraction of service jobs increases with t_job(service).",
            "",
            "their conflict fraction at t_job = 10 s over that at 1 s",
            Limits(low=2.0),
            statistic.ratio(SERVICE_CONFLICTS, fine_10_s, fine_1_s),
        ),
        Claim(
            "fig12.above_one",
            "Fig. 12b, section 5.1",
            "Once t_job(service) reaches about 10 s, the conflict fraction increases beyond 1.",
            "about 1 at 10 s",
            "daily conflict fraction of service jobs at t_job = 10 s",
            Limits(low=1.0, strict=True),
            statistic.of(DAILY_SERVICE_CONFLICTS, fine_10_s),
            incomparable=_NOT_PUBLIC,
        ),
        Claim(
            "fig12.busier_than_without",
            "Fig. 12c, section 5.1",
            "The service scheduler is busier than it would be without conflicts and retries.",
            "about 1.4 times at 10 s",
            "share of the time decided on service jobs over that without conflicts, at t_job = 10 "
            "s",
            Limits(low=MORE),
            statistic.ratio(service_share, fine_10_s, fine_10_s, without_conflicts(10.0)),
        ),
        Claim(
            "fig12.slow_tasks",
            "section 5.1",
            "With t_task(service) = 1 s and t_job(service) = 0.1 s the conflict fraction is at "
            "most 0.2.",
            "at most 0.2",
            "daily conflict fraction of service jobs",
            Limits(high=0.2),
            statistic.of(DAILY_SERVICE_CONFLICTS, SLOW_TASKS),
            incomparable=_NOT_PUBLIC,
        ),
    )


def fig13() -> tuple[Claim, ...]:
    """Fig. 13: three batch schedulers in place of one."""
    return (
        Claim(
            "fig13.three_times",
            "Fig. 13a, section 5.1",
            "Three batch schedulers increase scalability about three times.",
            "about 3 times, from about 4 s to 15 s",
            f"t_job(batch) at which the daily busyness of a batch scheduler reaches {SATURATED:g}, "
            "three schedulers over one",
            Limits(2.5, 4.0),
            statistic.crossings_ratio(BATCH_BUSY, load_points(THREE), load_points(ONE), SATURATED),
        ),
        Claim(
            "fig13.conflicts_low",
            "Fig. 13, section 5.1",
            "The conflict rate remains low, around 0.1.",
            "around 0.1",
            "conflict fraction of batch jobs with three schedulers, the largest over t_job up to "
            "the last at which they keep up",
            Limits(high=0.2),
            statistic.most(
                [
                    statistic.of(BATCH_CONFLICTS, at_load(THREE, load))
                    for load in LOADS
                    if load <= KEEPS_UP[THREE]
                ]
            ),
            incomparable=_NOT_PUBLIC,
        ),
        Claim(
            "fig13.within_slo",
            "Fig. 13b, section 5.1",
            "All schedulers meet the SLO for job wait times until the saturation point.",
            "30 s",
            "largest mean wait of a class, s, with one scheduler and with three, at the last "
            "t_job(batch) at which they keep up",
            Limits(high=SLO_S),
            statistic.most(
                [
                    statistic.of_s(wait, at_load(schedulers, load))
                    for wait in (BATCH_WAIT, SERVICE_WAIT)
                    for schedulers, load in KEEPS_UP.items()
                ]
            ),
            only_at_paper_scale=True,
        ),
    )


def fig14() -> tuple[Claim, ...]:
    """Fig. 14: ways to detect and to resolve conflicts."""
    fine, gang, coarse, both = (
        at_t_job(commits, 10.0)
        for commits in (FINE_INCREMENTAL, FINE_GANG, COARSE_INCREMENTAL, COARSE_GANG)
    )
    return (
        Claim(
            "fig14.more_conflicts",
            "Fig. 14, section 5.2",
            "All-or-nothing scheduling and coarse-grained detection lead to additional conflicts.",
            "",
            "least conflict fraction of service jobs with one or both over that with neither, at "
            "t_job = 10 s",
            Limits(low=MORE),
            statistic.least(
                [statistic.ratio(SERVICE_CONFLICTS, other, fine) for other in (gang, coarse, both)]
            ),
        ),
        Claim(
            "fig14.all_or_nothing_conflicts",
            "Fig. 14, section 5.2",
            "All-or-nothing scheduling increases the conflict fraction by about 2 times.",
            "about 2 times",
            "conflict fraction of service jobs over that of incremental commits, fine-grained, at "
            "t_job = 10 s",
            Limits(1.33, 3.0),
            statistic.ratio(SERVICE_CONFLICTS, gang, fine),
        ),
        Claim(
            "fig14.all_or_nothing_busyness",
            "Fig. 14a, section 5.2",
            "All-or-nothing scheduling leads to a minor increase in scheduler busyness.",
            "minor",
            "share of the time decided on service jobs over that of incremental commits, "
            "fine-grained, at t_job = 10 s",
            Limits(0.95, 1.25),
            statistic.ratio(service_share, gang, fine),
        ),
        Claim(
            "fig14.coarse_conflicts",
            "Fig. 14, section 5.2",
            "Coarse-grained detection increases the conflict rate by 2 to 3 times.",
            "2 to 3 times",
            "conflict fraction of service jobs over that of fine-grained detection, incremental, "
            "at t_job = 10 s",
            Limits(2.0, 3.0),
            statistic.ratio(SERVICE_CONFLICTS, coarse, fine),
        ),
        Claim(
            "fig14.coarse_busyness",
            "Fig. 14, section 5.2",
            "Consequently it increases scheduler busyness by 2 to 3 times.",
            "2 to 3 times",
            "share of the time decided on service jobs over that of fine-grained detection, "
            "incremental, at t_job = 10 s",
            Limits(2.0, 3.0),
            statistic.ratio(service_share, coarse, fine),
        ),
    )
