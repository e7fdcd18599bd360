"""Drawings of flow graphs: what is recorded of rounds, ways of tasks, changes, pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.flow_graphs.changes import arcs_by_key, changes
from experiments.flow_graphs.example import example
from experiments.flow_graphs.layout import laid_out
from experiments.flow_graphs.page import About, drawing, page
from experiments.flow_graphs.recorder import RecordedRound, Recording, RoundRecorder, Wanted
from experiments.flow_graphs.words import Teller
from flowsolver import FlowNetwork, Status, solve
from schedulers.flow.policies.interface import Policy
from schedulers.flow.policies.load_spreading import LoadSpreading
from schedulers.flow.scheduler import FlowScheduler
from schedulers.flow.snapshot import GraphSnapshot, NodeKind, snapshot
from schedulers.interface import PartitionRanking, PlanContext
from schedulers.prices.registry import PriceMode
from tests.fixtures.examples import examples
from tests.flow_world import (
    LOCAL,
    FlowWorld,
    QuincyOptions,
    catalog_of,
    environment,
    quincy,
    slot_cell,
    spreading,
    tasks_of,
)
from tests.recorded_world import RecordedWorld, random_world

ROOT = Path(__file__).parents[2]
ABOUT = About("a test", "flow-0")
OPTIONS = st.sampled_from(
    [
        {},
        {"preemption": True},
        {"may_wait": True},
        {"patience_s": 2.0},
        {"max_task_arcs": 0, "preemption": True},
        {"prices": "occupancy", "price_mode": PriceMode.PAID},
        {"prices": "occupancy", "preemption": True},
    ]
)


def data_of(text: str) -> dict[str, Any]:
    """The figures in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def balance(graph: GraphSnapshot) -> Any:
    """The flow out of each node less that into it."""
    out = np.zeros(len(graph.kind), np.int64)
    np.add.at(out, graph.tail, graph.flow)
    np.subtract.at(out, graph.head, graph.flow)
    return out


def cost_through(graph: GraphSnapshot, task: int, arc: int) -> int | None:
    """The optimal cost if a task has to take this arc, from scratch; None: there is no flow."""
    capacity = graph.capacity.copy()
    capacity[(graph.tail == task) & (np.arange(len(capacity)) != arc)] = 0
    network = FlowNetwork()
    network.add_nodes(graph.supply)
    network.add_arcs(graph.tail, graph.head, capacity, graph.cost)
    solution = solve(network, "network_simplex")
    return solution.cost if solution.status == Status.OPTIMAL else None


@given(seed=st.integers(0, 10_000), options=OPTIONS)
@examples(40)
def test_a_snapshot_is_the_optimal_flow(seed: int, options: dict[str, object]) -> None:
    world = random_world(seed, **options)
    assert world.last.graph.total_cost == world.scheduler.graph.cost  # of the last solve
    for its in world.recording.rounds:
        graph = its.graph
        assert graph.proved
        assert balance(graph).tolist() == graph.supply.tolist()
        assert int(graph.cost @ graph.flow) == graph.total_cost
        assert np.all((graph.flow >= 0) & (graph.flow <= graph.capacity))
        reduced = graph.cost - graph.potential[graph.tail] + graph.potential[graph.head]
        assert np.all(reduced[graph.flow < graph.capacity] >= 0)
        assert np.all(reduced[graph.flow > 0] <= 0)
        tasks = graph.number[graph.kind == NodeKind.TASK]
        both = np.concatenate([graph.waiting, graph.running])
        assert sorted(tasks.tolist()) == sorted(both.tolist())
        assert np.all(graph.supply[graph.kind == NodeKind.TASK] == 1)
        assert len(set(graph.name)) == len(graph.name)


@given(seed=st.integers(0, 10_000), options=OPTIONS)
@examples(40)
def test_paths_of_tasks_add_up_to_the_flow_and_end_where_tasks_are_placed(
    seed: int, options: dict[str, object]
) -> None:
    for its in random_world(seed, **options).recording.rounds:
        graph, told = its.graph, Teller(its)
        used = Counter(arc for ways in its.ways.values() for arc in ways.taken)
        assert [used[arc] for arc in range(len(graph.arc))] == graph.flow.tolist()
        assert sum(ways.cost for ways in its.ways.values()) == graph.total_cost
        for row, ways in its.ways.items():
            nodes = [row, *(int(graph.head[arc]) for arc in ways.taken)]
            assert [int(graph.tail[arc]) for arc in ways.taken] == nodes[:-1]
            assert graph.kind[nodes[-1]] == NodeKind.SINK
            facts = its.tasks[row]
            leads_to = told.machine_of(ways)
            if facts.machine is None:
                assert (leads_to is None) == (facts.claimed is None) == told.waits(row)
            elif facts.evicted:
                assert leads_to != f"M{facts.machine}"
                assert told.waits(row) == (leads_to is None)
            else:  # the flow may give up a place that nobody needs
                assert leads_to in (f"M{facts.machine}", None) and not told.waits(row)


@given(seed=st.integers(0, 10_000), options=OPTIONS)
@examples(40)
def test_another_way_costs_what_a_solve_from_scratch_says(
    seed: int, options: dict[str, object]
) -> None:
    for its in random_world(seed, **options).recording.rounds[1:3]:
        graph = its.graph
        for row, ways in its.ways.items():
            for way in ways.others:
                forced = cost_through(graph, row, way.path[0])
                assert forced == (None if way.extra is None else graph.total_cost + way.extra)
                assert way.extra is None or way.extra >= 0
                # With the prices of full arcs no way is cheaper than the task's own.
                assert way.rent is not None and ways.rent is not None
                assert way.cost + way.rent >= ways.cost + ways.rent
                if way.extra is not None:
                    check_steps(graph, way.steps, way.extra)


def check_steps(graph: GraphSnapshot, steps: Any, extra: int) -> None:
    """The steps are a cycle in the residual graph, of this cost."""
    assert sum(int(graph.cost[one.arc]) * (1 if one.more else -1) for one in steps) == extra
    change = np.zeros(len(graph.arc), np.int64)
    for one in steps:
        change[one.arc] += 1 if one.more else -1
    flow = graph.flow + change
    assert np.all((flow >= 0) & (flow <= graph.capacity))
    node = np.zeros(len(graph.kind), np.int64)
    np.add.at(node, graph.tail, change)
    np.subtract.at(node, graph.head, change)
    assert not node.any()


@given(seed=st.integers(0, 10_000), options=OPTIONS)
@examples(30)
def test_changes_lead_from_one_round_to_the_next(seed: int, options: dict[str, object]) -> None:
    rounds = random_world(seed, **options).recording.rounds
    for before, now in pairwise(rounds):
        found = changes(before, now)
        old, new = set(before.graph.name), set(now.graph.name)
        assert len(found.new_nodes) == len(new - old)
        assert len(found.gone_nodes) == len(old - new)
        arcs, goal = arcs_by_key(before.graph), arcs_by_key(now.graph)
        for key in found.gone_arcs:
            assert arcs.pop(key) == found.gone_arcs[key]
        for key in found.new_arcs:
            assert key not in arcs
            arcs[key] = goal[key]
        for differing, name in (
            (found.recosted, "cost"),
            (found.resized, "capacity"),
            (found.moved, "flow"),
        ):
            assert all(getattr(arcs[key], name) != getattr(goal[key], name) for key in differing)
        for key, state in arcs.items():
            same = (
                (key in found.recosted or state.cost == goal[key].cost)
                and (key in found.resized or state.capacity == goal[key].capacity)
                and (key in found.moved or state.flow == goal[key].flow)
            )
            assert same
        assert arcs.keys() == goal.keys()


@given(seed=st.integers(0, 10_000), options=OPTIONS)
@examples(20)
def test_a_page_holds_the_figures_of_the_solver(seed: int, options: dict[str, object]) -> None:
    recording = random_world(seed, **options).recording
    text = page(recording, ABOUT)
    data = data_of(text)
    assert len(data["rounds"]) == len(recording.rounds)
    for drawn, its in zip(data["rounds"], recording.rounds, strict=True):
        graph = its.graph
        arcs = drawn["arcs"]
        for name in ("capacity", "cost", "flow"):
            assert [arc[name] for arc in arcs] == getattr(graph, name).tolist()
        assert [arc["id"] for arc in arcs] == graph.arc.tolist()
        index = [node["index"] for node in drawn["nodes"]]
        assert [arc["tail"] for arc in arcs] == [index[row] for row in graph.tail]
        assert [arc["head"] for arc in arcs] == [index[row] for row in graph.head]
        assert sum(arc["cost"] * arc["flow"] for arc in arcs) == drawn["cost"]
        assert drawn["proved"] is True
        assert {task["index"] for task in drawn["tasks"]} == {
            node["index"] for node in drawn["nodes"] if node["kind"] == "task"
        }
    for before, drawn in pairwise(data["rounds"]):
        # What the page says an arc was in the round before is what it says in that round.
        old = {(arc["tail"], arc["head"], arc["id"]): arc for arc in before["arcs"]}
        for arc in drawn["arcs"]:
            was = old.get((arc["tail"], arc["head"], arc["id"]))
            assert arc.get("new", False) == (was is None)
            for name in ("cost", "capacity", "flow"):
                if was is not None:
                    assert arc.get(f"{name}_was", arc[name]) == was[name]


def test_a_page_needs_nothing_else() -> None:
    text = page(example("quincy"), ABOUT)
    outside = re.findall(r"""(?:src|href|@import|url\()\s*=?\s*["'(]?[^#\s>]+""", text)
    assert outside == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "fetch(" not in text and "XMLHttpRequest" not in text


def test_names_cannot_end_the_script_of_a_page() -> None:
    text = page(example("quincy"), About("</script><script>alert(1)//", "<i>"))
    assert data_of(text)["about"]["what"] == "</script><script>alert(1)//"
    assert "<script>alert" not in text and "<i>" not in text


@pytest.mark.parametrize(
    ("policy", "aggregators"),
    [
        ("quincy", {"X", "R0", "R1"}),
        ("load_spreading", {"X"}),
        ("network_aware", {"RA200", "RA400"}),
    ],
)
def test_the_example_is_drawn_as_in_the_paper(policy: str, aggregators: set[str]) -> None:
    """Four machines, two jobs of three and two tasks, all but one of which have a place."""
    rounds = example(policy).rounds
    its = rounds[1]
    kinds = Counter(NodeKind(kind) for kind in its.graph.kind.tolist())
    assert kinds[NodeKind.TASK] == 5 and kinds[NodeKind.MACHINE] == 4
    assert kinds[NodeKind.UNSCHEDULED] == 2
    told = Teller(its)
    assert sum(told.waits(row) for row in its.tasks) == 1
    assert not any(Teller(rounds[-1]).waits(row) for row in rounds[-1].tasks)
    image = ElementTree.fromstring(drawing(its))
    texts = {"".join(one.itertext()) for one in image.iter("{http://www.w3.org/2000/svg}text")}
    assert {"T0", "U1", "S", "M3 1/1", *aggregators} <= texts


def test_the_image_of_the_documents_is_what_is_drawn() -> None:
    assert (ROOT / "docs/flow_graph.svg").read_text("utf-8") == drawing(example("quincy").rounds[1])


@pytest.mark.parametrize("policy", ["quincy", "load_spreading"])
def test_nodes_do_not_cover_each_other_and_stand_in_the_drawing(policy: str) -> None:
    for layout in laid_out(example(policy).rounds):
        for (_, one), (_, other) in combinations(layout.box.items(), 2):
            assert not one.meets(other)
        for box in layout.box.values():
            assert box.left >= 0 and box.top >= 0
            assert box.right <= layout.width and box.bottom <= layout.height


def test_only_jobs_with_tasks_have_brackets() -> None:
    rounds = example("quincy").rounds
    assert [[job for job, _, _ in layout.jobs] for layout in laid_out(rounds)][:2] == [[0], [0, 1]]


def test_every_round_is_drawn_with_its_labels_apart() -> None:
    recording = random_world(5, rounds=5, preemption=True).recording
    texts = re.findall(r'<svg class="graph" id="round-.*?</svg>', page(recording, ABOUT), re.S)
    assert len(texts) == len(recording.rounds)
    place = re.compile(r'class="label.*?x="([\d.]+)" y="([\d.]+)"', re.S)
    found = [[(float(x), float(y)) for x, y in place.findall(text)] for text in texts]
    assert any(len(labels) > 10 for labels in found)
    for labels in found:
        for (x, y), (other_x, other_y) in combinations(labels, 2):
            assert abs(x - other_x) > 8 or abs(y - other_y) >= 14


def waiting_world() -> RecordedWorld:
    """One machine for two tasks that both prefer it, and no other."""
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    world = RecordedWorld(spec, quincy(spec, catalog_of([LOCAL]), preemption=True))
    world.offer(tasks_of(np.arange(2), preference=1))
    world.commit(world.plan())
    world.now_us = 1_000_000
    world.plan()
    return world


def task_of(its: RecordedRound, waits: bool) -> int:
    told = Teller(its)
    [row] = [row for row in its.tasks if told.waits(row) == waits]
    return row


def test_it_is_told_why_a_task_waits() -> None:
    its = waiting_world().last
    told, row = Teller(its), task_of(its, waits=True)
    name = its.graph.name[row]
    assert told.title(row) == f"{name} waits"
    waits = " ".join(told.why(row))
    # unscheduled 50, for a tie towards placing 1, above the dearest place 10, and a second of
    # waiting; the other task would have to wait instead, and lose a second of its progress.
    assert f"Its way {name} → U0 → S costs 61 + 1 = 62." in waits
    assert "Every place that it could take is full." in waits
    best = its.ways[row].others[0]
    assert f"the round would cost {best.extra:,} more." in waits
    first = told.ways(row)[0]
    assert first["to"] == f"{name} → M0 → S" and first["full"] == ["M0 → S (1 of 1)"]


def test_it_is_told_that_waiting_is_cheaper_than_a_free_place() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    cheap_wait = {"machine": {0: 1}, "elsewhere": 90, "unscheduled": 5}
    world = RecordedWorld(spec, quincy(spec, catalog_of([cheap_wait]), may_wait=True))
    world.offer(tasks_of(np.arange(2), preference=1))
    world.plan()
    told, row = Teller(world.last), task_of(world.last, waits=True)
    waits = " ".join(told.why(row))
    assert "There is room" in waits and "costs 90. But waiting costs less." in waits


@pytest.mark.parametrize("algorithm", ["cost_scaling", "relaxation"])
def test_a_round_that_ended_early_says_so(algorithm: str) -> None:
    """Its tasks keep their state, and nothing is said to be the cheapest."""
    spec = slot_cell(machines=20, slots=1, rack_size=5)
    options = {"algorithm": algorithm, "max_operations": 1}
    scheduler = quincy(spec, catalog_of([LOCAL]), **options)
    recording = Recording(spec.dimensions)
    recorder = RoundRecorder(scheduler, Wanted(), recording)
    view = FlowWorld(spec, scheduler).view
    context = PlanContext(0, 1, PartitionRanking.OPTIMISTIC, np.zeros(1, np.int32))
    recorder.plan(tasks_of(np.arange(30), preference=1), view, context)
    [its] = recording.rounds
    unrouted = its.graph.unrouted.tolist()
    assert its.graph.proved is None and unrouted
    data = data_of(page(recording, ABOUT))["rounds"][0]
    assert data["proved"] is None and data["unrouted"] == len(unrouted)
    assert sum(arc["cost"] * arc["flow"] for arc in data["arcs"]) == data["cost"]
    names = {node["index"]: node["name"] for node in data["nodes"]}
    for task in data["tasks"]:
        if int(names[task["index"]][1:]) in unrouted:
            assert "still waits" in task["title"] and "budget was used up" in task["why"][0]
        assert all(way["extra"] is None and way["rent"] is None for way in task["ways"])


class OneHasToWait(LoadSpreading):
    """Load spreading in which a task of each job has to wait."""

    def waiting_bounds(self, group: Any, tasks: Any, load: Any) -> Any:
        return np.minimum(tasks, 1), tasks


def test_tasks_that_have_to_wait_end_at_their_aggregator() -> None:
    spec = slot_cell(machines=4, slots=2, rack_size=2)
    policy = OneHasToWait(100, 1_000_000, 4, Policy.wait_price)
    world = RecordedWorld(spec, FlowScheduler(policy, QuincyOptions(), environment(spec)))
    world.offer(tasks_of(np.arange(4), job=np.array([0, 0, 0, 1])))
    world.plan()
    its = world.last
    told = Teller(its)
    waits = [its.graph.name[row] for row in its.tasks if told.waits(row)]
    assert len(waits) == 2 and "T3" in waits
    bounds = its.graph.supply[its.graph.kind == NodeKind.UNSCHEDULED]
    assert bounds.tolist() == [-1, -1]
    used = Counter(arc for ways in its.ways.values() for arc in ways.taken)
    assert [used[arc] for arc in range(len(its.graph.arc))] == its.graph.flow.tolist()
    assert page(world.recording, ABOUT)


def test_changes_are_told_by_name() -> None:
    recording = waiting_world().recording
    second = data_of(page(recording, ABOUT))["rounds"][1]
    said = "; ".join(second["changed"])
    assert "placement accepted: T" in said
    assert "U0 → S 0 ⇒ 1" in said


def test_tasks_that_move_are_told_apart_from_ties() -> None:
    """Which of four empty machines a task gets is no move; that it gives way to another is."""
    rounds = data_of(page(example("load_spreading"), ABOUT))["rounds"]
    assert not any("moved:" in line for line in rounds[1]["changed"])
    spec = slot_cell(machines=2, slots=1, rack_size=2)
    near, only = {"machine": {0: 1, 1: 3}}, {"machine": {0: 1}, "elsewhere": 40}
    sets = [{"elsewhere": 40, "unscheduled": 90, **one} for one in (near, only)]
    world = RecordedWorld(spec, quincy(spec, catalog_of(sets), preemption=True))
    for task in (0, 1):
        world.offer(tasks_of(np.array([task]), preference=1 + task))
        world.commit(world.plan())
        world.sync()
    told = data_of(page(world.recording, ABOUT))["rounds"][1]["changed"]
    assert "moved: T0 M0 ⇒ M1" in told


def test_the_part_around_a_task_has_its_ways_and_no_more() -> None:
    spec = slot_cell(machines=40, slots=1, rack_size=10)
    sets = [{"machine": {7: 1}, "rack": {0: 5}, "elsewhere": 10, "unscheduled": 50}]
    wanted = Wanted(tasks=frozenset([3]))
    worlds = [
        RecordedWorld(spec, quincy(spec, catalog_of(sets)), one) for one in (wanted, Wanted())
    ]
    for world in worlds:
        world.offer(tasks_of(np.arange(6), preference=1))
        world.plan()
    part, whole = (world.last for world in worlds)
    assert len(part.graph.kind) < len(whole.graph.kind) / 2
    row = part.graph.name.index("T3")
    full = whole.graph.name.index("T3")
    assert [way.extra for way in part.ways[row].others] == [
        way.extra for way in whole.ways[full].others
    ]
    names = part.graph.name
    for name, hidden in zip(names, part.hidden, strict=True):
        there = whole.graph.name.index(name)
        arcs = np.count_nonzero((whole.graph.tail == there) | (whole.graph.head == there))
        here = names.index(name)
        kept = np.count_nonzero((part.graph.tail == here) | (part.graph.head == here))
        assert hidden == arcs - kept
    assert page(worlds[0].recording, ABOUT)


def test_graphs_that_are_too_large_are_not_recorded() -> None:
    spec = slot_cell(machines=400, slots=1, rack_size=10)
    world = RecordedWorld(spec, quincy(spec, catalog_of([LOCAL])))
    world.offer(tasks_of(np.arange(3), preference=1))
    world.plan()
    world.plan()
    assert world.recording.rounds == []
    assert world.recording.too_large is not None and world.recording.too_large[0] == 0
    assert world.recording.seen == 2


def test_recording_leaves_plans_as_they_are() -> None:
    spec = slot_cell(machines=4, slots=2, rack_size=2)

    def plans(world: FlowWorld) -> list[Any]:
        found = []
        for begin in range(0, 12, 3):
            world.offer(tasks_of(np.arange(begin, begin + 3), job=begin, preference=1))
            plan = world.plan()
            found.append((plan.task.tolist(), plan.machine.tolist(), plan.operations))
            world.commit(plan)
            world.now_us += 700_000
        return found

    recorded = RecordedWorld(spec, quincy(spec, catalog_of([LOCAL]), preemption=True))
    plain = FlowWorld(spec, quincy(spec, catalog_of([LOCAL]), preemption=True))
    assert plans(recorded) == plans(plain)
    assert len(recorded.recording.rounds) == 4


def test_a_snapshot_names_what_the_policy_names() -> None:
    spec = slot_cell(machines=2, slots=2, rack_size=1)
    scheduler = spreading(spec)
    world = FlowWorld(spec, scheduler)
    world.offer(tasks_of(np.arange(2), job=np.array([4, 9])))
    world.plan()
    names = set(snapshot(scheduler.graph, scheduler.table).name)
    assert names == {"T0", "T1", "U4", "U9", "X", "M0", "M1", "S"}
