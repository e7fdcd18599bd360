"""The general networks on grids: sizes, determinism, and that each is feasible and connected."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from flowsolver import solve
from flowsolver.grid_networks import (
    GotoOptions,
    GridgenOptions,
    RoadOptions,
    goto_network,
    gridgen_network,
    road_network,
)
from tests.fixtures.examples import examples
from tests.fixtures.networks import check_solution, ortools_cost

GOTO = GotoOptions(rows=8, columns=20, arcs=1_000)
GRIDGEN = GridgenOptions(rows=9, columns=12, arcs=700, sources=7, sinks=11, supply=900)
ROAD = RoadOptions(rows=20, columns=30, trips=9)
FAMILIES = {
    "goto": (lambda seed: goto_network(GOTO, seed), "112c4d6b"),
    "gridgen": (lambda seed: gridgen_network(GRIDGEN, seed), "88a2cae9"),
    "road": (lambda seed: road_network(ROAD, seed), "fa52ed10"),
}


def digest(network):
    parts = (network.tail, network.head, network.capacity, network.cost, network.supply)
    return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()


def check_feasible(network):
    cost = ortools_cost(network)
    assert cost is not None
    check_solution(network, solve(network), cost)


def strong_parts(network):
    arcs = coo_array(
        (np.ones(network.num_arcs), (network.tail, network.head)), [network.num_nodes] * 2
    )
    return connected_components(arcs, connection="strong")[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_network_of_a_seed_is_the_same_everywhere(family):
    make, golden = FAMILIES[family]
    assert digest(make(1))[:8] == golden
    assert digest(make(2)) != digest(make(1))


@given(
    st.builds(
        lambda rows, columns, more, cost, capacity: GotoOptions(
            rows, columns, 2 * rows * columns + more, cost, capacity
        ),
        st.integers(2, 6),
        st.integers(4, 12),
        st.integers(0, 150),
        st.integers(1, 200),
        st.integers(1, 50),
    ),
    st.integers(0, 2**40),
)
@examples(100)
def test_goto_sends_what_its_columns_hold(options, seed):
    network = goto_network(options, seed)
    assert (network.num_nodes, network.num_arcs) == (options.rows * options.columns, options.arcs)
    assert strong_parts(network) == 1
    (source,), (sink,) = np.flatnonzero(network.supply > 0), np.flatnonzero(network.supply < 0)
    assert (source, sink) == (0, options.columns // 2 * options.rows)
    assert network.supply[source] == -network.supply[sink] >= options.rows
    assert network.cost.min() >= 1 and network.cost.max() <= options.max_cost
    spanned = (network.head // options.rows - network.tail // options.rows) % options.columns
    assert spanned.max() <= max(2, options.columns // 8)
    across = spanned > 0
    assert network.capacity[across].max() <= options.max_capacity
    check_feasible(network)


@given(
    st.integers(2, 8),
    st.integers(2, 8),
    st.data(),
    st.integers(0, 2**40),
)
@examples(100)
def test_gridgen_networks_match_their_options(rows, columns, data, seed):
    nodes = rows * columns
    sources = data.draw(st.integers(1, nodes - 1))
    sinks = data.draw(st.integers(1, nodes - sources))
    options = GridgenOptions(
        rows,
        columns,
        2 * nodes + sources + sinks + data.draw(st.integers(0, 100)),
        sources,
        sinks,
        max(sources, sinks) + data.draw(st.integers(0, 500)),
        max_capacity=data.draw(st.integers(1, 100)),
    )
    network = gridgen_network(options, seed)
    assert (network.num_nodes, network.num_arcs) == (nodes + 1, options.arcs)
    supply = network.supply
    assert (np.count_nonzero(supply > 0), np.count_nonzero(supply < 0)) == (sources, sinks)
    assert supply[supply > 0].sum() == -supply[supply < 0].sum() == options.supply
    assert (network.tail != network.head).all()
    grid = (network.tail < nodes) & (network.head < nodes)
    assert np.count_nonzero(~grid) == sources + sinks
    assert network.cost[grid].max() <= options.max_cost < network.cost[~grid].min()
    assert network.capacity[grid].max() <= options.max_capacity
    inner = coo_array((np.ones(grid.sum()), (network.tail[grid], network.head[grid])), [nodes] * 2)
    assert connected_components(inner, connection="weak")[0] == 1
    check_feasible(network)


@given(
    st.builds(
        RoadOptions,
        st.integers(2, 20),
        st.integers(2, 20),
        st.integers(1, 2),
        st.integers(1, 200),
        st.integers(0, 100),
    ),
    st.integers(0, 2**40),
)
@examples(100)
def test_roads_lead_everywhere_and_both_ways(options, seed):
    network = road_network(options, seed)
    nodes = options.rows * options.columns
    assert network.num_nodes == nodes
    assert strong_parts(network) == 1
    arcs = np.column_stack([network.tail, network.head, network.capacity, network.cost])
    back = arcs[:, [1, 0, 2, 3]]
    assert sorted(arcs.tolist()) == sorted(back.tolist())
    step = np.abs(network.tail - network.head)
    assert set(step.tolist()) <= {1, options.columns}
    assert np.bincount(network.tail, minlength=nodes).max() <= 4
    # 40 to 170 m between crossings, at 30 to 110 km/h
    assert network.cost.min() >= 13 and network.cost.max() <= 1 + 36 * 172 // 30
    assert sorted(set(network.supply.tolist()) - {0}) == [-options.per_trip, options.per_trip]
    assert network.supply[network.supply > 0].size == options.trips
    check_feasible(network)


def test_roads_of_many_trips_have_room_for_all():
    options = RoadOptions(12, 40, 240, per_trip=50, percent_closed=100)
    network = road_network(options, 3)
    assert network.num_arcs == 2 * (12 * 39 + 11 * 5)
    check_feasible(network)


def test_arterials_and_motorways_are_quicker_and_wider():
    network = road_network(RoadOptions(70, 70, 5, percent_closed=0), 1)
    row, along = network.tail // 70, np.abs(network.tail - network.head) == 1
    time = [
        network.cost[along & where].mean()
        for where in (row % 8 != 0, (row % 8 == 0) & (row % 64 != 0), row % 64 == 0)
    ]
    assert time[0] > 1.8 * time[1] and time[1] > 1.6 * time[2]
    room = [network.capacity[along & (row == at)].min() for at in (1, 8, 64)]
    assert room == [40, 60, 100]


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (GOTO, "rows", 1),
        (GOTO, "columns", 3),
        (GOTO, "arcs", 319),
        (GOTO, "max_cost", 0),
        (GOTO, "max_capacity", 0),
        (GRIDGEN, "rows", 1),
        (GRIDGEN, "columns", 2**40),
        (GRIDGEN, "arcs", 233),
        (GRIDGEN, "sources", 108),
        (GRIDGEN, "sinks", 102),
        (GRIDGEN, "supply", 10),
        (ROAD, "trips", 301),
        (ROAD, "trips", 0),
        (ROAD, "per_trip", 0),
        (ROAD, "percent_closed", 101),
    ],
)
def test_bad_options_name_the_field(options, field, value):
    with pytest.raises(ValueError, match=f"^{field} = {value}: must be "):
        replace(options, **{field: value})
