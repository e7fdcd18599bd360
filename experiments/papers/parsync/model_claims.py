"""What ParSync's sections 4 and 5 state of Eq. 2 and Figs. 2 to 4.

Values of S_extra are shares of S, so that they mean the same at every scale. Where a search finds
no answer, the claim has no value.
"""

from __future__ import annotations

from experiments.model_runs.run import number
from experiments.papers.claims import Limits, ModelClaim
from experiments.papers.parsync import model_settings as settings
from experiments.papers.parsync import model_statistics as statistic
from experiments.papers.parsync.model_settings import (
    EQ2_TIMES,
    FIG2_FACTORS,
    TAU_S,
    eq2_label,
    line_label,
)
from experiments.papers.parsync.model_statistics import Value

_MINIMAL = 0.02  # of S
_SCORE = 0.25  # a sixth of the standard deviation of scores


def eq2() -> tuple[ModelClaim, ...]:
    """Section 4.1."""
    return (
        ModelClaim(
            "eq2.exact",
            "Eq. 2, section 4.1",
            "Eq. 2 gives the expected number of conflicts of a round.",
            "",
            "largest deviation of the mean of 200 simulated rounds, in standard errors",
            Limits(high=4.0),
            statistic.largest_deviation,
        ),
        ModelClaim(
            "eq2.never_zero",
            "section 4.1",
            "Merely adding extra slots can never reduce the expected conflicts to 0.",
            "",
            "simulated conflicts of a round with 8 times the idle slots",
            Limits(low=1.0),
            lambda runs: number(runs[eq2_label(1, EQ2_TIMES[-1])], "mean"),
        ),
        ModelClaim(
            "eq2.slots_diminish",
            "section 4.1",
            "The effect of increasing the number of extra slots is superlinearly diminishing.",
            "",
            "conflicts that a further idle slot saves between 1 and 2 times the slots, over those "
            "between 2 and 4 times",
            Limits(low=2.0),
            statistic.saved_ratio,
        ),
        ModelClaim(
            "eq2.grows_with_factor",
            "Eq. 4, section 4.1",
            "The expected number of conflicts increases when more schedulers are added.",
            "",
            "least ratio of conflicts at an A to those at half of it",
            Limits(low=1.0, strict=True),
            statistic.least_growth,
        ),
    )


def fig2(letter: str, axis: str) -> tuple[ModelClaim, ...]:
    """Fig. 2, one axis."""
    figure, source = f"fig2{letter}", f"Fig. 2{letter}, section 4.3"
    if axis == settings.PARTITIONS:
        first = ModelClaim(
            f"{figure}.minimal",
            source,
            "The impact of P is minimal.",
            "",
            "largest difference of S_extra between values of P, over A, share of S",
            Limits(high=_MINIMAL),
            lambda runs: statistic.largest(
                statistic.spread(runs, axis, line_label(a)) for a in FIG2_FACTORS
            ),
        )
    else:
        first = ModelClaim(
            f"{figure}.grows",
            source,
            f"A significant number of extra slots needs to be added as {axis[0]} is increased.",
            "",
            "S_extra at the largest value less that at the least, A = 2, share of S",
            Limits(low=0.05),
            lambda runs: statistic.growth(runs, axis, line_label(2)),
        )
    return (
        first,
        ModelClaim(
            f"{figure}.factor_diminishes",
            source,
            "Increasing A has diminishing benefits.",
            "",
            "S_extra saved from A = 4 to 8 over that saved from A = 2 to 4, sums over the values "
            "at which all three have an answer",
            Limits(high=1.0, strict=True),
            lambda runs: statistic.saved_by_factor(runs, axis),
        ),
    )


def fig3(letter: str, axis: str) -> tuple[ModelClaim, ...]:
    """Fig. 3, one axis."""
    return tuple(
        ModelClaim(
            f"fig3{letter}.same_needs_more_a{factor}",
            f"Fig. 3{letter}, section 5.2",
            f"SameSyn requires more extra slots than DiffSyn, A = {factor}.",
            "",
            "S_extra under SameSyn less that under DiffSyn, mean over the values at which both "
            "have an answer, share of S",
            Limits(low=0.01),
            statistic.same_less_diff(axis, factor),
        )
        for factor in settings.FIG3_FACTORS
    )


def fig4() -> tuple[ModelClaim, ...]:
    """Fig. 4. Medians are of the tasks committed in a second, then averaged over seconds."""
    quality, latency, adaptive = settings.FIG4_STRATEGIES
    three = (quality, latency, adaptive)

    def claim(
        name: str, statement: str, paper: str, statistic: str, limits: Limits, value: Value
    ) -> ModelClaim:
        return ModelClaim(
            f"fig4.{name}", "Fig. 4, section 5.2", statement, paper, statistic, limits, value
        )

    return (
        claim(
            "phase1_alike",
            "In phase 1 the strategies have similar delay.",
            "",
            "largest difference of the median delay of group A, s",
            Limits(high=0.1),
            lambda runs: statistic.range_of(
                [statistic.mean(runs[one], "delay_s", 0, 0) for one in three]
            ),
        ),
        claim(
            "phase1_scores_alike",
            "In phase 1 the strategies have similar slot quality.",
            "",
            "largest difference of the median score of group A",
            Limits(high=_SCORE),
            lambda runs: statistic.range_of(
                [statistic.mean(runs[one], "score", 0, 0) for one in three]
            ),
        ),
        claim(
            "utilisation_phase1",
            "In phase 1 the cluster is only 60 to 70 % utilised.",
            "60 to 70 %",
            "mean utilisation, quality-first",
            Limits(0.6, 0.7),
            lambda runs: statistic.utilisation(runs[quality], 0),
        ),
        claim(
            "utilisation_phase2",
            "In phase 2 the utilisation is about 80 %.",
            "80 %",
            "mean utilisation, latency-first",
            Limits(0.75, 0.85),
            lambda runs: statistic.utilisation(runs[latency], 1),
        ),
        claim(
            "quality_first_surges",
            "The delay of group A under quality-first surges in phase 2, to 4.7 s.",
            "4.7 s",
            "its median delay at the end of phase 2, s",
            Limits(3.7, 5.7),
            lambda runs: statistic.at_end(runs[quality], "delay_s", 1, 0),
        ),
        claim(
            "quality_first_b_stable",
            "The delay of group B under quality-first remains stable in phase 2.",
            "",
            "its median delay at the end of phase 2 less that of phase 1, s",
            Limits(high=0.1),
            lambda runs: statistic.less(
                statistic.at_end(runs[quality], "delay_s", 1, 1),
                statistic.mean(runs[quality], "delay_s", 0, 1),
            ),
        ),
        claim(
            "quality_first_keeps_scores",
            "The slot quality of quality-first is not degraded in phase 2.",
            "",
            "median score of group A in phase 2 less that in phase 1",
            Limits(low=-_SCORE),
            lambda runs: statistic.less(
                statistic.mean(runs[quality], "score", 1, 0),
                statistic.mean(runs[quality], "score", 0, 0),
            ),
        ),
        claim(
            "latency_first_slightly_worse",
            "The delay of both groups under latency-first becomes only slightly worse in phase 2.",
            "",
            "largest median delay of a group in phase 2 less that in phase 1, s",
            Limits(high=0.1),
            lambda runs: statistic.largest(
                statistic.less(
                    statistic.mean(runs[latency], "delay_s", 1, group),
                    statistic.mean(runs[latency], "delay_s", 0, group),
                )
                for group in (0, 1)
            ),
        ),
        claim(
            "adaptive_reaches_tau",
            "The delay of group A under adaptive rises to 1.5 s in phase 2 and remains there.",
            "1.5 s",
            "its median delay at the end of phase 2, s",
            Limits(0.9 * TAU_S, 1.1 * TAU_S),
            lambda runs: statistic.at_end(runs[adaptive], "delay_s", 1, 0),
        ),
        claim(
            "adaptive_bounds_both",
            "Adaptive bounds the delay of both groups at 1.5 s in phase 3.",
            "1.5 s",
            "largest median delay of a group at the end of phase 3, s",
            Limits(high=1.1 * TAU_S),
            lambda runs: statistic.largest(
                statistic.at_end(runs[adaptive], "delay_s", 2, one) for one in (0, 1)
            ),
        ),
        claim(
            "adaptive_b_lower",
            "In phase 2 the delay of group B under adaptive is much lower than that of group A.",
            "",
            "ratio of their median delays at the end of phase 2",
            Limits(high=0.5),
            lambda runs: statistic.over(
                statistic.at_end(runs[adaptive], "delay_s", 1, 1),
                statistic.at_end(runs[adaptive], "delay_s", 1, 0),
            ),
        ),
        claim(
            "adaptive_a_scores_lower",
            "In phase 2 group A has lower slot quality than group B under adaptive.",
            "",
            "median score of group A less that of group B at the end of phase 2",
            Limits(high=-0.1),
            lambda runs: statistic.less(
                statistic.at_end(runs[adaptive], "score", 1, 0),
                statistic.at_end(runs[adaptive], "score", 1, 1),
            ),
        ),
        claim(
            "quality_first_keeps_growing",
            "In phase 3 the delay of both groups under quality-first keeps increasing.",
            "",
            "least ratio over the groups of the median delay at its end to that of phase 2",
            Limits(low=1.2),
            lambda runs: statistic.least(
                statistic.over(
                    statistic.at_end(runs[quality], "delay_s", 2, one),
                    statistic.at_end(runs[quality], "delay_s", 1, one),
                )
                for one in (0, 1)
            ),
        ),
        claim(
            "latency_first_much_lower",
            "In phase 3 the delay of latency-first is much lower than those of the others.",
            "",
            "least ratio of another's median delay to it at the end of phase 3, over groups",
            Limits(low=2.0),
            lambda runs: statistic.least(
                statistic.over(
                    statistic.at_end(runs[one], "delay_s", 2, g),
                    statistic.at_end(runs[latency], "delay_s", 2, g),
                )
                for one in (quality, adaptive)
                for g in (0, 1)
            ),
        ),
        claim(
            "scores_worsen",
            "The slot quality of latency-first and adaptive worsens in phase 3.",
            "",
            "largest difference of the median score of phase 3 to that of phase 2, group A",
            Limits(high=0.0, strict=True),
            lambda runs: statistic.largest(
                statistic.less(
                    statistic.mean(runs[one], "score", 2, 0),
                    statistic.mean(runs[one], "score", 1, 0),
                )
                for one in (latency, adaptive)
            ),
        ),
    )
