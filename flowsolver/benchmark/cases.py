"""The graphs that are measured: a series for each of the Firmament paper's figures, and other
graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flowsolver.generate import (
    GraphOptions,
    NetgenOptions,
    TaskGraph,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from flowsolver.network import FlowNetwork

_USED_PERCENT = (50, 80, 90, 95, 97, 99, 101, 102, 105, 110, 120)
_USED_PERCENT_QUICK = (50, 97, 105)
_NEW_TASKS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
_NEW_TASKS_QUICK = (10, 1_000)
_SLOTS = 12
_NETGEN_NODES_PER_MACHINE = 4


@dataclass(frozen=True)
class Case:
    """One graph of a figure.

    Args:
        title: unique description.
        label: short name for plots and tables.
        position: on the figure's axis.
        make: returns the network and its first task (the number of nodes if it has none).
    """

    title: str
    label: str
    position: int
    make: Callable[[], tuple[FlowNetwork, int]]


@dataclass(frozen=True)
class Series:
    """The graphs of a figure.

    Args:
        figure: name of the figure.
        title: its title.
        axis: the label of its axis.
        cases: the graphs.
        ordered: whether they get harder along the axis, so that a solver over the time limit is not
            tried on the rest.
        incremental: whether rounds of changes are timed, too.
    """

    figure: str
    title: str
    axis: str
    cases: Sequence[Case]
    ordered: bool = True
    incremental: bool = False


def _case(title: str, label: str, make: Callable[[], TaskGraph], position: int = 0) -> Case:
    return Case(title, label, position, lambda: ((graph := make()).network, graph.first_task))


def _quincy(machines: int, used: int, seed: int, position: int = 0) -> Case:
    return _case(
        f"Quincy, {machines:,} machines, {used} % used",
        f"Quincy {used} %",
        lambda: quincy_graph(GraphOptions(machines, used, 2 if used <= 100 else 6), seed),
        position,
    )


def _spreading(machines: int, tasks: int, seed: int) -> Case:
    return _case(
        f"load spreading, {machines:,} machines, {tasks:,} new tasks",
        f"load spreading +{tasks:,}",
        lambda: load_spreading_graph(machines, tasks, seed),
        tasks,
    )


def _netgen(machines: int, seed: int) -> Case:
    """NETGEN-8 of Kovács (2015): 8 arcs per node, sqrt(nodes) sources and sinks, 1,000 units per
    source.
    """
    nodes = max(16, _NETGEN_NODES_PER_MACHINE * machines)
    ends = math.isqrt(nodes)
    options = NetgenOptions(nodes, 8 * nodes, ends, ends, 1_000 * ends)
    return Case(
        f"NETGEN, {nodes:,} nodes", "NETGEN", 0, lambda: (netgen_network(options, seed), nodes)
    )


def series_of(machines: Sequence[int], seed: int, quick: bool) -> list[Series]:
    """The paper's four figures and other graphs. Series of one cell size use the largest."""
    largest = max(machines)
    room = largest * _SLOTS // 2
    used = f"{largest:,} machines, 90 % used"

    def cell(name: str, label: str, options: GraphOptions) -> Case:
        return _case(f"{name}, {used}", label, lambda: quincy_graph(options, seed))

    cold = cell("cold", "cold 90 %", GraphOptions(largest, 90, 100))
    contended = cell("contended", "contended 90 %", contended_options(largest))
    contended_cold = cell(
        "contended and cold", "contended, cold 90 %", contended_options(largest, 90, 100)
    )
    aware = _case(
        f"network-aware, {used}", "network-aware 90 %", lambda: network_aware_graph(largest, seed)
    )
    jobs = [tasks for tasks in (_NEW_TASKS_QUICK if quick else _NEW_TASKS) if tasks <= room] or [
        room
    ]
    return [
        Series(
            "machines",
            "Quincy policy, 50 % used",
            "machines",
            [_quincy(m, 50, seed, m) for m in sorted(set(machines))],
        ),
        Series(
            "utilisation",
            f"Quincy policy, {largest:,} machines",
            "tasks in % of slots",
            [
                _quincy(largest, used, seed, used)
                for used in (_USED_PERCENT_QUICK if quick else _USED_PERCENT)
            ],
        ),
        Series(
            "job-size",
            f"load spreading, {largest:,} machines, one new job",
            "tasks in the new job",
            [_spreading(largest, tasks, seed) for tasks in jobs],
        ),
        Series(
            "others",
            f"other graphs, {largest:,} machines",
            "graph",
            [cold, contended, contended_cold, aware, _netgen(largest, seed)],
            ordered=False,
        ),
        Series(
            "incremental",
            f"{largest:,} machines, rounds of changes",
            "policy",
            [
                _quincy(largest, 90, seed),
                _quincy(largest, 105, seed),
                contended,
                _spreading(largest, jobs[-1], seed),
                aware,
            ],
            ordered=False,
            incremental=True,
        ),
    ]
