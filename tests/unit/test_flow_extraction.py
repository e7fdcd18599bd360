"""Decomposition of aggregated flow into placements, and single ones. (What fits together and which
gangs are whole: tests/cpp/schedulers_claimable.cpp.)"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow
from scipy.stats import chisquare

from schedulers.flow.extraction import (
    AggregatorFlow,
    flow_placements,
    place_singly,
)
from schedulers.flow.policies.interface import UNBOUNDED, TaskArcs, to_aggregator
from shared_state.partition import Partitioning
from shared_state.tasks import Int64, PreferenceCatalog
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView
from tests.flow_world import catalog_of, slot_cell, tasks_of


def view_with(free: list[int]) -> ClusterView:
    """A view of machines of 9 slots each, of which so many are free."""
    spec = slot_cell(len(free), 9, rack_size=len(free))
    view = ClusterView(spec, Partitioning.by_topology(spec, 1))
    used = 9 - np.array(free, np.int64)[:, None]
    row = np.arange(len(free), dtype=np.uint32)
    view.apply(PartitionDelta(0, 0, 1, 0, row, used, np.ones(len(free), bool), None))
    return view


def no_arcs() -> TaskArcs:
    none = np.zeros(0, np.int64)
    return TaskArcs(none, none, none)


def aggregators(
    count: int,
    tail: list[int],
    head: list[int],
    cost: list[int],
    flow: list[int],
    capacity: list[int],
) -> AggregatorFlow:
    """The arcs sorted by tail, as columns."""
    order = np.argsort(tail, kind="stable")
    columns = [np.array(column, np.int64)[order] for column in (tail, head, cost, flow, capacity)]
    first, end = (
        np.searchsorted(columns[0], np.arange(count), side=side) for side in ("left", "right")
    )
    between = (columns[1] < 0) & (columns[4] < UNBOUNDED)
    return AggregatorFlow(first, end, *columns[1:], bool(between.any()))


class SolvedFlow:
    """Units sent from given starts down random arcs of a small graph: X = 0 leads to racks 1 and 2
    and to a set 3; the set leads to machines and to rack 2; racks lead to machines."""

    MACHINES = 6
    TAIL = (0, 0, 0, 3, 3, 1, 1, 2, 2, 2)
    HEAD = (-2, -3, -4, 4, -3, 0, 1, 2, 3, 1)

    def __init__(self, data: st.DataObject) -> None:
        size = len(self.TAIL)
        numbers = st.integers(0, 1)
        self.cost = data.draw(st.lists(numbers, min_size=size, max_size=size))
        self.start = np.array(
            data.draw(st.lists(st.sampled_from([-1, -2, -3, -4, 5, 1]), max_size=20)), np.int64
        )
        self.flow, self.paid = [0] * size, 0
        into = np.zeros(self.MACHINES, np.int64)
        for at in self.start.tolist():
            while at < 0:
                arc = data.draw(
                    st.sampled_from([k for k, tail in enumerate(self.TAIL) if tail == -1 - at])
                )
                self.flow[arc] += 1
                self.paid += self.cost[arc]
                at = self.HEAD[arc]
            into[at] += 1
        self.into = into
        spare = st.integers(0, 3)
        bounded = data.draw(st.booleans())  # arcs between aggregators
        self.capacity = [
            f + data.draw(spare) if head >= 0 or bounded else 1 << 30
            for f, head in zip(self.flow, self.HEAD, strict=True)
        ]
        self.room = into + np.array(
            data.draw(st.lists(spare, min_size=self.MACHINES, max_size=self.MACHINES)), np.int64
        )
        # Tasks that go straight to a machine may choose among up to three.
        self.arcs = [
            (i, machine, data.draw(numbers))
            for i, head in enumerate(self.start.tolist())
            if head >= 0
            for machine in {head, *data.draw(st.lists(st.integers(0, 5), max_size=2))}
        ]

    def placements(self, view: ClusterView, stream: int) -> tuple[Int64, Int64]:
        columns = np.array(self.arcs, np.int64).reshape(-1, 3).T.copy()
        return flow_placements(
            view,
            self.start,
            np.ones((len(self.start), 1), np.int64),
            TaskArcs(*columns),
            aggregators(4, self.TAIL, self.HEAD, self.cost, self.flow, self.capacity),
            self.room,
            stream,
        )

    def cheapest_for(self, machine: Int64) -> int:
        """By OR-tools: what it costs to take each task to its machine within the capacities of the
        arcs out of aggregators."""
        problem = min_cost_flow.SimpleMinCostFlow()
        tasks = len(self.start)
        nodes = [*range(tasks, tasks + 4)]
        first_machine, sink = tasks + 4, tasks + 4 + self.MACHINES

        def node(head: int) -> int:
            return first_machine + head if head >= 0 else nodes[-1 - head]

        for tail, head, cost, capacity in zip(
            self.TAIL, self.HEAD, self.cost, self.capacity, strict=True
        ):
            problem.add_arc_with_capacity_and_unit_cost(nodes[tail], node(head), capacity, cost)
        for i, head in enumerate(self.start.tolist()):
            if head < 0:
                problem.add_arc_with_capacity_and_unit_cost(i, node(head), 1, 0)
        for i, head, cost in self.arcs:
            problem.add_arc_with_capacity_and_unit_cost(i, node(head), 1, cost)
        for m, into in enumerate(np.bincount(machine, minlength=self.MACHINES).tolist()):
            problem.add_arc_with_capacity_and_unit_cost(first_machine + m, sink, into, 0)
        for i in range(tasks):
            problem.set_node_supply(i, 1)
        problem.set_node_supply(sink, -tasks)
        assert problem.solve() == problem.OPTIMAL
        return int(problem.optimal_cost())


@given(st.data())
def test_breaking_ties_keeps_costs_and_capacities(data: st.DataObject) -> None:
    flow = SolvedFlow(data)
    free = data.draw(st.lists(st.integers(0, 9), min_size=6, max_size=6))
    _, chosen = flow.placements(view_with(free), stream=data.draw(st.integers(0, 99)))
    assert np.all(np.bincount(chosen, minlength=6) <= flow.room)
    own = {(i, machine): cost for i, machine, cost in flow.arcs}
    for i, head in enumerate(flow.start.tolist()):
        if head >= 0:
            assert own[i, int(chosen[i])] == own[i, head]
    # The machines chosen can be reached within all capacities, for what the solver's flow costs.
    paid = flow.paid + sum(own[i, h] for i, h in enumerate(flow.start.tolist()) if h >= 0)
    assert flow.cheapest_for(chosen) <= paid


@given(st.data())
def test_interchangeable_tasks_fill_the_emptiest_machines(data: st.DataObject) -> None:
    """By brute force: no other distribution over the same machines is more even."""
    machines = 5
    numbers = st.lists(st.integers(0, 4), min_size=machines, max_size=machines)
    free, flow = data.draw(numbers), data.draw(numbers)
    free = [max(a, b) for a, b in zip(free, flow, strict=True)]
    tasks = sum(flow)
    arcs = [(0, m, 0, f, r) for m, (f, r) in enumerate(zip(flow, free, strict=True))]
    _, chosen = flow_placements(
        view_with(free),
        np.full(tasks, to_aggregator(0)),
        np.ones((tasks, 1), np.int64),
        no_arcs(),
        aggregators(1, *map(list, zip(*arcs, strict=True))),
        np.array(free, np.int64),
        stream=data.draw(st.integers(0, 99)),
    )
    most_even = list(free)
    for _ in range(tasks):
        most_even[most_even.index(max(most_even))] -= 1
    left = np.array(free) - np.bincount(chosen, minlength=machines)
    assert sorted(left.tolist()) == sorted(most_even)


def test_several_arcs_to_one_machine_hide_no_emptier_one() -> None:
    arcs = [(0, 0, 0, 1, 5), (0, 0, 0, 1, 5), (0, 1, 0, 0, 4)]  # two lead to machine 0
    for stream in range(20):
        _, chosen = flow_placements(
            view_with([5, 5]),
            to_aggregator(np.zeros(2, np.int64)),
            np.ones((2, 1), np.int64),
            no_arcs(),
            aggregators(1, *map(list, zip(*arcs, strict=True))),
            np.array([5, 5]),
            stream=stream,
        )
        assert sorted(chosen.tolist()) == [0, 1]


def test_equally_empty_machines_are_drawn_evenly() -> None:
    free = [3, 5, 5, 5, 4]
    arcs = [(0, m, 0, int(m == 0), 9) for m in range(5)]
    firsts, view = np.zeros(5, np.int64), view_with(free)
    for stream in range(3000):
        _, chosen = flow_placements(
            view,
            to_aggregator(np.zeros(1, np.int64)),
            np.ones((1, 1), np.int64),
            no_arcs(),
            aggregators(1, *map(list, zip(*arcs, strict=True))),
            np.full(5, 9),
            stream,
        )
        firsts[chosen[0]] += 1
    assert firsts[[0, 4]].sum() == 0
    assert chisquare(firsts[1:4]).pvalue > 1e-6


def test_single_placements_take_the_cheapest_machine_that_fits_as_long_as_that_beats_waiting() -> (
    None
):
    catalog = catalog_of([{"machine": {2: 1}, "elsewhere": 9, "unscheduled": 0}])
    free = np.array([[5, 5], [5, 0], [5, 5]], np.int64)
    tasks = tasks_of(np.arange(3), request=np.full((3, 2), 3, np.int64), preference=1)
    chosen = place_singly(tasks, np.full(3, 10), free, catalog, np.zeros(3, np.int32), stream=3)
    assert chosen.tolist() == [2, 0, -1]
    chosen = place_singly(tasks, np.full(3, 9), free, catalog, np.zeros(3, np.int32), stream=3)
    assert chosen.tolist() == [2, -1, -1]  # waiting costs no more than elsewhere


def test_single_placements_without_preference_start_at_a_random_row() -> None:
    tasks = tasks_of(np.arange(1))
    rack, worth, none = np.zeros(50, np.int32), np.ones(1, np.int64), PreferenceCatalog.empty()
    rows = {
        int(place_singly(tasks, worth, np.ones((50, 1), np.int64), none, rack, key)[0])
        for key in range(20)
    }
    assert len(rows) > 10
