"""Limits that a scheduler sets itself (Schwarzkopf et al., *Omega*, EuroSys 2013, section 3.4):
"individual schedulers have configuration settings to limit the total amount of resources they may
claim, and to limit the number of jobs they admit". The cell knows nothing of them."""

from __future__ import annotations

from dataclasses import dataclass

from shared_state.tasks import ENTIRE, CellSpec, Int64


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """The limits of one scheduler.

    Attributes:
        hold_permille: The share of the cell, in each resource, that its tasks may hold together;
            None: no limit.
        jobs_max: How many of its jobs it admits at a time; None: no limit.
    """

    hold_permille: int | None = None
    jobs_max: int | None = None

    @property
    def has_any(self) -> bool:
        """Whether there is a limit at all."""
        return self != NO_LIMITS

    def amount(self, cell: CellSpec) -> Int64:
        """What its tasks may hold together, int64[R], machines that are down counted as well."""
        total: Int64 = cell.limit.sum(axis=0)
        return total if self.hold_permille is None else total * self.hold_permille // ENTIRE


NO_LIMITS = SchedulerLimits()
