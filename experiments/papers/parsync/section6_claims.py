"""What ParSync's section 6 and its supplement A state of Figs. 5 to 16.

The claims on Figs. 5, 7 and 8 that depend on what looking at all partitions costs are made twice:
for a scan cost of 0.75, and for 0.4 (section6_runs.py). Those on Figs. 5 to 8 are also made of live
runs (section6_live.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.papers.claims import Claim, Limits
from experiments.papers.parsync import section6_statistics as statistic
from experiments.papers.parsync.arms import (
    CENTRAL,
    LATENCY,
    LOW_SCAN_COST,
    QUALITY,
    SCHEDULERS,
    SETTLE_S,
    STATE,
    TAU_S,
    TAUS_S,
    adaptive,
    with_cost,
)
from experiments.presets import PARSYNC_SCAN_COST

DELAY, SHARE, CONFLICTS = "delay_mean_us", "preferred_share", "conflict_rate"
US_PER_S = 1e6
NEARLY_ALL = 0.98  # of what is submitted
POINT = 0.01
MORE = 1.05  # times as much: more than a rounding


@dataclass(frozen=True, slots=True)
class Setting:
    """The runs that claims on Figs. 5 to 8 are about.

    Attributes:
        ending: Of the figures' ids.
        scan_cost: What looking at all partitions costs.
        taus_s: What stands for the paper's tau of 1, 2 and 3 s.
        settle_s: Left out at the start of each phase.
    """

    ending: str = ""
    scan_cost: float = PARSYNC_SCAN_COST
    taus_s: tuple[float, float, float] = TAUS_S
    settle_s: float = SETTLE_S

    def id(self, figure: str, name: str) -> str:
        """The id of a claim."""
        cost = "" if self.scan_cost == PARSYNC_SCAN_COST else "_low_scan_cost"
        return f"{figure}{self.ending}.{name}{cost}"

    def label(self, label: str) -> str:
        """The label of an arm."""
        return with_cost(label, self.scan_cost)


PAPER = Setting()
LOW_COST = Setting(scan_cost=LOW_SCAN_COST)


def fig5(of: Setting) -> tuple[Claim, ...]:
    """Fig. 5: the delay and the quality of ParSync's strategies and of StateSync."""
    tau_s = of.taus_s[TAUS_S.index(TAU_S)]
    latency, quality = of.label(LATENCY), of.label(QUALITY)
    state, bounded = of.label(STATE), of.label(adaptive(tau_s))

    return (
        Claim(
            of.id("fig5", "latency_first_smallest"),
            "Fig. 5a, section 6.1",
            "The delay of latency-first is significantly smaller than that of the others in all of "
            "the five phases.",
            "",
            "least ratio of another's mean delay to that of latency-first, over the phases",
            Limits(low=MORE),
            statistic.least_ratio(latency, (quality, bounded, state), DELAY),
        ),
        Claim(
            of.id("fig5", "adaptive_bounded"),
            "Fig. 5a, section 6.1",
            "The delay of adaptive is bounded by tau, 2 s.",
            "at most 2 s",
            "highest mean delay of a phase, us",
            Limits(high=tau_s * US_PER_S),
            statistic.highest(bounded, DELAY),
        ),
        Claim(
            of.id("fig5", "quality_first_grows"),
            "Fig. 5a, section 6.1",
            "The delay of quality-first increases much faster than those of latency-first and "
            "adaptive during the peak.",
            "",
            "mean delay in phase 3 over that in phase 2",
            Limits(low=2.0),
            statistic.phase_ratio(quality, DELAY, 2, 1),
        ),
        Claim(
            of.id("fig5", "quality_first_below_statesync"),
            "Fig. 5a, section 6.1",
            "In phase 3 the delay of quality-first is still much smaller than that of StateSync.",
            "",
            "StateSync's mean delay in phase 3 over that of quality-first",
            Limits(low=2.0),
            statistic.ratio(state, quality, DELAY, 2),
        ),
        Claim(
            of.id("fig5", "statesync_grows"),
            "Fig. 5a, section 6.1",
            "Starting from phase 2, StateSync's delay increases rapidly.",
            "",
            "least ratio of the mean delay of a phase to that of the one before, phases 1 to 3",
            Limits(low=2.0),
            statistic.least_growth(state, DELAY, (0, 1, 2)),
        ),
        Claim(
            of.id("fig5", "statesync_drops_last"),
            "Fig. 5a, section 6.1",
            "StateSync's delay starts to drop only in phase 5.",
            "",
            "mean delay in phase 5 over that in phase 4",
            Limits(high=1.0, strict=True),
            statistic.phase_ratio(state, DELAY, 4, 3),
        ),
        Claim(
            of.id("fig5", "statesync_quality"),
            "Fig. 5b, section 6.1",
            "The scheduling quality of StateSync is quite good.",
            "",
            "least difference of its preferred share to that of latency-first, over the phases",
            Limits(low=0.0),
            statistic.least_difference(state, latency, SHARE),
        ),
    )


CENTRALISED = Claim(
    "fig5.one_scheduler",
    "section 6.1",
    "With one scheduler the delay is nearly two orders of magnitude worse than StateSync's.",
    "nearly 100 times",
    "mean delay of one scheduler over StateSync's (a lower bound where tasks are left waiting)",
    Limits(low=30.0),
    statistic.ratio(CENTRAL, STATE, DELAY),
    only_at_paper_scale=True,
)


def fig6(of: Setting) -> tuple[Claim, ...]:
    """Fig. 6: latency-first in detail."""
    latency = of.label(LATENCY)

    return (
        Claim(
            of.id("fig6", "handles_load"),
            "Fig. 6a, section 6.2",
            "Latency-first can handle the task submission rate.",
            "",
            "least ratio of committed to submitted tasks per second, over the phases",
            Limits(low=NEARLY_ALL),
            statistic.committed_share(latency, of.settle_s),
        ),
        Claim(
            of.id("fig6", "delay_follows_rate"),
            "Fig. 6b, section 6.2",
            "The delay of latency-first increases with the task submission rate.",
            "",
            "least ratio of the mean delay of a phase to that of the one before, phases 1 to 3",
            Limits(low=MORE),
            statistic.least_growth(latency, DELAY, (0, 1, 2)),
        ),
        Claim(
            of.id("fig6", "few_conflicts_in_phase_1"),
            "Fig. 6c, section 6.2",
            "Latency-first has an insignificant number of conflicts in phase 1.",
            "",
            "conflicts, as a share of claims, in phase 1",
            Limits(high=POINT),
            statistic.in_phase(latency, 0, CONFLICTS),
        ),
        Claim(
            of.id("fig6", "conflicts_grow"),
            "Fig. 6c, section 6.2",
            "Latency-first has more conflicts during phases 2 to 4.",
            "",
            "conflict rate in phase 3 over that in phase 1",
            Limits(low=2.0),
            statistic.phase_ratio(latency, CONFLICTS, 2, 0),
        ),
    )


def fig7(of: Setting) -> tuple[Claim, ...]:
    """Fig. 7: quality-first in detail."""
    quality = of.label(QUALITY)

    return (
        Claim(
            of.id("fig7", "falls_behind_in_phase_3"),
            "Fig. 7a, section 6.2",
            "In phase 3 the throughput of quality-first is below the 1,900 tasks/s that each "
            "scheduler receives.",
            "below 1,900 tasks/s",
            "committed over submitted tasks per second in phase 3",
            Limits(high=1 - POINT / 2),
            statistic.committed_share(quality, of.settle_s, (2,)),
        ),
        Claim(
            of.id("fig7", "delay_grows"),
            "Fig. 7b, section 6.2",
            "The delay of quality-first increases rapidly in phases 2 and 3.",
            "",
            "least ratio of the mean delay of a phase to that of the one before, phases 1 to 3",
            Limits(low=2.0),
            statistic.least_growth(quality, DELAY, (0, 1, 2)),
        ),
        Claim(
            of.id("fig7", "waiting_in_phase_2"),
            "Fig. 9b, section 6.2",
            "With quality-first a scheduler has 1,700 uncommitted tasks in phase 2 (median).",
            "1,700",
            "tasks that wait per scheduler as phase 2 ends (mean of the schedulers)",
            Limits(850, 3_400),
            statistic.backlog(quality, 1, SCHEDULERS),
            only_at_paper_scale=True,
        ),
        Claim(
            of.id("fig7", "waiting_in_phase_3"),
            "Fig. 9b, section 6.2",
            "With quality-first a scheduler has 5,800 uncommitted tasks in phase 3 (median).",
            "5,800",
            "tasks that wait per scheduler as phase 3 ends (mean of the schedulers)",
            Limits(2_900, 11_600),
            statistic.backlog(quality, 2, SCHEDULERS),
            only_at_paper_scale=True,
        ),
        Claim(
            of.id("fig7", "most_conflicts_at_low_load"),
            "Fig. 7c, section 6.2",
            "Quality-first has more conflicts in phases 1 and 5 than in the others.",
            "",
            "the lower conflict rate of phases 1 and 5 over the highest of phases 2 to 4",
            Limits(low=1.0, strict=True),
            statistic.edge_conflicts(quality),
        ),
        Claim(
            of.id("fig7", "better_quality"),
            "Figs. 6d, 7d, section 6.2",
            "Quality-first achieves considerably better quality than latency-first.",
            "",
            "least difference of the preferred shares, over the phases",
            Limits(low=5 * POINT),
            statistic.least_difference(quality, of.label(LATENCY), SHARE),
        ),
    )


def fig8(of: Setting) -> tuple[Claim, ...]:
    """Fig. 8: adaptive under three values of tau."""
    labels = [of.label(adaptive(tau_s)) for tau_s in of.taus_s]
    least_s, _, most_s = of.taus_s
    latency = of.label(LATENCY)
    bounded = [
        Claim(
            of.id("fig8", f"bounded_at_{paper_s:g}_s"),
            "Fig. 8a, section 6.3",
            f"Adaptive bounds the delay at tau = {paper_s:g} s.",
            f"at most {paper_s:g} s",
            "highest mean delay of a phase, us",
            Limits(high=tau_s * US_PER_S),
            statistic.highest(label, DELAY),
        )
        for paper_s, tau_s, label in zip(TAUS_S, of.taus_s, labels, strict=True)
    ]
    return (
        *bounded,
        Claim(
            of.id("fig8", "switches"),
            "Fig. 8b, section 6.3",
            "In the peak adaptive has to switch to latency-first, so its quality drops.",
            "",
            f"share of the samples of phase 3 in latency-first, tau = {least_s:g} s",
            Limits(low=POINT),
            statistic.in_phase(labels[0], 2, "latency_first_share"),
        ),
        Claim(
            of.id("fig8", "quality_above_latency_first"),
            "Fig. 8b, section 6.3",
            "The quality of adaptive is still higher than that of latency-first.",
            "",
            f"least difference of the preferred shares over the phases, tau = {least_s:g} s",
            Limits(low=0.0, strict=True),
            statistic.least_difference(labels[0], latency, SHARE),
        ),
        Claim(
            of.id("fig8", "larger_tau_better_quality"),
            "Fig. 8b, section 6.3",
            "The quality of tau = 3 s is generally better than that of 2 s and of 1 s.",
            "",
            f"preferred share of tau = {most_s:g} s less that of {least_s:g} s, in phase 3",
            Limits(low=0.0, strict=True),
            statistic.least_difference(labels[-1], labels[0], SHARE, (2,)),
        ),
    )


def partitions(
    figure: str, source: str, strategy: str, few: str, many: str, suffix: str = ""
) -> tuple[Claim, ...]:
    """Figs. 13 to 16: changing the number of partitions has little impact.

    Args:
        few, many: Labels of runs.
        suffix: Of the ids.
    """
    return (
        Claim(
            f"{figure}.same_delay{suffix}",
            source,
            f"More partitions have little impact on the delay of {strategy}.",
            "",
            "mean delay over that with 20 partitions",
            Limits(0.8, 1.25),
            statistic.ratio(many, few, DELAY),
        ),
        Claim(
            f"{figure}.same_quality{suffix}",
            source,
            f"More partitions have little impact on the quality of {strategy}.",
            "",
            "largest difference of the preferred shares, over the phases",
            Limits(high=3 * POINT),
            statistic.largest_gap(many, few, SHARE),
        ),
    )


def fig9() -> tuple[Claim, ...]:
    """Fig. 9: uncommitted tasks."""
    return (
        Claim(
            "fig9.latency_first_smallest",
            "Fig. 9, supplement A.1",
            "Latency-first has the smallest number of accumulated uncommitted tasks.",
            "",
            "least ratio of another's waiting tasks to those of latency-first, in phase 3",
            Limits(low=MORE),
            statistic.least_ratio(
                LATENCY, (QUALITY, *map(adaptive, TAUS_S)), "backlog_mean", phases=(2,)
            ),
        ),
        Claim(
            "fig9.latency_first_sustains",
            "Fig. 9a, supplement A.1",
            "The uncommitted tasks of latency-first are much fewer than the tasks that arrive per "
            "second, and do not keep growing even in phase 3.",
            "fewer than 1,900",
            "tasks that wait per scheduler as phase 3 ends",
            Limits(high=950),
            statistic.backlog(LATENCY, 2, SCHEDULERS),
            only_at_paper_scale=True,
        ),
        Claim(
            "fig9.adaptive_bounded",
            "Fig. 9, supplement A.1",
            "Adaptive keeps the number of uncommitted tasks under a threshold.",
            "",
            "waiting tasks of adaptive (tau = 1 s) over those of quality-first, as phase 3 ends",
            Limits(high=1.0, strict=True),
            statistic.ratio(adaptive(1.0), QUALITY, "backlog_end", 2),
        ),
    )


def median_bounded(figure: str, tau_s: float) -> tuple[Claim, ...]:
    """Figs. 10 to 12: the median delay stays under tau."""
    return (
        Claim(
            f"{figure}.median_bounded",
            f"Fig. {figure.removeprefix('fig')}b, supplement A.2",
            f"Adaptive contains the median scheduling delay under tau = {tau_s:g} s.",
            f"at most {tau_s:g} s",
            "highest median delay of a phase, us (the median over tasks)",
            Limits(high=tau_s * US_PER_S),
            statistic.highest(adaptive(tau_s), "delay_p50_us"),
        ),
    )
