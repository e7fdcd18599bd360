"""The figures and tables of ParSync's section 6 and its supplement A."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure

from experiments.papers.figure import FigureRun, PaperFigure, ReproduceScale, Results
from experiments.papers.parsync import section6_claims as claims
from experiments.papers.parsync.arms import (
    LATENCY,
    LOW_SCAN_COST,
    QUALITY,
    SCAN_COSTS,
    SCHEDULERS,
    STATE,
    TAU_S,
    TAUS_S,
    adaptive,
    arms,
)
from experiments.papers.parsync.tables import (
    TABLE1_NOTES,
    TABLE2_NOTES,
    table1,
    table1_claims,
    table1_runs,
    table2,
    table2_claims,
    table2_runs,
)
from experiments.papers.time_plots import in_detail, over_time
from experiments.presets import PARSYNC_SCAN_COST

_SCAN_NOTE = (
    "The paper does not state what looking at all partitions costs. The figure is drawn for 0.75 "
    "of a decision. The claims are also judged for 0.4, which fits Table 2."
)
_QUALITY_NOTE = (
    "Slots have no scores here: quality-first, and adaptive while it acts so, look for preferred "
    "machines. So it does not matter by which mean they compare partitions (quality)."
)


def _fig5_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of = arms(scale)
    both = [
        run
        for cost in SCAN_COSTS
        for run in (
            of.latency_first(scan_cost=cost),
            of.quality_first(scan_cost=cost),
            of.adaptive(TAU_S, scan_cost=cost),
            of.state_sync(scan_cost=cost),
        )
    ]
    return (*both, of.central())


def _fig6_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    return (arms(scale).latency_first(),)


def _fig7_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of = arms(scale)
    return tuple(
        run
        for cost in SCAN_COSTS
        for run in (of.quality_first(scan_cost=cost), of.latency_first(scan_cost=cost))
    )


def _fig8_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of = arms(scale)
    return tuple(
        run
        for cost in SCAN_COSTS
        for run in (
            *(of.adaptive(tau_s, scan_cost=cost) for tau_s in TAUS_S),
            of.latency_first(scan_cost=cost),
        )
    )


def _fig9_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of = arms(scale)
    return (
        of.latency_first(),
        of.quality_first(),
        *(of.adaptive(tau_s) for tau_s in TAUS_S),
    )


def _adaptive_runs(tau_s: float) -> Callable[[ReproduceScale], tuple[FigureRun, ...]]:
    return lambda scale: (arms(scale).adaptive(tau_s),)


def _of_partitions(
    strategy: str, partitions: int
) -> Callable[[ReproduceScale], tuple[FigureRun, ...]]:
    """A strategy with this many partitions, synchronised one at a time and in blocks, and with
    20."""

    def runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
        def run(count: int, label: str, sync: str) -> FigureRun:
            of = arms(scale, count)
            made = of.latency_first if strategy == LATENCY else of.quality_first
            return replace(made(sync=sync), label=label)

        return (
            run(partitions, _many(strategy, partitions), "diff_single"),
            run(partitions, _in_blocks(strategy, partitions), "diff_block"),
            run(SCHEDULERS, strategy, "diff_block"),
        )

    return runs


def _many(strategy: str, partitions: int) -> str:
    return f"{strategy}, {partitions} partitions"


def _in_blocks(strategy: str, partitions: int) -> str:
    return f"{_many(strategy, partitions)} in blocks"


def _detail(label: str) -> Callable[[Results], Figure]:
    return lambda results: in_detail(results, label)


def _fig5(results: Results) -> Figure:
    labels = _same((LATENCY, QUALITY, adaptive(TAU_S), STATE))
    return over_time(results, labels, ("log_delay", "share"))


def _fig8(results: Results) -> Figure:
    return over_time(results, _same(map(adaptive, TAUS_S)), ("delay", "share"))


def _fig9(results: Results) -> Figure:
    labels = _same((LATENCY, QUALITY, *map(adaptive, TAUS_S)))
    return over_time(results, labels, ("waiting",))


def _same(labels: Iterable[str]) -> dict[str, str]:
    return {label: label for label in labels}


def _partition_figures() -> tuple[PaperFigure, ...]:
    found = []
    for number, strategy, partitions in (
        (13, LATENCY, 40),
        (14, LATENCY, 80),
        (15, QUALITY, 40),
        (16, QUALITY, 80),
    ):
        label, blocks = _many(strategy, partitions), _in_blocks(strategy, partitions)
        source = f"Fig. {number}, supplement A.3"
        found.append(
            PaperFigure(
                f"fig{number}",
                f"{strategy} with {partitions} partitions",
                source,
                _of_partitions(strategy, partitions),
                tuple(
                    claim
                    for many, suffix in ((label, ""), (blocks, "_in_blocks"))
                    for claim in claims.partitions(
                        f"fig{number}", source, strategy.lower(), strategy, many, suffix
                    )
                ),
                draw=partial(in_detail, label=label, beside=blocks),
                notes=(
                    "A.3 synchronises one partition every G / P, section 5.1 blocks of P / N "
                    "partitions every G / N. The lines are of the first; dotted lines, and claims "
                    "whose ids end in _in_blocks, of the second.",
                    *((_QUALITY_NOTE,) if strategy == QUALITY else ()),
                ),
            )
        )
    return tuple(found)


FIGURES = (
    PaperFigure(
        "fig5",
        "Performance of ParSync and StateSync",
        "Fig. 5, section 6.1",
        _fig5_runs,
        (*claims.fig5(claims.PAPER), *claims.fig5(claims.LOW_COST), claims.CENTRALISED),
        draw=_fig5,
        notes=(_SCAN_NOTE, _QUALITY_NOTE),
    ),
    PaperFigure(
        "fig6",
        "Results of ParSync using latency-first",
        "Fig. 6, section 6.2",
        _fig6_runs,
        claims.fig6(claims.PAPER),
        draw=_detail(LATENCY),
    ),
    PaperFigure(
        "fig7",
        "Results of ParSync using quality-first",
        "Fig. 7, section 6.2",
        _fig7_runs,
        (*claims.fig7(claims.PAPER), *claims.fig7(claims.LOW_COST)),
        draw=_detail(QUALITY),
        notes=(_SCAN_NOTE, _QUALITY_NOTE),
    ),
    PaperFigure(
        "fig8",
        "Results of the adaptive strategy",
        "Fig. 8, section 6.3",
        _fig8_runs,
        (*claims.fig8(claims.PAPER), *claims.fig8(claims.LOW_COST)),
        draw=_fig8,
        notes=(_SCAN_NOTE, _QUALITY_NOTE),
    ),
    PaperFigure(
        "fig9",
        "The number of accumulated uncommitted tasks",
        "Fig. 9, supplement A.1",
        _fig9_runs,
        claims.fig9(),
        draw=_fig9,
        notes=(_QUALITY_NOTE,),
    ),
    *(
        PaperFigure(
            f"fig{10 + place}",
            f"Results of ParSync using adaptive, tau = {tau_s:g} s",
            f"Fig. {10 + place}, supplement A.2",
            _adaptive_runs(tau_s),
            claims.median_bounded(f"fig{10 + place}", tau_s),
            draw=_detail(adaptive(tau_s)),
            notes=(_QUALITY_NOTE,),
        )
        for place, tau_s in enumerate(TAUS_S)
    ),
    *_partition_figures(),
    PaperFigure(
        "table1",
        "The effects of slot quality",
        "Table 1, section 6.4",
        table1_runs,
        table1_claims(),
        table=table1,
        notes=(*TABLE1_NOTES, _QUALITY_NOTE),
    ),
    PaperFigure(
        "table2",
        "Scalability test results",
        "Table 2, supplement A.4",
        table2_runs,
        (*table2_claims(PARSYNC_SCAN_COST), *table2_claims(LOW_SCAN_COST)),
        table=table2,
        notes=(*TABLE2_NOTES, _QUALITY_NOTE),
    ),
)
