"""What flow policies do with slot prices, beside what the oracle of
tests/properties/test_priced_flow_optimality.py says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.flow import machine_arcs
from schedulers.flow.extraction import place_singly
from schedulers.flow.policies.interface import (
    MAX_COST,
    AggregatorArcs,
    MachineLoad,
    PolicyError,
    TaskArcs,
    join_arcs,
)
from schedulers.flow.policies.quincy import Quincy
from schedulers.interface import PendingReason
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from tests.fixed_prices import FixedPrices, LearningPrices, priced_quincy, priced_spreading
from tests.flow_world import FlowWorld, catalog_of, placed, quincy, slot_cell, tasks_of

ANYWHERE = {"machine": {}, "rack": {}, "elsewhere": 10, "unscheduled": 50}
PAID = {"price_mode": "paid"}
MODES = [{}, PAID]
SCOPES = ["all", "elsewhere"]


def world_with(
    spec: CellSpec,
    price: list[list[int]],
    sets: list[dict[str, object]] | None = None,
    **options: object,
) -> tuple[FlowWorld, FixedPrices]:
    slots = spec.capacity[:, 0].tolist()
    prices = FixedPrices(price, slots, len(spec.dimensions))
    catalog = catalog_of(sets or [ANYWHERE])
    return FlowWorld(spec, priced_quincy(spec, prices, catalog, **options)), prices


def checked_inner_flow(world: FlowWorld) -> int:
    """The flow out of aggregators. The graph's record of it is the solver's, summed over all arcs
    between two nodes."""
    graph = world.scheduler.graph
    network, node, arc = graph.solver.snapshot()
    sent: Counter[tuple[int, int]] = Counter()
    flows = graph.solver.flow(arc).tolist()
    for tail, head, flow in zip(node[network.tail], node[network.head], flows, strict=True):
        sent[tail, head] += flow
    inner = graph._aggregators.inner
    machines = graph._machine_arcs.node
    for tail, head, flow in zip(inner.tail, inner.head, inner.flow, strict=True):
        into = machines[head] if head >= 0 else graph._aggregators.node[-1 - head]
        assert sent[graph._aggregators.node[tail], into] == flow
    return int(inner.flow.sum())


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("max_task_arcs", [0, 16])
def test_prices_of_places_need_no_nodes(max_task_arcs: int, scope: str) -> None:
    """A machine has one arc from its rack, which takes placements elsewhere; priced arcs stand in
    for it. They come and go with the load as it does."""
    spec = slot_cell(6, 3, 2)
    sets = [{"machine": {1: 2, 4: 2}, "rack": {0: 5}, "elsewhere": 9, "unscheduled": 50}]
    options = {"max_task_arcs": max_task_arcs, "certify_every": 1}
    priced, _ = world_with(spec, [[0, 1, 2]] * 6, sets, price_scope=scope, **options)
    plain = FlowWorld(spec, quincy(spec, catalog_of(sets), **options))
    known, sent = 0, np.zeros(2, np.int64)
    for ended in (0, 3, 12, 1):
        for world in (priced, plain):
            running = world.running(1)
            world.finish(running[:ended])
            world.offer(tasks_of(np.arange(known, known + 7), preference=1))
            world.sync()
            world.commit(world.plan())
            world.sync()
        known += 7
        nodes = [world.scheduler.graph.solver.num_nodes for world in (priced, plain)]
        assert nodes[0] == nodes[1]
        sent += np.array([checked_inner_flow(world) for world in (priced, plain)])
    assert np.all(sent > 0)


@pytest.mark.parametrize(
    ("twice", "cost", "says"),
    [
        (True, 0, r"quincy.*: one_arc_elsewhere: 2 arcs lead to machine 0"),
        (False, 3, r"quincy.*: one_arc_elsewhere: the arc to machine 0 costs \d+; expected 0"),
    ],
)
def test_a_policy_that_breaks_its_word_on_arcs_elsewhere_is_refused(
    twice: bool, cost: int, says: str
) -> None:
    def to_machines(self: Quincy, rack: Int64) -> AggregatorArcs:
        arcs = made(self, rack)
        if twice:
            return join_arcs([arcs, arcs])
        return replace(arcs, cost=np.full_like(arcs.cost, cost))

    made = Quincy._rack_to_machines
    with patch.object(Quincy, "_rack_to_machines", to_machines):
        world, _ = world_with(slot_cell(4, 1, 2), [[0]] * 4, price_scope="elsewhere")
        world.offer(tasks_of(np.arange(1), preference=1))
        with pytest.raises(PolicyError, match=says) as refused:
            world.plan()
    assert "\n" not in str(refused.value)


def test_a_policy_that_keeps_room_back_elsewhere_is_refused() -> None:
    def half(self: Quincy, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        return load.room[machine] // 2

    with patch.object(Quincy, "machine_arc_capacity", half):
        world, _ = world_with(slot_cell(4, 2, 2), [[0]] * 4, price_scope="elsewhere")
        world.offer(tasks_of(np.arange(1), preference=1))
        with pytest.raises(PolicyError, match=r"machine 0 has capacity 1; expected 2$"):
            world.plan()


class _GrowingQuincy(Quincy):
    """Quincy's policy, in which racks are aggregators from the first tasks on."""

    grows = True
    _has_tasks = False

    @property
    def aggregators(self) -> int:
        return super().aggregators if self._has_tasks else 0

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        self._has_tasks = True
        return super().task_arcs(tasks)


@pytest.mark.parametrize("policy", [Quincy, _GrowingQuincy])
def test_the_sum_of_costs_comes_first_through_chains_over_several_racks(
    policy: type[Quincy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit of cost would save the highest price twice: E1 and E2 could both move to slots that
    cost nothing. The scale that keeps costs first has to count the racks, also those to come."""
    monkeypatch.setattr("schedulers.flow.policies.quincy.Quincy", policy)
    highest = machine_arcs.RESOLUTION
    sets = [
        {"machine": {}, "rack": {0: 5}, "elsewhere": 6, "unscheduled": 50},  # E1
        {"machine": {}, "rack": {1: 5}, "elsewhere": 6, "unscheduled": 50},  # E2
        {"machine": {0: 0, 2: 0}, "rack": {}, "elsewhere": 6, "unscheduled": 50},
        {"machine": {3: 0, 4: 1}, "rack": {}, "elsewhere": 6, "unscheduled": 50},
    ]
    world, _ = world_with(
        slot_cell(5, 1, 2),
        [[0], [highest], [highest], [0], [0]],
        sets,
        price_scope="elsewhere",
    )
    world.offer(tasks_of(np.arange(4), preference=np.arange(1, 5)))
    assert placed(world.plan()) == {0: 1, 1: 2, 2: 0, 3: 3}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scope", SCOPES)
def test_prices_alone_never_move_running_tasks(mode: dict[str, object], scope: str) -> None:
    """A new task fits the dear machine 0, or 1 if the task there moved to the cheap machine 2."""
    sets = [
        {"machine": {0: 1, 1: 1}, "rack": {}, "elsewhere": 900, "unscheduled": 2000},
        {"machine": {1: 1, 2: 1}, "rack": {}, "elsewhere": 900, "unscheduled": 2000},
    ]
    price = [[800], [0], [0]]
    world, prices = world_with(
        slot_cell(3, 1, 1), price, sets, preemption=True, price_scope=scope, **mode
    )
    world.rival_claims([2], first_task=100)
    world.sync()
    world.offer(tasks_of(np.arange(1), preference=2))
    first = world.plan()
    assert placed(first) == {0: 1}
    world.commit(first)
    world.finish(world.running(1))
    world.sync()
    for dear in ([[0], [700], [0]], [[800], [700], [0]]):
        prices.set(dear)  # its own slot is dear, others are not
        assert len(world.plan().evict) == 0
    prices.set(price)
    world.offer(tasks_of(np.arange(1, 2), preference=1))
    plan = world.plan()
    assert len(plan.evict) == 0
    assert placed(plan) == {1: 0}


def test_pending_tasks_say_whether_slots_or_places_are_too_dear() -> None:
    sets = [
        {"machine": {}, "rack": {}, "elsewhere": 10, "unscheduled": 20},
        {"machine": {}, "rack": {}, "elsewhere": 30, "unscheduled": 20},
    ]
    options = {**PAID, "may_wait": True}
    world, prices = world_with(slot_cell(2, 1, 2), [[500], [500]], sets, **options)
    world.offer(tasks_of(np.arange(2), preference=np.array([1, 2])))
    plan = world.plan()
    assert len(plan.task) == 0
    reasons = dict(zip(plan.pending.tolist(), plan.pending_reason.tolist(), strict=True))
    assert reasons == {0: PendingReason.SLOTS_TOO_DEAR, 1: PendingReason.PRICED_OUT}

    prices.set([[0], [0]])
    assert placed(world.plan()).keys() == {0}  # and is placed once slots cost less
    world, _ = world_with(slot_cell(1, 1, 1), [[500]], sets, **options)
    world.rival_claims([0], first_task=100)
    world.sync()
    world.offer(tasks_of(np.arange(1), preference=1))
    assert world.plan().pending_reason.tolist() == [PendingReason.NO_ROOM]


def test_load_spreading_breaks_ties_by_price() -> None:
    spec = slot_cell(4, 2, 4)
    prices = FixedPrices([[7, 7], [1, 9], [0, 9], [8, 8]], [2] * 4)
    world = FlowWorld(spec, priced_spreading(spec, prices))
    world.offer(tasks_of(np.arange(2)))
    assert sorted(world.plan().machine.tolist()) == [1, 2]


def test_single_placements_count_prices_as_the_flow_does() -> None:
    free = np.full((3, 1), 5, np.int64)
    tasks, none = tasks_of(np.arange(1)), PreferenceCatalog.empty()
    rack, wait = np.zeros(3, np.int32), np.full(1, 100)

    def value(cost: Int64, preferred: object, machine: Int64, left: Int64) -> Int64:
        assert left.tolist() == [[5]] * 3
        return 10 * cost + np.array([7, 2, 8])[machine]

    assert place_singly(tasks, wait, free.copy(), none, rack, 1, value).tolist() == [1]
    assert place_singly(tasks, np.full(1, 2), free, none, rack, 1, value).tolist() == [-1]


def test_a_slot_of_another_size_than_a_unit_of_the_flow() -> None:
    """A slot holds two tasks: the machine with a price of 0 takes two before the other's turn."""
    spec = slot_cell(2, 4, 2)
    prices = FixedPrices([[0, 50], [10, 60]], [2, 2], slot=2)
    world = FlowWorld(spec, priced_quincy(spec, prices, catalog_of([ANYWHERE]), **PAID))
    world.offer(tasks_of(np.arange(5), preference=1))
    assert sorted(world.plan().machine.tolist()) == [0, 0, 0, 1, 1]


def test_the_estimator_hears_of_all_offered_tasks_and_its_work_counts() -> None:
    world, prices = world_with(slot_cell(2, 1, 2), [[0], [0]])
    world.offer(tasks_of(np.arange(3), preference=1))
    prices.operations = 1234
    plan = world.plan()
    assert prices.seen == [0, 1, 2]
    assert plan.operations == world.scheduler.work.operations + 1234


def test_new_prices_alter_what_differs_and_nothing_else() -> None:
    world, prices = world_with(slot_cell(50, 2, 10), [[1, 2]] * 50)
    world.offer(tasks_of(np.arange(1), preference=1))
    world.rival_claims(list(range(50)) * 2, first_task=1000)  # nothing is free
    world.sync()
    world.plan()
    world.finish(world.running(1)[:3])  # three slots are, of machines 0 to 2
    world.sync()
    prices.set([[4, 5]] * 50)
    world.offer(tasks_of(np.arange(1, 5), preference=1))
    world.plan()
    quiet = world.scheduler.work.altered
    prices.set([[4, 5]] * 49 + [[6, 7]])  # a machine that is full
    world.plan()
    without = world.scheduler.work.altered
    assert without <= quiet


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("preemption", [False, True])
def test_costs_that_leave_the_range_are_refused(scope: str, preemption: bool) -> None:
    sets = [{**ANYWHERE, "elsewhere": MAX_COST // machine_arcs.RESOLUTION}]
    prices = FixedPrices([[0]] * 4, [1] * 4)
    given = {"price_scope": scope, "preemption": preemption}
    with pytest.raises(
        AgoraError, match=r'price_mode = "tie": .* quincy takes costs up to \d+, got'
    ):
        priced_quincy(slot_cell(4, 1, 2), prices, catalog_of(sets), **given)
    priced_quincy(slot_cell(4, 1, 2), prices, catalog_of(sets), **given, **PAID)


@pytest.mark.parametrize("cost", [1 << 60, -(1 << 60)])
def test_costs_that_overflow_into_the_range_are_refused(cost: int) -> None:
    """2^60 times the scale is a multiple of 2^64."""

    def far_out(self: Quincy, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), cost)

    world, _ = world_with(slot_cell(1, 1, 1), [[0]])
    assert world.scheduler.graph.nodes.scale == 64
    world.offer(tasks_of(np.arange(1), preference=1))
    with (
        patch.object(Quincy, "unscheduled_cost", far_out),
        pytest.raises(
            PolicyError, match=r"quincy, its costs x 64 .*: the arc from task 0 to where"
        ),
    ):
        world.plan()


def test_narrow_costs_are_scaled_as_wide_ones() -> None:
    class Narrow(Quincy):
        def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
            narrow: Any = np.full(len(tasks), 1 << 30, np.int32)
            return narrow

    policy = Narrow.__new__(Narrow)
    policy.patience_us = 0
    scaled = machine_arcs.Scaled(policy, 64)
    assert scaled.unscheduled_cost(tasks_of(np.arange(2))).tolist() == [1 << 36] * 2


def test_paid_prices_beyond_the_range_are_refused() -> None:
    world, _ = world_with(slot_cell(1, 1, 1), [[MAX_COST + 1]], **PAID)
    world.offer(tasks_of(np.arange(1), preference=1))
    with pytest.raises(PolicyError, match="quincy: an arc into a machine costs"):
        world.plan()


@pytest.mark.parametrize("mode", [{"price_mode": "tie"}, {"price_mode": "paid"}])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", ["flow", "flow_load_spreading"])
def test_priced_flow_schedulers_conform(kind: str, mode: dict[str, object], scope: str) -> None:
    """Any three of kind, mode, scope and preemption are seen together."""
    options = {"prices": "implied", "price_scope": scope, "certify_every": 1, **mode}
    preemption = (kind == "flow") ^ (scope == "all") ^ (mode["price_mode"] == "paid")
    check_conformance(registry.get(kind), {**options, "preemption": preemption})


def test_several_ways_to_one_machine_hide_no_cheaper_one() -> None:
    """Both tasks reach machine 1 directly and over its rack, machine 0 over its rack alone."""
    sets = [{"machine": {1: 3}, "rack": {0: 3, 1: 3}, "elsewhere": 6, "unscheduled": 0}]
    for first in range(20):  # draws of equal machines differ
        world, _ = world_with(slot_cell(2, 2, 1), [[0, 0], [0, 1]], sets, max_task_arcs=0)
        world.rounds = first
        world.offer(tasks_of(np.arange(2), preference=1))
        assert world.plan().machine.tolist() != [1, 1]


@pytest.mark.parametrize("options", [{}, {"price_scope": "elsewhere"}, {"preemption": True}, PAID])
def test_estimators_learn_what_one_more_slot_would_save(options: dict[str, object]) -> None:
    """Two tasks prefer machine 0, which has one slot, at a cost of 1; elsewhere costs 10. Slot
    prices themselves are no part of it."""
    sets = [{"machine": {0: 1}, "rack": {}, "elsewhere": 10, "unscheduled": 50}]
    spec = slot_cell(3, 1, 1)
    prices = LearningPrices([[0], [2], [2]], [1] * 3)
    world = FlowWorld(spec, priced_quincy(spec, prices, catalog_of(sets), **options))
    world.offer(tasks_of(np.arange(2), preference=1))
    world.now_us = 7
    world.plan()
    (worth, now_us) = prices.learnt[-1]
    assert now_us == 7
    assert worth[0] in (9, 11)  # elsewhere costs 10, and 2 for the slot where prices are paid
    assert np.all(worth[1:] <= 0)


@pytest.mark.parametrize("preemption", [False, True])
def test_schedulers_whose_prices_rest_on_potentials_conform(preemption: bool) -> None:
    options = {"prices": "potentials", "preemption": preemption, "certify_every": 1}
    check_conformance(registry.get("flow"), options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"price_mode": "paid"}, "price_mode: has no effect without prices"),
        ({"prices": "implied", "price_mode": "auction"}, "price_mode.*'tie' or 'paid'"),
        ({"prices": "implied", "price_scope": "rack"}, "price_scope.*'all' or 'elsewhere'"),
        ({"prices": "implied", "price_weight_permille": 5}, 'no effect with price_mode = "tie"'),
        ({"prices": "implied", **PAID, "price_weight_permille": 0}, "price_weight_permille"),
        ({"prices": "lowest"}, "unknown kind of slot prices 'lowest'"),
    ],
)
@pytest.mark.parametrize("kind", ["flow", "flow_load_spreading"])
def test_wrong_options_are_refused(kind: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(AgoraError, match=says) as refused:
        registry.get(kind).parse_options(options)
    assert "\n" not in str(refused.value)
