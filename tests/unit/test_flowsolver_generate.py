"""The generated graphs: shape, determinism, and that the hard ones are hard."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsolver import Status, certify, solve
from flowsolver.generate import (
    Draws,
    GraphOptions,
    NetgenOptions,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
    request_arcs,
)
from tests.fixtures.examples import examples


def digest(network):
    parts = (network.tail, network.head, network.capacity, network.cost, network.supply)
    return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()


SMALL_NETGEN = NetgenOptions(nodes=200, arcs=1_500, sources=10, sinks=12, supply=5_000)
GOLDEN = {
    "quincy": (lambda seed: quincy_graph(GraphOptions(90), seed).network, "21359599"),
    "contended": (lambda seed: quincy_graph(contended_options(90), seed).network, "4c145e6e"),
    "oversubscribed": (
        lambda seed: quincy_graph(GraphOptions(90, 105, 6), seed).network,
        "5a017ae2",
    ),
    "cold": (lambda seed: quincy_graph(GraphOptions(90, 90, 100), seed).network, "6c01802e"),
    "load-spreading": (lambda seed: load_spreading_graph(90, 100, seed).network, "8d0f49ab"),
    "network-aware": (lambda seed: network_aware_graph(90, seed).network, "ee983488"),
    "netgen": (lambda seed: netgen_network(SMALL_NETGEN, seed), "daa895fd"),
}


@pytest.mark.parametrize("family", GOLDEN)
def test_the_graph_of_a_seed_is_the_same_everywhere(family):
    make, golden = GOLDEN[family]
    assert digest(make(1)).startswith(golden)
    assert digest(make(2)) != digest(make(1))


def test_draws_are_splitmix64():
    """First outputs of SplitMix64 from the state the seed gives, by the definition of the
    generator."""
    mask = 2**64 - 1

    def output(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state = output((5 * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & mask)
    expected = [output((state + k * 0x9E3779B97F4A7C15) & mask) for k in (1, 2, 3)]
    draws = Draws(5)
    assert [*draws.bits(2).tolist(), *draws.bits(1).tolist()] == expected


def test_streams_of_neighbouring_seeds_share_nothing():
    assert np.intersect1d(Draws(5).bits(1000), Draws(6).bits(1000)).size == 0


@pytest.mark.parametrize(
    "options",
    [GraphOptions(90), contended_options(90), GraphOptions(90, 110, 6), GraphOptions(90, 90, 100)],
)
def test_quincy_shape(options):
    graph = quincy_graph(options, 4)
    network = graph.network
    tail, head = network.tail, network.head
    assert network.supply[graph.first_task :].tolist() == [1] * graph.tasks
    assert network.supply[graph.sink] == -graph.tasks
    degree = np.bincount(tail[tail >= graph.first_task] - graph.first_task, minlength=graph.tasks)
    np.testing.assert_array_equal(np.diff(graph.task_arc_begin), degree)
    assert degree.min() >= 3 - (options.percent_pending > 0)
    assert degree.max() <= 10 + 3
    to_cluster = tail[head == graph.cluster]
    np.testing.assert_array_equal(
        np.sort(to_cluster), np.arange(graph.first_task, graph.first_task + graph.tasks)
    )
    slots = network.capacity[(head == graph.sink) & (tail < graph.first_unscheduled)].sum()
    assert slots == 90 * 12
    assert (network.cost >= 0).all()
    solution = solve(network)
    assert solution.status is Status.OPTIMAL
    assert certify(network, solution).ok


def test_load_spreading_fills_the_emptiest_machines():
    graph = load_spreading_graph(40, 60, seed=1)
    solution = solve(graph.network)
    assert certify(graph.network, solution).ok
    tail, head, flow = graph.network.tail, graph.network.head, solution.flow
    load = np.array(
        [flow[head == m].sum() for m in range(graph.first_machine, graph.first_machine + 40)]
    )
    took = np.array([flow[(head == m) & (tail == graph.cluster)].sum() for m in range(2, 42)])
    assert took.sum() == 60
    assert load[took > 0].max() <= load.min() + 1


def test_network_aware_shape():
    graph = network_aware_graph(200, seed=1, percent_used=80)
    network = graph.network
    tail, head, cost = network.tail, network.head, network.cost
    aggregators = (tail >= graph.first_aggregator) & (tail < graph.first_machine)
    request = graph.requests[tail[aggregators] - graph.first_aggregator]
    machine = head[aggregators] - graph.first_machine
    assert (network.capacity[aggregators] == 1).all()
    # The k-th arc of a pair costs what the link carries when k tasks more are there, which is
    # within the link.
    step, first = np.unique(np.column_stack([machine, request, cost[aggregators]]), axis=0), {}
    assert len(step) == machine.size
    for m, r, c in step.tolist():
        expected = first.get((m, r), int(graph.used[m])) + r
        assert c == expected <= 1250
        first[m, r] = c
    kinds = set(zip(machine.tolist(), request.tolist(), strict=True))
    assert kinds == {
        (m, r) for m in range(200) for r in graph.requests.tolist() if graph.used[m] + r <= 1250
    }
    assert np.bincount(machine * 1000 + request).max() == 10
    solution = solve(network)
    assert certify(network, solution).ok
    # Of the tasks, 2 % wait and all of them find room below 100 % use.
    unscheduled = (head >= graph.first_unscheduled) & (head < graph.first_task)
    assert graph.tasks == 200 * 12 * 80 // 100
    assert solution.flow[unscheduled].sum() == 0
    at_task = tail[tail >= graph.first_task] - graph.first_task
    np.testing.assert_array_equal(np.diff(graph.task_arc_begin), np.bincount(at_task))
    assert (np.diff(graph.task_arc_begin) == 2).sum() == graph.tasks * 2 // 100


def test_network_aware_arcs_follow_the_use_of_the_link():
    aggregator, machine, cost = request_arcs(np.array([1250, 1000, 0]))
    assert not (machine == 0).any()
    at_second = [(a, c) for a, m, c in zip(aggregator, machine, cost, strict=True) if m == 1]
    # 250 MB/s are spare: ten times 25, five times 50, two times 100, once 150, and 300 and 650 not
    # at all.
    assert [sum(a == k for a, _ in at_second) for k in range(6)] == [10, 5, 2, 1, 0, 0]
    assert [c for a, c in at_second if a == 2] == [1100, 1200]
    assert [c for a, m, c in zip(aggregator, machine, cost, strict=True) if (a, m) == (5, 2)] == [
        650
    ]


def netgen_options():
    def build(draw):
        sources, sinks = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        nodes = sources + sinks + draw(st.integers(0, 25))
        through = draw(st.integers(0, sources)), draw(st.integers(0, sinks))
        tails, heads = nodes - sinks + through[1], nodes - sources + through[0]
        pairs = tails * heads - max(0, tails - sources + through[0])
        min_cost, min_capacity = draw(st.integers(-50, 50)), draw(st.integers(0, 30))
        return NetgenOptions(
            nodes=nodes,
            arcs=draw(st.integers(nodes - 1, pairs)),
            sources=sources,
            sinks=sinks,
            supply=draw(st.integers(max(sources, sinks), 200)),
            transshipment_sources=through[0],
            transshipment_sinks=through[1],
            min_cost=min_cost,
            max_cost=min_cost + draw(st.integers(0, 100)),
            percent_max_cost=draw(st.integers(0, 100)),
            percent_capacitated=draw(st.integers(0, 100)),
            min_capacity=min_capacity,
            max_capacity=min_capacity + draw(st.integers(0, 100)),
        )

    return st.composite(build)()


@given(netgen_options(), st.integers(0, 2**40))
@examples(200)
def test_netgen_networks_match_their_options(options, seed):
    network = netgen_network(options, seed)
    tail, head, supply = network.tail, network.head, network.supply
    assert (network.num_nodes, network.num_arcs) == (options.nodes, options.arcs)
    assert np.unique(tail * options.nodes + head).size == options.arcs
    assert (tail != head).all()
    assert (supply[: options.sources] > 0).all() and (
        supply[options.nodes - options.sinks :] < 0
    ).all()
    assert np.count_nonzero(supply) == options.sources + options.sinks
    assert supply[supply > 0].sum() == -supply[supply < 0].sum() == options.supply
    assert head.min() >= options.sources - options.transshipment_sources
    assert tail.max() < options.nodes - options.sinks + options.transshipment_sinks
    assert network.cost.min() >= options.min_cost and network.cost.max() <= options.max_cost
    solution = solve(network)
    assert solution.status is Status.OPTIMAL
    assert certify(network, solution).ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sources", 0),
        ("sinks", 0),
        ("nodes", 21),
        ("supply", 11),
        ("transshipment_sources", 11),
        ("transshipment_sinks", -1),
        ("arcs", 198),
        ("arcs", 10**6),
        ("max_cost", 0),
        ("max_capacity", 0),
        ("min_capacity", -1),
        ("percent_capacitated", 101),
        ("percent_max_cost", -1),
    ],
)
def test_bad_netgen_options_name_the_field(field, value):
    with pytest.raises(ValueError, match=f"^{field} = {value}: must be .* to "):
        replace(SMALL_NETGEN, **{field: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: load_spreading_graph(10, -1, 1), "new_tasks = -1"),
        (lambda: load_spreading_graph(0, 1, 1), "machines = 0"),
        (lambda: network_aware_graph(10, 1, percent_pending=200), "percent_pending = 200"),
    ],
)
def test_bad_cells_name_the_field(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("field", "value"),
    [("machines", 0), ("percent_used", 0), ("percent_pending", 101), ("replicas", 2), ("skew", 0)],
)
def test_bad_options_name_the_field(field, value):
    with pytest.raises(ValueError, match=f"{field} = {value}"):
        GraphOptions(**{"machines": 10, field: value})
