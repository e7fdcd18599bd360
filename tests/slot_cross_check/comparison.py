"""The slot simulator beside the platform: the same cells under both, and how far they differ.

A seed gives both the same scores and arrivals, so differences are taken seed by seed. A figure
agrees in two senses, and both are tested:

No difference is found. A paired t-test of the mean difference, at a level of 1 % for all figures
    together (Bonferroni).
They are equivalent. The mean difference lies within a margin, by two one-sided t-tests at 1 %
    (Schuirmann 1987): its interval of 98 % lies between -margin and +margin. So few seeds, which
    show no difference, do not show agreement either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from parsync.model.slot_settings import Phase, SchedulerGroup, SlotSettings, SyncMode
from parsync.model.slot_simulator import simulate
from parsync.protocols.optimistic.options import StrategyKind
from schedulers.interface import PartitionQuality
from tests.slot_cross_check.platform import PlatformClaims, claims_on_platform

LEVEL = 0.01
FROM_S, TO_S = 4.0, 12.0  # what is measured: two run times after the start, until arrivals end
SLOTS, TASK_S, LOAD = 1_000, 2.0, 0.85


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is compared.

    Attributes:
        margin: How far the two may differ: in units of the figure, or in parts of it.
        relative: Whether the margin is in parts of the simulator's mean.
    """

    name: str
    margin: float
    relative: bool = False


FIGURES = (
    Figure("conflicts per claim", 0.02),
    Figure("mean delay (s)", 0.1, relative=True),
    Figure("mean score", 0.05),
    Figure("utilisation", 0.01),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of a cell under both.

    Attributes:
        simulator, platform: Means over the seeds.
        half_width: Of the 98 % interval of the mean difference.
        p_value: Of no difference.
        margin: In units of the figure.
    """

    figure: Figure
    simulator: float
    platform: float
    half_width: float
    p_value: float
    margin: float

    @property
    def difference(self) -> float:
        """Platform less simulator."""
        return self.platform - self.simulator

    @property
    def is_equivalent(self) -> bool:
        """Whether the difference is known to be smaller than the margin."""
        return abs(self.difference) + self.half_width < self.margin


def cell(strategy: StrategyKind, sync: SyncMode, **changes: object) -> SlotSettings:
    """Eight schedulers that could decide twice what fills 1,000 slots with tasks of 2 s, at 85 %
    load."""
    rate_per_s = SLOTS / TASK_S
    group = SchedulerGroup(
        schedulers=8, batch_tasks=10, strategy=strategy, decision_s=4 / rate_per_s, tau_s=0.1
    )
    settings = SlotSettings(
        groups=(group,),
        phases=(Phase(duration_s=TO_S, rate_per_s=(LOAD * rate_per_s,)),),
        slots=SLOTS,
        task_s=TASK_S,
        partitions=1 if sync is SyncMode.STATE_ALIGNED else 8,
        sync=sync,
        gap_s=0.2,
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


CELLS = {
    "optimistic, StateSync": cell(StrategyKind.OPTIMISTIC, SyncMode.STATE_ALIGNED),
    "optimistic, DiffSyn": cell(StrategyKind.OPTIMISTIC, SyncMode.DIFF_BLOCK),
    "quality-first, DiffSyn": cell(StrategyKind.QUALITY_FIRST, SyncMode.DIFF_BLOCK),
    "quality-first by weight, DiffSyn": cell(
        StrategyKind.QUALITY_FIRST, SyncMode.DIFF_BLOCK, quality=PartitionQuality.MEAN_WEIGHT
    ),
    "latency-first, DiffSyn": cell(StrategyKind.LATENCY_FIRST, SyncMode.DIFF_BLOCK),
    "adaptive, DiffSyn": cell(StrategyKind.ADAPTIVE, SyncMode.DIFF_BLOCK),
}


def compare(
    settings: SlotSettings,
    seeds: Sequence[int],
    on_platform: SlotSettings | None = None,
    heartbeat_us: int = 1,
) -> list[Comparison]:
    """Each of FIGURES under both.

    Args:
        on_platform: The settings of the platform, if they are others.
        heartbeat_us: How often the platform learns of ended tasks.
    """
    other = settings if on_platform is None else on_platform
    simulator = np.array([simulated(replace(settings, seed=seed)) for seed in seeds])
    platform = np.array(
        [
            measured(
                replace(other, seed=seed),
                claims_on_platform(replace(other, seed=seed), heartbeat_us),
            )
            for seed in seeds
        ]
    )
    return [
        _compared(figure, simulator[:, column], platform[:, column])
        for column, figure in enumerate(FIGURES)
    ]


def simulated(settings: SlotSettings) -> list[float]:
    """FIGURES by the slot simulator."""
    found = simulate(settings)
    bins = found.between(FROM_S, TO_S)
    return [
        found.conflict_rate(bins),
        found.mean_delay_s(bins),
        found.mean_score(bins),
        float(found.utilisation()[bins].mean()),
    ]


def measured(settings: SlotSettings, claims: PlatformClaims) -> list[float]:
    """FIGURES by the platform."""
    from_us, to_us, task_us = 1e6 * FROM_S, 1e6 * TO_S, 1e6 * settings.task_s
    then = (claims.at_us >= from_us) & (claims.at_us < to_us)
    commits = then & claims.accepted
    start_us = claims.at_us[claims.accepted]
    busy_us = np.minimum(start_us + task_us, to_us) - np.maximum(start_us, from_us)
    slots = settings.slots + settings.extra_slots
    return [
        1 - float(claims.accepted[then].mean()),
        float((claims.at_us - claims.submitted_us)[commits].mean()) / 1e6,
        float(claims.score[commits].mean()),
        float(np.maximum(busy_us, 0).sum() / ((to_us - from_us) * slots)),
    ]


def _compared(
    figure: Figure, simulator: NDArray[np.float64], platform: NDArray[np.float64]
) -> Comparison:
    difference = platform - simulator
    error = float(stats.sem(difference))
    mean = float(simulator.mean())
    return Comparison(
        figure,
        mean,
        float(platform.mean()),
        float(stats.t.ppf(1 - LEVEL, len(difference) - 1)) * error,
        float(stats.ttest_rel(platform, simulator).pvalue),
        figure.margin * (mean if figure.relative else 1.0),
    )
