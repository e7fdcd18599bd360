"""Figs. 5 to 8 of ParSync, live: the same arms on Ray, in real time, on the demo's cell.

The demo has ParSync's ratios at a tenth of its size (experiments.presets): 20,000 slots, 8
schedulers and partitions, tasks of 2 s in place of 5 s, and five phases of 6 s. So two cores can
run it undisturbed, and an arm takes about 40 s by the clock. The paper's tau of 1, 2 and 3 s are
0.2, 0.4 and 0.6 mean run times; so they are here.

Each arm also runs in virtual time, on the same workload. Claims are about the live runs only. Their
limits are those of the figures in virtual time; claims about absolute numbers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from matplotlib.figure import Figure

from experiments.papers.claims import Claim
from experiments.papers.figure import FigureRun, PaperFigure, ReproduceScale, Results
from experiments.papers.parsync import section6_claims as claims
from experiments.papers.parsync.arms import (
    LATENCY,
    QUALITY,
    SETTLE_S,
    STATE,
    TAUS_S,
    Arms,
    adaptive,
)
from experiments.papers.time_plots import in_detail, over_time
from experiments.presets import demo_scale

LIVE = "_live"  # ends the figures' ids
_DEMO = demo_scale(quick=False)
_LEAST_S, _MIDDLE_S, _MOST_S = (
    round(tau_s / SETTLE_S * _DEMO.synthetic.mean_duration_s, 3) for tau_s in TAUS_S
)
SETTING = claims.Setting(LIVE, taus_s=(_LEAST_S, _MIDDLE_S, _MOST_S), settle_s=_DEMO.settle_s)
NOTES = (
    "Dotted lines: the same arms on the same workload in virtual time. There a message takes "
    "0.5 ms. Live, messages wait for ticks of 25 ms, so delays are about 20 ms longer.",
    "Tau is the paper's in mean run times: 0.4, 0.8 and 1.2 s here for 1, 2 and 3 s. Looking at "
    "all partitions costs 0.75 of a decision. The cell is in equilibrium at first, not empty.",
)


def in_virtual_time(label: str) -> str:
    """The label of an arm's run in virtual time."""
    return f"{label}, virtual time"


def _arms() -> Arms:
    return Arms(_DEMO, _DEMO.partitions)


def _both(*runs: FigureRun) -> tuple[FigureRun, ...]:
    """Runs on Ray, and the same in virtual time."""
    live = (replace(run, live=True) for run in runs)
    return (*live, *(replace(run, label=in_virtual_time(run.label)) for run in runs))


def _fig5_runs(_: ReproduceScale) -> tuple[FigureRun, ...]:
    of = _arms()
    return _both(of.latency_first(), of.quality_first(), of.adaptive(_MIDDLE_S), of.state_sync())


def _fig6_runs(_: ReproduceScale) -> tuple[FigureRun, ...]:
    return _both(_arms().latency_first())


def _fig7_runs(_: ReproduceScale) -> tuple[FigureRun, ...]:
    return _both(_arms().quality_first(), _arms().latency_first())


def _fig8_runs(_: ReproduceScale) -> tuple[FigureRun, ...]:
    of = _arms()
    return _both(*map(of.adaptive, SETTING.taus_s), of.latency_first())


def _fig5(results: Results) -> Figure:
    labels = (LATENCY, QUALITY, adaptive(_MIDDLE_S), STATE)
    return _over_time(results, labels, "log_delay")


def _fig8(results: Results) -> Figure:
    return _over_time(results, map(adaptive, SETTING.taus_s), "delay")


def _over_time(results: Results, labels: Iterable[str], delay: str) -> Figure:
    names = {label: label for label in labels}
    beside = {label: in_virtual_time(label) for label in names}
    return over_time(results, names, (delay, "share"), beside)


def _detail(label: str) -> Callable[[Results], Figure]:
    return lambda results: in_detail(results, label, in_virtual_time(label))


def _figure(
    number: int,
    title: str,
    source: str,
    runs: Callable[[ReproduceScale], tuple[FigureRun, ...]],
    of_figure: tuple[Claim, ...],
    draw: Callable[[Results], Figure],
) -> PaperFigure:
    return PaperFigure(
        f"fig{number}{LIVE}",
        f"{title}, live",
        f"Fig. {number}, {source}",
        runs,
        tuple(claim for claim in of_figure if not claim.only_at_paper_scale),
        draw=draw,
        notes=NOTES,
        only_by_name=True,
    )


FIGURES = (
    _figure(
        5,
        "Performance of ParSync and StateSync",
        "section 6.1",
        _fig5_runs,
        claims.fig5(SETTING),
        _fig5,
    ),
    _figure(
        6,
        "Results of ParSync using latency-first",
        "section 6.2",
        _fig6_runs,
        claims.fig6(SETTING),
        _detail(LATENCY),
    ),
    _figure(
        7,
        "Results of ParSync using quality-first",
        "section 6.2",
        _fig7_runs,
        claims.fig7(SETTING),
        _detail(QUALITY),
    ),
    _figure(
        8,
        "Results of the adaptive strategy",
        "section 6.3",
        _fig8_runs,
        claims.fig8(SETTING),
        _fig8,
    ),
)
