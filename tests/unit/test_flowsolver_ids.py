"""Ids of nodes and arcs over rounds with every status: which ids are reused, and when."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsolver import IncrementalSolver, Status, algorithms, solve
from tests.fixtures.examples import examples
from tests.fixtures.networks import check_resolved, network

SINK = 0
WAITS = 1  # what cannot go elsewhere goes over this node


class IdModel:
    """The documented behaviour of the ids of one kind."""

    def __init__(self, ids: int) -> None:
        self.size = ids
        self.live = set(range(ids))
        self.of_optimum: set[int] = set()  # live at the last OPTIMAL resolve
        self.free: list[int] = []
        self.since: list[int] = []  # came back since the last OPTIMAL resolve: handed out first
        self.reserved: list[int] = []  # until the next OPTIMAL one
        self.removed: list[int] = []  # in this round
        self.removals = 0
        self.order: dict[int, int] = {}  # of the last removal of each

    def take(self) -> int:
        if self.since or self.free:
            new = (self.since or self.free).pop()
        else:
            new = self.size
            self.size += 1
        assert new not in self.live
        self.live.add(new)
        return new

    def remove(self, ids: Iterable[int]) -> None:
        for old in ids:
            self.live.remove(old)
            self.removed.append(old)
            self.removals += 1
            self.order[old] = self.removals

    def resolve(self, optimal: bool) -> None:
        if optimal:
            came_back = [*self.since, *self.reserved, *self.removed]
            self.free += sorted(came_back, key=self.order.__getitem__)
            self.since, self.reserved = [], []
            self.of_optimum = set(self.live)
        else:
            self.since += [old for old in self.removed if old not in self.of_optimum]
            self.reserved += [old for old in self.removed if old in self.of_optimum]
        self.removed = []


class History:
    """Tasks come and go around some machines, in rounds that end with every status. Every id and
    every flow is compared with the model.
    """

    def __init__(self, algorithm: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        machines = np.arange(2, 6)
        arcs = [(m, SINK, 2, 0) for m in machines] + [(WAITS, SINK, 99, 0)]
        self.solver = IncrementalSolver(network([0] * 6, arcs), algorithm)
        self.nodes, self.arcs = IdModel(6), IdModel(len(arcs))
        self.machines = machines.tolist()
        self.tasks: dict[int, list[int]] = {}  # their arcs
        self.flow = dict.fromkeys(range(len(arcs)), 0)  # of live arcs, at the last optimum

    def add_arcs(self, tail: int, rows: list[tuple[int, int, int]]) -> list[int]:
        head, capacity, cost = zip(*rows, strict=True)
        new = self.solver.add_arcs([tail] * len(rows), head, capacity, cost).tolist()
        assert new == [self.arcs.take() for _ in rows]
        self.flow.update(dict.fromkeys(new, 0))
        return new

    def remove_arcs(self, arcs: list[int]) -> None:
        self.arcs.remove(arcs)
        for arc in arcs:
            del self.flow[arc]

    def come(self) -> None:
        (task,) = self.solver.add_nodes([1]).tolist()
        assert task == self.nodes.take()
        chosen = self.rng.choice(self.machines, 2).tolist()
        rows = [(m, 1, int(self.rng.integers(0, 9))) for m in chosen]
        self.tasks[task] = self.add_arcs(task, [*rows, (WAITS, 1, 20)])

    def go(self) -> None:
        if not self.tasks:
            return
        task = self.rng.choice(list(self.tasks)).item()
        self.solver.remove_nodes([task])
        self.nodes.remove([task])
        self.remove_arcs(sorted(self.tasks.pop(task)))

    def exchange_arc(self) -> None:
        if not self.tasks:
            return
        task = self.rng.choice(list(self.tasks)).item()
        old = self.tasks[task].pop(0)
        self.solver.remove_arcs([old])
        self.remove_arcs([old])
        new = self.add_arcs(task, [(int(self.rng.choice(self.machines)), 1, 3)])
        self.tasks[task] = new + self.tasks[task]  # the last one leads to where it may wait

    def resolve(self, end: str) -> None:
        """A round that ends so, whatever the changes were."""
        solver, supply = self.solver, -len(self.tasks)
        if end == "infeasible" and self.tasks:
            supply -= 1
            lonely = solver.add_nodes([1]).tolist()
            assert lonely == [self.nodes.take()]
        solver.set_supply([SINK], [supply + (end == "unbalanced")])
        some_arc = min(self.flow)
        if end == "costs out of range":
            solver.set_cost([some_arc], [2**62])
        if end == "supplies out of range":
            solver.set_supply([SINK], [-(2**62)])
        if end == "cancelled":
            solver.cancel()
        status = solver.resolve(max_operations=1 if end == "budget" else None)
        expected = {
            "unbalanced": Status.UNBALANCED,
            "costs out of range": Status.BAD_COST_RANGE,
            "supplies out of range": Status.BAD_CAPACITY_RANGE,
            "cancelled": Status.CANCELLED,
            "infeasible": Status.INFEASIBLE if self.tasks else Status.OPTIMAL,
            "optimal": Status.OPTIMAL,
        }
        assert status is expected[end] if end != "budget" else status.name in ("BUDGET", "OPTIMAL")
        self.nodes.resolve(status is Status.OPTIMAL)
        self.arcs.resolve(status is Status.OPTIMAL)
        if status is Status.OPTIMAL:
            check_resolved(solver)
            self.flow = {arc: int(units) for arc, units in enumerate(solver.flow())
                         if arc in self.arcs.live}  # fmt: skip
        if end == "costs out of range":
            solver.set_cost([some_arc], [0])
        if end == "supplies out of range":
            solver.set_supply([SINK], [supply])
        if end == "infeasible" and self.tasks:
            solver.remove_nodes(lonely)
            self.nodes.remove(lonely)
        self.check_flow()

    def check_flow(self) -> None:
        """As of the last optimum, whatever has come and gone since."""
        flow = self.solver.flow()
        assert flow.size == self.arcs.size
        expected = np.zeros(flow.size, dtype=np.int64)
        expected[list(self.flow)] = list(self.flow.values())
        np.testing.assert_array_equal(flow, expected)
        assert (self.solver.num_nodes, self.solver.num_arcs) == (
            len(self.nodes.live),
            len(self.arcs.live),
        )


ENDS = [
    "optimal",
    "infeasible",
    "unbalanced",
    "costs out of range",
    "supplies out of range",
    "budget",
    "cancelled",
]
STEPS = ["come", "come", "come", "go", "exchange_arc"]


@examples(40)
@given(
    st.sampled_from(list(algorithms())),
    st.integers(0, 99),
    st.lists(st.tuples(st.lists(st.sampled_from(STEPS), max_size=6), st.sampled_from(ENDS))),
)
def test_ids_are_reused_as_documented(algorithm, seed, rounds):
    history = History(algorithm, seed)
    for steps, end in [*rounds, ([], "optimal")]:
        for step in steps:
            getattr(history, step)()
            history.check_flow()
        history.resolve(end)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("algorithm", algorithms())
def test_ids_do_not_grow_whatever_the_statuses(algorithm, end):
    """As many nodes are added as removed: the ids of an optimum, those since, and those of a round
    suffice.
    """
    history = History(algorithm, 3)
    for _ in range(8):
        history.come()
    history.resolve("optimal")
    sizes = []
    for _ in range(40):
        for _ in range(3):
            history.go()
        for _ in range(3):
            history.come()
        history.resolve(end)
        sizes.append((history.nodes.size, history.arcs.size))
    assert sizes[-1][0] <= 2 * len(history.nodes.live) + 2 * 3 + 1
    assert sizes[-1][1] <= 2 * len(history.arcs.live) + 2 * 9
    if end != "budget":  # which ends OPTIMAL now and then
        assert sizes[20:] == sizes[20:21] * 20
    history.resolve("optimal")


@pytest.mark.parametrize("algorithm", algorithms())
def test_the_range_of_costs_is_that_of_live_nodes(algorithm):
    """A cost that just fits a path over all live nodes is in range, however many ids there are, and
    out of range with one more node, as in a solve from scratch.
    """
    history = History(algorithm, 5)
    for _ in range(8):
        history.come()
    history.resolve("optimal")
    for _ in range(30):
        for _ in range(3):
            history.go()
        for _ in range(3):
            history.come()
        history.resolve("infeasible")
    solver = history.solver
    assert history.nodes.size > 1.5 * solver.num_nodes
    dear = 2**59 // (solver.num_nodes + 1)
    (arc,) = history.add_arcs(min(history.tasks), [(WAITS, 1, dear)])
    history.resolve("optimal")
    solver.add_nodes([0])
    assert solve(solver.snapshot()[0], algorithm).status is Status.BAD_COST_RANGE
    assert solver.resolve() is Status.BAD_COST_RANGE
    solver.set_cost([arc], [1])
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)
