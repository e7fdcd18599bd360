"""flowsolver against OR-tools on random networks, and against itself from scratch under random changes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, parse_dimacs, solve, write_dimacs


def oracle(network):
    """Optimal cost, or None when infeasible, by OR-tools."""
    peer = min_cost_flow.SimpleMinCostFlow()
    if network.num_arcs > 0:
        peer.add_arcs_with_capacity_and_unit_cost(network.tail, network.head, network.capacity, network.cost)
    peer.set_nodes_supplies(np.arange(network.num_nodes), network.supply)
    return peer.optimal_cost() if peer.solve() == peer.OPTIMAL else None


def agrees_with_oracle(network, status, cost):
    if network.supply.sum() != 0:
        return status is Status.UNBALANCED
    expected = oracle(network)
    return status is (Status.INFEASIBLE if expected is None else Status.OPTIMAL) and expected in (None, cost)


@st.composite
def networks(draw, max_nodes=8, max_arcs=24):
    """Small and nasty: parallel arcs, self-loops, zero capacities, negative costs, ties, parts without arcs, large values.

    Supplies come from a random flow half of the time, so that most networks are feasible and tight.
    """
    n = draw(st.integers(1, max_nodes))
    m = draw(st.integers(0, max_arcs))
    scale = draw(st.sampled_from([1, 1, 1, 2**33]))
    least_cost = draw(st.sampled_from([0, -4]))
    node = st.integers(0, n - 1)
    arcs = draw(st.lists(st.tuples(node, node, st.integers(0, 5), st.integers(least_cost, 6)), min_size=m, max_size=m))
    supply = np.zeros(n, dtype=np.int64)
    if draw(st.booleans()):
        for tail, head, capacity, _ in arcs:
            sent = draw(st.integers(0, capacity))
            supply[tail] += sent
            supply[head] -= sent
    else:
        supply[:] = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
        if draw(st.booleans()):
            supply[draw(node)] -= supply.sum()
    rows = np.array(arcs, dtype=np.int64).reshape(-1, 4)
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] * scale)
    return network


@settings(max_examples=300, deadline=None)
@given(networks())
def test_from_scratch(network):
    solution = solve(network)
    assert agrees_with_oracle(network, solution.status, solution.cost)
    if solution.status is Status.OPTIMAL:
        assert certify(network, solution).ok


@st.composite
def unit_source_networks(draw):
    """Sources of one unit without arcs in, over a nasty core: what placing sources has to cope with.

    Costs are few and close, so that there are ties; the core has arcs of negative cost, cycles, supplies of its own and, in
    half of the cases, room for all.
    """
    sources, inner = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    scale = draw(st.sampled_from([1, 1, 1, 2**33]))
    least_cost = draw(st.sampled_from([0, 0, -3]))
    node = st.integers(0, inner)  # 0 is where most flow ends
    core = draw(st.lists(st.tuples(node, node, st.integers(0, 4), st.integers(least_cost, 4)), min_size=0, max_size=14))
    room = draw(st.sampled_from([0, sources]))
    core += [(v, 0, draw(st.integers(room // 2, room + 2)), draw(st.integers(0, 9))) for v in range(1, inner + 1)]
    source = st.integers(inner + 1, inner + sources)
    arcs = draw(
        st.lists(st.tuples(source, node, st.integers(0, 2), st.integers(least_cost, 9)), min_size=sources, max_size=50)
    )
    supply = np.zeros(1 + inner + sources, dtype=np.int64)
    supply[inner + 1 :] = 1
    supply[1 : inner + 1] = draw(st.lists(st.sampled_from([0, 0, 0, -1, 1]), min_size=inner, max_size=inner))
    supply[0] = -supply[1:].sum()
    rows = np.array(draw(st.permutations(core + arcs)), dtype=np.int64).reshape(-1, 4)
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] * scale)
    return network


@settings(max_examples=300, deadline=None)
@given(unit_source_networks())
def test_unit_sources(network):
    solution = solve(network)
    assert agrees_with_oracle(network, solution.status, solution.cost)
    if solution.status is Status.OPTIMAL:
        assert certify(network, solution).ok


@settings(max_examples=50, deadline=None)
@given(networks())
def test_dimacs_round_trip(network):
    again = parse_dimacs(write_dimacs(network)).network
    for name in ("tail", "head", "capacity", "cost", "supply"):
        np.testing.assert_array_equal(getattr(network, name), getattr(again, name))


def random_change(data, solver):
    """One change somewhere; the kinds are equally likely."""
    network, nodes, arcs = solver.snapshot()
    kind = data.draw(st.integers(0, 6))
    cost, capacity = data.draw(st.integers(-4, 6)), data.draw(st.integers(0, 5))
    if kind == 0 or nodes.size < 2:
        solver.add_nodes([0, 0])
    elif kind == 1:
        ends = data.draw(st.lists(st.sampled_from(nodes.tolist()), min_size=2, max_size=2))
        solver.add_arcs([ends[0]], [ends[1]], capacity, cost * data.draw(st.sampled_from([1, 1, 1, 2**33])))
    elif kind == 2:
        u, v = data.draw(st.lists(st.sampled_from(range(nodes.size)), min_size=2, max_size=2, unique=True))
        solver.set_supply(nodes[[u, v]], network.supply[[u, v]] + [1, -1])
    elif kind == 3:
        solver.remove_nodes([data.draw(st.sampled_from(nodes.tolist()))])
    elif arcs.size > 0:
        arc = data.draw(st.sampled_from(arcs.tolist()))
        if kind == 4:
            solver.remove_arcs([arc])
        elif kind == 5:
            solver.set_cost([arc], [cost])
        else:
            solver.set_capacity([arc], [capacity])


@settings(max_examples=120, deadline=None)
@given(networks(), st.data())
def test_any_changes_end_as_from_scratch(network, data):
    """Whatever happened before, and with solvable and unsolvable states in between."""
    solver = IncrementalSolver(network)
    known = solver.flow()
    for _ in range(data.draw(st.integers(1, 6))):
        status = solver.resolve()
        now, _, arcs = solver.snapshot()
        fresh = solve(now)
        assert status is fresh.status
        assert agrees_with_oracle(now, status, solver.cost)
        if status is Status.OPTIMAL:
            assert solver.cost == fresh.cost
            assert solver.certify().ok
            assert solver.certify_touched().ok
            changed, flow = solver.changed_flow()
            known = np.concatenate([known, np.zeros(solver.flow().size - known.size, dtype=np.int64)])
            known[changed] = flow
            np.testing.assert_array_equal(known[arcs], solver.flow(arcs))
        for _ in range(data.draw(st.integers(1, 5))):
            random_change(data, solver)
            alive = np.zeros(solver.flow().size, dtype=bool)
            alive[solver.snapshot()[2]] = True
            known = np.where(alive[: known.size], known, 0)
        if data.draw(st.integers(0, 3)) > 0:  # mostly balanced
            now, nodes, _ = solver.snapshot()
            if nodes.size > 0:
                sink = int(np.argmin(now.supply))
                solver.set_supply([nodes[sink]], [now.supply[sink] - now.supply.sum()])


@settings(max_examples=60, deadline=None)
@given(networks(), st.data())
def test_perturbed_and_restored(network, data):
    """Costs, capacities and supplies changed and changed back: the same cost as before."""
    solver = IncrementalSolver(network)
    status = solver.resolve()
    before = solver.cost
    arcs, nodes = np.arange(network.num_arcs), np.arange(network.num_nodes)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    solver.set_cost(arcs, rng.integers(-9, 9, arcs.size))
    solver.set_capacity(arcs, rng.integers(0, 9, arcs.size))
    solver.set_supply(nodes, rng.permutation(network.supply))
    solver.resolve()
    solver.set_supply(nodes, network.supply)
    solver.set_capacity(arcs, network.capacity)
    solver.set_cost(arcs, network.cost)
    assert solver.resolve() is status
    if status is Status.OPTIMAL:
        assert solver.cost == before
        assert solver.certify().ok
