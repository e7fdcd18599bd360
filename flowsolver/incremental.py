"""Re-optimising a network that changes a little from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from numpy.typing import ArrayLike

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_budget, as_ids, as_int64, as_names, broadcast
from flowsolver.network import FlowNetwork, core_of

_NOT_COPIED = (
    "an IncrementalSolver cannot be copied or pickled; take its network (`snapshot()`), "
    "and begin another solver with that"
)


class IncrementalSolver:
    """A network, its optimal flow, and cheap re-optimisation after changes
    (native/incremental_solver.hpp).

    Changes are bulk calls on int64 arrays and take effect at the next `resolve`. Nodes and arcs are
    named by their ids, or by a mask over all ids handed out so far (removed ones included). A call
    with a bad id, a bad length or a negative capacity raises ValueError naming field and index, and
    changes nothing. After any sequence of changes `resolve` ends with the status and the cost of a
    solve from scratch; undoing the changes brings the cost back.

    Ids: nodes and arcs of the initial network keep theirs. Ids of removed ones are handed out
    again, last removed first. An id that was live at the last OPTIMAL `resolve`, whose flow can be
    read, means one thing until the next OPTIMAL one. Any other comes back after the next `resolve`,
    whatever its status. Between two resolves no id changes its meaning: one that was removed is
    invalid.

    A change costs O(1), or where an arc is one of many of a task's, up to as many steps as those
    are: arcs named in the order in which they were added are found at once.

    Threads: one at a time; a second one gets RuntimeError. Only `cancel` may be called at any time.
    `resolve` and long changes release the GIL.
    """

    def __init__(
        self,
        network: FlowNetwork,
        algorithm: str | Sequence[str] = "incremental_ssp",
        *,
        deterministic: bool = False,
    ) -> None:
        """Copies `network`. Nothing is solved before `resolve`. ValueError for an unknown
        algorithm.

        Every algorithm takes every change. A round of `incremental_ssp`, `relaxation`,
        `cost_scaling` or `network_simplex` is the work of its changes, as long as these are not
        many or far-reaching (`network_simplex` reads all costs once); the plain references start
        from the last answer and read the whole network. Several algorithms race at each resolve,
        see `solve`; those that lose go on from their own state or from the winner's answer.
        """
        self._core = native.IncrementalSolver(core_of(network), as_names(algorithm), deterministic)

    def add_nodes(self, supply: ArrayLike) -> Int64Array:
        """Adds k nodes. `supply`: int64[k]. Returns their ids, int64[k], in order (not always
        consecutive)."""
        return self._core.add_nodes(as_int64("supply", supply))

    def add_arcs(
        self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike
    ) -> Int64Array:
        """Adds k arcs between live nodes; arguments as FlowNetwork.add_arcs. Returns their ids,
        int64[k]."""
        tails = as_int64("tail", tail)
        return self._core.add_arcs(
            tails,
            broadcast("head", head, tails.size),
            broadcast("capacity", capacity, tails.size),
            broadcast("cost", cost, tails.size),
        )

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Removes nodes, with all arcs at them and the flow on those.

        Costs O(degree) per node, and per call a pass over the arcs of the nodes that came since the
        last OPTIMAL resolve or have lost their place: better one call for many.
        """
        self._core.remove_nodes(self._node_ids(nodes))

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Removes arcs and the flow on them."""
        self._core.remove_arcs(self._arc_ids(arcs))

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """New capacities >= 0, `UNBOUNDED` for none, int64[k] or one for all; flow above them is
        taken off."""
        ids = self._arc_ids(arcs)
        self._core.set_capacity(ids, broadcast("capacity", capacity, ids.size))

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """New costs, int64[k] or one for all."""
        ids = self._arc_ids(arcs)
        self._core.set_cost(ids, broadcast("cost", cost, ids.size))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """New supplies, int64[k] or one for all. O(1) each; for the largest sink it causes no
        search at all."""
        ids = self._node_ids(nodes)
        self._core.set_supply(ids, broadcast("supply", supply, ids.size))

    def resolve(
        self, *, max_operations: int | None = None, max_seconds: float | None = None
    ) -> native.Status:
        """Re-optimises after the changes since the last call and returns the status.

        After any status but OPTIMAL the solver stays usable: the changes stand, `cost` and `flow`
        are still those of the last OPTIMAL resolve, and further changes can make the network
        solvable again. With a budget of counted operations (deterministic) or of time the status
        may be BUDGET: `flow_reached` has what there is, and the next resolve goes on. Ctrl-C in the
        main thread ends it with KeyboardInterrupt, as `cancel` would.

        Resolves stopped again and again come to an end, however small their budgets. After eight
        BUDGETs in a row, those that follow go on at least until they have found one path or cycle
        to send flow along. Cost scaling, relaxation, simplex and races may lose at a budget all
        they were about: for them shortest paths do the rest then, from the state reached, and the
        algorithm itself is back after the next OPTIMAL.
        """
        return self._core.resolve(*as_budget(max_operations, max_seconds))

    def cancel(self) -> None:
        """From any thread: the running resolve ends with CANCELLED, or, when it is about to end, as
        it would have; if none is running, the next one does. No other one does.

        The next resolve starts from no less than the last OPTIMAL or BUDGET one reached. What the
        cancelled one had done itself is kept by the default algorithm once it has its state, and
        lost in the first resolve, which starts over.
        """
        self._core.cancel()

    @property
    def winner(self) -> str | None:
        """The algorithm that the last answer, optimal or infeasible, is from. None before any."""
        return self._core.winner or None

    @property
    def stop_seconds(self) -> float:
        """In a race, the time from the end of the last round's winner until all others had stopped.
        0.0 without a race."""
        return self._core.stop_seconds

    @property
    def cost(self) -> int:
        """Exact total cost of the last OPTIMAL resolve."""
        return self._core.cost

    @property
    def stats(self) -> native.Stats:
        """Counted work of the last resolve."""
        return self._core.stats

    def flow(self, arcs: ArrayLike | None = None) -> Int64Array:
        """Flow of the last OPTIMAL resolve: int64[k] of `arcs`, or of all arc ids so far (removed
        ones 0), a copy.

        Arcs added since carry 0.
        """
        return self._core.flow() if arcs is None else self._core.flow_of(self._arc_ids(arcs))

    def flow_reached(self) -> Int64Array:
        """Flow int64[m] by arc id as far as the last resolve came: the optimum, or after BUDGET or
        CANCELLED what there is.

        It is within capacities, but need not balance.
        """
        return self._core.flow_reached()

    def changed_flow(self) -> tuple[Int64Array, Int64Array]:
        """(arcs, flow): live arcs whose flow differs between the last two OPTIMAL resolves,
        ascending, and their flow now.

        Arcs that were new count as having carried 0 before. Removed arcs are not listed. Both are
        empty when the last resolve did not end OPTIMAL; the next OPTIMAL one then covers everything
        since the one before.
        """
        return self._core.changed_flow()

    def potential(self) -> Int64Array:
        """Prices int64[n] by node id (removed ones 0): optimal duals right after an OPTIMAL
        resolve. A copy."""
        return self._core.potential()

    @property
    def cut(self) -> Int64Array:
        """The proof of the last resolve, if that ended INFEASIBLE: the nodes whose supply cannot
        leave, int64[k], ascending. Their supplies sum up to more than the capacities of the arcs
        from them to other nodes. Empty after any other status."""
        return self._core.cut()

    def certify_cut(self) -> native.CutCertificate:
        """Checks that `cut` proves the network infeasible as it is now. O(n + m).

        RuntimeError unless the last resolve ended INFEASIBLE.
        """
        return self._core.certify_cut()

    def certify(self) -> native.Certificate:
        """Checks everything: feasibility, complementary slackness, primal == dual == `cost`. O(n +
        m).

        RuntimeError unless the last call that changed anything was a resolve that ended OPTIMAL.
        """
        return self._core.certify(False)

    def certify_touched(self) -> native.Certificate:
        """Checks balance and slackness at all nodes that the last resolve touched, on all their
        arcs. Else as `certify`."""
        return self._core.certify(True)

    def snapshot(self) -> tuple[FlowNetwork, Int64Array, Int64Array]:
        """(network, nodes, arcs): the live network numbered densely, and the ids its nodes and arcs
        have here."""
        network, nodes, arcs = self._core.snapshot()
        return FlowNetwork(network), nodes, arcs

    @property
    def num_nodes(self) -> int:
        """Live nodes."""
        return self._core.num_nodes

    @property
    def num_arcs(self) -> int:
        """Live arcs."""
        return self._core.num_arcs

    def _node_ids(self, nodes: ArrayLike) -> Int64Array:
        return as_ids("nodes", nodes, self._core.num_node_ids)

    def _arc_ids(self, arcs: ArrayLike) -> Int64Array:
        return as_ids("arcs", arcs, self._core.num_arc_ids)

    def __copy__(self) -> NoReturn:
        raise TypeError(_NOT_COPIED)

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise TypeError(_NOT_COPIED)

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NOT_COPIED)

    def __repr__(self) -> str:
        return f"IncrementalSolver({self.num_nodes} nodes, {self.num_arcs} arcs, cost {self.cost})"
