"""The page of a recording, and the drawing of one round: what templates/flow_graph.html.j2 and
flow_graph.svg.j2 are filled with."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.flow_graphs.changes import (
    ArcKey,
    ArcState,
    Changes,
    NodeKey,
    arcs_by_key,
    changes,
    node_keys,
)
from experiments.flow_graphs.layout import Curve, LabelPlacer, Layout, laid_out
from experiments.flow_graphs.recorder import RecordedRound, Recording
from experiments.flow_graphs.words import Teller, capacity_text, facts_text, named
from experiments.report.html import filled
from schedulers.flow.snapshot import NodeKind

_CLASS = {
    NodeKind.TASK: "task",
    NodeKind.AGGREGATOR: "aggregator",
    NodeKind.ENTRANCE: "entrance",
    NodeKind.MACHINE: "machine",
    NodeKind.UNSCHEDULED: "unscheduled",
    NodeKind.PATIENCE: "patience",
    NodeKind.SINK: "sink",
}
_BELOW = (NodeKind.UNSCHEDULED, NodeKind.PATIENCE)
MOST_LABELS = 70  # with more arcs, only those that carry flow or changed are labelled
MOST_COSTS = 3  # of parallel arcs that are named in a label


@dataclass(frozen=True, slots=True)
class About:
    """What is drawn: for the page's heading.

    Attributes:
        what: One line, e.g. the run and the arm.
        scheduler: Its name.
        notes: Further sentences.
        tasks: The tasks around which the graph is drawn; empty: all of it.
    """

    what: str
    scheduler: str
    notes: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()


def page(recording: Recording, about: About) -> str:
    """The text of a page with all rounds of a recording, of which there is at least one."""
    rounds = recording.rounds
    layouts = laid_out(rounds)
    index: dict[NodeKey, int] = {}
    for one in layouts:
        for key in one.box:
            index.setdefault(key, len(index))
    drawn = [
        _RoundOnPage(its, before, layout, index, recording.dimensions)
        for before, its, layout in zip([None, *rounds[:-1]], rounds, layouts, strict=True)
    ]
    data = {
        "about": {"what": about.what, "scheduler": about.scheduler, "tasks": list(about.tasks)},
        "cost_scale": rounds[0].graph.cost_scale,
        "rounds": [one.data() for one in drawn],
    }
    return filled(
        "flow_graph.html.j2",
        about=about,
        rounds=drawn,
        layout=layouts[0],
        seen=recording.seen,
        evicts=any(its.evicted for its in rounds),
        scale=rounds[0].graph.cost_scale,
        # "<" ends no script then
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    )


def drawing(its: RecordedRound) -> str:
    """One round as an SVG image for documents."""
    [layout] = laid_out([its])
    index = {key: place for place, key in enumerate(layout.box)}
    return filled(
        "flow_graph.svg.j2", one=_RoundOnPage(its, None, layout, index, ()), layout=layout
    )


class _RoundOnPage:
    """A round as the templates draw it.

    Args:
        its: The round.
        before: The one before it on the page; None: there is none.
        layout: Where nodes stand.
        index: The number of each node on the page.
        dimensions: Names of resources.
    """

    def __init__(
        self,
        its: RecordedRound,
        before: RecordedRound | None,
        layout: Layout,
        index: dict[NodeKey, int],
        dimensions: Sequence[str],
    ) -> None:
        self._its = its
        self._before = before
        self._layout = layout
        self._index = index
        self._dimensions = dimensions
        self._teller = Teller(its)
        self._keys = node_keys(its.graph)
        self._arcs = arcs_by_key(its.graph)
        self._name = dict(zip(self._keys, its.graph.name, strict=True))
        self._changes: Changes | None = None
        if before is not None:
            self._changes = changes(before, its)
            self._name |= {
                key: name
                for key, name in zip(node_keys(before.graph), before.graph.name, strict=True)
                if key not in self._name
            }

    # --- what the drawing shows ------------------------------------------------------------------

    @property
    def number(self) -> int:
        return self._its.number

    @property
    def at(self) -> str:
        return f"{self._its.at_us / 1e6:,.3f} s"

    @property
    def placed(self) -> int:
        return self._its.placed

    @property
    def waiting(self) -> int:
        return self._its.waiting

    @property
    def evicted(self) -> int:
        return self._its.evicted

    @property
    def cost(self) -> int:
        return self._its.graph.total_cost

    @property
    def proved(self) -> bool | None:
        return self._its.graph.proved

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The brackets at the left of the tasks of each job."""
        return [
            {"job": job, "top": top, "bottom": bottom, "y": (top + bottom) / 2}
            for job, top, bottom in self._layout.jobs
        ]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes, those among them that have left since the round before."""
        found = [self._node(row, key) for row, key in enumerate(self._keys)]
        gone = [] if self._changes is None else sorted(self._changes.gone_nodes)
        found += [
            {
                "index": self._index[key],
                "name": self._name[key],
                "class": f"{_CLASS[NodeKind(key[0])]} gone",
                "kind": _CLASS[NodeKind(key[0])],
                "box": self._layout.box[key],
                "below": "",
                "title": f"{self._name[key]} has left since the round before",
            }
            for key in gone
        ]
        return found

    def _node(self, row: int, key: NodeKey) -> dict[str, Any]:
        kind = NodeKind(key[0])
        classes = [_CLASS[kind]]
        below = ""
        if kind is NodeKind.MACHINE:
            used, room = self._use_of_machine(key)
            below = f"{used}/{room}"
            classes += ["full"] if used >= room else []
        if kind is NodeKind.TASK and row in self._its.ways:
            classes.append("waits" if self._teller.waits(row) else "placed")
        if self._changes is not None and key in self._changes.new_nodes:
            classes.append("new")
        title = self._teller.title(row) if kind is NodeKind.TASK else self._name[key]
        return {
            "index": self._index[key],
            "name": self._name[key],
            "class": " ".join(classes),
            "kind": _CLASS[kind],
            "box": self._layout.box[key],
            "below": below,
            "title": title,
        }

    def _use_of_machine(self, key: NodeKey) -> tuple[int, int]:
        """The flow out of a machine, and how much there may be."""
        out = [state for (tail, _, _), state in self._arcs.items() if tail == key]
        return sum(one.flow for one in out), sum(one.capacity for one in out)

    @property
    def links(self) -> list[dict[str, Any]]:
        """The arcs, parallel ones as one line; those that carry flow last, above the others."""
        by_ends: dict[tuple[NodeKey, NodeKey], list[ArcKey]] = defaultdict(list)
        for arc in self._arcs:
            by_ends[arc[:2]].append(arc)
        gone: dict[tuple[NodeKey, NodeKey], list[ArcKey]] = defaultdict(list)
        for arc in () if self._changes is None else self._changes.gone_arcs:
            if arc[:2] not in by_ends:
                gone[arc[:2]].append(arc)
        links = [self._link(ends, arcs) for ends, arcs in by_ends.items()]
        links += [self._gone_link(ends) for ends in gone]
        links.sort(key=lambda link: link["flow"])
        placer = LabelPlacer(self._layout.box[key] for key in self._keys)
        few = len(by_ends) <= MOST_LABELS
        for link in sorted(links, key=lambda link: (-link["flow"], not link["changed"])):
            label, curve = link["label"], link.pop("curve")
            if label and (few or link["flow"] or link["changed"]):
                link["place"] = placer.place(curve, label)
        return links

    def _link(self, ends: tuple[NodeKey, NodeKey], arcs: Sequence[ArcKey]) -> dict[str, Any]:
        tail, head = ends
        states = [self._arcs[arc] for arc in arcs]
        flow = sum(one.flow for one in states)
        is_open = any(one.capacity > 0 for one in states)
        classes = ["flow" if flow else "idle" if is_open else "closed"]
        if head[0] in _BELOW or tail[0] in _BELOW:
            classes.append("waiting")
        changed = self._change_of(arcs)
        curve = self._curve(tail, head)
        return {
            "tail": self._index[tail],
            "head": self._index[head],
            "class": " ".join([*classes, *changed]),
            "flow": flow,
            "width": 1.0 if not flow else 2.2 + min(flow, 8) * 0.5,
            "path": curve.path,
            "curve": curve,
            "label": self._label(states),
            "place": None,
            "changed": bool(changed),
            "title": f"{self._name[tail]} → {self._name[head]}",
        }

    def _gone_link(self, ends: tuple[NodeKey, NodeKey]) -> dict[str, Any]:
        tail, head = ends
        curve = self._curve(tail, head)
        return {
            "tail": self._index[tail],
            "head": self._index[head],
            "class": "gone",
            "flow": 0,
            "width": 1.0,
            "path": curve.path,
            "curve": curve,
            "label": "",
            "place": None,
            "changed": True,
            "title": f"{self._name[tail]} → {self._name[head]} is gone",
        }

    def _curve(self, tail: NodeKey, head: NodeKey) -> Curve:
        box = self._layout.box
        return Curve.between(box[tail], box[head], head[0] in _BELOW, tail[0] in _BELOW)

    def _label(self, states: Sequence[ArcState]) -> str:
        """The costs of the open arcs of a line; "" if there is nothing but one of cost 0."""
        costs = sorted({one.cost for one in states if one.capacity > 0})
        if not costs or costs == [0]:
            return ""
        if len(costs) <= MOST_COSTS:
            return " | ".join(f"{cost:,}" for cost in costs)
        return f"{costs[0]:,} … {costs[-1]:,}"

    def _change_of(self, arcs: Sequence[ArcKey]) -> list[str]:
        """How the arcs of a line differ from the round before, as classes."""
        its = self._changes
        if its is None:
            return []
        found = []
        if any(arc in its.new_arcs for arc in arcs):
            found.append("new")
        if any(arc in its.recosted for arc in arcs):
            found.append("recosted")
        if any(arc in its.resized for arc in arcs):
            found.append("resized")
        if any(arc in its.moved for arc in arcs):
            found.append("moved")
        return found

    # --- what the page tells ---------------------------------------------------------------------

    @property
    def changed(self) -> list[str]:
        """What changed since the round before, a line each."""
        its = self._changes
        if its is None or self._before is None:
            return [*self._teller.heard(), "This is the first round that is drawn."]
        lines = self._teller.heard()
        gap = self._its.number - self._before.number - 1
        if gap:
            lines.append(f"compared with round {self._before.number}; {gap} between are not drawn")
        parts = (
            ("new nodes", [self._name[key] for key in sorted(its.new_nodes)]),
            ("nodes that left", [self._name[key] for key in sorted(its.gone_nodes)]),
            ("moved", self._moved_tasks()),
            (
                "cost changed",
                [
                    f"{self._arc_name(arc)} {was.cost:,} ⇒ {self._arcs[arc].cost:,}"
                    for arc, was in its.recosted.items()
                ],
            ),
            (
                "capacity changed",
                [
                    f"{self._arc_name(arc)} {capacity_text(was.capacity)} ⇒ "
                    f"{capacity_text(self._arcs[arc].capacity)}"
                    for arc, was in its.resized.items()
                ],
            ),
        )
        lines += [f"{what}: {named(names)}" for what, names in parts if names]
        inner = sum(
            arc[0] not in its.new_nodes and arc[1] not in its.new_nodes for arc in its.new_arcs
        )
        if inner:
            lines.append(f"new arcs between old nodes: {inner}")
        return lines

    def _moved_tasks(self) -> list[str]:
        """The tasks of both rounds that are to be elsewhere: from where to where."""
        assert self._before is not None
        before, found = Teller(self._before), []
        old = {self._before.graph.name[row]: row for row in self._before.ways}
        for row in self._its.ways:
            name = self._its.graph.name[row]
            if name in old:
                was, now = before.place_of(old[name]), self._teller.place_of(row)
                if was != now:
                    found.append(f"{name} {was or 'waiting'} ⇒ {now or 'waiting'}")
        return found

    def _arc_name(self, arc: ArcKey) -> str:
        return f"{self._name[arc[0]]} → {self._name[arc[1]]}"

    def data(self) -> dict[str, Any]:
        """All figures of the round, for the page's script and for programs."""
        its, graph = self._its, self._its.graph
        sink = int(graph.potential[np.flatnonzero(graph.kind == NodeKind.SINK)[0]])
        rows = list(range(len(self._keys)))
        return {
            "number": its.number,
            "at_us": its.at_us,
            "cost": graph.total_cost,
            "proved": graph.proved,
            "unrouted": len(graph.unrouted),
            "placed": its.placed,
            "waiting": its.waiting,
            "changed": self.changed,
            "nodes": [
                {
                    "index": self._index[self._keys[row]],
                    "name": graph.name[row],
                    "kind": _CLASS[NodeKind(graph.kind[row])],
                    "supply": int(graph.supply[row]),
                    "price": int(graph.potential[row]) - sink,
                    "hidden": its.hidden[row],
                }
                for row in rows
            ],
            "arcs": [
                {
                    "tail": self._index[tail],
                    "head": self._index[head],
                    "id": arc,
                    "capacity": state.capacity,
                    "cost": state.cost,
                    "flow": state.flow,
                    **self._was((tail, head, arc)),
                }
                for (tail, head, arc), state in self._arcs.items()
            ],
            "gone": []
            if self._changes is None
            else [
                {"tail": self._index[arc[0]], "head": self._index[arc[1]], "id": arc[2]}
                for arc in self._changes.gone_arcs
            ],
            "gone_nodes": []
            if self._changes is None
            else [self._index[key] for key in sorted(self._changes.gone_nodes)],
            "tasks": [self._task(row) for row in its.tasks if row in its.ways],
        }

    def _was(self, arc: ArcKey) -> dict[str, Any]:
        """What an arc was in the round before, where it differs."""
        its = self._changes
        if its is None:
            return {}
        if arc in its.new_arcs:
            return {"new": True}
        was: dict[str, Any] = {}
        if arc in its.recosted:
            was["cost_was"] = its.recosted[arc].cost
        if arc in its.resized:
            was["capacity_was"] = its.resized[arc].capacity
        if arc in its.moved:
            was["flow_was"] = its.moved[arc].flow
        return was

    def _task(self, row: int) -> dict[str, Any]:
        its, ways = self._its, self._its.ways[row]
        return {
            "index": self._index[self._keys[row]],
            "title": self._teller.title(row),
            "waits": self._teller.waits(row),
            "machine": its.tasks[row].machine,
            "claimed": its.tasks[row].claimed,
            "facts": facts_text(its.tasks[row], self._dimensions, its.at_us)
            if self._dimensions
            else [],
            "path": list(ways.taken),
            "cost": ways.cost,
            "rent": ways.rent,
            "why": self._teller.why(row),
            "ways": self._teller.ways(row),
        }
