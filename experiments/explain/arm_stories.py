"""The stories of the tasks of an arm, from the tables that it left, and what each conflict cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.explain.story import COMMITTED, Claim, End, OtherClaim, TaskStory
from parsync.metrics.quantity import counted
from parsync.metrics.tables import NOBODY, NOT_KNOWN, NOT_LOOKED_AT, SCHEMAS
from parsync.workload.workload import Workload
from schedulers.objective import placement_cost
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG, Int64
from shared_state.transaction import CONFLICTS, NO_RIVAL, Reason


class ArmStories:
    """Tells what became of tasks.

    Args:
        arm: The name of the arm.
        columns: Returns the columns of a table of the arm by name; a table without rows has
            columns, too.
        workload: Of the arm.
        schedulers: The names of the arm's schedulers by number.
        seen_us: How far the run was seen.
    """

    def __init__(
        self,
        arm: str,
        columns: Callable[[str], Columns],
        workload: Workload,
        schedulers: Sequence[str],
        seen_us: int,
    ) -> None:
        self._arm = arm
        self._columns = columns
        self._workload = workload
        self._schedulers = schedulers
        self._seen_us = seen_us

    def story(self, task: int) -> TaskStory:
        """The story of a task. Raises AgoraError if there is no such task, or a table cannot be
        read."""
        workload, tasks = self._workload, self._workload.tasks
        if not 0 <= task < len(tasks):
            raise AgoraError(
                f"task {task}: expected 0 to {len(tasks) - 1:,}, the tasks of the workload"
            )
        initial = np.flatnonzero(workload.initial.task == task)
        starts = int(workload.initial.machine[initial[0]]) if len(initial) else None
        claims, first_us = self._claims(task)
        given_up = self._rows("unplaceable", task)
        lost = self._columns("unplaceable")
        submit_us = int(tasks.submit_us[task])
        submitted = starts is None and submit_us <= self._seen_us
        preference, gang = int(tasks.preference[task]), int(tasks.gang[task])
        offsets = workload.catalog.machine_offsets
        return TaskStory(
            arm=self._arm,
            task=task,
            job=int(tasks.job[task]),
            gang=gang if gang != NO_GANG else None,
            gang_tasks=int(np.count_nonzero(tasks.gang == gang)) if gang != NO_GANG else 0,
            scheduler=claims[0].scheduler if claims else self._owner(task),
            request=self._request(task),
            preferred_machines=int(offsets[preference + 1] - offsets[preference]),
            submit_us=submit_us if submitted else None,
            initial_machine=starts,
            claims=claims,
            ends=self._ends(task),
            given_up_us=int(lost["at_us"][given_up[0]]) if len(given_up) else None,
            given_up=_codes("unplaceable", "abandoned")[int(lost["abandoned"][given_up[0]])]
            if len(given_up)
            else "",
            waits=tuple(self._waits(task)),
            delay_us=None if first_us is None or not submitted else first_us - submit_us,
            seen_us=self._seen_us,
        )

    def worst(self, count: int) -> list[TaskStory]:
        """The stories of the tasks whose conflicts added most delay, the worst first."""
        rejections = self._columns("rejections")
        return [self.story(task) for task in self._costs.worst(rejections["task"], count)]

    @cached_property
    def _costs(self) -> ConflictCosts:
        return conflict_costs(
            self._columns("rejections"),
            self._columns("tasks"),
            self._columns("unplaceable"),
            self._seen_us,
        )

    def _rows(self, table: str, task: int) -> Int64:
        return np.flatnonzero(self._columns(table)["task"] == task)

    def _waits(self, task: int) -> Iterator[str]:
        """Why a task still waits when the run ends, line by line."""
        rows = self._rows("waiting", task)
        if not len(rows):
            return
        its = {name: int(column[rows[0]]) for name, column in self._columns("waiting").items()}
        yield _codes("waiting", "why")[its["why"]]
        gang = self._workload.tasks.gang
        if its["ahead"] != NOBODY:
            of_gang = f" of gang {gang[its['ahead']]}" if gang[its["ahead"]] != NO_GANG else ""
            yield f"ahead of it is task {its['ahead']}{of_gang}"
        machines = counted(its["machines"], "machine")
        if its["resource"] == NOBODY:
            whole = ", but not for its whole gang" if gang[task] != NO_GANG else ""
            yield f"at the end {machines} had room for it{whole}"
        elif its["resource"] != NOT_LOOKED_AT:
            short = self._workload.cell.dimensions[its["resource"]]
            if its["machines"]:
                yield f"{short} was short on {machines} with enough of everything else"
            else:
                yield f"every machine was short of several resources, most of them of {short}"
        if its["unseen"]:
            hidden = counted(its["unseen"], "machine")
            yield f"{hidden} in partitions that its scheduler may not use would hold it when empty"

    def _claims(self, task: int) -> tuple[tuple[Claim, ...], int | None]:
        """The claims for a task in order, and when its scheduler learned of its first commit."""
        commits, rejections = self._columns("tasks"), self._columns("rejections")
        made = self._rows("tasks", task)
        lost = self._rows("rejections", task)
        lost = lost[rejections["reason"][lost] != int(Reason.DUPLICATE)]
        rows = [(int(commits["commit_us"][row]), True, int(row)) for row in made]
        rows += [(int(rejections["at_us"][row]), False, int(row)) for row in lost]
        claims: list[Claim] = []
        number, first_us = 0, None
        for learned_us, committed, row in sorted(rows):
            number += 1
            if committed:
                claims.append(self._committed(row, number))
                number = 0
                if commits["first"][row]:
                    first_us = learned_us
            else:
                claims.append(self._rejected(row, number))
        return tuple(claims), first_us

    def _committed(self, row: int, number: int) -> Claim:
        its = {name: int(column[row]) for name, column in self._columns("tasks").items()}
        rounds = self._columns("commits")
        transaction = np.flatnonzero(
            (rounds["agent"] == its["agent"]) & (rounds["commit_us"] == its["commit_us"])
        )
        if len(transaction) != 1:  # the answers to two of them arrived together
            transaction = transaction[:0]
        return self._claim(
            its,
            number,
            transaction,
            preferred=bool(its["preferred"]),
            cost=its["cost"],
            outcome=COMMITTED,
            is_conflict=False,
            handled_us=its["start_us"],
            learned_us=its["commit_us"],
        )

    def _rejected(self, row: int, number: int) -> Claim:
        its = {name: int(column[row]) for name, column in self._columns("rejections").items()}
        reason = Reason(its["reason"])
        workload = self._workload
        preference = workload.tasks.preference[[its["task"]]]
        cost, preferred = placement_cost(
            workload.catalog,
            workload.cell.rack,
            np.ascontiguousarray(preference, np.int32),
            np.array([its["machine"]], np.int32),
        )
        rounds = self._columns("commits")
        transaction = np.flatnonzero(
            (rounds["agent"] == its["agent"])
            & (rounds["sequence"] == its["sequence"])
            & (rounds["commit_us"] == its["at_us"])
        )
        claim = self._claim(
            its,
            number,
            transaction,
            preferred=bool(preferred[0]),
            cost=int(cost[0]),
            outcome=reason.name.lower(),
            is_conflict=reason in CONFLICTS,
            handled_us=its["rejected_us"],
            learned_us=its["at_us"],
        )
        return replace(
            claim,
            rival=None if its["rival"] == NO_RIVAL else self._schedulers[its["rival"]],
            others=self._others(its, claim.state_us) if claim.is_conflict else (),
            cost_us=int(self._costs.cost_us[row]),
            is_bound=bool(self._costs.is_bound[row]),
        )

    def _claim(
        self, its: Mapping[str, int], number: int, transaction: Int64, handled_us: int, **known: Any
    ) -> Claim:
        """What claims have in common, committed or rejected."""
        return Claim(
            number=number,
            scheduler=self._schedulers[its["agent"]],
            machine=its["machine"],
            rack=int(self._workload.cell.rack[its["machine"]]),
            round_us=self._of_round("start_us", transaction),
            decision_us=self._of_round("decision_us", transaction),
            state_us=handled_us - its["age_us"],
            age_us=its["age_us"],
            handled_us=handled_us,
            **known,
        )

    def _of_round(self, column: str, transaction: Int64) -> int | None:
        """A value of the one row of `commits` that belongs to a claim, if it is known."""
        if len(transaction) == 0:
            return None
        value = int(self._columns("commits")[column][transaction[0]])
        return None if value == NOT_KNOWN else value

    def _others(self, rejection: Mapping[str, int], state_us: int) -> tuple[OtherClaim, ...]:
        """The claims of other schedulers on a machine, after a state and up to a rejection. If the
        rival has none there, its last one before; room held for it was not claimed yet."""
        its, rival = self._columns("tasks"), rejection["rival"]
        rows = np.flatnonzero(
            (its["machine"] == rejection["machine"])
            & (its["agent"] != rejection["agent"])
            & (its["start_us"] <= rejection["rejected_us"])
        )
        rows = rows[np.argsort(its["start_us"][rows], kind="stable")]
        since = rows[its["start_us"][rows] > state_us]
        by_rival = rows[its["agent"][rows] == rival]
        held = rejection["reason"] == Reason.HELD
        if len(by_rival) and not held and not (its["agent"][since] == rival).any():
            since = np.concatenate([by_rival[-1:], since])
        return tuple(
            OtherClaim(
                task=int(its["task"][row]),
                scheduler=self._schedulers[int(its["agent"][row])],
                start_us=int(its["start_us"][row]),
                request=self._request(int(its["task"][row])),
                by_rival=int(its["agent"][row]) == rival,
            )
            for row in since
        )

    def _ends(self, task: int) -> tuple[End, ...]:
        its, names = self._columns("ends"), _codes("ends", "change")
        rows = self._rows("ends", task)
        return tuple(
            End(
                at_us=int(its["end_us"][row]),
                machine=int(its["machine"][row]),
                change=names[int(its["change"][row])],
                due=bool(its["due"][row]),
            )
            for row in rows[np.argsort(its["end_us"][rows], kind="stable")]
        )

    def _owner(self, task: int) -> str:
        """The scheduler of a task without claims, as its submission or its end tells it."""
        tasks, its = self._workload.tasks, self._columns("submissions")
        rows = (its["job"] == tasks.job[task]) & (its["submit_us"] == tasks.submit_us[task])
        found = np.concatenate(
            [its["agent"][rows], self._columns("ends")["agent"][self._rows("ends", task)]]
        )
        return self._schedulers[int(found[0])] if len(found) else ""

    def _request(self, task: int) -> Mapping[str, int]:
        amounts = self._workload.tasks.request[task].tolist()
        return dict(zip(self._workload.cell.dimensions, amounts, strict=True))


def _codes(table: str, column: str) -> Mapping[int, str]:
    return SCHEMAS[table].columns[column].codes


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
