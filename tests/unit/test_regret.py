"""Regret of hand-made commits and cells: what is charged, to whom, and which transactions are
looked at."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from parsync.core.events import CommitRequest, MachinesChanged, Started, TasksFinished
from parsync.core.master import EndsNotice, MasterCore
from parsync.metrics.kinds.regret import DecisionRegret, RegretWatch
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.cell import Cell
from shared_state.observed_cell import ObservedCell
from shared_state.partition import Partitioning
from shared_state.tasks import TaskBatch
from shared_state.transaction import CommitMode, Reason, Transaction
from tests.greedy_world import cell_of, tasks_of
from tests.unit.test_objective import catalog_of

ELSEWHERE, WAITING = 10, 25
PREFERRED = 0
END_US = 9_000  # after both phases


class World:
    """Four machines of two slots, 0 and 1 in one rack; set 1 prefers machine 0, and waits at 25.
    Every task is of it and submitted at time 0."""

    def __init__(
        self,
        tasks: int = 40,
        seed: int = 7,
        settle_us: int = 0,
        requests: Any = 1,
        initial: tuple[int, ...] = (),
    ) -> None:
        cell = cell_of([2, 2, 2, 2], rack_size=2)
        table = tasks_of(np.broadcast_to(np.array(requests), tasks), preference=1)
        rows = np.arange(len(initial), tasks, dtype=np.int64)
        self.workload = Workload(
            name="hand-made",
            cell=cell,
            catalog=catalog_of([({}, {}, 0, 0), ({PREFERRED: 0}, {}, ELSEWHERE, WAITING)]),
            tasks=table,
            duration_us=np.full(tasks, 1000),
            preferred_permille=1000,
            arrival_us=np.zeros(1, np.int64),
            arrival_offsets=np.array([0, len(rows)]),
            arrival_rows=rows,
            initial=InitialPlacement(
                np.arange(len(initial), dtype=np.int64), np.array(initial, np.int32)
            ),
            machine_events=MachineEvents(rows[:0], rows[:0].astype(np.int32), np.zeros(0, bool)),
            phases=(Phase(100, 5_000, 50), Phase(5_000, 8_000, 80)),
            end_us=8_000,
            facts={},
        )
        master = MasterCore(
            Cell(cell, Partitioning.by_topology(cell, 2)),
            table,
            self.workload.initial.task,
            self.workload.initial.machine,
            np.zeros(len(initial), np.int32),
            [EndsNotice.NEVER] * 2,
            1 << 40,
        )
        self.watch = RegretWatch(self.workload, settle_us, seed)
        master.cell = ObservedCell(master.cell, self.watch)
        self.master = master
        master.handle(0, Started(0))
        self.table: TaskBatch = table
        self.sequence = 0

    def commit(
        self, tasks: list[int], machines: list[int], at_us: int = 1_000, agent: int = 0, **more: Any
    ) -> Any:
        """The answer to these claims."""
        self.sequence += 1
        task = np.array(tasks, np.int64)
        claims = Transaction(
            agent,
            self.sequence,
            task,
            np.array(machines, np.int32),
            self.table.request[task],
            np.zeros(len(task), np.int64),
            **more,
        )
        [answer, *_] = self.master.handle(at_us, CommitRequest(agent, claims))
        return answer.event.result  # type: ignore[union-attr]

    @property
    def decisions(self) -> list[DecisionRegret]:
        return self.watch.regret(END_US).decision

    @property
    def regrets(self) -> list[int]:
        return [row.regret for row in self.decisions]


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        # by commit: its regret, its tasks, how many of them lost; is it exact?
        pytest.param(
            [([1, 2], [0, 0]), ([3, 4], [2, 3])],  # the preferred machine is full by then
            [(0, 2, 0, True), (0, 2, 0, True)],
            id="nothing could be better",
        ),
        pytest.param(
            [([1, 2, 3], [1, 2, 3])],  # two of three could have had the preferred machine
            [(2 * ELSEWHERE, 3, 0, True)],
            id="a missed preferred place costs the difference",
        ),
        pytest.param(
            [([1, 2], [3, 3]), ([4, 5], [3, 2])],
            [(2 * ELSEWHERE, 2, 0, True), (WAITING + ELSEWHERE, 2, 1, True)],
            id="a loser is charged for waiting",
        ),
        pytest.param(
            [(list(range(8)), [0, 0, 1, 1, 2, 2, 3, 3]), ([8, 9], [0, 1])],
            [(0, 8, 0, True), (0, 2, 2, True)],
            id="nothing better is to be had in a full cell",
        ),
    ],
)
def test_what_commits_are_charged(
    commits: list[tuple[list[int], list[int]]], expected: list[tuple[int, int, int, bool]]
) -> None:
    world = World()
    for tasks, machines in commits:
        world.commit(tasks, machines)
    assert [(row.regret, row.tasks, row.losers, row.exact) for row in world.decisions] == expected


def test_torn_gangs_and_requests_that_differ_make_it_a_bound() -> None:
    torn, differ = World(), World(requests=[1, 2] * 20)
    torn.commit([1, 2, 3], [1, 1, 1], commit_mode=CommitMode.ALL_OR_NOTHING)
    differ.commit([0, 1], [2, 3])  # the larger one or the smaller could be preferred
    rows = [(row.regret, row.exact) for world in (torn, differ) for row in world.decisions]
    assert rows == [(3 * WAITING - ELSEWHERE, False), (ELSEWHERE, False)]


def test_room_that_became_free_counts_from_then_on() -> None:
    world = World()
    held = world.commit([1, 2], [PREFERRED, PREFERRED]).allocation
    world.master.handle(1_500, TasksFinished(held[:1], np.zeros(1, np.int32), np.full(1, 1_500)))
    world.commit([3], [2], at_us=1_600)
    assert world.regrets == [0, ELSEWHERE]


def test_a_machine_that_is_down_is_no_alternative() -> None:
    world = World()
    world.master.handle(500, MachinesChanged(np.array([PREFERRED], np.int32), np.array([False])))
    assert world.commit([1, 2], [PREFERRED, 2]).reason.tolist() == [Reason.MACHINE_DOWN, 0]
    assert world.regrets == [WAITING - ELSEWHERE]


def test_claims_for_tasks_that_have_their_place_do_not_count() -> None:
    world = World()
    world.commit([1], [PREFERRED])
    assert world.commit([1], [2]).reason.tolist() == [Reason.DUPLICATE]
    assert world.commit([1, 2], [2, 3]).reason.tolist() == [Reason.DUPLICATE, 0]
    assert [(row.sequence, row.tasks, row.regret) for row in world.decisions] == [
        (1, 1, 0),
        (3, 1, ELSEWHERE),
    ]


def test_victims_may_keep_their_place_or_give_it_away() -> None:
    world = World()
    held = world.commit([1, 2], [PREFERRED, PREFERRED]).allocation
    # Task 1 makes room for task 3 and waits: it could have stayed, and task 3 gone elsewhere.
    world.commit([3], [PREFERRED], evict=held[:1])
    assert world.decisions[1].regret == WAITING - ELSEWHERE and world.decisions[1].tasks == 2


def test_a_move_that_is_refused_leaves_the_task_where_it_was() -> None:
    world = World()
    held = world.commit([1], [3]).allocation
    world.commit([2, 3], [PREFERRED, PREFERRED])
    assert world.commit([1], [PREFERRED], evict=held).accepted.tolist() == [False]
    assert world.commit([1], [2], evict=held).accepted.tolist() == [True]
    assert world.regrets == [ELSEWHERE, 0, 0, 0], (
        "once the preferred machine was full, nothing was better"
    )


def test_only_settled_time_of_a_phase_is_looked_at() -> None:
    world = World(settle_us=1_000)
    for task, at_us in enumerate([50, 1_099, 1_100, 4_999, 5_000, 5_999, 6_000, 7_999, 8_000]):
        world.commit([task], [task % 4], at_us)
    assert [row.at_us for row in world.decisions] == [1_100, 4_999, 6_000, 7_999]
    assert all(
        1_100 <= row.at_us < 5_000 or 6_000 <= row.at_us < 8_000
        for row in world.watch.regret(END_US).system
    )


def test_every_transaction_of_a_phase_is_as_likely_to_be_sampled() -> None:
    offered, seeds = 120, 100
    times: Counter[int] = Counter()
    for seed in range(seeds):
        world = World(tasks=offered, seed=seed)
        for number in range(offered):
            world.commit([number], [number % 4], at_us=200 + number)
        assert len(world.decisions) == world.watch.batches_per_phase == 50
        times.update(row.sequence for row in world.decisions)
    counts = [times[1 + number] for number in range(offered)]
    assert sum(counts) == seeds * 50
    assert stats.chisquare(counts).pvalue > 1e-4


def test_instants_are_those_of_the_seed() -> None:
    worlds = [World(seed=seed) for seed in (1, 1, 2)]
    worlds[1].commit([1], [2])
    at_us = [[row.at_us for row in world.watch.regret(END_US).system] for world in worlds]
    assert at_us[0] == at_us[1] != at_us[2]
    assert len(at_us[0]) == 2 * 10 and at_us[0] == sorted(at_us[0])


def test_the_whole_cell_against_staying_and_moving() -> None:
    world = World(tasks=3)
    world.commit([0, 1], [1, 2], at_us=50)  # before anything is looked at
    for row in world.watch.regret(END_US).system:
        assert (row.running, row.waiting, row.cost) == (2, 1, 2 * ELSEWHERE + WAITING)
        assert row.without_migration == WAITING, "the third could have the preferred machine"
        assert row.with_migration == WAITING + ELSEWHERE, "and one more be moved there"
        assert row.exact


def test_what_has_run_waits_no_more_and_what_lost_its_machine_waits_again() -> None:
    world = World(tasks=4)
    held = world.commit([0, 1, 2], [1, 2, 3], at_us=10).allocation
    world.master.handle(20, TasksFinished(held[:1], np.zeros(1, np.int32), np.full(1, 20)))
    world.master.handle(
        30, MachinesChanged(np.array([2, PREFERRED], np.int32), np.array([False, False]))
    )
    row = world.watch.regret(END_US).system[0]
    assert (row.running, row.waiting, row.cost) == (1, 2, ELSEWHERE + 2 * WAITING)
    assert row.without_migration == row.with_migration == 2 * (WAITING - ELSEWHERE)


def test_a_machine_above_its_limit_may_keep_what_it_holds() -> None:
    world = World(tasks=6, initial=(PREFERRED,) * 4 + (1,))
    row = world.watch.regret(END_US).system[0]
    assert (row.running, row.cost) == (5, ELSEWHERE + WAITING)
    assert row.without_migration == row.with_migration == WAITING - ELSEWHERE
