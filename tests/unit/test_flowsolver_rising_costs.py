"""Rounds in which time makes all placements dearer: by incremental cost scaling, alone and in a
race (local_scaling.hpp, race.hpp)."""

from __future__ import annotations

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, parse_algorithms, solve
from flowsolver.arguments import Int64Array

MACHINES, SLOTS, RACK = 200, 10, 20
RUNNING = MACHINES * SLOTS * 8 // 10
SINK, CLUSTER = 0, 1
RACKS = 2
ENTRANCES = RACKS + MACHINES // RACK
FIRST_MACHINE = ENTRANCES + MACHINES
RACE = "relaxation:from_scratch=on+cost_scaling:alpha=9"


class AgeingCell:
    """Tasks -> cluster -> racks -> entrance of each machine -> machine -> sink. Running tasks have
    an arc to their machine, and one to the cluster."""

    def __init__(self, algorithm: str) -> None:
        self.rng = np.random.default_rng(3)
        machine = np.arange(MACHINES)
        racers = parse_algorithms(algorithm)
        self.solver = IncrementalSolver(FlowNetwork(), racers, deterministic=len(racers) > 1)
        self.solver.add_nodes(np.zeros(FIRST_MACHINE + MACHINES, np.int64))
        racks = np.arange(MACHINES // RACK)
        self.solver.add_arcs(np.full(len(racks), CLUSTER), RACKS + racks, 10**6, 0)
        self.solver.add_arcs(RACKS + machine // RACK, ENTRANCES + machine, 10**6, 0)
        self.entrance_arcs = self.solver.add_arcs(
            ENTRANCES + machine, FIRST_MACHINE + machine, 10**6, 1_000
        )
        self.solver.add_arcs(FIRST_MACHINE + machine, np.full(MACHINES, SINK), SLOTS, 0)
        self.task = self.add_tasks(RUNNING)
        self.came = self.task[:0]
        self.on = self.rng.permutation(MACHINES * SLOTS)[:RUNNING] // SLOTS  # per running task
        self.solver.add_arcs(self.task, FIRST_MACHINE + self.on, 1, 0)
        self.solver.set_supply([SINK], [-RUNNING])

    def add_tasks(self, count: int) -> Int64Array:
        task = self.solver.add_nodes(np.ones(count, np.int64))
        self.solver.add_arcs(task, np.full(count, CLUSTER), 1, 2_000)
        preferred = ENTRANCES + self.rng.integers(0, MACHINES, (count, 3))
        cost = self.rng.integers(2_100, 3_000, 3 * count)
        self.solver.add_arcs(task.repeat(3), preferred.ravel(), 1, cost)
        return task

    def age(self, risen: int, leave: int, come: int, run: bool = True) -> None:
        """Tasks leave; those that came last run, where there is room, or else stay where the flow
        has them, beyond an entrance; placements get dearer."""
        self.solver.remove_nodes(self.task[:leave])
        self.on = self.on[leave:]
        if run:
            self.run(self.came)
        self.came = self.add_tasks(come)
        self.task = np.concatenate([self.task[leave:], self.came])
        self.solver.set_cost(self.entrance_arcs, 1_000 + risen)
        self.solver.set_supply([SINK], [-len(self.task)])

    def run(self, task: Int64Array) -> None:
        free = np.argsort(np.bincount(self.on, minlength=MACHINES), kind="stable")[: len(task)]
        self.on = np.concatenate([self.on, free])
        self.solver.add_arcs(task, FIRST_MACHINE + free, 1, 1_500)

    def resolve(self) -> None:
        """Proved, and as cheap as a solve from scratch."""
        assert self.solver.resolve() == Status.OPTIMAL
        assert self.solver.certify().ok
        assert self.solver.certify_changes().ok
        assert self.solver.cost == solve(self.solver.snapshot()[0]).cost


def settled(algorithm: str) -> AgeingCell:
    cell = AgeingCell(algorithm)
    cell.resolve()
    for risen in (500, 1_000):
        cell.age(risen, leave=5, come=5)
        cell.resolve()
    return cell


@pytest.mark.parametrize("algorithm", ["cost_scaling:alpha=9", RACE])
def test_a_round_in_which_all_get_dearer_costs_what_its_changes_do(algorithm: str) -> None:
    cell = settled(algorithm)
    for risen in range(1_500, 9_000, 500):
        cell.age(risen, leave=5, come=5)
        cell.resolve()
        assert cell.solver.stats.rebuilds == 0
        # the arcs of tasks into entrances alone would be 3 * RUNNING
        assert cell.solver.stats.operations < 2 * RUNNING
        assert cell.solver.certify_changes().arcs_checked < 2 * RUNNING


def test_flow_through_entrances_that_get_dearer_stays_the_cheapest() -> None:
    """An entrance with flow is not idle: its price follows from what flows into it."""
    cell = settled("cost_scaling:alpha=9")
    for risen in range(1_500, 9_000, 500):
        cell.age(risen, leave=5, come=5, run=False)
        cell.resolve()
        assert cell.solver.stats.rebuilds == 0


def test_the_loser_of_a_deterministic_race_goes_on_from_the_answer() -> None:
    """Relaxation from scratch wins the first round, which cost scaling begins without an answer;
    cost scaling wins those after it, which change little, and does the same each time."""
    history = []
    for _ in range(2):
        cell = AgeingCell(RACE)
        cell.resolve()
        rounds = [(cell.solver.winner, cell.solver.racer_operations)]
        for risen in range(500, 5_000, 500):
            cell.age(risen, leave=5, come=5)
            cell.resolve()
            rounds.append((cell.solver.winner, cell.solver.racer_operations))
        history.append(rounds)
    assert history[0] == history[1]
    winners = [winner for winner, _ in history[0]]
    assert winners[0] == "relaxation"
    assert set(winners[1:]) == {"cost_scaling"}
