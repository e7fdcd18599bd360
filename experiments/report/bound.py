"""How far arms came from random placement to the fluid bound (studies/run/fluid_bound.py), in the
run's own seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.summary_model import (
    ArmSummary,
    ComparedArms,
    Phase,
    PhaseBound,
    bound_over,
    in_sentence,
)
from experiments.config.decision_basis import BasisKind, basis_text
from parsync.metrics.quantity import share
from parsync.metrics.summary import ScopeFigures


@dataclass(frozen=True, slots=True)
class BoundCell:
    """An arm in a phase, as text.

    Attributes:
        preferred: Its preferred share.
        beside: Which part of the way it came, what its placements cost and how full the cell was.
    """

    preferred: str
    beside: list[str]


@dataclass(frozen=True, slots=True)
class BoundTable:
    """The bound of every phase, and the arms beside it.

    Attributes:
        explained: What the bound is, in sentences.
        bounds: The bound of each phase, as a line and the lines beside it.
        arms: The cells of each arm, by phase, by its slug.
    """

    explained: str
    bounds: list[BoundCell]
    arms: dict[str, list[BoundCell]]


def bound_table(summary: ComparedArms) -> BoundTable | None:
    """The table of a report; None if no phase has a bound."""
    phases = summary.workload.phases
    known = [phase.bound for phase in phases if phase.bound is not None]
    if not known or not summary.arms:
        return None
    return BoundTable(
        explained=_explained(known),
        bounds=[_bound_cell(phase.bound) for phase in phases],
        arms={
            arm.slug: [
                _arm_cell(phase.bound, figures)
                for phase, figures in zip(phases, arm.phases, strict=True)
            ]
            for arm in summary.arms
        },
    )


def bound_sentences(summary: ComparedArms) -> list[str]:
    """The bound of the whole run, and how far the arms came; phases without a steady state."""
    sentences = []
    bound = overall_bound(summary.workload.phases, summary.arms)
    if bound is not None and bound.preferred_share is not None:
        at_most, at_least = ("about",) * 2 if bound.is_estimate else ("at most", "at least")
        cost = ""
        if bound.cost_mean is not None:
            cost = f", and its mean placement cost would be {at_least} {bound.cost_mean:,.4g}"
        sentences.append(
            "A scheduler that could let tasks wait without limit would put "
            f"{at_most} {share(bound.preferred_share)} of them on preferred machines{cost}. "
            f"Random placement puts {share(bound.random_share)} there."
        )
        sets = summary.sets()
        for one in sets:
            ways = {
                in_sentence(arm.name): way
                for arm in one.arms
                if (way := bound.way(arm.overall.preferred_share)) is not None
            }
            if ways and one.arms[0].basis.kind is not BasisKind.UNMODELLED:
                among = f"at {basis_text(one.arms[0].basis)}, " if len(sets) > 1 else ""
                sentences.append(_ways(ways, among, summary.seed))
    sentences += [
        f"Phase {number} has no steady state: the cell can do the work of "
        f"{share(phase.bound.highest_load)} of its arrivals, however they are placed."
        for number, phase in enumerate(summary.workload.phases, start=1)
        if phase.bound is not None and phase.bound.highest_load is not None
    ]
    return sentences


def overall_bound(phases: Sequence[Phase], arms: Sequence[ArmSummary]) -> PhaseBound | None:
    """The bound over all phases, each counting by the tasks submitted in it that prefer some
    machine. None if a phase with such tasks has no bound or no steady state."""
    if not arms or len(arms[0].phases) != len(phases):
        return None
    weight = [figures.submitted_prefers for figures in arms[0].phases]
    return bound_over([phase.bound for phase in phases], weight)


def _ways(ways: dict[str, float], among: str, seed: int | str) -> str:
    """How far comparable arms came on the way from random placement to the bound.

    Args:
        among: Which arms these are, "" if they are all.
    """
    least, most = (pick(ways, key=lambda name: ways[name]) for pick in (min, max))
    low, high = (share(ways[name], 2) for name in (least, most))
    everyone = "both arms have" if len(ways) == 2 else f"all {len(ways)} arms have"
    whose = everyone if len(ways) > 1 and low == high else f"{most} has"
    way = f"Of the way from the one to the other, {among}{whose} come {high}"
    if low != high:
        way += f" and {least} {low}"
    beyond = (
        " An arm comes beyond the bound where many of its tasks wait until the load has ended, or "
        "where by chance others arrive than expected."
        if max(ways.values()) > 1
        else ""
    )
    return f"{way} (seed {seed}).{beyond}"


def _explained(known: Sequence[PhaseBound]) -> str:
    rates = (
        "Arrival rates and run times are those that the options say."
        if known[0].rates == "expected"
        else "Arrival rates and run times are those that came true."
    )
    several = (
        " It is an estimate: machines have several resources, and a slot stands for the mean "
        "request."
        if known[0].is_estimate
        else ""
    )
    return (
        "The bound is the best that any scheduler could reach if the load of a phase went on and "
        "tasks could wait without limit (the fluid bound), so schedulers without delay need not "
        f"reach it. {rates}{several} The way goes from random placement, where each task takes any "
        "free slot, to the highest preferred share."
    )


def _bound_cell(bound: PhaseBound | None) -> BoundCell:
    if bound is None:
        return BoundCell("–", [])
    by_chance = f"random {share(bound.random_share)}"
    if bound.preferred_share is None:
        if bound.highest_load is None:
            return BoundCell("could not be computed", [by_chance])
        sustained = f"{share(bound.highest_load)} of these arrivals could be sustained"
        return BoundCell("no steady state", [by_chance, sustained])
    return BoundCell(
        share(bound.preferred_share),
        [
            by_chance,
            *([] if bound.cost_mean is None else [f"lowest cost {bound.cost_mean:,.4g}"]),
            *([] if bound.occupancy is None else [f"{share(bound.occupancy)} busy"]),
        ],
    )


def _arm_cell(bound: PhaseBound | None, figures: ScopeFigures) -> BoundCell:
    if figures.preferred_share is None:
        return BoundCell("–", [])
    beside = []
    if bound is not None and (way := bound.way(figures.preferred_share)) is not None:
        beside.append(f"{share(way, 2)} of the way")
    if figures.cost_mean is not None:
        beside.append(f"cost {figures.cost_mean:,.4g}")
    if figures.utilisation_mean is not None:
        beside.append(f"{share(figures.utilisation_mean)} busy")
    return BoundCell(share(figures.preferred_share), beside)
