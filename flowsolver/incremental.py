"""Re-optimisation of a network that changes a little from round to round."""

from __future__ import annotations

from typing import Any, NoReturn

from numpy.typing import ArrayLike

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_budget, as_ids, as_int64, broadcast
from flowsolver.choices import Choices, as_native
from flowsolver.network import FlowNetwork, core_of

_NOT_COPIED = (
    "an IncrementalSolver cannot be copied or pickled; take its network (`snapshot()`), "
    "and begin another solver with that"
)


class IncrementalSolver:
    """A network with an optimal flow that is cheap to re-optimise after changes.

    Changes are bulk calls on int64 arrays and take effect at the next `resolve`. Nodes and arcs are
    named by their ids, or by a mask over all ids handed out so far, including removed ones. A call
    with a bad id, a bad length or a negative capacity raises ValueError that names the field and
    index, and changes nothing. After any changes, `resolve` ends with the status and the cost of a
    solve from scratch.

    Ids. Nodes and arcs of the initial network keep theirs. Ids of removed ones are reused, last
    removed first. An id that was live at the last OPTIMAL `resolve`, whose flow can be read, keeps
    its meaning until the next OPTIMAL one. Any other id may be reused after the next `resolve`,
    whatever its status. Between two resolves no id changes its meaning, and the id of a removed
    node or arc is invalid.

    Cost of changes. A change costs O(1). For an arc of a task with many arcs it may take as many
    steps as those are, but arcs named in the order in which they were added are found at once.

    Threads. One thread at a time; another one gets RuntimeError. Only `cancel` may be called at any
    time. `resolve` and long changes release the GIL.
    """

    def __init__(
        self,
        network: FlowNetwork,
        algorithm: Choices = "incremental_ssp",
        *,
        deterministic: bool = False,
    ) -> None:
        """Copy `network`. Nothing is solved before `resolve`.

        All algorithms handle all changes. The work of a round of `incremental_ssp`, `relaxation`,
        `cost_scaling` or `network_simplex` depends on its changes, as long as these are not many or
        far-reaching (`network_simplex` also reads all costs once). The plain references start from
        the last answer and read the whole network. Several algorithms race at each resolve, see
        `solve`; the losers continue from their own state or from the winner's answer.

        Args:
            network: the initial network.
            algorithm: a name or an `AlgorithmChoice`, or several for a race; see `algorithms`.
            deterministic: as in `solve`.

        Raises:
            TypeError, ValueError: as `algorithm_choices`.
        """
        self._core = native.IncrementalSolver(core_of(network), as_native(algorithm), deterministic)

    def set_algorithm(self, algorithm: Choices, *, deterministic: bool = False) -> None:
        """Use another algorithm, or another race, from the next resolve on.

        It begins with the flow and the prices reached so far, whichever algorithm reached them
        (Firmament, OSDI 2016, section 6.2), unless all its racers are `from_scratch`. Its graph is
        built anew. Changes made before or after the call, answers and ids stay.

        Raises:
            TypeError, ValueError: as `algorithm_choices`; nothing has changed then.
        """
        self._core.set_algorithm(as_native(algorithm), deterministic)

    def add_nodes(self, supply: ArrayLike) -> Int64Array:
        """Add nodes of these supplies, int64[k] in units of flow.

        Returns:
            Their ids, int64[k], in order; not always consecutive.
        """
        return self._core.add_nodes(as_int64("supply", supply))

    def add_arcs(
        self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike
    ) -> Int64Array:
        """Add k arcs between live nodes. Arguments and errors as in `FlowNetwork.add_arcs`.

        Returns:
            Their ids, int64[k], in order; not always consecutive.
        """
        tails = as_int64("tail", tail)
        return self._core.add_arcs(
            tails,
            broadcast("head", head, tails.size),
            broadcast("capacity", capacity, tails.size),
            broadcast("cost", cost, tails.size),
        )

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Remove nodes, with all arcs at them and their flow.

        Costs O(degree) per node, and per call a pass over the arcs of the tasks that were added
        since the last OPTIMAL resolve or are unassigned. So one call for many nodes is cheaper.
        """
        self._core.remove_nodes(self._node_ids(nodes))

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Remove arcs and their flow."""
        self._core.remove_arcs(self._arc_ids(arcs))

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacities of arcs: >= 0, `UNBOUNDED` for no limit; int64[k] or one for all. Flow
        above a capacity is taken off.
        """
        ids = self._arc_ids(arcs)
        self._core.set_capacity(ids, broadcast("capacity", capacity, ids.size))

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Set the costs of arcs per unit of flow: int64[k] or one for all."""
        ids = self._arc_ids(arcs)
        self._core.set_cost(ids, broadcast("cost", cost, ids.size))

    def set_arcs(self, arcs: ArrayLike, capacity: ArrayLike, cost: ArrayLike) -> None:
        """Set the capacities and costs of arcs: `set_capacity` and `set_cost` in one call."""
        ids = self._arc_ids(arcs)
        self._core.set_arcs(
            ids, broadcast("capacity", capacity, ids.size), broadcast("cost", cost, ids.size)
        )

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Set the supplies of nodes: int64[k] or one for all. O(1) each; for the largest sink it
        causes no search.
        """
        ids = self._node_ids(nodes)
        self._core.set_supply(ids, broadcast("supply", supply, ids.size))

    def resolve(
        self, *, max_operations: int | None = None, max_seconds: float | None = None
    ) -> native.Status:
        """Re-optimise after the changes since the last call.

        After any status but OPTIMAL the solver stays usable: the changes remain, `cost` and `flow`
        are still those of the last OPTIMAL resolve, and further changes can make the network
        solvable again. With a budget the status may be BUDGET: `flow_reached` returns the flow so
        far, and the next resolve continues from there. Ctrl-C in the main thread ends the call with
        KeyboardInterrupt, as `cancel` would.

        Repeated resolves reach an end, however small their budgets. After eight BUDGETs in a row,
        each further resolve continues at least until it has found one path or cycle to send flow
        along. Cost scaling, races, and the default algorithm once it has fallen back on another
        one may lose at a budget all that they had begun: shortest paths then complete the solve
        from the state reached, and the algorithm itself is used again after the next OPTIMAL.
        `winner` then names shortest paths. Rounds `from_scratch` keep nothing, so they need a
        budget that suffices.

        Args:
            max_operations: budget of counted operations, deterministic; None: unlimited.
            max_seconds: budget of time; None: unlimited.

        Returns:
            The status.
        """
        return self._core.resolve(*as_budget(max_operations, max_seconds))

    def cancel(self) -> None:
        """Cancel the running resolve, or the next one if none is running. Any thread may call this.

        The resolve ends with CANCELLED, unless it is about to end; then it ends as it would have.
        No other resolve is cancelled. The next resolve starts at least from the state of the last
        one that ended OPTIMAL or BUDGET. What the cancelled one has done itself is kept by the
        default algorithm once its state is built; in the first resolve it is lost.
        """
        self._core.cancel()

    @property
    def winner(self) -> str | None:
        """The algorithm that gave the last answer, optimal or infeasible; None before the first."""
        return self._core.winner or None

    @property
    def stop_seconds(self) -> float:
        """Seconds from the end of the last race's winner until all others had stopped, or 0.0."""
        return self._core.stop_seconds

    @property
    def racer_operations(self) -> dict[str, int]:
        """The operations of each algorithm in the last resolve, as in `Solution`."""
        return dict(self._core.racer_operations())

    @property
    def cost(self) -> int:
        """The exact total cost of the last OPTIMAL resolve."""
        return self._core.cost

    @property
    def stats(self) -> native.Stats:
        """The counted work of the last resolve."""
        return self._core.stats

    def flow(self, arcs: ArrayLike | None = None) -> Int64Array:
        """The flow of the last OPTIMAL resolve on these arcs, int64[k], a copy; None: on all ids so
        far. Arcs that were removed, or added since then, have flow 0.
        """
        return self._core.flow() if arcs is None else self._core.flow_of(self._arc_ids(arcs))

    def flow_reached(self) -> Int64Array:
        """The flow that the last resolve reached: int64[m] by arc id, a copy.

        It is the optimum, or after BUDGET or CANCELLED the flow so far, which is within capacities
        but need not balance.
        """
        return self._core.flow_reached()

    def routed(self, nodes: ArrayLike) -> tuple[Int64Array, Int64Array]:
        """Which units of these sources `flow_reached` takes to a sink, and how.

        For rounds that ended with BUDGET. Where a unit is routed, its path is within the
        capacities, together with the paths of all others that are; where it is not, its source
        keeps what it had. Nothing is said about costs: a stopped flow is not optimal. Relaxation
        and shortest paths route one unit after another, and cost scaling moves all at once
        (Firmament, OSDI 2016, Table 2 and Fig. 10).

        Args:
            nodes: ids of sources, int64[k]; one of supply s may be named s times.

        Returns:
            (first, last): int64[k] each, the arc by which the unit leaves its source and the arc by
                which it reaches a sink; -1 where it does not reach one. Units that meet on the way
                are interchangeable; those named earlier are routed first. Reads the network once.
        """
        return self._core.routed(self._node_ids(nodes))

    def changed_flow(self) -> tuple[Int64Array, Int64Array]:
        """The arcs whose flow differs between the last two OPTIMAL resolves.

        New arcs count as having had flow 0 before. Removed arcs are not listed. If the last resolve
        did not end OPTIMAL, both arrays are empty; the next OPTIMAL one then covers everything
        since the one before.

        Returns:
            (arcs, flow): live arc ids, ascending, and their flow now, int64[k] each.
        """
        return self._core.changed_flow()

    def potential(self) -> Int64Array:
        """The prices by node id (0 for removed ones): int64[n], a copy.

        They are optimal duals directly after an OPTIMAL resolve.
        """
        return self._core.potential()

    @property
    def cut(self) -> Int64Array:
        """The proof of infeasibility, if the last resolve ended INFEASIBLE; else empty.

        int64[k] of node ids, ascending: the nodes whose supply cannot leave. Their supplies sum to
        more than the capacities of the arcs from them to other nodes.
        """
        return self._core.cut()

    def certify_cut(self) -> native.CutCertificate:
        """Check that `cut` proves the network infeasible as it is now. O(n + m).

        Raises:
            RuntimeError: if the last resolve did not end INFEASIBLE.
        """
        return self._core.certify_cut()

    def certify(self) -> native.Certificate:
        """Check feasibility, complementary slackness, and primal == dual == `cost`. O(n + m).

        Raises:
            RuntimeError: if the network was changed since the last resolve, or that did not end
                OPTIMAL.
        """
        return self._core.certify(False)

    def certify_touched(self) -> native.Certificate:
        """As `certify`: balance and slackness at all nodes that the last resolve touched."""
        return self._core.certify(True)

    def certify_changes(self, others: int = 0) -> native.Certificate:
        """As `certify`, but from what has changed since the last OPTIMAL resolve, if this method
        proved that one, too; else by `certify`.

        It says as much as `certify` does, except that sums of costs are compared only by `certify`.
        The prices that were proved last are kept for it. `others`: looks at so many more nodes,
        others in each call, so that what it relies on is seen again.
        """
        return self._core.certify_changes(others)

    def snapshot(self) -> tuple[FlowNetwork, Int64Array, Int64Array]:
        """Copy the live network, numbered densely.

        Returns:
            (network, nodes, arcs): the network, and the ids that its nodes and arcs have here,
                int64.
        """
        network, nodes, arcs = self._core.snapshot()
        return FlowNetwork(network), nodes, arcs

    @property
    def num_nodes(self) -> int:
        """The number of live nodes."""
        return self._core.num_nodes

    @property
    def num_arcs(self) -> int:
        """The number of live arcs."""
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
