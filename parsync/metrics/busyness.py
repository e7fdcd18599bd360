"""How much of their time schedulers spend on decisions (Omega's busyness, Schwarzkopf et al. 2013,
section 4)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from shared_state.tasks import Int64


class BusynessFigures(Figures):
    """The shares of the time between samples of one window that schedulers spent on decisions.
    Rounds with a conflict are wasted."""

    busy_useful_share: Number | None = quantity(
        "Deciding usefully",
        Unit.SHARE,
        Better.NEITHER,
        "Share of a scheduler's time (Omega's busyness).",
        per_scheduler=True,
    )
    busy_wasted_share: Number | None = quantity(
        "Deciding in vain",
        Unit.SHARE,
        Better.LOWER,
        "Share of time spent on rounds with a conflict.",
        per_scheduler=True,
    )
    latency_first_share: Number | None = quantity(
        "Time in latency-first",
        Unit.SHARE,
        Better.NEITHER,
        "Share of samples; adaptive switches.",
        per_scheduler=True,
    )


class BusynessMetric(Metric):
    """Decision time over time."""

    kind = "busyness"
    description = "How much of their time schedulers spend on decisions, and on which."
    figures_model = BusynessFigures
    keeps: ClassVar[TableColumns] = {
        "agents": ("at_us", "agent", "latency_first", "busy_us", "wasted_us")
    }

    def figures(self, scope: Scope) -> BusynessFigures:
        rows, inside = scope.rows("agents")
        elapsed_us = busy_us = wasted_us = 0
        for agent in scope.agents if inside.any() else ():
            mine = rows["agent"] == agent
            slot, within = rows.slot[mine], inside[mine]
            paired = within[1:] & (slot[1:] == slot[:-1])
            elapsed_us += int(np.diff(rows["at_us"][mine])[paired].sum())
            busy_us += int(_growth(rows["busy_us"][mine])[paired].sum())
            wasted_us += int(_growth(rows["wasted_us"][mine])[paired].sum())
        latency_first = int(rows["latency_first"][inside].sum()) if inside.any() else 0
        return BusynessFigures(
            busy_useful_share=ratio(busy_us - wasted_us, elapsed_us),
            busy_wasted_share=ratio(wasted_us, elapsed_us),
            latency_first_share=ratio(latency_first, int(inside.sum())),
        )


def _growth(counter: Int64) -> Int64:
    """The growth of a counter from sample to sample. One that fell began anew: its agent was
    restarted."""
    grown: Int64 = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)
