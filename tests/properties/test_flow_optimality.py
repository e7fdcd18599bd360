"""Every round of a random history is optimal by an oracle that knows nothing of flow graphs, as
well as by OR-tools on the same graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import SchedulerEnvironment
from shared_state.partition import Partitioning
from shared_state.random import Stream
from shared_state.tasks import CellSpec, Int64, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_world import (
    FLOW,
    RIVAL,
    FlowWorld,
    LoadSpreadingOptions,
    QuincyOptions,
    assignment_optimum,
    build_load_spreading,
    build_quincy,
    catalog_of,
    cell_of,
    slot_cell,
    tasks_of,
)

QUANTUM_US = 1_000_000


@dataclass
class Oracle:
    """What tasks cost where, from the sets as generated."""

    sets: list[dict[str, object]]
    rack: Int64
    wait_cost: int
    may_wait: bool
    patience_us: int

    def place(self, tasks: TaskBatch) -> Int64:
        cost = np.empty((len(tasks), len(self.rack)), np.int64)
        for i, k in enumerate(tasks.preference.tolist()):
            chosen = self.sets[k]
            cost[i] = chosen["elsewhere"]
            for rack, price in chosen["rack"].items():
                cost[i, self.rack == rack] = price
            for machine, price in chosen["machine"].items():
                cost[i, machine] = price
        return cost

    def wait(self, tasks: TaskBatch, now_us: int) -> Int64:
        base = np.array([self.sets[k]["unscheduled"] for k in tasks.preference.tolist()], np.int64)
        if not self.may_wait:
            base += max(
                cost
                for each in self.sets
                for cost in (
                    each["elsewhere"],
                    *each["machine"].values(),
                    *each["rack"].values(),
                )
            )
        return base + 1 + self.wait_cost * (now_us // QUANTUM_US - tasks.submit_us // QUANTUM_US)

    def wait_unplaced(self, tasks: TaskBatch, now_us: int) -> Int64:
        """As wait(), of tasks that do not run: those with patience left wait for a little more than
        their dearest machine, those that have waited longer for more, and never for as much as the
        cheapest place that is dearer."""
        cost = self.wait(tasks, now_us)
        gaps = [
            other - max(each["machine"].values())
            for each in self.sets
            if each["machine"]
            for other in [each["elsewhere"], *each["rack"].values()]
        ]
        steps = min([64, *(gap - 2 for gap in gaps if gap > 0)])
        for i, k in enumerate(tasks.preference.tolist()):
            listed = self.sets[k]["machine"]
            if listed and now_us < tasks.submit_us[i] + self.patience_us:
                patient = max(listed.values()) + 1
                if steps > 0:
                    quantum_us = -(-self.patience_us // steps)
                    patient += now_us // quantum_us - int(tasks.submit_us[i]) // quantum_us
                    assert patient <= max(listed.values()) + 1 + steps
                cost[i] = min(cost[i], patient)
        return cost


@st.composite
def preference_sets(draw: st.DrawFn, machines: int, racks: int) -> list[dict[str, object]]:
    """Costs fall from elsewhere over the rack to the machine, as locality does."""
    sets = []
    for _ in range(draw(st.integers(1, 4))):
        elsewhere = draw(st.integers(6, 30))
        rack_cost = draw(st.integers(3, 5))
        machine = draw(st.dictionaries(st.integers(0, machines - 1), st.integers(0, 3), max_size=5))
        rack = dict.fromkeys(draw(st.sets(st.integers(0, racks - 1), max_size=2)), rack_cost)
        unscheduled = draw(st.integers(0, 40))
        sets.append(
            {"machine": machine, "rack": rack, "elsewhere": elsewhere, "unscheduled": unscheduled}
        )
    return sets


def environment(world_sets: list[dict[str, object]], spec: CellSpec) -> SchedulerEnvironment:
    offsets = Partitioning.by_topology(spec, 1).offsets
    return SchedulerEnvironment("flow", spec, offsets, catalog_of(world_sets))


def arrivals(stream: Stream, first: int, n: int, sets: int, now_us: int) -> TaskBatch:
    """New tasks, some submitted a while ago."""
    job = first // 6 + stream.integers(n, 3)
    tasks = tasks_of(np.arange(first, first + n), job=job, preference=stream.integers(n, sets + 1))
    tasks.submit_us[:] = np.maximum(now_us - stream.integers(n, 3 * QUANTUM_US), 0)
    return tasks


@examples(60)
@given(st.data())
def test_every_round_is_optimal(data: st.DataObject) -> None:
    machines, slots, rack_size = (
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(1, 3)),
        data.draw(st.integers(1, 4)),
    )
    spec = slot_cell(machines, slots, rack_size)
    sets = data.draw(preference_sets(machines, int(spec.rack[-1]) + 1))
    preemption = data.draw(st.booleans())
    wait_cost, may_wait = data.draw(st.integers(0, 4)), data.draw(st.booleans())
    patience_us = data.draw(st.sampled_from([0, 1, 2_500_000, 10_000_000]))
    options = QuincyOptions(
        preemption=preemption,
        wait_cost=wait_cost,
        may_wait=may_wait,
        patience_s=patience_us / 1e6,
        max_task_arcs=data.draw(st.sampled_from([0, 2, 16])),
        certify_every=1,
    )
    world = FlowWorld(spec, build_quincy(options, environment(sets, spec)))
    nowhere = {"machine": {}, "rack": {}, "elsewhere": 0, "unscheduled": 0}
    rack = spec.rack.astype(np.int64)
    oracle = Oracle([nowhere, *sets], rack, wait_cost, may_wait, patience_us)
    stream = Stream(data.draw(st.integers(0, 2**32)))

    known = TaskBatch.empty(1)
    began: dict[int, int] = {}  # running tasks of ours: since when
    waiting: set[int] = set()
    rival_task = 1_000_000
    for _ in range(data.draw(st.integers(1, 7))):
        new = arrivals(stream, len(known), int(stream.integers(1, 6)[0]), len(sets), world.now_us)
        known = TaskBatch.concatenate([known, new])
        waiting.update(new.task.tolist())
        world.offer(new)
        open_machines = np.flatnonzero(world.cell.used[:, 0] < slots)
        stolen = (
            open_machines[stream.integers(2, 4) == 0]
            if len(open_machines) == 2
            else open_machines[:1]
        )
        world.rival_claims(stolen.tolist(), rival_task)
        rival_task += 10

        held = world.cell.allocations(FLOW)
        own = np.bincount(held.machine[: len(held) if preemption else 0], minlength=machines)
        room = (np.maximum(world.view.free[:, 0], 0) + own).astype(np.int64)
        rows = np.array(sorted(waiting), np.int64)
        graph_tasks = np.concatenate([rows, held.task]) if preemption else rows
        tasks = known.take(graph_tasks)
        place = oracle.place(tasks)
        if preemption:
            for i, (task, machine) in enumerate(
                zip(held.task.tolist(), held.machine.tolist(), strict=True), len(rows)
            ):
                place[i, machine] -= 1 + world.now_us // QUANTUM_US - began[task] // QUANTUM_US
        wait = oracle.wait(tasks, world.now_us)
        wait[: len(rows)] = oracle.wait_unplaced(tasks.take(slice(len(rows))), world.now_us)
        optimum = assignment_optimum(place, wait, room)

        plan = world.plan()
        # in the graph, progress makes all else dearer
        risen = len(tasks) * (world.now_us // QUANTUM_US) if preemption else 0
        assert world.scheduler.graph.solver.cost == optimum + risen
        if not preemption:
            claimed = known.take(plan.task)
            left = known.take(np.array(sorted(waiting - set(plan.task.tolist())), np.int64))
            paid = (
                oracle.place(claimed)[np.arange(len(claimed)), plan.machine].sum()
                + oracle.wait_unplaced(left, world.now_us).sum()
            )
            assert paid == optimum
            if not (may_wait or patience_us):
                assert len(claimed) == min(len(waiting), room.sum())

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
        world.finish(world.running(RIVAL)[:1])
        world.now_us += int(stream.integers(1, 3 * QUANTUM_US)[0])
        if stream.integers(1, 3)[0] > 0:
            world.sync()


@examples(40)
@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 2**32))
def test_load_spreading_places_each_round_as_evenly_as_the_view_allows(
    machines: int, slots: int, seed: int
) -> None:
    spec = slot_cell(machines, slots, 4)
    world = FlowWorld(
        spec, build_load_spreading(LoadSpreadingOptions(certify_every=1), environment([], spec))
    )
    stream = Stream(seed)
    for r in range(5):
        world.offer(tasks_of(np.arange(10 * r, 10 * r + int(stream.integers(1, 8)[0])), job=r))
        used = slots - world.view.free[:, 0]
        plan = world.plan()
        greedy = used.copy()
        for _ in range(len(plan.task)):
            greedy[np.argmin(greedy)] += 1
        assert sorted(used + np.bincount(plan.machine, minlength=machines)) == sorted(greedy)
        assert len(plan.task) == min(world.scheduler.graph.tasks, int((slots - used).sum()))
        world.commit(plan)
        world.finish(world.running(FLOW)[::3])
        world.sync()


@examples(60)
@given(st.data())
def test_requests_of_several_dimensions_fit_and_none_starves(data: st.DataObject) -> None:
    small, size = st.integers(0, 4), st.integers(0, 12)
    capacity = data.draw(st.lists(st.tuples(size, size), min_size=1, max_size=5))
    requests = st.tuples(small, small).filter(any)
    request = data.draw(st.lists(requests, min_size=1, max_size=14))
    spec = cell_of(np.array(capacity, np.int64))
    world = FlowWorld(spec, build_quincy(QuincyOptions(certify_every=1), environment([], spec)))
    tasks = tasks_of(
        np.arange(len(request)),
        request=np.array(request, np.int64),
        job=np.arange(len(request)) % 3,
    )
    world.offer(tasks)
    placed: set[int] = set()
    while len((plan := world.plan()).task):  # which checks that its claims fit together
        result = world.commit(plan)
        assert result.accepted.all()
        placed.update(plan.task.tolist())
        world.sync()
    for task in set(range(len(request))) - placed:
        assert not np.any(np.all(world.view.free >= request[task], axis=1))
