"""How busy schedulers are from day to day (Omega: Schwarzkopf et al., EuroSys 2013, section 4: the
median of the daily busyness, and the median absolute deviation from it)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.busyness import growth
from parsync.metrics.days import Days
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity


class DailyBusynessFigures(Figures):
    """The share of the time that one scheduler spent on decisions, day by day. Runs of less than
    two days have tenths in place of days."""

    busyness_median: Number | None = quantity(
        "Daily busyness",
        Unit.SHARE,
        Better.NEITHER,
        "Median over schedulers and days of the share of time spent on decisions (Omega); of runs "
        "shorter than two days, over tenths of the run.",
        per_scheduler=True,
    )
    busyness_mad: Number | None = quantity(
        "Deviation of the daily busyness",
        Unit.SHARE,
        Better.NEITHER,
        "Median absolute deviation from the median.",
        per_scheduler=True,
    )


_NOTHING = DailyBusynessFigures(busyness_median=None, busyness_mad=None)


class DailyBusynessMetric(Metric):
    """Decision time by day."""

    kind = "daily_busyness"
    description = "How busy schedulers are from day to day."
    figures_model = DailyBusynessFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "busy_us")}

    def figures(self, scope: Scope) -> DailyBusynessFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return _NOTHING
        days = Days(self.run)
        at_us, busy_us = rows["at_us"], rows["busy_us"]
        shares = []
        for agent in scope.agents:
            mine = rows["agent"] == agent
            slot, within, times_us = rows.slot[mine], inside[mine], at_us[mine]
            paired = within[1:] & (slot[1:] == slot[:-1])
            # what was decided between two samples counts on the day of the first
            day = days.of(times_us[:-1][paired])
            elapsed = np.bincount(day, np.diff(times_us)[paired], minlength=days.count)
            decided = np.bincount(day, growth(busy_us[mine])[paired], minlength=days.count)
            whole = days.is_whole(elapsed)
            shares.append(decided[whole] / elapsed[whole])
        every = np.concatenate(shares)
        if not len(every):
            return _NOTHING
        median = float(np.median(every))
        return DailyBusynessFigures(
            busyness_median=median, busyness_mad=float(np.median(np.abs(every - median)))
        )
