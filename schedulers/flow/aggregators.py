"""The aggregators of a policy in the flow graph, and the arcs out of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.flow.extraction import AggregatorFlow
from schedulers.flow.machine_arcs import MachineArcs
from schedulers.flow.policies.interface import (
    UNBOUNDED,
    AggregatorArcs,
    MachineLoad,
    Policy,
    PolicyError,
    answer,
    arcs_as_int64,
    check_acyclic,
    check_capacities,
    check_costs,
    check_heads,
    check_one_arc_elsewhere,
    check_room_elsewhere,
    join_arcs,
    name_of_head,
    to_aggregator,
)
from schedulers.flow.solver_graph import NO_ARC, NO_NODE, SolverGraph
from shared_state.random import Stream
from shared_state.tasks import Int64


class InnerArcs(NamedTuple):
    """The arcs out of aggregators, int64[k] each; those of one aggregator in consecutive rows. arc:
    the solver's id, or NO_ARC where priced arcs stand in for it. flow: as of the last solve.
    is_priced: bool[k], whether tasks that enter machines over the arc pay for their slots. is_open:
    bool[k], whether the policy still names it."""

    tail: Int64
    head: Int64
    cost: Int64
    level: Int64
    arc: Int64
    capacity: Int64
    flow: Int64
    is_priced: NDArray[np.bool_]
    is_open: NDArray[np.bool_]

    def take(self, row: Int64) -> InnerArcs:
        """These rows, int64[n]."""
        columns: Any = (column[row] for column in self)
        return InnerArcs(*columns)


def _none() -> InnerArcs:
    none, never = np.zeros(0, np.int64), np.zeros(0, bool)
    return InnerArcs(none, none, none, none, none, none, none, never, never)


def _joined(first: InnerArcs, second: InnerArcs) -> InnerArcs:
    pairs: Any = zip(first, second, strict=True)
    return InnerArcs(*(np.concatenate(pair) for pair in pairs))


class Aggregators:
    """The aggregators of a policy. One comes into being when the first arc leads to it, and stays.

    Attributes:
        node: int64[A], the node of each aggregator, or NO_NODE.
        inner: The arcs out of those that exist.
        follow_load: Whether costs or capacities of arcs into machines depend on more than room.

    Args:
        graph: The solver's graph.
        machine_arcs: The way from machines to the sink.
        policy: Says which arcs there are.
        machines: Of the cell.
    """

    def __init__(
        self, graph: SolverGraph, machine_arcs: MachineArcs, policy: Policy, machines: int
    ) -> None:
        self._graph = graph
        self._machine_arcs = machine_arcs
        self._policy = policy
        self._machines = machines
        self._costs_follow_load = policy.overrides("machine_arc_cost")
        # A machine's room stays the same when a task of the scheduler's own begins or ends there
        # under preemption, or when another request is typical; what is used does not.
        self.follow_load = self._costs_follow_load or policy.overrides("machine_arc_capacity")
        self._arcs_change = policy.overrides("stale_aggregators")
        self.node = np.full(policy.aggregators, NO_NODE, np.int64)
        self.inner = _none()
        self._bounded = False  # whether an arc between aggregators has ever had a capacity
        # The rows of inner by tail: the first, and the one after the last.
        self._rows = (
            np.zeros(policy.aggregators, np.int64),
            np.zeros(policy.aggregators, np.int64),
        )
        # And by machine: where its rows begin in the second array.
        self._rows_into = (np.zeros(machines + 1, np.int64), np.zeros(0, np.int64))

    def grow(self) -> None:
        """Make room for the aggregators that the policy has now."""
        had, has = len(self.node), self._policy.aggregators
        if has == had:
            return
        if has < had:
            raise PolicyError(
                f"{self._policy.name}: aggregators: expected {had} or more, as before, got {has}"
            )
        more = np.zeros(has - had, np.int64)
        self.node = np.concatenate([self.node, more + NO_NODE])
        self._rows = (np.append(self._rows[0], more), np.append(self._rows[1], more))

    def set_load(self, machine: Int64, load: MachineLoad) -> None:
        """Set the capacities of the arcs into these machines (int64[k]), whose load changed, and
        their costs if these follow the load."""
        if len(machine) == 0:
            return
        entry: Int64 = _native.entries_of(*self._rows_into, machine)
        if self._arcs_change:
            entry = entry[self.inner.is_open[entry]]
        capacity = self._capacity_into_machines(entry, load)
        if self._costs_follow_load:
            self._set(entry, capacity, self._cost_into_machines(entry, load))
            return
        differs = capacity != self.inner.capacity[entry]
        self.inner.capacity[entry] = capacity
        arc = self.inner.arc[entry]
        altered = len(entry)
        if self._machine_arcs.replaces_inner:
            own = arc != NO_ARC
            differs &= own
            altered = int(np.count_nonzero(own))
        self._graph.solver.set_capacity(arc[differs], capacity[differs])
        self._graph.altered += altered

    def open(self, head: Int64, load: MachineLoad, stream: int) -> None:
        """Bring into being the aggregators that these heads (int64[n]) name, and all that they lead
        to. The order of the new arcs is drawn from `stream`."""
        new: list[AggregatorArcs] = []
        while True:
            named: Int64 = _native.without_node(head, self.node)
            if len(named) == 0:
                break
            self.node[named] = self._graph.add_nodes(len(named))
            arcs = self._ask(named, load)
            new.append(arcs)
            head = arcs.head
        if not new:
            return
        arcs = join_arcs(new)
        between = arcs.head < 0
        check_acyclic(self._policy, arcs.tail[between], to_aggregator(arcs.head[between]))
        before = len(self.inner.tail)
        self._append(arcs, load, stream)
        tail = self.inner.tail[before:]
        first, end = self._rows
        opened = np.unique(tail)
        first[opened] = before + np.searchsorted(tail, opened, side="left")
        end[opened] = before + np.searchsorted(tail, opened, side="right")
        self._index_machines()

    def refresh(self, stale: Int64, load: MachineLoad, stream: int) -> None:
        """Bring the arcs of these aggregators (int64[k]) up to date with what the policy says of
        them now; those that are not in the graph are passed over."""
        stale = np.unique(stale[self.node[stale] != NO_NODE])
        if len(stale) == 0:
            return
        arcs = self._ask(stale, load)
        self.open(arcs.head, load, stream)
        first, end = self._rows
        row: Int64 = _native.ranges(first[stale], end[stale] - first[stale])
        said = self._row_of(row, arcs)
        known = said >= 0
        named = np.zeros(len(self.inner.tail), bool)
        named[said[known]] = True
        unnamed = row[~named[row]]
        is_new_between = np.any(arcs.head[~known] < 0)
        reopened = said[known][~self.inner.is_open[said[known]]]
        self.inner.is_open[unnamed] = False
        self.inner.is_open[reopened] = True
        self._set(unnamed, np.zeros(len(unnamed), np.int64), self.inner.cost[unnamed])
        self._set_said(said[known], arcs, np.flatnonzero(known), load)
        if is_new_between or np.any(self.inner.head[reopened] < 0):
            inner = self.inner
            old = inner.is_open & (inner.head < 0)
            new = ~known & (arcs.head < 0)
            check_acyclic(
                self._policy,
                np.concatenate([inner.tail[old], arcs.tail[new]]),
                to_aggregator(np.concatenate([inner.head[old], arcs.head[new]])),
            )
        if not known.all():
            self._add(arcs, np.flatnonzero(~known), load, stream)

    def node_of(self, head: Int64, is_elsewhere: NDArray[np.bool_]) -> Int64:
        """The nodes to which arcs with these heads lead (int64[k]), given whether each leads to
        machines that its tasks do not prefer (bool[k])."""
        into_machine = self._machine_arcs.entrance(np.maximum(head, 0), is_elsewhere)
        if len(self.node) == 0:
            return into_machine
        return np.where(head >= 0, into_machine, self.node[np.maximum(-1 - head, 0)])

    def flow(self) -> AggregatorFlow:
        """The flow out of aggregators after the last solve, for the extraction."""
        inner = self.inner
        return AggregatorFlow(
            *self._rows, inner.head, inner.cost, inner.flow, inner.capacity, self._bounded
        )

    # --- what the policy says --------------------------------------------------------------------

    def _ask(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        """The arcs out of these aggregators, with capacities."""
        policy = self._policy
        arcs = arcs_as_int64(policy, policy.aggregator_arcs(aggregator, load), "aggregator_arcs")
        self.grow()
        stranger = arcs.tail[~np.isin(arcs.tail, aggregator)]
        if len(stranger):
            raise PolicyError(
                f"{policy.name}: aggregator_arcs: an arc out of aggregator {int(stranger[0])}, "
                f"which was not asked about"
            )
        check_heads(policy, arcs.head, self._machines, "an aggregator")
        check_costs(policy, arcs.cost, "out of an aggregator")
        capacity = np.full(len(arcs.tail), UNBOUNDED, np.int64)
        if arcs.capacity is not None:
            between = arcs.head < 0
            check_capacities(policy, arcs.tail[between], arcs.head[between], arcs.capacity[between])
            capacity[between] = np.minimum(arcs.capacity[between], UNBOUNDED)
            self._bounded |= bool(np.any(capacity < UNBOUNDED))
        return AggregatorArcs(arcs.tail, arcs.head, arcs.cost, arcs.level, capacity)

    def _capacity_into_machines(self, entry: Int64, load: MachineLoad) -> Int64:
        machine = self.inner.head[entry]
        capacity = answer(
            self._policy,
            self._policy.machine_arc_capacity(self.inner.level[entry], machine, load),
            len(entry),
            "machine_arc_capacity",
        )
        check_capacities(self._policy, self.inner.tail[entry], machine, capacity)
        if self._machine_arcs.replaces_inner:
            priced = self.inner.is_priced[entry]
            machine = machine[priced]
            check_room_elsewhere(self._policy, machine, capacity[priced], load.room[machine])
        return capacity

    def _cost_into_machines(self, entry: Int64, load: MachineLoad) -> Int64:
        """What these arcs cost now, of a policy whose costs follow the load."""
        inner = self.inner
        said = self._policy.machine_arc_cost(
            inner.tail[entry], inner.level[entry], inner.head[entry], load
        )
        if said is None:
            return inner.cost[entry]
        cost = answer(self._policy, said, len(entry), "machine_arc_cost")
        check_costs(self._policy, cost, "into a machine")
        return cost

    def _row_of(self, row: Int64, arcs: AggregatorArcs) -> Int64:
        """Which of these rows each of the arcs is, int64[k]; -1: none."""
        inner = self.inner
        old, n = len(row), len(arcs.tail)
        tail, head, level = (
            np.concatenate(pair)
            for pair in (
                (inner.tail[row], arcs.tail),
                (inner.head[row], arcs.head),
                (inner.level[row], arcs.level),
            )
        )
        order = np.lexsort((level, head, tail))  # stable: rows come before arcs that are the same
        same = np.zeros(old + n, bool)
        before, after = order[:-1], order[1:]
        same[1:] = (
            (tail[before] == tail[after])
            & (head[before] == head[after])
            & (level[before] == level[after])
        )
        is_arc = order >= old
        twice = np.flatnonzero(same[1:] & is_arc[:-1] & is_arc[1:])
        if len(twice):
            arc = order[twice[0]] - old
            raise PolicyError(
                f"{self._policy.name}: aggregator_arcs: two arcs of level {int(arcs.level[arc])} "
                f"lead from {self._policy.aggregator_name(int(arcs.tail[arc]))} to "
                f"{name_of_head(self._policy, arcs.head[arc])}"
            )
        found = np.full(n, -1, np.int64)
        at = np.flatnonzero(same & is_arc)
        found[order[at] - old] = row[order[at - 1]]
        return found

    # --- changes ---------------------------------------------------------------------------------

    def _set(self, row: Int64, capacity: Int64, cost: Int64) -> None:
        """Set capacities and costs of these rows (int64[k] each)."""
        inner = self.inner
        differs = (capacity != inner.capacity[row]) | (cost != inner.cost[row])
        row, capacity, cost = row[differs], capacity[differs], cost[differs]
        inner.capacity[row], inner.cost[row] = capacity, cost
        self._graph.change_arcs(inner.arc[row], capacity, cost)

    def _set_said(self, row: Int64, arcs: AggregatorArcs, arc: Int64, load: MachineLoad) -> None:
        """Set these rows to what is said of these arcs (int64[k] each)."""
        assert arcs.capacity is not None
        capacity, cost = arcs.capacity[arc], arcs.cost[arc]
        into = np.flatnonzero(arcs.head[arc] >= 0)
        capacity[into] = self._capacity_into_machines(row[into], load)
        if self._costs_follow_load:
            cost[into] = self._cost_into_machines(row[into], load)
        self._set(row, capacity, cost)

    def _append(self, arcs: AggregatorArcs, load: MachineLoad, stream: int) -> None:
        """Add these arcs as rows at the end, in an order drawn from `stream`."""
        assert arcs.capacity is not None
        order = Stream(stream).permutation(len(arcs.tail))
        order = order[np.argsort(arcs.tail[order], kind="stable")]
        tail, head, cost, level, capacity = (
            column[order] for column in (arcs.tail, arcs.head, arcs.cost, arcs.level, arcs.capacity)
        )
        if self._arcs_change:
            self._row_of(np.zeros(0, np.int64), arcs)  # which finds arcs that are named twice
        is_elsewhere = self._policy.is_elsewhere(tail)
        is_priced = self._machine_arcs.is_priced(is_elsewhere)
        before = len(self.inner.tail)
        no_arc, flow = np.full(len(tail), NO_ARC, np.int64), np.zeros(len(tail), np.int64)
        is_open = np.ones(len(tail), bool)
        self.inner = _joined(
            self.inner,
            InnerArcs(tail, head, cost, level, no_arc, capacity, flow, is_priced, is_open),
        )
        into = before + np.flatnonzero(head >= 0)
        self.inner.capacity[into] = self._capacity_into_machines(into, load)
        if self._costs_follow_load:
            self.inner.cost[into] = self._cost_into_machines(into, load)
        tail_node, inner = self.node[tail], before + np.arange(len(tail))
        replaced = np.zeros(len(tail), bool)
        if self._machine_arcs.replaces_inner:
            replaced = is_priced & (head >= 0)
            entering = self.inner.is_priced & (self.inner.head >= 0)
            check_one_arc_elsewhere(
                self._policy, self.inner.head[entering], self.inner.cost[entering]
            )
            self._machine_arcs.open(head[replaced], tail_node[replaced], inner[replaced])
        own = inner[~replaced]
        self.inner.arc[own] = self._graph.add_inner_arcs(
            own,
            tail_node[~replaced],
            self.node_of(head, is_elsewhere)[~replaced],
            self.inner.capacity[own],
            self.inner.cost[own],
        )

    def _add(self, arcs: AggregatorArcs, arc: Int64, load: MachineLoad, stream: int) -> None:
        """Add some of these arcs to aggregators that have others, and forget arcs that are closed.
        O(k): all rows move."""
        assert arcs.capacity is not None
        closed = np.flatnonzero(~self.inner.is_open)
        if len(closed):
            self._graph.solver.remove_arcs(self.inner.arc[closed])
        was = len(self.inner.tail)
        more = (arcs.tail, arcs.head, arcs.cost, arcs.level, arcs.capacity)
        self._append(AggregatorArcs(*(column[arc] for column in more)), load, stream)
        kept = np.flatnonzero(self.inner.is_open)
        order = kept[np.argsort(self.inner.tail[kept], kind="stable")]
        moved = np.full(was + len(arc), NO_ARC, np.int64)
        moved[order] = np.arange(len(order))
        self.inner = self.inner.take(order)
        self._graph.move_inner_arcs(moved)
        each = np.arange(len(self.node))
        self._rows = (
            np.searchsorted(self.inner.tail, each, side="left"),
            np.searchsorted(self.inner.tail, each, side="right"),
        )
        self._index_machines()

    def _index_machines(self) -> None:
        into = np.flatnonzero(self.inner.head >= 0)
        order = into[np.argsort(self.inner.head[into], kind="stable")]
        self._rows_into = (
            np.searchsorted(self.inner.head[order], np.arange(self._machines + 1)),
            order,
        )
