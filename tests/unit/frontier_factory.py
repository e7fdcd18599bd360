"""The frontier of a synthetic run: each of its arms as an architecture of two points."""

from __future__ import annotations

from experiments.analysis.frontier_model import (
    FrontierArchitecture,
    FrontierArea,
    FrontierBest,
    FrontierBox,
    FrontierCondition,
    FrontierPoint,
    FrontierSummary,
)
from experiments.analysis.statistics import Interval
from experiments.analysis.summary_model import RunSummary
from parsync.metrics.quantity import quantities_of
from parsync.metrics.summary import ScopeFigures

PAIR = ("delay_mean_us", "preferred_share")


def _around(middle: float) -> Interval:
    return Interval(
        estimate=middle, low=0.9 * middle, high=1.1 * middle, level=0.9375, n=5, varied=True
    )


def frontier_of(summary: RunSummary) -> FrontierSummary:
    """Points at 10 and 100 ms, the later better placed; the first arm dominates most."""
    known = {one.key: one for one in quantities_of(ScopeFigures)}
    members = list(range(len(summary.arms)))
    return FrontierSummary(
        version="test",
        partial="",
        workload=summary.workload.name,
        machines=summary.workload.machines,
        seeds=[1, 2, 3, 4, 5],
        seeds_vary="",
        quantities=[known[key] for key in PAIR],
        conditions=[FrontierCondition(load_percent=None, gap_s=None)],
        architectures=[
            FrontierArchitecture(
                name=arm.name,
                arm=arm.name,
                knob="options.patience_s",
                prices=arm.prices,
                basis=arm.basis,
            )
            for arm in summary.arms
        ],
        points=[
            FrontierPoint(
                architecture=index,
                condition=0,
                value=patience_s,
                text=f"{patience_s:g} s",
                figures={
                    "delay_mean_us": _around(delay_us),
                    "preferred_share": _around(share - 0.05 * index),
                },
                bounds=[],
                transient=0,
                not_dominated={"/".join(PAIR): True},
            )
            for index in members
            for patience_s, delay_us, share in ((0.0, 1e4, 0.6), (0.3, 1e5, 0.8))
        ],
        box=FrontierBox(fastest_us=100, slowest_us=1e7, worst={PAIR[1]: 0.0}, best={PAIR[1]: 1.0}),
        areas=[
            FrontierArea(
                architecture=index,
                condition=0,
                delay=PAIR[0],
                quality=PAIR[1],
                area=_around(0.5 - 0.05 * index),
                by_seed=[0.5 - 0.05 * index] * 5,
            )
            for index in members
        ],
        bests=[
            FrontierBest(
                condition=0,
                delay=PAIR[0],
                quality=PAIR[1],
                members=members,
                best=0,
                tied=[],
                seeds_needed=5,
            )
        ],
    )
