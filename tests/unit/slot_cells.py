"""Small settings of the slot simulator: ParSync's cell at a hundredth of its size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from parsync.model.slot_settings import Phase, SchedulerGroup, SlotSettings
from parsync.protocols.optimistic.options import StrategyKind

SLOTS, TASKS_PER_S = 2_000, 400.0


def small_settings(
    schedulers_factor: int = 2,
    rate_per_s: float = TASKS_PER_S,
    duration_s: float = 20.0,
    strategy: StrategyKind = StrategyKind.OPTIMISTIC,
    **changes: Any,
) -> SlotSettings:
    """4 x A schedulers that could together decide A times TASKS_PER_S, which fills 2,000 slots with
    tasks of 5 s; batches of 20 / A tasks."""
    group = SchedulerGroup(
        schedulers=4 * schedulers_factor,
        batch_tasks=20 // schedulers_factor,
        strategy=strategy,
        decision_s=4 / TASKS_PER_S,
    )
    phase = Phase(duration_s=duration_s, rate_per_s=(rate_per_s,))
    settings = SlotSettings(groups=(group,), phases=(phase,), slots=SLOTS, partitions=1)
    return replace(settings, **changes)
