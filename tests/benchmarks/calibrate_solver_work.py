"""Fits the weights of the solver's counted work, algorithm by algorithm, to this machine: `python
-m tests.benchmarks.calibrate_solver_work [ALGORITHM ...]`.

The cells and rounds are those of calibrate_flow_work.py, as far as an algorithm solves them in
little time. Timed is the solver's part of a round: the processor time of the calling thread, the
least of REPEATS equal histories. `race` prints what is counted of a race over what it takes: the
time of the racer named first, which the calling thread runs, in rounds that it wins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from itertools import islice
from typing import Any

import numpy as np

from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.flow.solver_work import WEIGHTS_PS, SolverWork
from shared_state.tasks import Int64
from tests.benchmarks.calibrate_flow_work import Situation, World, rounds_of, situations
from tests.benchmarks.fitting import Samples

REPEATS = 2
# The settings that are fitted together: a weight is one of the algorithm, whatever they are.
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "relaxation": ({}, {"from_scratch": True}),
    "cost_scaling": ({"alpha": 9}, {"from_scratch": True, "alpha": 2}),
    "network_simplex": ({}, {"from_scratch": True}),
    "successive_shortest_path": ({},),
    "cycle_cancelling": ({},),
}
MOST_MACHINES = {
    "relaxation": 2_000,
    "cost_scaling": 2_000,
    "network_simplex": 500,
    "successive_shortest_path": 500,
    "cycle_cancelling": 100,
}
RACE = ({"name": "relaxation", "from_scratch": True}, {"name": "cost_scaling", "alpha": 9})


class TimedWorld(World):
    """A world whose scheduler's solves are timed.

    Attributes:
        spent_ps: What the last one took the calling thread.
    """

    def __init__(self, situation: Situation, algorithm: Any) -> None:
        super().__init__(situation, algorithm=algorithm)
        self.spent_ps = 0
        solver = self.scheduler.graph.solver
        resolve = solver.resolve

        def timed(**budget: Any) -> Any:
            begin_ns = time.thread_time_ns()
            status = resolve(**budget)
            self.spent_ps = (time.thread_time_ns() - begin_ns) * 1000
            return status

        solver.resolve = timed  # type: ignore[method-assign]


def cells(algorithm: str) -> Iterator[Situation]:
    for one in situations():
        if one.machines <= MOST_MACHINES[algorithm] and not (one.spreading or one.mixed):
            yield one


def timed_rounds(
    situation: Situation, algorithm: Any, most: int | None = None
) -> list[tuple[str, int, str | None, tuple[int, ...]]]:
    """(kind of round, picoseconds, winner, counts) of a fixed sequence of rounds."""
    world = TimedWorld(situation, algorithm)
    found = []
    for kind in islice(rounds_of(world, situation), most):
        graph = world.scheduler.graph
        from_scratch = world.scheduler.solved_by.from_scratch
        counts = astuple(SolverWork.of(graph.work, graph.size, from_scratch))
        found.append((kind, world.spent_ps, graph.solver.winner, counts))
    return found


def collect(algorithm: str) -> Samples:
    kind: list[str] = []
    place: list[str] = []
    true_ps: list[int] = []
    counts: list[tuple[int, ...]] = []
    for situation in cells(algorithm):
        for setting in SETTINGS[algorithm]:
            choice = {"name": algorithm, **setting}
            repeats = [timed_rounds(situation, choice) for _ in range(REPEATS)]
            for equal in zip(*repeats, strict=True):
                assert all(one[3] == equal[0][3] for one in equal), (
                    "counts must not depend on the machine"
                )
                kind.append(equal[0][0])
                place.append(
                    situation.name + (" from scratch" if "from_scratch" in setting else "")
                )
                true_ps.append(min(one[1] for one in equal))
                counts.append(equal[0][3])
            print(f"  {situation.name} {setting}: {len(repeats[0])} rounds", file=sys.stderr)
    return Samples(
        np.array(kind), np.array(place), np.array(true_ps, float), np.array(counts, float)
    )


def race() -> None:
    """Print what the solver takes in rounds that the racer named first wins, over what is counted."""
    for first in (0, 1):
        racers = [RACE[first], RACE[1 - first]]
        ratio: list[float] = []
        for situation in situations():
            if situation.machines not in (500, 2_000) or situation.spreading or situation.mixed:
                continue
            world = TimedWorld(situation, racers)
            for _ in rounds_of(world, situation):
                if world.scheduler.solved_by.name == racers[0]["name"]:
                    counted = world.scheduler._solver_operations * PS_PER_OPERATION
                    ratio.append(counted / max(world.spent_ps, 1))
        over = [f"{value:.2f}" for value in np.quantile(ratio, (0.1, 0.5, 0.9))] if ratio else []
        print(f"{racers[0]['name']} wins {len(ratio)} rounds: counted over true {over}")


if __name__ == "__main__":
    chosen = sys.argv[1:] or [*SETTINGS, "race"]
    for algorithm in chosen:
        if algorithm == "race":
            race()
            continue
        names = [field.name for field in fields(SolverWork)]
        zero: Int64 = np.zeros(len(names), np.int64)
        known = WEIGHTS_PS.get(algorithm)
        print(f"\n=== {algorithm}")
        collect(algorithm).report(names, zero if known is None else np.array(astuple(known)))
