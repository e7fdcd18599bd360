"""What is measured: for each figure of the Firmament paper a series of graphs, ever harder along its axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from flowsolver.generate import GraphOptions, load_spreading_graph, network_aware_graph, quincy_graph
from flowsolver.graphs.graph import TaskGraph

_USED_PERCENT = (50, 80, 90, 95, 97, 99, 101, 102, 105, 110, 120)
_USED_PERCENT_QUICK = (50, 97, 105)
_NEW_TASKS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
_NEW_TASKS_QUICK = (10, 1_000)
_SLOTS = 12


@dataclass(frozen=True)
class Case:
    """One graph. Where on its figure's axis it stands, and what it is."""

    position: int
    title: str
    make: Callable[[], TaskGraph]


@dataclass(frozen=True)
class Series:
    """A figure's graphs, or for the comparison of incremental with scratch its policies."""

    figure: str
    title: str
    axis: str
    cases: Sequence[Case]
    incremental: bool = False


def _pending(used: int) -> int:
    return 2 if used <= 100 else 6


def _quincy(machines: int, used: int, seed: int) -> Case:
    return Case(
        machines,
        f"Quincy, {machines:,} machines, {used} % used",
        lambda: quincy_graph(GraphOptions(machines, used, _pending(used)), seed),
    )


def _spreading(machines: int, tasks: int, seed: int) -> Case:
    return Case(
        tasks,
        f"load spreading, {machines:,} machines, {tasks:,} new tasks",
        lambda: load_spreading_graph(machines, tasks, seed),
    )


def _network_aware(machines: int, seed: int) -> Case:
    return Case(
        machines, f"network-aware, {machines:,} machines, 90 % used", lambda: network_aware_graph(machines, seed)
    )


def series_of(machines: Sequence[int], seed: int, quick: bool) -> list[Series]:
    """The four figures; those of one cell size are of the largest."""
    largest = max(machines)
    by_use = [
        replace(_quincy(largest, used, seed), position=used)
        for used in (_USED_PERCENT_QUICK if quick else _USED_PERCENT)
    ]
    room = largest * _SLOTS // 2
    jobs = [tasks for tasks in (_NEW_TASKS_QUICK if quick else _NEW_TASKS) if tasks <= room] or [room]
    return [
        Series(
            "machines", "Quincy policy, 50 % used", "machines", [_quincy(m, 50, seed) for m in sorted(set(machines))]
        ),
        Series("utilisation", f"Quincy policy, {largest:,} machines", "tasks in % of slots", by_use),
        Series(
            "job-size",
            f"load spreading, {largest:,} machines, one new job",
            "tasks in the new job",
            [_spreading(largest, tasks, seed) for tasks in jobs],
        ),
        Series(
            "incremental",
            f"{largest:,} machines, rounds of changes",
            "policy",
            [_quincy(largest, 90, seed), _spreading(largest, jobs[-1], seed), _network_aware(largest, seed)],
            incremental=True,
        ),
    ]
