"""The outcomes of an arm's claims as columns, and the delay that each conflict added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int64
from shared_state.transaction import CONFLICTS, Reason

Columns = Mapping[str, NDArray[Any]]

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ConflictCosts:
    """What rejected claims cost, a value for each row of the table `rejections`.

    Attributes:
        cost_us: int64[n], the delay that it added: until the outcome of the next claim for its
            task, 0 where it is no conflict.
        is_bound: bool[n], there is no next claim, and the time goes up to when the task was given
            up or the run was last seen.
    """

    cost_us: Int64
    is_bound: NDArray[np.bool_]

    def worst(self, task: Int64, count: int) -> list[int]:
        """The tasks whose conflicts added most delay, the worst first, equal ones by id.

        Args:
            task: int64[n], the task of each rejected claim.
            count: How many tasks at most.
        """
        tasks, row = np.unique(task, return_inverse=True)
        total = np.zeros(len(tasks), np.int64)
        np.add.at(total, row, self.cost_us)
        order = np.lexsort((tasks, -total))[:count]
        return [int(one) for one in tasks[order[total[order] > 0]]]


def conflict_costs(
    rejections: Columns, tasks: Columns, unplaceable: Columns, seen_us: int
) -> ConflictCosts:
    """The delay that each rejected claim added.

    Args:
        rejections, tasks, unplaceable: The tables of the arm.
        seen_us: How far the run was seen.
    """
    rejected = len(rejections["task"])
    again = np.isin(tasks["task"], rejections["task"])
    given_up = np.isin(unplaceable["task"], rejections["task"])
    task = np.concatenate([rejections["task"], tasks["task"][again], unplaceable["task"][given_up]])
    at_us = np.concatenate(
        [rejections["at_us"], tasks["commit_us"][again], unplaceable["at_us"][given_up]]
    )
    is_end = np.zeros(len(task), np.int8)  # after its last rejection, which may be as late
    is_end[rejected:] = 1
    is_end[len(task) - int(given_up.sum()) :] = 2
    counts = np.ones(len(task), np.bool_)
    counts[:rejected] = rejections["reason"] != int(Reason.DUPLICATE)  # placed already
    rows = np.flatnonzero(counts)
    rows = rows[np.lexsort((is_end[rows], at_us[rows], task[rows]))]
    has_next = np.zeros(len(task), np.bool_)
    next_us = np.full(len(task), seen_us, np.int64)
    same = task[rows[1:]] == task[rows[:-1]]
    before, after = rows[:-1][same], rows[1:][same]
    next_us[before] = at_us[after]
    has_next[before] = is_end[after] < 2
    conflict = counts[:rejected] & np.isin(rejections["reason"], CONFLICTS)
    cost_us = np.where(conflict, np.maximum(next_us[:rejected] - at_us[:rejected], 0), 0)
    return ConflictCosts(cost_us, conflict & ~has_next[:rejected])
