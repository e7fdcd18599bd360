"""Quota groups: what part of the cell the jobs of each owner may take (ParSync section 2).

A group has a minimum and a maximum amount of each resource, given as shares of the cell, and a
weight by which the rest is divided. Which jobs belong to which group, the workload says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parsync.core.fair_shares import LARGEST_WEIGHT
from parsync.workload.workload import QuotaMembership, Workload
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64

ENTIRE = 1000  # shares are kept in permille


@dataclass(frozen=True, slots=True)
class QuotaGroup:
    """A quota group.

    Args:
        name: As the workload calls it.
        minimum_permille: What it gets in any case if it wants that much.
        maximum_permille: What it never exceeds.
        weight: From 1 to LARGEST_WEIGHT.
    """

    name: str
    minimum_permille: int
    maximum_permille: int
    weight: int


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """The quota groups of an arm.

    Args:
        groups: At least one; their order breaks ties.
        interval_us: From one computation of the shares to the next.
        reclaim_after_us: How long a scheduler may hold more than its grant before it has to end
            tasks; None: until they end by themselves.
    """

    groups: tuple[QuotaGroup, ...]
    interval_us: int
    reclaim_after_us: int | None = None

    def check(self) -> None:
        """Raise AgoraError naming the first field at fault."""
        if self.interval_us < 1:
            raise AgoraError("quotas: interval: expected 1 us or more")
        if self.reclaim_after_us is not None and self.reclaim_after_us < 0:
            raise AgoraError("quotas: reclaim_after: expected 0 us or more")
        if not self.groups:
            raise AgoraError("quotas: groups: expected at least one")
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise AgoraError("quotas: two groups have the same name")
        for group in self.groups:
            if not 0 <= group.minimum_permille <= group.maximum_permille <= ENTIRE:
                raise AgoraError(
                    f"quotas: group '{group.name}': expected 0 <= minimum <= maximum <= 1, got "
                    f"{group.minimum_permille / ENTIRE:g} and {group.maximum_permille / ENTIRE:g}"
                )
            if not group.maximum_permille:
                raise AgoraError(f"quotas: group '{group.name}': maximum: expected more than 0")
            if not 1 <= group.weight <= LARGEST_WEIGHT:
                raise AgoraError(
                    f"quotas: group '{group.name}': weight: expected 1 to {LARGEST_WEIGHT}"
                )
        total = sum(group.minimum_permille for group in self.groups)
        if total > ENTIRE:
            raise AgoraError(
                f"quotas: the minimums sum to {total / ENTIRE:g} of the cell, expected at most 1"
            )

    def check_names(self, names: Sequence[str]) -> None:
        """Raise AgoraError unless the arm knows all quota groups of a workload that has some.

        Args:
            names: The names of the workload's quota groups; none: its jobs belong to no group.
        """
        if not names:
            raise AgoraError("quotas: the jobs of the workload belong to no quota groups")
        known = [group.name for group in self.groups]
        for name in names:
            if name not in known:
                raise AgoraError(
                    f"quotas: the workload's group '{name}' is missing, got {', '.join(known)}"
                )

    def largest(self, capacity: Capacity) -> Int64:
        """What the tasks of each group never exceed together, int64[G, R]."""
        whole = capacity.amount.max(axis=0)
        share = np.array([group.maximum_permille for group in self.groups], np.int64)
        largest: Int64 = whole * share[:, None] // ENTIRE
        return largest

    def of_tasks(self, membership: QuotaMembership | None) -> TaskQuotas:
        """The quota groups of a workload's tasks. AgoraError as check_names."""
        self.check_names(() if membership is None else membership.names)
        assert membership is not None, "a workload without quota groups has no names of them"
        known = [group.name for group in self.groups]
        place = np.array([known.index(name) for name in membership.names], np.int32)
        of_task = place[membership.group]
        of_task.setflags(write=False)
        return TaskQuotas(len(known), of_task, self.reclaim_after_us is not None)


@dataclass(frozen=True, slots=True)
class TaskQuotas:
    """Which quota group each task belongs to, by the group's place in the arm's list.

    Attributes:
        groups: How many there are.
        of_task: int32[n], by task id, read-only.
        reclaims: Whether agents may be told to end tasks.
    """

    groups: int
    of_task: Int32
    reclaims: bool = False

    def held(self, task: Int64, request: Int64) -> Int64:
        """What tasks hold together, int64[G, R] by group and resource.

        Args:
            task: int64[k], ids.
            request: int64[k, R], theirs.
        """
        total = np.zeros((self.groups, request.shape[1]), np.int64)
        np.add.at(total, self.of_task[task], request)
        return total


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the machines that are up hold together, over time.

    Attributes:
        at_us: int64[k], ascending from 0.
        amount: int64[k, R], from each of these times on.
    """

    at_us: Int64
    amount: Int64

    @staticmethod
    def of(workload: Workload) -> Capacity:
        """The capacity of a workload's cell as its machines go down and come up."""
        limit, events = workload.cell.limit, workload.machine_events
        up = np.ones(workload.cell.machines, np.bool_)
        at_us, amount = [0], [limit.sum(axis=0)]
        for time_us, machine, now_up in zip(
            events.at_us.tolist(), events.machine.tolist(), events.up.tolist(), strict=True
        ):
            change = (int(now_up) - int(up[machine])) * limit[machine]
            up[machine] = now_up
            if time_us > at_us[-1]:
                at_us.append(time_us)
                amount.append(amount[-1])
            amount[-1] = amount[-1] + change
        return Capacity(np.array(at_us, np.int64), np.stack(amount))

    def at(self, now_us: int) -> Int64:
        """The capacity at a time, int64[R]."""
        row: Int64 = self.amount[np.searchsorted(self.at_us, now_us, side="right") - 1]
        return row
