"""What section 5.1 of ParSync observes: conflicts and delay in the two halves of the gap G.

The paper divides G = 0.5 s in two and gives numbers for S_extra = 15,000. It states neither A, nor
whether all schedulers synchronise at the same times, nor whether a scheduler sees the slots of its
own tasks as soon as they end. These runs have A = 2 and all four combinations of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from experiments.campaign.task import Arrays
from experiments.model_runs.simulations import SimulationRun
from experiments.reproduce.claims import Limits, ModelClaim, ModelsOfSeed
from experiments.reproduce.figure import ModelFigure, ModelResults, ReproduceScale, Table
from experiments.reproduce.model_settings import default_settings, part
from experiments.statistics import median_interval
from parsync.protocols.optimistic.choices import SyncMode

EXTRA_SLOTS, FACTOR = 15_000, 2
WARM_UP_S = 10.0
_SOURCE = "section 5.1"
_POINTS = 0.05  # of the paper's shares


@dataclass(frozen=True, slots=True)
class _Setting:
    """A combination of what the paper leaves open.

    Attributes:
        name: Of its claims.
        label: Of its run.
    """

    name: str
    label: str
    sync: SyncMode
    freed_at_once: bool


SETTINGS = (
    _Setting("aligned", "Aligned", SyncMode.STATE_ALIGNED, False),
    _Setting("aligned_own", "Aligned, own slots at once", SyncMode.STATE_ALIGNED, True),
    _Setting("staggered", "Staggered", SyncMode.STATE_STAGGERED, False),
    _Setting("staggered_own", "Staggered, own slots at once", SyncMode.STATE_STAGGERED, True),
)


def runs(scale: ReproduceScale) -> tuple[SimulationRun, ...]:
    """The default setting of section 4.3 with S_extra = 15,000, once for each combination."""
    settings = replace(default_settings(scale, FACTOR), extra_slots=EXTRA_SLOTS // part(scale))
    return tuple(
        SimulationRun(one.label, replace(settings, sync=one.sync, freed_at_once=one.freed_at_once))
        for one in SETTINGS
    )


def conflict_rate(arrays: Arrays, half: int) -> float | None:
    """Conflicts per claim in a half of the gap, after the warm-up."""
    return _ratio(_of_half(arrays, "slice_conflicts", half), _of_half(arrays, "slice_claims", half))


def delay_share(arrays: Arrays, half: int) -> float | None:
    """The mean delay that conflicts cause a task committed in a half of the gap, over the sum of
    these means of both halves."""
    means = [
        _ratio(
            _of_half(arrays, "slice_conflict_delay_s", one), _of_half(arrays, "slice_commits", one)
        )
        for one in (0, 1)
    ]
    own, total = means[half], sum(mean for mean in means if mean is not None)
    return None if own is None else _ratio(own, total)


def growth(arrays: Arrays) -> float | None:
    """The conflict rate in the second half over that in the first."""
    first, second = conflict_rate(arrays, 0), conflict_rate(arrays, 1)
    return None if first is None or second is None else _ratio(second, first)


def table(results: ModelResults) -> Table:
    """The four numbers of the paper beside ours."""
    rows: list[tuple[str, ...]] = [("Paper", "48 %", "64 %", "23 %", "76 %")]
    for one in SETTINGS:
        found = results.of(one.label)
        cells = [
            _percent([value(arrays, half) for arrays in found])
            for value in (conflict_rate, delay_share)
            for half in (0, 1)
        ]
        rows.append((one.label, *cells))
    header = (
        "StateSync",
        *("conflict rate, 1st half of G", "2nd half"),
        *("share of delay, 1st half", "2nd half"),
    )
    return Table(
        header,
        tuple(rows),
        "Delay is the part that conflicts cause: beyond queueing and deciding each task once. "
        "Medians over the seeds.",
    )


def _claims(setting: _Setting) -> tuple[ModelClaim, ...]:
    how = setting.label[0].lower() + setting.label[1:]

    def claim(
        name: str,
        statement: str,
        paper: str,
        statistic: str,
        limits: Limits,
        value: Callable[[Arrays], float | None],
    ) -> ModelClaim:
        def of_run(runs: ModelsOfSeed) -> float | None:
            return value(runs[setting.label])

        return ModelClaim(
            f"sec51.{name}_{setting.name}",
            _SOURCE,
            f"{statement} ({how})",
            paper,
            statistic,
            limits,
            of_run,
        )

    return (
        claim(
            "first_half",
            "The average conflict rate in the first half of the gap is 48 %.",
            "48 %",
            "conflicts per claim in the first half of G",
            Limits(0.48 - _POINTS, 0.48 + _POINTS),
            partial(conflict_rate, half=0),
        ),
        claim(
            "second_half",
            "The average conflict rate in the second half of the gap is 64 %.",
            "64 %",
            "conflicts per claim in the second half of G",
            Limits(0.64 - _POINTS, 0.64 + _POINTS),
            partial(conflict_rate, half=1),
        ),
        claim(
            "conflicts_grow",
            "When the state becomes more outdated, scheduling decisions result in more conflicts.",
            "1.33 times",
            "conflict rate in the second half of G over that in the first",
            Limits(low=1.1),
            growth,
        ),
        claim(
            "delay_in_second_half",
            "The second half of the gap contributes 76 % of the delay.",
            "76 %",
            "mean delay by conflicts in the second half, over the sum of both halves' means",
            Limits(0.76 - _POINTS, 0.76 + _POINTS),
            partial(delay_share, half=1),
        ),
    )


def _of_half(arrays: Arrays, name: str, half: int) -> float:
    after = arrays["end_s"] > WARM_UP_S
    return float(np.sum(arrays[name][after, :, half]))


def _ratio(part_: float, whole: float) -> float | None:
    return part_ / whole if whole else None


def _percent(values: list[float | None]) -> str:
    median = median_interval(values).estimate
    return "not known" if median is None else f"{100 * median:.1f} %"


FIGURES = (
    ModelFigure(
        "sec51",
        "Conflicts and delay in the two halves of the gap",
        _SOURCE,
        runs,
        tuple(claim for setting in SETTINGS for claim in _claims(setting)),
        table=table,
        notes=(
            "The paper does not state A, whether schedulers synchronise at the same times, and "
            "whether they see the slots of their own tasks at once. These runs have A = 2 and the "
            "four combinations of the others; the default of all other runs is the first.",
            "The paper does not say which delay it divides. Without queueing, which falls on both "
            "halves alike, a task's delay is that of its conflicts.",
        ),
    ),
)
