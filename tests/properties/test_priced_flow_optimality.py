"""Rounds with slot prices are optimal by an oracle that knows nothing of flow graphs: each slot of
the cell is a column of an assignment problem."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedulers.flow import machine_arcs
from shared_state.random import Stream
from shared_state.tasks import Int64, TaskBatch
from tests.fixed_prices import FixedPrices, priced_quincy
from tests.fixtures.examples import examples
from tests.flow_world import FLOW, FlowWorld, assignment_optimum, catalog_of, slot_cell
from tests.properties.test_flow_optimality import QUANTUM_US, Oracle, arrivals, preference_sets

HIGHEST = 7  # price: low, so that a scale which is too small would show
FAR_ABOVE = 10_000  # any sum of prices


@st.composite
def slot_prices(draw: st.DrawFn, machines: int, levels: int) -> list[list[int]]:
    column = st.lists(st.integers(0, HIGHEST), min_size=levels, max_size=levels).map(sorted)
    return draw(st.lists(column, min_size=machines, max_size=machines))


def slot_columns(
    price: list[list[int]], busy: Int64, free: Int64, own: Int64
) -> tuple[Int64, Int64]:
    """The slots that the scheduler may give: their machines and prices, int64[s] each. First come
    the free ones of each machine, then those that its own tasks hold."""
    last = len(price[0]) - 1
    dearest = max(map(max, price))
    machine, paid = [], []
    for m, (b, f, o) in enumerate(zip(busy.tolist(), free.tolist(), own.tolist(), strict=True)):
        paid += [price[m][min(b + k, last)] for k in range(f)] + [dearest] * o
        machine += [m] * (f + o)
    return np.array(machine, np.int64), np.array(paid, np.int64)


def prices_of(price: list[list[int]], busy: Int64, machine: Int64) -> int:
    """What placements on these machines pay, the n-th on a machine for its n-th free slot."""
    last, taken, total = len(price[0]) - 1, busy.copy(), 0
    for m in machine.tolist():
        total += price[m][min(int(taken[m]), last)]
        taken[m] += 1
    return total


@examples(120)
@given(st.data())
def test_every_round_with_prices_is_optimal(data: st.DataObject) -> None:
    machines, slots = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))
    spec = slot_cell(machines, slots, data.draw(st.integers(1, 4)))
    sets = data.draw(preference_sets(machines, int(spec.rack[-1]) + 1))
    preemption, may_wait = data.draw(st.booleans()), data.draw(st.booleans())
    elsewhere_only = data.draw(st.booleans())
    levels = data.draw(st.integers(1, slots + 1))
    price = data.draw(slot_prices(machines, levels))
    weight = data.draw(st.sampled_from([None, 1, 700, 1000, 4000]))
    how = (
        {"price_mode": "tie"}
        if weight is None
        else {"price_mode": "paid", "price_weight_permille": weight}
    )
    prices = FixedPrices(price, [slots] * machines)
    with patch.object(machine_arcs, "RESOLUTION", HIGHEST):
        scheduler = priced_quincy(
            spec,
            prices,
            catalog_of(sets),
            preemption=preemption,
            wait_cost=data.draw(st.integers(0, 4)),
            may_wait=may_wait,
            max_task_arcs=data.draw(st.sampled_from([0, 2, 16])),
            price_scope="elsewhere" if elsewhere_only else "all",
            **how,
        )
    world = FlowWorld(spec, scheduler)
    wait_cost = scheduler._options.wait_cost
    nowhere = {"machine": {}, "rack": {}, "elsewhere": 0, "unscheduled": 0}
    oracle = Oracle([nowhere, *sets], spec.rack.astype(np.int64), wait_cost, may_wait, 0)
    listed = np.array([[m in each["machine"] for m in range(machines)] for each in oracle.sets])
    stream = Stream(data.draw(st.integers(0, 2**32)))

    known = TaskBatch.empty(1)
    began: dict[int, int] = {}  # running tasks: since when
    waiting: set[int] = set()
    for r in range(data.draw(st.integers(1, 6))):
        new = arrivals(stream, len(known), int(stream.integers(1, 6)[0]), len(sets), world.now_us)
        known = TaskBatch.concatenate([known, new])
        waiting.update(new.task.tolist())
        world.offer(new)
        if data.draw(st.booleans()):
            price = data.draw(slot_prices(machines, levels))
            prices.set(price)
        world.rival_claims(np.flatnonzero(world.cell.used[:, 0] < slots)[:1].tolist(), 10**6 + r)

        held = world.cell.allocations(FLOW)
        own = np.bincount(held.machine if preemption else [], minlength=machines)
        free = np.maximum(world.view.free[:, 0], 0)
        busy = slots - free
        column, paid = slot_columns(price, busy, free, own)
        rows = np.array(sorted(waiting), np.int64)
        tasks = known.take(np.concatenate([rows, held.task]) if preemption else rows)
        place, wait = oracle.place(tasks), oracle.wait(tasks, world.now_us)
        priced = ~listed[tasks.preference] if elsewhere_only else np.ones(place.shape, bool)
        scale, of_price = (FAR_ABOVE, 1) if weight is None else (1000, weight)
        cost = scale * place[:, column] + of_price * np.where(priced[:, column], paid, 0)
        for i in range(len(rows), len(tasks)):
            machine = int(held.machine[i - len(rows)])
            progress = world.now_us // QUANTUM_US - began[int(tasks.task[i])] // QUANTUM_US
            cost[i, column == machine] = scale * (place[i, machine] - 1 - progress)
        optimum = assignment_optimum(cost, scale * wait, np.ones(len(column), np.int64))

        plan = world.plan()
        assert world.scheduler.graph.solver.certify().ok
        pricing = world.scheduler.graph._pricing
        # in the graph, progress makes all else dearer
        risen = len(tasks) * (world.now_us // QUANTUM_US) if preemption else 0
        found = world.scheduler.graph.solver.cost - pricing.scale * risen
        if weight is None:
            total_cost, total_price = divmod(optimum, FAR_ABOVE)
            assert found == pricing.scale * total_cost + total_price
        else:
            assert found * 1000 == optimum * pricing.scale
        if not preemption:
            claimed = known.take(plan.task)
            left = known.take(np.array(sorted(waiting - set(plan.task.tolist())), np.int64))
            chosen = oracle.place(claimed)[np.arange(len(claimed)), plan.machine].sum()
            costs = chosen + oracle.wait(left, world.now_us).sum()
            pays = ~listed[claimed.preference, plan.machine] | (not elsewhere_only)
            slot_costs = prices_of(price, busy, plan.machine[pays])
            assert scale * costs + of_price * slot_costs == optimum

        victims = world.cell.describe(plan.evict).task
        result = world.commit(plan)
        won = plan.task[result.accepted].tolist()
        waiting.difference_update(won)
        began.update(dict.fromkeys(won, world.now_us))
        evicted = victims[np.isin(plan.evict, result.evicted)]
        waiting.update(evicted.tolist())
        world.offer(known.take(evicted))
        running = world.running(FLOW)
        world.finish(running[stream.integers(len(running), 3) == 0])
        world.now_us += int(stream.integers(1, 3 * QUANTUM_US)[0])
        if stream.integers(1, 3)[0] > 0:
            world.sync()
