"""Quota groups: what part of the cell the jobs of each owner may take (ParSync section 2).

A group has a minimum and a maximum amount of each resource, given as shares of the cell, and a
weight by which the rest is divided (coordinator.py). Which jobs belong to which group, the workload
says. Beside quotas, a scheduler may set limits itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from parsync.strict_model import LONGEST_S, Name, Strict
from parsync.workload.workload import QuotaMembership, Workload
from shared_state.errors import AgoraError
from shared_state.tasks import ENTIRE, CellSpec, Int32, Int64

LARGEST_WEIGHT = 1000


class QuotaGroup(Strict):
    """A quota group. Its amounts are shares of the cell, in each resource."""

    name: Name = Field(description="as the workload calls it")
    minimum: float = Field(
        0, ge=0, le=1, description="what the group gets in any case if it wants that much"
    )
    maximum: float = Field(
        1, gt=0, le=1, description="what the group never exceeds, even in an empty cell"
    )
    weight: int = Field(
        1, ge=1, le=LARGEST_WEIGHT, description="by which the rest of the cell is divided"
    )

    @property
    def minimum_permille(self) -> int:
        return round(self.minimum * ENTIRE)

    @property
    def maximum_permille(self) -> int:
        return round(self.maximum * ENTIRE)


class QuotaSpec(Strict):
    """The quota groups that an arm's schedulers obey; their order breaks ties."""

    interval_s: float = Field(
        0.1,
        ge=0.001,
        le=60,
        description="how often the coordinator computes the shares anew",
    )
    reclaim_after_s: float | None = Field(
        None,
        ge=0,
        le=LONGEST_S,
        description="a scheduler that has held more than its grant for this long ends tasks until"
        " it no longer does; unset: no task is ended",
    )
    groups: tuple[QuotaGroup, ...] = Field(min_length=1, max_length=1000, strict=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have the same name")
        for group in self.groups:
            if group.minimum_permille > group.maximum_permille:
                raise ValueError(
                    f"group '{group.name}': expected 0 <= minimum <= maximum <= 1, got "
                    f"{group.minimum_permille / ENTIRE:g} and {group.maximum_permille / ENTIRE:g}"
                )
            if not group.maximum_permille:
                raise ValueError(f"group '{group.name}': maximum: expected more than 0")
        total = sum(group.minimum_permille for group in self.groups)
        if total > ENTIRE:
            raise ValueError(
                f"the minimums sum to {total / ENTIRE:g} of the cell, expected at most 1"
            )
        return self

    @property
    def interval_us(self) -> int:
        """From one computation of the shares to the next."""
        return round(self.interval_s * 1e6)

    @property
    def reclaim_after_us(self) -> int | None:
        """How long a scheduler may hold more than its grant before it has to end tasks; None: until
        they end by themselves."""
        return None if self.reclaim_after_s is None else round(self.reclaim_after_s * 1e6)

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


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """The limits that a scheduler sets itself (Schwarzkopf et al., *Omega*, EuroSys 2013, section
    3.4): "individual schedulers have configuration settings to limit the total amount of resources
    they may claim, and to limit the number of jobs they admit". The cell knows nothing of them.

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
