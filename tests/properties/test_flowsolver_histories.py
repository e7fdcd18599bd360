"""Every algorithm and setting under random changes: `resolve` ends as a solve from scratch does."""

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from flowsolver import IncrementalSolver, Status, algorithms
from tests.fixtures.algorithm_variants import VARIANTS
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks, shaped_networks
from tests.fixtures.networks import WIDE, ortools_answer

EVERY_ALGORITHM = {name: name for name in algorithms()} | VARIANTS


class Ensemble:
    """A solver per algorithm, and with other settings. A method called on the ensemble is called on
    each; all must return the same.
    """

    def __init__(self, network):
        self.solvers = {
            name: IncrementalSolver(network, choices, deterministic=True)
            for name, choices in EVERY_ALGORITHM.items()
        }
        self.first = next(iter(self.solvers.values()))
        self.known = {algorithm: solver.flow() for algorithm, solver in self.solvers.items()}
        self.live = np.arange(network.num_arcs)

    def change(self, name, *arguments):
        ids = [getattr(solver, name)(*arguments) for solver in self.solvers.values()]
        if ids[0] is not None:
            assert all(np.array_equal(ids[0], other) for other in ids)
        self.note_removed()

    def note_removed(self):
        """A removed arc's flow is no longer known, whether or not its id comes back."""
        now = self.first.snapshot()[2]
        gone = np.setdiff1d(self.live, now)
        self.live = now
        for known in self.known.values():
            known[gone[gone < known.size]] = 0

    def resolve(self):
        """Nothing to object against any of them. The status."""
        now, _, arcs = self.first.snapshot()
        status, cost = ortools_answer(now)
        event(status.name)
        wrong = {
            algorithm: self.objection(algorithm, status, cost, arcs) for algorithm in self.solvers
        }
        assert {algorithm: what for algorithm, what in wrong.items() if what} == {}
        return status

    def objection(self, algorithm, status, cost, arcs):
        solver = self.solvers[algorithm]
        found = solver.resolve()
        if found is not status:
            return f"status {found.name}, not {status.name}"
        if solver.stats.disproved > 0:
            return "was found wrong on the way"
        if (solver.cut.size > 0) is not (status is Status.INFEASIBLE):
            return f"a cut of {solver.cut.size} nodes"
        if status is Status.INFEASIBLE and not solver.certify_cut().ok:
            return "not certified"
        if status is not Status.OPTIMAL:
            return ""
        if solver.cost != cost:
            return f"cost {solver.cost}, not {cost}"
        if not solver.certify().ok:
            return "not certified"
        if not solver.certify_touched().ok:
            return "what was touched is not certified"
        if not solver.certify_changes().ok:
            return "what changed is not certified"
        changed, flow = solver.changed_flow()
        known = np.concatenate(
            [self.known[algorithm], np.zeros(solver.flow().size - self.known[algorithm].size, int)]
        )
        if (known[changed] == flow).any():
            return "unchanged flow is reported as changed"
        known[changed] = flow
        self.known[algorithm] = known
        return (
            ""
            if np.array_equal(known[arcs], solver.flow(arcs))
            else "the changes of flow do not add up"
        )


def change_something(data, ensemble):
    """One change somewhere; the kinds are equally likely."""
    network, nodes, arcs = ensemble.first.snapshot()
    kind = data.draw(st.integers(0, 7))
    cost, capacity = data.draw(st.integers(-4, 6)), data.draw(st.integers(0, 5))
    wide = data.draw(st.sampled_from([1, 1, 1, 2**33]))
    if kind == 0 or nodes.size < 2:
        ensemble.change("add_nodes", [0, 0])
    elif kind == 1:
        ends = data.draw(st.lists(st.sampled_from(nodes.tolist()), min_size=2, max_size=2))
        ensemble.change("add_arcs", [ends[0]], [ends[1]], capacity, cost * wide)
    elif kind == 2:
        u, v = data.draw(
            st.lists(st.sampled_from(range(nodes.size)), min_size=2, max_size=2, unique=True)
        )
        ensemble.change("set_supply", nodes[[u, v]], network.supply[[u, v]] + [1, -1])
    elif kind == 3:
        ensemble.change("remove_nodes", [data.draw(st.sampled_from(nodes.tolist()))])
    elif kind == 4 and arcs.size > 0:
        ensemble.change("set_cost", arcs, network.cost + np.arange(arcs.size) % (2 + capacity) - 1)
    elif arcs.size > 0:
        arc = data.draw(st.sampled_from(arcs.tolist()))
        if kind == 5:
            ensemble.change("remove_arcs", [arc])
        elif kind == 6:
            ensemble.change("set_cost", [arc], [cost * wide])
        else:
            ensemble.change("set_capacity", [arc], [capacity])


def balance(ensemble):
    """Give the largest sink the remaining supply."""
    network, nodes, _ = ensemble.first.snapshot()
    if nodes.size > 0:
        sink = int(np.argmin(network.supply))
        ensemble.change("set_supply", [nodes[sink]], [network.supply[sink] - network.supply.sum()])


@examples(150)
@given(networks(), st.data())
def test_any_changes_end_as_from_scratch(network, data):
    """With solvable and unsolvable states in between."""
    ensemble = Ensemble(network)
    for _ in range(data.draw(st.integers(1, 6))):
        ensemble.resolve()
        for _ in range(data.draw(st.integers(1, 5))):
            change_something(data, ensemble)
        if data.draw(st.integers(0, 3)) > 0:  # mostly balanced
            balance(ensemble)
    ensemble.resolve()


@examples(120)
@given(networks(), st.integers(0, 2**32))
def test_perturbed_and_restored(network, seed):
    """Costs, capacities and supplies are changed and changed back: the cost is what it was."""
    ensemble = Ensemble(network)
    ensemble.resolve()
    arcs, nodes = np.arange(network.num_arcs), np.arange(network.num_nodes)
    rng = np.random.default_rng(seed)
    ensemble.change("set_cost", arcs, rng.integers(-9, 9, arcs.size))
    ensemble.change("set_capacity", arcs, rng.integers(0, 9, arcs.size))
    ensemble.change("set_supply", nodes, rng.permutation(network.supply))
    ensemble.resolve()
    ensemble.change("set_supply", nodes, network.supply)
    ensemble.change("set_capacity", arcs, network.capacity)
    ensemble.change("set_cost", arcs, network.cost)
    ensemble.resolve()


def change_many(rng, ensemble):
    """Changes of one kind at several nodes or arcs at once."""
    network, nodes, arcs = ensemble.first.snapshot()
    some, count = rng.permutation(nodes.size), int(rng.integers(2, 10))
    kind = rng.integers(0, 8)
    if kind <= 1:  # cheap ways that take all there is
        ends = nodes[rng.integers(0, nodes.size, (2, count))]
        ensemble.change("add_arcs", *ends, rng.choice([7, WIDE]), -rng.integers(0, 250, count))
    elif kind <= 3 and nodes.size > 2 * count:  # some go, and one takes over their supply
        gone, heir = some[:count], some[count]
        ensemble.change("remove_nodes", nodes[gone])
        ensemble.change("set_supply", nodes[[heir]], [network.supply[[heir, *gone]].sum()])
    elif kind == 4:  # as they were joined with the last one, others come
        like = network.tail == nodes.size - 1
        ensemble.change("add_nodes", rng.integers(-3, 4, count))
        new = np.setdiff1d(ensemble.first.snapshot()[1], nodes)
        cost = network.cost[like].max(initial=40)
        last = np.full(count, nodes[-1])
        ensemble.change("add_arcs", new, last, WIDE, cost)
        ensemble.change("add_arcs", last, new, WIDE, cost)
    elif kind == 5:  # sources become sinks
        ensemble.change("set_supply", nodes[some[:count]], -network.supply[some[:count]])
    elif kind == 6 and arcs.size > 0:
        few = rng.integers(0, arcs.size, count)
        ensemble.change("set_cost", arcs[few], rng.integers(-30, 400, count))
    elif arcs.size > 0:
        few = rng.integers(0, arcs.size, count)
        ensemble.change("set_capacity", arcs[few], rng.choice([0, 5, 60, WIDE], count))


@examples(200)
@given(shaped_networks(), st.integers(0, 2**32))
def test_many_changes_at_once(network, seed):
    """Hubs and other shapes, with some kinds of change in each round."""
    rng = np.random.default_rng(seed)
    ensemble = Ensemble(network)
    for _ in range(6):
        if ensemble.resolve() is Status.INFEASIBLE and rng.integers(0, 4) > 0:
            arcs = ensemble.first.snapshot()[2]
            ensemble.change("set_capacity", arcs, np.full(arcs.size, WIDE))
        for _ in range(rng.integers(1, 4)):
            change_many(rng, ensemble)
        balance(ensemble)
    ensemble.resolve()
