"""A small true cell with a flow scheduler whose rounds are recorded, for tests of drawings."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.flow_graphs.recorder import RecordedRound, Recording, RoundRecorder, Wanted
from schedulers.flow.scheduler import FlowScheduler
from shared_state.random import Stream, stream_key
from shared_state.tasks import CellSpec
from tests.flow_world import FlowWorld, catalog_of, quincy, slot_cell, tasks_of


class RecordedWorld(FlowWorld):
    """A FlowWorld that records its rounds in `recording`."""

    def __init__(
        self, spec: CellSpec, scheduler: FlowScheduler, wanted: Wanted | None = None
    ) -> None:
        super().__init__(spec, scheduler)
        self.recording = Recording(spec.dimensions)
        self.recorder = RoundRecorder(scheduler, wanted or Wanted(), self.recording)

    def plan(self) -> Any:
        flow, self.scheduler = self.scheduler, _Both(self.recorder, self.scheduler)
        try:
            return super().plan()
        finally:
            self.scheduler = flow

    def tell(self, kind: Any, task: Any, machine: Any, allocation: Any) -> None:
        flow, self.scheduler = self.scheduler, self.recorder
        try:
            super().tell(kind, task, machine, allocation)
        finally:
            self.scheduler = flow

    @property
    def last(self) -> RecordedRound:
        return self.recording.rounds[-1]


class _Both:
    """A recorder that FlowWorld can ask for the graph."""

    def __init__(self, recorder: RoundRecorder, scheduler: FlowScheduler) -> None:
        self.plan, self.graph = recorder.plan, scheduler.graph


def random_world(seed: int, rounds: int = 4, **options: object) -> RecordedWorld:
    """Some rounds of tasks with random preferences on a crowded cell, a few of which end."""
    stream = Stream(stream_key(seed, "draw", 0))
    draw = lambda low, high, n: stream.integers(n, high - low) + low  # noqa: E731
    spec = slot_cell(machines=4, slots=2, rack_size=2)
    sets: list[dict[str, object]] = []
    for costs in draw(1, 9, 5 * 4).reshape(5, 4).tolist():
        machine, rack = int(draw(0, 4, 1)[0]), int(draw(0, 2, 1)[0])
        sets.append(
            {
                "machine": {machine: costs[0], (machine + 1) % 4: costs[1]},
                "rack": {rack: 8 + costs[2]},
                "elsewhere": 20 + costs[3],
                "unscheduled": int(draw(5, 60, 1)[0]),
            }
        )
    world = RecordedWorld(spec, quincy(spec, catalog_of(sets), **options))
    first = 0
    for _ in range(rounds):
        n = int(draw(0, 7, 1)[0])
        task = np.arange(first, first + n)
        first += n
        preference = draw(0, 6, max(n, 1))[:n].astype(np.int32)
        world.offer(tasks_of(task, job=task // 3, preference=preference, submit_us=world.now_us))
        plan = world.plan()
        table = world.recorder._scheduler.table
        again = table.batch(table.rows(world.cell.describe(plan.evict).task))
        world.commit(plan)
        if len(again):
            world.offer(again)
        running = world.running(0)
        world.now_us += 1_500_000
        world.finish(running[: int(draw(0, 3, 1)[0])])
    return world
