"""The scheduling graphs: shape, determinism, and that the hard ones are hard."""

import hashlib

import numpy as np
import pytest

from flowsolver import Status, certify, solve
from flowsolver.generate import Draws, GraphOptions, contended_options, load_spreading_graph, quincy_graph


def digest(network):
    parts = (network.tail, network.head, network.capacity, network.cost, network.supply)
    return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()


def test_same_seed_same_graph():
    options = GraphOptions(100)
    assert digest(quincy_graph(options, 1).network) == digest(quincy_graph(options, 1).network)
    assert digest(quincy_graph(options, 1).network) != digest(quincy_graph(options, 2).network)


def test_draws_are_splitmix64():
    """First outputs of SplitMix64 from the state the seed gives, by the definition of the generator."""
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
    "options", [GraphOptions(90), contended_options(90), GraphOptions(90, 110, 6), GraphOptions(90, 90, 100)]
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
    np.testing.assert_array_equal(np.sort(to_cluster), np.arange(graph.first_task, graph.first_task + graph.tasks))
    slots = network.capacity[(head == graph.sink) & (tail < graph.first_unscheduled)].sum()
    assert slots == 90 * 12
    assert (network.cost >= 0).all()
    solution = solve(network)
    assert solution.status is Status.OPTIMAL
    assert certify(network, solution).ok


def test_contended_graph_has_prices_and_the_plain_one_hardly():
    priced = {}
    for name, options in (("plain", GraphOptions(200, 80)), ("contended", contended_options(200, 80))):
        graph = quincy_graph(options, 1)
        potential = solve(graph.network).potential
        priced[name] = int((potential[graph.first_machine : graph.first_unscheduled] > 0).sum())
    assert priced["contended"] > 5 * max(1, priced["plain"])


def test_oversubscribed_graph_leaves_tasks_waiting():
    graph = quincy_graph(GraphOptions(50, 120, 25), 1)
    solution = solve(graph.network)
    unscheduled = (graph.network.head >= graph.first_unscheduled) & (graph.network.head < graph.first_task)
    assert solution.flow[unscheduled].sum() == graph.tasks - 50 * 12


def test_load_spreading_fills_the_emptiest_machines():
    graph = load_spreading_graph(40, 60, seed=1)
    solution = solve(graph.network)
    assert certify(graph.network, solution).ok
    tail, head, flow = graph.network.tail, graph.network.head, solution.flow
    load = np.array([flow[head == m].sum() for m in range(graph.first_machine, graph.first_machine + 40)])
    took = np.array([flow[(head == m) & (tail == graph.cluster)].sum() for m in range(2, 42)])
    assert took.sum() == 60
    assert load[took > 0].max() <= load.min() + 1


@pytest.mark.parametrize(
    ("field", "value"), [("machines", 0), ("percent_used", 0), ("percent_pending", 101), ("replicas", 2), ("skew", 0)]
)
def test_bad_options_name_the_field(field, value):
    with pytest.raises(ValueError, match=f"{field} = {value}"):
        GraphOptions(**{"machines": 10, field: value})
