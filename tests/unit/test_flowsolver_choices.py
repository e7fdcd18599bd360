"""Algorithms with settings: how they are named, what is refused, what each setting changes in
counted work; rounds from scratch, another algorithm between rounds, routed units of stopped rounds.
"""

from functools import cache

import numpy as np
import pytest

from flowsolver import (
    AlgorithmChoice,
    FlowNetwork,
    IncrementalSolver,
    Status,
    algorithm_choices,
    algorithms,
    parse_algorithms,
    solve,
    solve_max_flow,
)
from flowsolver.generate import GraphOptions, quincy_graph
from tests.fixtures.algorithm_variants import FIRMAMENT, VARIANTS
from tests.fixtures.networks import check_resolved

RELAXATION_FROM_SCRATCH = AlgorithmChoice("relaxation", from_scratch=True)


@cache
def cell(machines=60, used=90):
    """Popular data, so that tasks compete for machines."""
    return quincy_graph(GraphOptions(machines, used, skew=3, replicas=1), 1)


def rounds(solver, graph, count=6, size=8, **budget):
    """As many tasks leave as come, in each round; yields the status of each resolve."""
    rng = np.random.default_rng(3)
    net, begin = graph.network, graph.task_arc_begin
    alive = np.arange(graph.first_task, graph.first_task + graph.tasks)
    for _ in range(count):
        leaving = rng.choice(alive, size, replace=False)
        solver.remove_nodes(leaving)
        like = rng.integers(0, graph.tasks, size)
        coming = solver.add_nodes(np.ones(size, dtype=np.int64))
        for node, task in zip(coming, like, strict=True):
            rows = np.arange(begin[task], begin[task + 1])
            solver.add_arcs(np.full(rows.size, node), net.head[rows], 1, net.cost[rows])
        alive = np.concatenate([np.setdiff1d(alive, leaving), coming])
        yield solver.resolve(**budget)


def work(algorithm, graph=None):
    """The counted work of some rounds, each certified."""
    graph = graph or cell()
    solver = IncrementalSolver(graph.network, parse_algorithms(algorithm), deterministic=True)
    solver.resolve()
    counted = []
    for status in rounds(solver, graph):
        assert status is Status.OPTIMAL
        check_resolved(solver)
        counted.append(solver.stats)
    return counted


def total(algorithm, what="operations"):
    return sum(getattr(stats, what) for stats in work(algorithm))


# --- names ----------------------------------------------------------------------------------------


def test_one_choice_in_all_its_forms():
    scaling = AlgorithmChoice("cost_scaling", alpha=9, price_refine=False)
    assert algorithm_choices("relaxation") == (AlgorithmChoice("relaxation"),)
    assert algorithm_choices(scaling) == (scaling,)
    table = {"name": "cost_scaling", "alpha": 9, "price_refine": False}
    assert algorithm_choices(table) == (scaling,)
    race = ["incremental_ssp", {"name": "relaxation", "from_scratch": True}, scaling]
    assert algorithm_choices(race) == (
        AlgorithmChoice("incremental_ssp"),
        RELAXATION_FROM_SCRATCH,
        scaling,
    )
    assert str(scaling) == "cost_scaling:alpha=9:price_refine=off"
    text = "+".join(map(str, algorithm_choices(race)))
    assert parse_algorithms(text) == algorithm_choices(race)


@pytest.mark.parametrize("name", algorithms())
def test_an_algorithm_alone_has_the_defaults(name):
    assert str(AlgorithmChoice(name)) == name
    plain, chosen = solve(cell().network, name), solve(cell().network, AlgorithmChoice(name))
    assert repr(plain.stats) == repr(chosen.stats)
    np.testing.assert_array_equal(plain.flow, chosen.flow)


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        ({"name": "cost_scaling", "alpha": 1}, ValueError, "cost_scaling: alpha = 1, must be 2 to"),
        ({"name": "cost_scaling", "alpha": -9}, ValueError, "cost_scaling: alpha = -9, must be"),
        ({"name": "cost_scaling", "alpha": 2**40}, ValueError, "must be 2 to 2147483648"),
        ({"name": "cost_scaling", "alpha": 2.5}, TypeError, "alpha: expected an integer"),
        ({"name": "cost_scaling", "alpha": True}, TypeError, "alpha: expected an integer"),
        ({"name": "cost_scaling", "price_refine": 0}, TypeError, "price_refine: expected true or"),
        (
            {"name": "relaxation", "alpha": 9},
            ValueError,
            'relaxation has no setting "alpha"; it has: from_scratch, arc_prioritisation',
        ),
        (
            {"name": "cost_scaling", "arc_prioritisation": True},
            ValueError,
            'cost_scaling has no setting "arc_prioritisation"; it has: from_scratch, alpha, ',
        ),
        (
            {"name": "incremental_ssp", "task_removal": False},
            ValueError,
            'incremental_ssp has no setting "task_removal"; it has: from_scratch$',
        ),
        ({"name": "cost_scaling", "beta": 9}, ValueError, 'no setting "beta" of an algorithm; kno'),
        ({"alpha": 9}, ValueError, "a table needs the name of an algorithm"),
        ({"name": "simplex"}, ValueError, 'no algorithm "simplex"; known: incremental_ssp'),
        ({"name": 3}, TypeError, "algorithm: expected a name, got int"),
        ([], ValueError, "no algorithm given"),
        (["relaxation", "relaxation"], ValueError, 'algorithm "relaxation" given twice'),
        (["relaxation", RELAXATION_FROM_SCRATCH], ValueError, '"relaxation" given twice'),
        (None, TypeError, "algorithm: expected a name or several, got NoneType"),
    ],
)
def test_refused(value, kind, says):
    for take in (
        algorithm_choices,
        lambda choices: solve(cell().network, choices),
        lambda choices: IncrementalSolver(cell().network, choices),
    ):
        with pytest.raises(kind, match=says):
            take(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cost_scaling:alpha", "alpha is not NAME=on, NAME=off or NAME=NUMBER"),
        ("cost_scaling:alpha=nine", "alpha=nine is not NAME=on"),
        ("cost_scaling:alpha=2:alpha=9", "alpha is given twice"),
        ("cost_scaling:name=3", "expected a name|given twice"),
        ("relaxation+", 'no algorithm ""'),
    ],
)
def test_text_that_is_refused(text, says):
    with pytest.raises((ValueError, TypeError), match=says):
        parse_algorithms(text)


# --- what the settings change ---------------------------------------------------------------------


def test_arc_prioritisation_saves_scans_and_searches():
    """Section 5.3.1: it is faster with contended nodes."""
    for form in ("relaxation", "relaxation:from_scratch=on"):
        on, off = form, f"{form}:arc_prioritisation=off"
        assert total(on, "scanned") < 0.9 * total(off, "scanned")
        assert total(on, "searches") < 0.5 * total(off, "searches")


def test_price_refine_saves_phases():
    on, off = "cost_scaling", "cost_scaling:price_refine=off"
    assert total(on, "refined") > 0 and total(off, "refined") == 0
    assert total(on, "phases") < 0.7 * total(off, "phases")
    assert total(on) < 0.8 * total(off)


def test_alpha_is_what_eps_is_divided_by():
    """With all phases run, from about an eighth of a unit of cost down to one of n + 1 parts."""
    phases = {}
    for alpha in (2, 4, 9, 16, 1000):
        choice = AlgorithmChoice("cost_scaling", alpha=alpha, price_refine=False)
        phases[alpha] = solve(cell().network, choice).stats.phases
    first = int(np.log2(cell().network.num_nodes + 1)) - 3
    again = 1  # the last eps, without fixed arcs
    assert phases[2] == first + 1 + again
    assert phases[4] == -(-first // 2) + 1 + again
    assert phases[1000] == 2 + again
    assert phases[2] > phases[4] > phases[9] >= phases[16] > phases[1000]


def test_a_removed_task_is_drained_to_the_sink():
    """The deficit at the machine is drained to the sink; without that, the excess at the sink is
    pushed back to it."""
    tasks, sink, machine = [2, 3], 0, 1
    net = FlowNetwork()
    net.add_nodes([-2, 0, 1, 1])
    net.add_arcs([machine, *tasks], [sink, machine, machine], [2, 1, 1], [0, 5, 6])
    counted = {}
    for on in (True, False):
        solver = IncrementalSolver(net, AlgorithmChoice("cost_scaling", task_removal=on))
        solver.resolve()
        solver.remove_nodes([2])
        solver.set_supply([sink], [-1])
        assert solver.resolve() is Status.OPTIMAL and solver.cost == 6
        counted[on] = solver.stats
    assert (counted[True].augmentations, counted[False].augmentations) == (1, 0)
    assert counted[False].pushes == 1
    assert all((of.phases, of.relabels) == (0, 0) for of in counted.values())


COUNTED = {
    "incremental_ssp": {"searches", "settled", "augmentations"},
    "cost_scaling": {"augmentations", "phases", "pushes", "relabels", "repaired", "refined"},
    "relaxation": {"searches", "settled", "augmentations", "pushes", "ascents", "repaired"},
    "network_simplex": {"pivots", "repaired"},
}


@pytest.mark.parametrize("name", COUNTED)
def test_each_algorithm_counts_its_own_steps(name):
    """As docs/solver_algorithms.md says: those of other algorithms stay 0."""
    own = {"relabels": "cost_scaling", "refined": "cost_scaling", "ascents": "relaxation"}
    own["pivots"] = "network_simplex"
    for what in COUNTED[name] | {"scanned"}:
        assert total(name, what) > 0, what
    for what, algorithm in own.items():
        assert algorithm == name or total(name, what) == 0, what
    weights = {"scanned": 1, "settled": 4, "augmentations": 4, "repaired": 4, "pushes": 2}
    weights |= {"relabels": 8, "ascents": 8, "pivots": 32}
    for stats in work(name):
        weighted = sum(weight * getattr(stats, what) for what, weight in weights.items())
        assert stats.operations == weighted


# --- from scratch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["incremental_ssp", "cost_scaling", "relaxation"])
def test_each_round_from_scratch_is_a_solve_from_scratch(name):
    """Its counted work is that of `solve` on the network as it is."""
    solver = IncrementalSolver(cell().network, AlgorithmChoice(name, from_scratch=True))
    assert solver.resolve() is Status.OPTIMAL
    for status in rounds(solver, cell()):
        assert status is Status.OPTIMAL and solver.winner == name
        fresh = solve(solver.snapshot()[0], name)
        assert solver.stats.operations == fresh.stats.operations
        assert solver.racer_operations == {name: fresh.stats.operations}
        check_resolved(solver)


def test_a_racer_from_scratch_gets_no_start():
    """It counts about what a solve from scratch does, round after round; the other one wins."""
    graph = cell()
    alone = work("cost_scaling")
    solver = IncrementalSolver(graph.network, parse_algorithms(FIRMAMENT), deterministic=True)
    solver.resolve()
    fresh = solve(graph.network, "relaxation").stats.operations
    for status, incremental in zip(rounds(solver, graph), alone, strict=True):
        assert status is Status.OPTIMAL
        check_resolved(solver)
        counted = solver.racer_operations
        assert set(counted) == {"relaxation", "cost_scaling"}
        assert counted[solver.winner] == solver.stats.operations == min(counted.values())
        if solver.winner == "relaxation":
            assert counted["relaxation"] > fresh / 2
        assert incremental.operations > 0


def test_deterministic_rounds_with_a_racer_from_scratch_repeat():
    def history():
        solver = IncrementalSolver(cell().network, parse_algorithms(FIRMAMENT), deterministic=True)
        solver.resolve()
        return [
            (solver.winner, solver.racer_operations, repr(solver.stats), solver.flow().tolist())
            for _ in rounds(solver, cell())
        ]

    assert history() == history()


def test_a_race_on_threads_with_a_racer_from_scratch():
    solver = IncrementalSolver(cell().network, parse_algorithms(FIRMAMENT))
    solver.resolve()
    for status in rounds(solver, cell(), count=12):
        assert status is Status.OPTIMAL
        assert set(solver.racer_operations) == {"relaxation", "cost_scaling"}
        check_resolved(solver)


# --- another algorithm between rounds -------------------------------------------------------------


def test_another_algorithm_goes_on_from_the_answer():
    graph = cell()
    solver = IncrementalSolver(graph.network, RELAXATION_FROM_SCRATCH)
    solver.resolve()
    last = solver.flow()
    steps = rounds(solver, graph)
    assert next(steps) is Status.OPTIMAL and solver.winner == "relaxation"
    solver.set_algorithm("cost_scaling")
    assert solver.winner == "relaxation"
    assert next(steps) is Status.OPTIMAL and solver.winner == "cost_scaling"
    check_resolved(solver)
    fresh = solve(solver.snapshot()[0], "cost_scaling").stats
    assert solver.stats.augmentations < fresh.augmentations / 4  # most flow stays as it was
    solver.set_algorithm(["relaxation", "incremental_ssp"], deterministic=True)
    assert next(steps) is Status.OPTIMAL and set(solver.racer_operations) == {
        "relaxation",
        "incremental_ssp",
    }
    check_resolved(solver)
    solver.set_algorithm(AlgorithmChoice("cost_scaling", from_scratch=True))
    assert next(steps) is Status.OPTIMAL
    assert solver.stats.operations == solve(solver.snapshot()[0], "cost_scaling").stats.operations
    check_resolved(solver)
    assert last.size <= solver.flow().size
    with pytest.raises(ValueError, match="given twice"):
        solver.set_algorithm(["relaxation", "relaxation"])
    assert next(steps) is Status.OPTIMAL and solver.winner == "cost_scaling"


def test_another_algorithm_after_changes_and_after_a_budget():
    graph = cell()
    solver = IncrementalSolver(graph.network, "cost_scaling")
    assert solver.resolve(max_operations=20_000) is Status.BUDGET
    solver.set_cost(np.arange(50), 7)
    solver.set_algorithm("relaxation")
    solver.set_cost(np.arange(50, 90), 3)
    assert solver.resolve() is Status.OPTIMAL and solver.winner == "relaxation"
    check_resolved(solver)
    assert solver.cost == solve(solver.snapshot()[0]).cost


# --- stopped rounds -------------------------------------------------------------------------------

EVERY_ALGORITHM = {name: name for name in algorithms()} | VARIANTS


def check_routed(solver, tasks):
    """As many as a maximum flow within the flow reached, at most. The number of routed units."""
    flow = solver.flow_reached()
    first, last = solver.routed(tasks)
    network, _, arcs = solver.snapshot()
    dense = np.full(flow.size, -1)
    dense[arcs] = np.arange(arcs.size)
    is_routed = first >= 0
    np.testing.assert_array_equal(is_routed, last >= 0)
    for used in (first[is_routed], last[is_routed]):
        assert (np.bincount(used, minlength=flow.size) <= flow).all()
    nodes = solver.snapshot()[1]
    np.testing.assert_array_equal(nodes[network.tail[dense[first[is_routed]]]], tasks[is_routed])
    assert (network.supply[network.head[dense[last[is_routed]]]] < 0).all()
    within = FlowNetwork()
    within.add_nodes(network.supply)
    within.add_arcs(network.tail, network.head, flow[arcs], 0)
    most = solve_max_flow(within).amount
    assert is_routed.sum() <= most
    excess = network.supply.copy()
    np.subtract.at(excess, network.tail, flow[arcs])
    np.add.at(excess, network.head, flow[arcs])
    if (excess[network.supply >= 0] >= 0).all():  # a preflow
        assert is_routed.sum() == most
    return int(is_routed.sum())


@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM)
def test_units_that_a_stopped_round_has_routed(algorithm):
    """From scratch at several budgets, then rounds: what is routed is routed consistently."""
    graph = cell(20)
    tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
    whole = solve(graph.network, EVERY_ALGORITHM[algorithm], deterministic=True).stats.operations
    routed = []
    for part in (1, 2, 4, 6, 8):
        solver = IncrementalSolver(graph.network, EVERY_ALGORITHM[algorithm], deterministic=True)
        status = solver.resolve(max_operations=max(1, whole * part // 8))
        assert status in (Status.BUDGET, Status.OPTIMAL)
        routed.append(check_routed(solver, tasks))
        assert status is Status.BUDGET or routed[-1] == graph.tasks
    assert solver.resolve() is Status.OPTIMAL
    assert check_routed(solver, tasks) == graph.tasks
    stopped = 0
    for status in rounds(solver, graph, max_operations=500):
        stopped += status is Status.BUDGET
        network, nodes, _ = solver.snapshot()
        check_routed(solver, nodes[network.supply == 1])
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


def test_units_of_one_source_share_its_flow():
    net = FlowNetwork()
    net.add_nodes([3, 0, -1, -2])
    net.add_arcs([0, 0, 1], [1, 3, 2], [2, 2, 1], [1, 2, 1])
    solver = IncrementalSolver(net)
    first, last = solver.routed([0, 0, 0])
    assert first.tolist() == last.tolist() == [-1] * 3  # nothing was solved yet
    solver.resolve()
    first, last = solver.routed([0, 0, 0, 0])
    assert (first.tolist(), last.tolist()) == ([0, 1, 1, -1], [2, 1, 1, -1])
    with pytest.raises(ValueError, match=r"nodes\[0\] = 4: no such node"):
        solver.routed([4])


def test_a_budget_is_that_of_each_racer_and_of_each_round():
    """Every round ends near its budget, and after eight in a row shortest paths end it."""
    solver = IncrementalSolver(cell().network, parse_algorithms(FIRMAMENT), deterministic=True)
    budget, overrun = 20_000, 8 * 4096
    for _ in range(8):
        assert solver.resolve(max_operations=budget) is Status.BUDGET
        assert max(solver.racer_operations.values()) <= budget + overrun
        assert min(solver.racer_operations.values()) >= budget
    while solver.resolve(max_operations=budget) is Status.BUDGET:
        pass
    assert solver.winner == "incremental_ssp"
    assert set(solver.racer_operations) == {"incremental_ssp"}
    check_resolved(solver)
    assert next(rounds(solver, cell())) is Status.OPTIMAL
    assert solver.winner != "incremental_ssp"


def test_a_round_from_scratch_keeps_nothing_of_stopped_ones():
    """The same budget ends each at the same point, with the same flow, until it suffices."""
    whole = solve(cell().network, "relaxation").stats.operations
    choice = AlgorithmChoice("relaxation", from_scratch=True)
    solver = IncrementalSolver(cell().network, choice)
    reached = []
    for _ in range(12):
        assert solver.resolve(max_operations=whole // 2) is Status.BUDGET
        reached.append((repr(solver.stats), solver.flow_reached().tolist()))
    assert reached == reached[:1] * 12
    assert solver.resolve(max_operations=2 * whole) is Status.OPTIMAL
    assert solver.winner == "relaxation"
    check_resolved(solver)
