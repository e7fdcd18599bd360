"""What each task could do instead of what its flow does, and what the round would cost then.

The flow of a round is the cheapest of all. To send a task another way, others may have to make
room; the cheapest way to do so is a shortest path in the residual graph, from where the task would
go back to where it goes now. Its length is never negative: else the flow would not be optimal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from schedulers.flow.snapshot import GraphSnapshot, NodeKind

UNREACHED = 1 << 62


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the flow: one unit more over an arc (a row of the snapshot's), or one less."""

    arc: int
    more: bool


@dataclass(frozen=True, slots=True)
class Way:
    """A way that a task could take, named by its first arc.

    Attributes:
        path: The cheapest path to the sink that begins so, whether or not it has room: rows of
            arcs.
        cost: Of that path.
        full: The arcs of the path that already carry all that they may. Of paths that cost the same
            it is one with the fewest.
        free: The cheapest path that begins so and has room all along; empty if none has.
        rent: What the full arcs of the path are worth to the tasks that have them, by the dual
            prices: cost + rent is no less than what the task's own way costs with its rent. None if
            the flow is not proved optimal.
        extra: What the round would cost more if the task began so, with all others moved as
            cheaply as possible. None: no flow takes it there.
        steps: How the flow would change then, in order, from the task's first arc on.
    """

    path: tuple[int, ...]
    cost: int
    full: tuple[int, ...]
    free: tuple[int, ...]
    rent: int | None
    extra: int | None
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class TaskWays:
    """The way of a task, and its other ways, the least costly first.

    Attributes:
        node: The task's row in the columns of nodes.
        taken: The arcs from the task that carry its unit, mostly to the sink. Where units of
            several tasks pass an aggregator, one of the possible ways to tell them apart. Empty if
            the flow of an unfinished round takes it nowhere.
        cost, rent: Of them, as of a Way.
        others: The other ways.
    """

    node: int
    taken: tuple[int, ...]
    cost: int
    rent: int | None
    others: tuple[Way, ...]


class Ways:
    """The ways of the tasks of a graph.

    Args:
        graph: The graph.
        preferred: The machine to which the scheduler sends each task, by the task's row in the
            columns of nodes: the flow is told apart so where it can be.
    """

    def __init__(self, graph: GraphSnapshot, preferred: Mapping[int, int]) -> None:
        self._proved = graph.proved is True
        self._preferred = preferred
        self._tail: list[int] = graph.tail.tolist()
        self._head: list[int] = graph.head.tolist()
        self._capacity: list[int] = graph.capacity.tolist()
        self._cost: list[int] = graph.cost.tolist()
        self._flow: list[int] = graph.flow.tolist()
        self._supply: list[int] = graph.supply.tolist()
        self._potential: list[int] = graph.potential.tolist()
        self._kind: list[int] = graph.kind.tolist()
        self._number: list[int] = graph.number.tolist()
        self._out: list[list[int]] = [[] for _ in self._kind]
        self._into: list[list[int]] = [[] for _ in self._kind]
        for arc, (tail, head) in enumerate(zip(self._tail, self._head, strict=True)):
            self._out[tail].append(arc)
            self._into[head].append(arc)
        self._sink = self._kind.index(NodeKind.SINK)
        self._cheapest = _Cheapest(self._sink, self._head, self._costs_and_fulls())
        is_free = [self._flow[arc] < its for arc, its in enumerate(self._capacity)]
        self._free = _Cheapest(
            self._sink,
            self._head,
            [[(arc, self._cost[arc], 0) for arc in arcs if is_free[arc]] for arcs in self._out],
        )
        self._back: dict[int, tuple[list[int], list[Step | None]]] = {}
        self._taken = self._paths()

    def of(self, node: int) -> TaskWays:
        """The ways of the task of this node."""
        taken = self._taken.get(node, ())
        now = taken[0] if taken else -1
        # A running task may have two arcs to its machine: to run on, and to be placed there anew.
        same = self._head[now] if taken else -1
        others = [
            self._way(node, now, arc)
            for arc in self._out[node]
            if self._head[arc] != same and self._capacity[arc] > 0
        ]
        others.sort(
            key=lambda way: (way.extra is None, way.extra or 0, way.cost, way.path),
        )
        return TaskWays(node, taken, self._cost_of(taken), self._rent_of(taken), tuple(others))

    # --- the flow as paths -----------------------------------------------------------------------

    def _paths(self) -> dict[int, tuple[int, ...]]:
        """A path for each task, as the flow has them."""
        left, ends = list(self._flow), [max(0, -supply) for supply in self._supply]
        tasks = [node for node, kind in enumerate(self._kind) if kind == NodeKind.TASK]
        paths: dict[int, tuple[int, ...]] = {}
        for wanted in (True, False):  # first those that shall go to a certain machine
            for node in tasks:
                if node in paths or (wanted and node not in self._preferred):
                    continue
                machine = self._preferred.get(node) if wanted else None
                path = self._path(node, left, ends, machine)
                if path is not None:
                    paths[node] = path
                    ends[self._head[path[-1]]] -= 1
                    for arc in path:
                        left[arc] -= 1
        return paths

    def _path(
        self, node: int, left: Sequence[int], ends: Sequence[int], machine: int | None
    ) -> tuple[int, ...] | None:
        """A path of flow that is left to where units end, through this machine if one is named."""
        stack: list[tuple[int, tuple[int, ...], bool]] = [(node, (), machine is None)]
        while stack:
            here, path, is_met = stack.pop()
            if ends[here] > 0 and is_met:
                return path
            met = is_met or (self._kind[here] == NodeKind.MACHINE and self._number[here] == machine)
            stack += [
                (self._head[arc], (*path, arc), met)
                for arc in reversed(self._out[here])
                if left[arc] > 0
            ]
        return None

    # --- other ways ------------------------------------------------------------------------------

    def _way(self, node: int, now: int, arc: int) -> Way:
        path = (arc, *(self._cheapest.path(self._head[arc]) or ()))
        full = tuple(one for one in path if self._flow[one] >= self._capacity[one])
        rest = None
        if self._flow[arc] < self._capacity[arc]:
            rest = self._free.path(self._head[arc])
        extra: int | None = None
        steps: tuple[Step, ...] = ()
        if self._proved and now >= 0:
            extra, steps = self._residual(now, arc)
        free = () if rest is None else (arc, *rest)
        return Way(path, self._cost_of(path), full, free, self._rent_of(path), extra, steps)

    def _costs_and_fulls(self) -> list[list[tuple[int, int, int]]]:
        """For each node the arcs out of it, their cost, and whether they are full. Of parallel ones
        those that are open, if any is."""
        found = []
        for arcs in self._out:
            by_head = defaultdict(list)
            for arc in arcs:
                by_head[self._head[arc]].append(arc)
            some = []
            for parallel in by_head.values():
                some += [arc for arc in parallel if self._capacity[arc] > 0] or parallel
            found.append(
                [
                    (arc, self._cost[arc], int(self._flow[arc] >= self._capacity[arc]))
                    for arc in some
                ]
            )
        return found

    def _cost_of(self, path: Iterable[int]) -> int:
        return sum(self._cost[arc] for arc in path)

    def _rent_of(self, path: Iterable[int]) -> int | None:
        if not self._proved:
            return None
        return sum(max(0, -self._reduced_cost(arc)) for arc in path)

    def _reduced_cost(self, arc: int) -> int:
        potential = self._potential
        return self._cost[arc] - potential[self._tail[arc]] + potential[self._head[arc]]

    def _residual(self, now: int, arc: int) -> tuple[int | None, tuple[Step, ...]]:
        """The cheapest change of the flow that moves a task from one of its arcs to another."""
        goal = self._head[now]
        distance, step = self._towards(goal)
        here = self._head[arc]
        if distance[here] >= UNREACHED:
            return None, ()
        extra = self._cost[arc] + distance[here] - self._cost[now]
        steps = [Step(arc, True)]
        while here != goal:
            one = step[here]
            assert one is not None, "every node that was reached has a step"
            steps.append(one)
            here = self._head[one.arc] if one.more else self._tail[one.arc]
        return extra, (*steps, Step(now, False))

    def _towards(self, goal: int) -> tuple[list[int], list[Step | None]]:
        """The lengths of the shortest residual paths from all nodes to this one, and the first
        step of each.

        Dijkstra's algorithm on reduced costs, which are not negative in the residual graph of an
        optimal flow.
        """
        if goal in self._back:
            return self._back[goal]
        potential = self._potential
        reduced = [UNREACHED] * len(self._kind)
        step: list[Step | None] = [None] * len(self._kind)
        reduced[goal] = 0
        queue = [(0, goal)]
        while queue:
            so_far, node = heappop(queue)
            if so_far > reduced[node]:
                continue
            before = [(arc, True, self._tail[arc]) for arc in self._into[node]]
            before += [(arc, False, self._head[arc]) for arc in self._out[node]]
            for arc, more, other in before:
                room = self._capacity[arc] - self._flow[arc] if more else self._flow[arc]
                if room <= 0:
                    continue
                price = self._reduced_cost(arc)
                length = so_far + (price if more else -price)
                if length < reduced[other]:
                    reduced[other] = length
                    step[other] = Step(arc, more)
                    heappush(queue, (length, other))
        distance = [
            one if one >= UNREACHED else one + potential[node] - potential[goal]
            for node, one in enumerate(reduced)
        ]
        self._back[goal] = distance, step
        return distance, step


class _Cheapest:
    """The cheapest paths to the sink of a graph without cycles; of equal ones those with the
    fewest full arcs.

    Args:
        sink: The sink.
        head: The head of each arc.
        out: For each node the arcs that paths may take out of it: which, cost, 1 if it is full.
    """

    def __init__(
        self, sink: int, head: Sequence[int], out: Sequence[Sequence[tuple[int, int, int]]]
    ) -> None:
        self._sink = sink
        self._head = head
        self._out = out
        self._best: dict[int, tuple[int, int, int]] = {sink: (0, 0, -1)}

    def path(self, node: int) -> list[int] | None:
        """The arcs of the path from this node; None if there is none."""
        if self._settle(node)[0] >= UNREACHED:
            return None
        path = []
        while node != self._sink:
            path.append(self._best[node][2])
            node = self._head[path[-1]]
        return path

    def _settle(self, node: int) -> tuple[int, int, int]:
        """Cost, full arcs, and the first arc."""
        if node not in self._best:
            best = (UNREACHED, 0, -1)
            for arc, cost, full in self._out[node]:
                further = self._settle(self._head[arc])
                if further[0] < UNREACHED:
                    best = min(best, (cost + further[0], full + further[1], arc))
            self._best[node] = best
        return self._best[node]
