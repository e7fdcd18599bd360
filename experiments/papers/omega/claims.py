"""What Omega's section 4 states of Figs. 5, 6, 8 and 9 (Schwarzkopf et al., EuroSys 2013).

The limits were set before the first run of these figures. Runs of similar cells, which
docs/omega.md quotes, were known then.
"""

from __future__ import annotations

from experiments.papers import statistics as statistic
from experiments.papers.claims import Claim, Limits
from experiments.papers.omega.runs import (
    MULTI,
    RATES,
    SCHEDULERS,
    SHARED,
    SINGLE,
    T_JOBS_S,
    at_rate,
    at_t_job,
)
from experiments.papers.statistics import (
    ALL_BUSY,
    BATCH_BUSY,
    BATCH_WAIT,
    DAILY_BATCH_CONFLICTS,
    SERVICE_CONFLICTS,
    SERVICE_WAIT,
    given_up,
    service_share,
    wasted_part,
)

SLO_S = 30.0  # "a common production service level objective", section 4
MORE = 1.05  # times as much: more than a rounding
HIGH_RATE = 8  # the highest at which every cell keeps up
SATURATED = 0.9  # busyness


def fig5() -> tuple[Claim, ...]:
    """Fig. 5: the wait of jobs in three architectures."""
    unsaturated_s = (0.1, 1.0)
    long_s = (1.0, 10.0)
    up_to_10_s = [t_job_s for t_job_s in T_JOBS_S if t_job_s <= 10]
    return (
        Claim(
            "fig5.single_path_tracks",
            "Fig. 5a, section 4.1",
            "With a single path, the wait times of service jobs closely track those of batch jobs.",
            "",
            "mean wait of service jobs over that of batch jobs, the ratio furthest from 1, at "
            "t_job = 0.1 and 1 s",
            Limits(0.67, 1.5),
            statistic.furthest_from_one(
                [
                    statistic.ratio(
                        SERVICE_WAIT,
                        at_t_job(SINGLE, t_job_s),
                        at_t_job(SINGLE, t_job_s),
                        BATCH_WAIT,
                    )
                    for t_job_s in unsaturated_s
                ]
            ),
        ),
        Claim(
            "fig5.multi_path_lower",
            "Fig. 5b, section 4.1",
            "With a fast path for batch jobs the job wait time decreases significantly, even at "
            "long decision times for service jobs.",
            "",
            "least ratio of the mean wait of batch jobs, single path to multi-path, at t_job = 1 "
            "and 10 s",
            Limits(low=2.0),
            statistic.least(
                [
                    statistic.ratio(BATCH_WAIT, at_t_job(SINGLE, t_job_s), at_t_job(MULTI, t_job_s))
                    for t_job_s in long_s
                ]
            ),
        ),
        Claim(
            "fig5.multi_path_blocks",
            "Fig. 5b, section 4.1",
            "With a multi-path scheduler batch jobs still wait behind slow service jobs.",
            "",
            "mean wait of batch jobs at t_job = 10 s over that at 0.1 s",
            Limits(low=2.0),
            statistic.ratio(BATCH_WAIT, at_t_job(MULTI, 10.0), at_t_job(MULTI, 0.1)),
        ),
        Claim(
            "fig5.shared_state_independent",
            "Fig. 5c, section 4.3",
            "With shared state there is no head-of-line blocking: the lines for batch and service "
            "jobs are independent.",
            "",
            "mean wait of batch jobs over that at t_job(service) = 1 ms, the ratio furthest from "
            "1, over t_job(service)",
            Limits(0.9, 1.1),
            statistic.furthest_from_one(
                [
                    statistic.ratio(
                        BATCH_WAIT, at_t_job(SHARED, t_job_s), at_t_job(SHARED, T_JOBS_S[0])
                    )
                    for t_job_s in T_JOBS_S[1:]
                ]
            ),
        ),
        Claim(
            "fig5.shared_state_comparable",
            "Fig. 5c, section 4.3",
            "The average job wait times of shared state are comparable to those of a multi-path "
            "scheduler.",
            "",
            "largest ratio of the mean wait, shared state to multi-path, over both classes and "
            "t_job up to 10 s (lower waits count as comparable)",
            Limits(high=1.5),
            statistic.most(
                [
                    statistic.ratio(wait, at_t_job(SHARED, t_job_s), at_t_job(MULTI, t_job_s))
                    for wait in (BATCH_WAIT, SERVICE_WAIT)
                    for t_job_s in up_to_10_s
                ]
            ),
        ),
        Claim(
            "fig5.shared_state_places_all",
            "section 4.3",
            "Shared state manages to schedule all jobs of the workload.",
            "",
            "most tasks that were given up, over t_job",
            Limits(high=0.0),
            statistic.most(
                [statistic.of(given_up, at_t_job(SHARED, t_job_s)) for t_job_s in T_JOBS_S]
            ),
        ),
    )


def fig6() -> tuple[Claim, ...]:
    """Fig. 6: the busyness of schedulers in three architectures."""
    return (
        Claim(
            "fig6.single_path_linear",
            "Fig. 6a, section 4.1",
            "With a single path, scheduler busyness scales linearly with t_job.",
            "10 times per decade",
            "daily busyness at t_job = 1 s over that at 0.1 s, each less that at 1 ms (the part of "
            "t_task)",
            Limits(8.0, 12.0),
            statistic.growth_above(
                ALL_BUSY, at_t_job(SINGLE, 1.0), at_t_job(SINGLE, 0.1), at_t_job(SINGLE, 0.001)
            ),
        ),
        Claim(
            "fig6.single_path_saturates",
            "Figs. 5a and 6a, section 4.1",
            "It grows until the scheduler is saturated and cannot keep up any more.",
            "1",
            "daily busyness at t_job = 100 s",
            Limits(low=0.98),
            statistic.of(ALL_BUSY, at_t_job(SINGLE, 100.0)),
        ),
        Claim(
            "fig6.multi_path_lower",
            "Fig. 6b, section 4.1",
            "With a fast path for batch jobs scheduler busyness decreases significantly, even at "
            "long decision times for service jobs.",
            "",
            "least ratio of daily busyness, single path to multi-path, at t_job = 1 and 10 s",
            Limits(low=1.5),
            statistic.least(
                [
                    statistic.ratio(ALL_BUSY, at_t_job(SINGLE, t_job_s), at_t_job(MULTI, t_job_s))
                    for t_job_s in (1.0, 10.0)
                ]
            ),
        ),
        Claim(
            "fig6.shared_state_few_conflicts",
            "Fig. 6c, section 4.3",
            "With shared state conflicts and interference are relatively rare, as scheduler "
            "busyness confirms.",
            "",
            "largest part of the service scheduler’s decision time that went into attempts with a "
            "conflict, over t_job up to 1 s",
            Limits(high=0.1),
            statistic.most(
                [
                    statistic.of(wasted_part, at_t_job(SHARED, t_job_s))
                    for t_job_s in T_JOBS_S
                    if t_job_s <= 1
                ]
            ),
        ),
    )


def fig8() -> tuple[Claim, ...]:
    """Fig. 8: shared state as batch jobs arrive more often."""
    rising = [at_rate(1, rate) for rate in RATES if rate <= HIGH_RATE]
    base, high = at_rate(1, 1), at_rate(1, HIGH_RATE)
    return (
        Claim(
            "fig8.batch_wait_grows",
            "Fig. 8, section 4.3",
            "The wait of batch jobs increases with their rate.",
            "",
            f"least ratio of the mean wait at a rate to that at the next lower one, up to "
            f"{HIGH_RATE} x",
            Limits(low=MORE),
            statistic.least(statistic.growths(BATCH_WAIT, rising)),
        ),
        Claim(
            "fig8.batch_busyness_grows",
            "Fig. 8, section 4.3",
            "The busyness of the batch scheduler increases with the rate.",
            "",
            f"least ratio of the daily busyness at a rate to that at the next lower one, up to "
            f"{HIGH_RATE} x",
            Limits(low=MORE),
            statistic.least(statistic.growths(BATCH_BUSY, rising)),
        ),
        Claim(
            "fig8.service_wait_grows",
            "Fig. 8, section 4.3",
            "The wait of service jobs increases, too.",
            "",
            f"mean wait of service jobs at {HIGH_RATE} x over that at 1 x",
            Limits(low=1.01),
            statistic.ratio(SERVICE_WAIT, high, base),
        ),
        Claim(
            "fig8.service_busyness_grows",
            "Fig. 8, section 4.3",
            "The busyness of the service scheduler increases, too.",
            "",
            f"share of the time decided on service jobs at {HIGH_RATE} x over that at 1 x",
            Limits(low=1.01),
            statistic.ratio(service_share, high, base),
        ),
        Claim(
            "fig8.service_conflicts_grow",
            "Fig. 8, section 4.3",
            "In the service case that is due to additional conflicts.",
            "",
            f"conflict fraction of service jobs at {HIGH_RATE} x less that at 1 x",
            Limits(low=0.01),
            statistic.less(SERVICE_CONFLICTS, high, base),
        ),
        Claim(
            "fig8.saturation",
            "Fig. 8, section 4.3",
            "Cells A, B and C scale to 2.5, 6 and 9.5 times the original workload.",
            "2.5, 6 and 9.5 x",
            f"rate at which the daily busyness of the batch scheduler reaches {SATURATED:g}",
            Limits(2.5, 9.5),
            statistic.crossing(BATCH_BUSY, [(rate, at_rate(1, rate)) for rate in RATES], SATURATED),
            incomparable="The workloads of these cells are not public.",
        ),
    )


def fig9() -> tuple[Claim, ...]:
    """Fig. 9: shared state with several batch schedulers."""
    every = [at_rate(schedulers, HIGH_RATE) for schedulers in SCHEDULERS]
    return (
        Claim(
            "fig9.conflicts_grow",
            "Fig. 9a, section 4.3",
            "The conflict fraction increases with more schedulers.",
            "",
            f"daily conflict fraction of batch jobs with 32 batch schedulers over that with two, "
            f"at {HIGH_RATE} x",
            Limits(low=MORE),
            statistic.ratio(DAILY_BATCH_CONFLICTS, every[-1], every[1]),
        ),
        Claim(
            "fig9.busyness_falls",
            "Fig. 9b, section 4.3",
            "That is compensated, up to 32 batch schedulers, by the better busyness of each.",
            "",
            f"largest ratio of the daily busyness of a batch scheduler to that with the next lower "
            f"number, at {HIGH_RATE} x",
            Limits(high=1.0, strict=True),
            statistic.most(statistic.growths(BATCH_BUSY, every)),
        ),
        Claim(
            "fig9.service_well_served",
            "Fig. 9, section 4.3",
            "The model scales to a high batch workload with good behaviour for service jobs.",
            "SLO: 30 s",
            f"mean wait of service jobs with 32 batch schedulers at {HIGH_RATE} x, s",
            Limits(high=SLO_S),
            statistic.of_s(SERVICE_WAIT, every[-1]),
            only_at_paper_scale=True,
        ),
    )
