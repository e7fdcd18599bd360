"""What a round did with each task and why, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from experiments.flow_graphs.recorder import RecordedRound, TaskFacts
from experiments.flow_graphs.ways import TaskWays, Way
from schedulers.flow.policies.interface import UNBOUNDED
from schedulers.flow.snapshot import GraphSnapshot, NodeKind
from schedulers.interface import ChangeKind

_WAITING = (NodeKind.UNSCHEDULED, NodeKind.PATIENCE)
_HEARD = {
    ChangeKind.ADOPTED: "found running",
    ChangeKind.COMMITTED: "placement accepted",
    ChangeKind.REJECTED: "placement rejected (the task waits again)",
    ChangeKind.FINISHED: "finished",
    ChangeKind.EVICTED: "evicted",
    ChangeKind.LOST: "lost with its machine",
}
MOST_NAMED = 12  # of a list of names


class Teller:
    """Tells of one round.

    Args:
        its: The round.
    """

    def __init__(self, its: RecordedRound) -> None:
        self._its = its
        self._graph: GraphSnapshot = its.graph
        self._kind: list[int] = its.graph.kind.tolist()
        self._tail: list[int] = its.graph.tail.tolist()
        self._head: list[int] = its.graph.head.tolist()
        self._cost: list[int] = its.graph.cost.tolist()
        self._unrouted = frozenset(its.graph.unrouted.tolist())
        self._flow: list[int] = its.graph.flow.tolist()
        self._capacity: list[int] = its.graph.capacity.tolist()

    def machine_of(self, ways: TaskWays) -> str | None:
        """The machine to which the flow takes a task; None if it lets it wait."""
        for arc in ways.taken:
            if self._kind[self._head[arc]] == NodeKind.MACHINE:
                return self._graph.name[self._head[arc]]
        return None

    def place_of(self, row: int) -> str | None:
        """The machine on which the task of this node is to be after the round: mostly, but for
        ties, that to which the flow takes it."""
        facts = self._its.tasks[row]
        if facts.claimed is not None:
            return f"M{facts.claimed}"
        if facts.machine is not None and not facts.evicted:
            return f"M{facts.machine}"
        return self.machine_of(self._its.ways[row])

    def waits(self, row: int) -> bool:
        """Whether the round leaves the task of this node without a place. One that is to move to
        another machine is evicted first, and placed there by a later round."""
        facts = self._its.tasks[row]
        if facts.machine is None:
            return facts.claimed is None
        return facts.evicted and self.machine_of(self._its.ways[row]) is None

    def title(self, row: int) -> str:
        """What the round does with the task of this node."""
        facts, name = self._its.tasks[row], self._graph.name[row]
        leads_to = self.machine_of(self._its.ways[row]) if row in self._its.ways else None
        if facts.task in self._unrouted:
            stays = "waits" if facts.machine is None else f"runs on M{facts.machine}"
            return f"{name} still {stays}: the round ended before the solver had routed it"
        if facts.machine is not None:
            here = f"{name} runs on M{facts.machine}"
            if facts.evicted and leads_to not in (None, f"M{facts.machine}"):
                return f"{here}, and is to move to {leads_to}"
            if facts.evicted:
                return f"{here}, and is stopped to make room"
            if leads_to is None:
                return f"{here}; the flow would have it wait, but nothing needs its place"
            return f"{here}, and stays"
        if facts.claimed is not None:
            return f"{name} is placed on M{facts.claimed}"
        if leads_to is not None:
            return f"{name} waits, although the flow leads to {leads_to}"
        return f"{name} waits"

    def why(self, row: int) -> list[str]:
        """The reasons, a sentence each."""
        ways, facts = self._its.ways[row], self._its.tasks[row]
        if facts.task in self._unrouted or not ways.taken:
            return ["The round's budget was used up. The task keeps its state for the next round."]
        reasons = [f"Its way {self._path(ways.taken)} costs {self._sum(ways.taken)}."]
        leads_to = self.machine_of(ways)
        if facts.claimed is not None and leads_to not in (None, f"M{facts.claimed}"):
            reasons.append(
                f"The solver's flow goes to {leads_to}. M{facts.claimed} costs the same: of "
                "machines of equal cost, the scheduler takes the emptiest."
            )
        if facts.claimed is not None and leads_to is None:
            reasons.append(
                "The flow lets it wait, because it counts in tasks of typical size. This task was "
                f"placed by itself: what it really requests fits on M{facts.claimed}."
            )
        if facts.claimed is None and facts.machine is None and leads_to is not None:
            reasons.append(
                "There is not room for all tasks of its gang, so none of them is placed."
                if facts.gang >= 0
                else "What it requests does not fit there beside the others: the flow counts in "
                "tasks of typical size."
            )
        return [*reasons, *self._verdict(ways, leads_to is None)]

    def _verdict(self, ways: TaskWays, waits: bool) -> Iterable[str]:
        """What the other ways come to."""
        places = [way for way in ways.others if not self._is_waiting(way)] if waits else ways.others
        if not places:
            yield "There is no other way for it." if not waits else "No arc leads to a place."
            return
        known = [way for way in places if way.extra is not None]
        if not known:
            yield (
                "No other way has room, whoever is moved."
                if self._graph.proved
                else ("The solver was stopped early, so the flow is not proved to be the cheapest.")
            )
            return
        best = min(known, key=lambda way: way.extra or 0)
        where = self._path(best.path)
        free = [way.free for way in places if way.free]
        if waits and free:
            first = min(free, key=self._cost_of)
            cost = self._cost_of(first)
            yield f"There is room: {self._path(first)} costs {cost:,}." + (
                " But waiting costs less." if cost > ways.cost else ""
            )
        elif waits:
            yield "Every place that it could take is full."
        if not best.extra:
            yield f"{where} would cost the same in all: either is optimal."
        elif best.full:
            yield (
                f"The cheapest change is {where}: with all others moved as cheaply as possible, "
                f"the round would cost {best.extra:,} more."
            )
        else:
            yield f"The next best is {where}: the round would cost {best.extra:,} more."

    def ways(self, row: int) -> list[dict[str, Any]]:
        """The other ways of a task, for the table."""
        return [self._way(way) for way in self._its.ways[row].others]

    def heard(self) -> list[str]:
        """What the scheduler was told since the round before, a line each."""
        lines = []
        for kind in ChangeKind:
            tasks = [
                task for change in self._its.heard if change.kind == kind for task in change.task
            ]
            if tasks:
                lines.append(f"{_HEARD[kind]}: {named([f'T{task}' for task in tasks])}")
        if self._its.offered:
            lines.append(f"to be placed: {named([f'T{task}' for task in self._its.offered])}")
        return lines

    def _is_waiting(self, way: Way) -> bool:
        return self._kind[self._head[way.path[0]]] in _WAITING

    def _way(self, way: Way) -> dict[str, Any]:
        return {
            "to": self._path(way.path),
            "cost": way.cost,
            "rent": way.rent,
            "full": [f"{self._arc(arc)} {self._use(arc)}" for arc in way.full],
            "extra": way.extra,
            "steps": [
                f"{'' if step.more else 'no longer '}{self._arc(step.arc)} "
                f"({self._cost[step.arc] * (1 if step.more else -1):+,})"
                for step in way.steps
            ],
            "path": list(way.path),
            "changes": [[step.arc, step.more] for step in way.steps],
        }

    def _arc(self, arc: int) -> str:
        return f"{self._graph.name[self._tail[arc]]} → {self._graph.name[self._head[arc]]}"

    def _use(self, arc: int) -> str:
        return f"({self._flow[arc]:,} of {capacity_text(self._capacity[arc])})"

    def _path(self, arcs: Sequence[int]) -> str:
        names = [self._graph.name[self._tail[arcs[0]]]]
        return " → ".join([*names, *(self._graph.name[self._head[arc]] for arc in arcs)])

    def _cost_of(self, arcs: Sequence[int]) -> int:
        return sum(self._cost[arc] for arc in arcs)

    def _sum(self, arcs: Sequence[int]) -> str:
        """The sum of the costs of these arcs, with those that are not 0."""
        parts = [self._cost[arc] for arc in arcs if self._cost[arc]]
        total = f"{sum(parts):,}"
        return total if len(parts) < 2 else " + ".join(f"{one:,}" for one in parts) + f" = {total}"


def capacity_text(capacity: int) -> str:
    """A capacity, or that there is none."""
    return "any number" if capacity >= UNBOUNDED else f"{capacity:,}"


def named(names: Sequence[str]) -> str:
    """A list of names, not too long."""
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown


def facts_text(facts: TaskFacts, dimensions: Sequence[str], now_us: int) -> list[str]:
    """What a task is, a line each."""
    asks = ", ".join(
        f"{name} {amount:,}" for amount, name in zip(facts.request, dimensions, strict=True)
    )
    since = (now_us - facts.submit_us) / 1e6
    lines = [f"job {facts.job}", f"requests: {asks}", f"submitted {since:,.3f} s before this round"]
    if facts.gang >= 0:
        lines.append(f"gang {facts.gang}")
    return lines
