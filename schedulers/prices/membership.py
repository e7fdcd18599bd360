"""Membership: a machine is as dear as the number of preference sets that list it."""

from __future__ import annotations

from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import PeriodicEstimator, Renewal, UpdateOptions, hold_small_moves
from schedulers.prices.registry import SlotPriceSpec
from shared_state.tasks import Int64
from shared_state.view import ClusterView


class MembershipPrices(PeriodicEstimator):
    """Of the sets offered so far, n list a machine and at most N any machine. The price is n / N x
    the mean gain of a preferred machine over any other, whatever is busy."""

    def __init__(self, options: UpdateOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain, listing = self.demand.mean_gain, self.demand.sets_listing
        price = gain * listing.astype("int64") // max(1, int(listing.max(initial=0)))
        return hold_small_moves(current, price[:, None], gain)


SPEC = SlotPriceSpec("membership", UpdateOptions, MembershipPrices, shares_demand=True)
