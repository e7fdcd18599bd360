"""General min-cost-flow networks that are laid out on a grid: the same for a seed on every machine.

Three families beside NETGEN's random networks (generate.py), of the kinds that papers compare
solvers on (Kiraly and Kovacs, Efficient implementations of minimum-cost flow algorithms, 2012,
section 5): a grid on a torus, a grid of one-way streets with a detour, and a road network. They
differ in what is hard: much flow over long ways, many sources, and few arcs per node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.generate import Draws
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, MAX_NODES, FlowNetwork

_BYTES_PER_NODE, _BYTES_PER_ARC = 64, 160
_MOST = 1 << 30  # of a cost or a capacity


@dataclass(frozen=True)
class _Arcs:
    """Arcs, an entry each: int64[k]."""

    tail: Int64Array
    head: Int64Array
    capacity: Int64Array
    cost: Int64Array


def _network(supply: Int64Array, parts: list[_Arcs]) -> FlowNetwork:
    """The network of these parts, its arcs in the order of their tails."""
    tail, head, capacity, cost = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("tail", "head", "capacity", "cost")
    )
    order = np.argsort(tail, kind="stable")
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(tail[order], head[order], capacity[order], cost[order])
    return network


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} = {value}: must be {low} to {high}")


def _check_grid(rows: int, columns: int, least_rows: int, least_columns: int) -> None:
    _check("rows", rows, least_rows, MAX_NODES // least_columns)
    _check("columns", columns, least_columns, MAX_NODES // rows - 1)


def _need_memory(nodes: int, arcs: int) -> None:
    need_memory(
        f"a network of {nodes:,} nodes and {arcs:,} arcs",
        nodes * _BYTES_PER_NODE + arcs * _BYTES_PER_ARC,
    )


@dataclass(frozen=True)
class GotoOptions:
    """What to generate: rows x columns nodes, `arcs` arcs, costs in 1 .. max_cost, and capacities
    in 1 .. max_capacity."""

    rows: int
    columns: int
    arcs: int
    max_cost: int = 4_096
    max_capacity: int = 16_384

    def __post_init__(self) -> None:
        _check_grid(self.rows, self.columns, 2, 4)
        _check("arcs", self.arcs, 2 * self.rows * self.columns, MAX_ARCS)
        _check("max_cost", self.max_cost, 1, _MOST)
        _check("max_capacity", self.max_capacity, 1, _MOST)


def goto_network(options: GotoOptions, seed: int) -> FlowNetwork:
    """A feasible network in the manner of GOTO, "grid on torus" (Goldberg's generator, in Goldberg,
    An efficient implementation of a scaling minimum-cost flow algorithm, 1997).

    Node column * rows + row. Every node has an arc to the next one of its column and one to the
    next column, both around the torus. The arcs beyond these join random nodes to nodes of random
    rows up to an eighth of the columns further on. A single source, node 0, sends to a single sink
    half the torus away as much as the arcs from column to column hold; arcs within a column have
    room for all of it. An arc's cost is uniform times the columns it spans (at least one), so that
    long arcs and chains of short ones compete.

    Departure from GOTO: rows and columns are chosen, and how far an arc leads is uniform.
    """
    rows, columns = options.rows, options.columns
    nodes = rows * columns
    _need_memory(nodes, options.arcs)
    draws = Draws(seed)
    at = np.arange(nodes)
    column, row = at // rows, at % rows
    along = 1 + draws.below(options.max_capacity, nodes)
    to_sink = columns // 2
    amount = int(along[: to_sink * rows].reshape(to_sink, rows).sum(axis=1).min())
    reach = max(2, columns // 8)
    count = options.arcs - 2 * nodes
    tail = draws.below(nodes, count)
    span = 1 + draws.below(reach, count)
    head = (tail // rows + span) % columns * rows + draws.below(rows, count)
    most = max(1, options.max_cost // reach)
    supply = np.zeros(nodes, dtype=np.int64)
    supply[0], supply[to_sink * rows] = amount, -amount
    return _network(
        supply,
        [
            _Arcs(
                at,
                column * rows + (row + 1) % rows,
                np.full(nodes, amount, dtype=np.int64),
                1 + draws.below(most, nodes),
            ),
            _Arcs(at, (at + rows) % nodes, along, 1 + draws.below(most, nodes)),
            _Arcs(
                tail,
                head,
                1 + draws.below(options.max_capacity, count),
                np.minimum(options.max_cost, span * (1 + draws.below(most, count))),
            ),
        ],
    )


@dataclass(frozen=True)
class GridgenOptions:
    """What to generate: rows x columns nodes and one more, `arcs` arcs, costs in 1 .. max_cost,
    capacities in 1 .. max_capacity, and `supply` units at the sources together."""

    rows: int
    columns: int
    arcs: int
    sources: int
    sinks: int
    supply: int
    max_cost: int = 10_000
    max_capacity: int = 1_000

    def __post_init__(self) -> None:
        _check_grid(self.rows, self.columns, 2, 2)
        nodes = self.rows * self.columns
        _check("sources", self.sources, 1, nodes - 1)
        _check("sinks", self.sinks, 1, nodes - self.sources)
        _check("supply", self.supply, max(self.sources, self.sinks), _MOST)
        _check("arcs", self.arcs, 2 * nodes + self.sources + self.sinks, MAX_ARCS)
        _check("max_cost", self.max_cost, 1, _MOST)
        _check("max_capacity", self.max_capacity, 1, _MOST)


def gridgen_network(options: GridgenOptions, seed: int) -> FlowNetwork:
    """A feasible network in the manner of GRIDGEN (Lee and Orlin, 1991, among the generators of the
    first DIMACS challenge).

    Node row * columns + column. The rows and columns of the grid are one-way streets that end where
    they began, every other one in the other direction; the arcs beyond these join random pairs of
    nodes. Sources and sinks are random nodes. The last node is the detour: an arc leads to it from
    each source and from it to each sink, at a cost above any way's through the grid, with room for
    all that the node sends or takes. So the network is feasible, and an optimum uses as little of
    the detour as the capacities allow.
    """
    rows, columns = options.rows, options.columns
    nodes = rows * columns
    _need_memory(nodes + 1, options.arcs)
    draws = Draws(seed)
    at = np.arange(nodes)
    row, column = at // columns, at % columns
    ahead = row * columns + (column + 1 - 2 * (row % 2)) % columns
    below = (row + 1 - 2 * (column % 2)) % rows * columns + column
    ends = np.argsort(draws.bits(nodes), kind="stable")[: options.sources + options.sinks]
    source, sink = ends[: options.sources], ends[options.sources :]
    produced = _shares(draws, options.supply, options.sources)
    consumed = _shares(draws, options.supply, options.sinks)
    count = options.arcs - 2 * nodes - ends.size
    tail = draws.below(nodes, count)
    inner = 2 * nodes + count
    detour = np.full(1, nodes, dtype=np.int64)
    supply = np.zeros(nodes + 1, dtype=np.int64)
    supply[source], supply[sink] = produced, -consumed
    dear = options.max_cost * (rows + columns)
    return _network(
        supply,
        [
            _Arcs(
                np.concatenate([at, at, tail]),
                np.concatenate([ahead, below, (tail + 1 + draws.below(nodes - 1, count)) % nodes]),
                1 + draws.below(options.max_capacity, inner),
                1 + draws.below(options.max_cost, inner),
            ),
            _Arcs(
                np.concatenate([source, np.repeat(detour, options.sinks)]),
                np.concatenate([np.repeat(detour, options.sources), sink]),
                np.concatenate([produced, consumed]),
                np.full(ends.size, dear, dtype=np.int64),
            ),
        ],
    )


def _shares(draws: Draws, total: int, count: int) -> Int64Array:
    """Shares of about the same size, int64[count], each at least 1, of sum `total`."""
    cuts = 1 + np.argsort(draws.bits(count), kind="stable")  # which ones get a unit more
    return total // count + (cuts <= total % count)


_BLOCK_M = 100  # between two neighbouring crossings
_ARTERIAL_EVERY = 8  # rows and columns
_MOTORWAY_EVERY = 64
_SPEED_KMH = np.array([30, 60, 110])  # of streets, arterials and motorways
_LANE_CAPACITY = np.array([40, 60, 100])


@dataclass(frozen=True)
class RoadOptions:
    """What to generate: rows x columns crossings, of which `trips` pairs are a source and a sink of
    `per_trip` units; percent_closed of the streets between two rows are missing."""

    rows: int
    columns: int
    trips: int
    per_trip: int = 10
    percent_closed: int = 40

    def __post_init__(self) -> None:
        _check_grid(self.rows, self.columns, 2, 2)
        _check("trips", self.trips, 1, self.rows * self.columns // 2)
        _check("per_trip", self.per_trip, 1, _MOST // self.trips)
        _check("percent_closed", self.percent_closed, 0, 100)


def road_network(options: RoadOptions, seed: int) -> FlowNetwork:
    """A feasible planar network of two-way roads, whose costs are travel times in tenths of a
    second.

    Node row * columns + column: a crossing, moved at random by up to 30 m from its place on a grid
    of 100 m. A road leads to the next crossing of the row and, unless it is closed, of the column.
    Every eighth row and column is an arterial, which is never closed, and every 64th a motorway.
    Capacities are 40, 60 and 100, as by the kind of road in Kiraly and Kovacs (2012, section 5,
    ROAD-FLOW), whose networks are maps of the United States; about 3 arcs leave a crossing.

    Each trip has a plan: along the source's row to the arterial at its left, along this to the
    sink's row and along that to the sink. Roads have room for all plans together, so the network is
    feasible; quicker ways are for the solver to find.
    """
    rows, columns = options.rows, options.columns
    nodes = rows * columns
    _need_memory(nodes, 4 * nodes)
    draws = Draws(seed)
    at = np.arange(nodes)
    row, column = at // columns, at % columns
    x_m = column * _BLOCK_M + draws.below(61, nodes) - 30
    y_m = row * _BLOCK_M + draws.below(61, nodes) - 30
    ends = np.argsort(draws.bits(nodes), kind="stable")[: 2 * options.trips]
    source, sink = ends[: options.trips], ends[options.trips :]
    closed = (draws.below(100, nodes) < options.percent_closed) & (column % _ARTERIAL_EVERY != 0)
    eastward, southward = at[column + 1 < columns], at[(row + 1 < rows) & ~closed]
    # what the plans need of the road from a node to the right, and down
    turn = column[source] // _ARTERIAL_EVERY * _ARTERIAL_EVERY
    across, down = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for at_row, first, last in (
        (row[source], turn, column[source]),
        (row[sink], np.minimum(turn, column[sink]), np.maximum(turn, column[sink])),
    ):
        np.add.at(across, at_row * columns + first, 1)
        np.add.at(across, at_row * columns + last, -1)
    needed_across = np.cumsum(across.reshape(rows, columns), axis=1).ravel()
    np.add.at(down, np.minimum(row[source], row[sink]) * columns + turn, 1)
    np.add.at(down, np.maximum(row[source], row[sink]) * columns + turn, -1)
    needed_down = np.cumsum(down.reshape(rows, columns), axis=0).ravel()

    parts = []
    for start, end, line, needed in (
        (eastward, eastward + 1, row[eastward], needed_across[eastward]),
        (southward, southward + columns, column[southward], needed_down[southward]),
    ):
        kind = (line % _ARTERIAL_EVERY == 0).astype(np.int64) + (line % _MOTORWAY_EVERY == 0)
        length_m = np.sqrt((x_m[start] - x_m[end]) ** 2 + (y_m[start] - y_m[end]) ** 2)
        time_ds = 1 + 36 * length_m.astype(np.int64) // _SPEED_KMH[kind]
        room = np.maximum(_LANE_CAPACITY[kind], needed * options.per_trip)
        parts += [_Arcs(start, end, room, time_ds), _Arcs(end, start, room, time_ds)]
    supply = np.zeros(nodes, dtype=np.int64)
    supply[source], supply[sink] = options.per_trip, -options.per_trip
    return _network(supply, parts)
