"""General min-cost flow networks in the manner of NETGEN (Klingman, Napier, Stutz, Management
Science 20, 1974).

Nodes: sources, then nodes without supply, then sinks. A skeleton makes the network feasible: the
nodes without supply are dealt out to one chain per source, 60 % of them in turn and the others at
random; every chain sends its source's supply to sinks, by an arc from one of its nodes each, and
all skeleton arcs have room for that. The other arcs join random pairs of nodes, no pair twice.
Transshipment sources (the last ones) may have arcs in, transshipment sinks (the first ones) arcs
out; other sources and sinks may not.

Departure from NETGEN: which chain serves which sink, and how much, comes from laying supplies and
demands side by side on one line, in random order of the sinks, so that every source and sink has
its share of at least 1, and the skeleton at most nodes - 1 arcs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.graphs.draws import Draws
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, MAX_NODES, FlowNetwork

_DEALT_PERCENT = 60
_WIDTH_LIMIT = 2**31
_BYTES_PER_NODE, _BYTES_PER_ARC = 60, 160  # measured, the arrays in between included


@dataclass(frozen=True)
class NetgenOptions:
    """What to generate.

    Costs are uniform in min_cost .. max_cost, except max_cost on percent_max_cost of the skeleton
    arcs. percent_capacitated of the arcs have a capacity uniform in min_capacity .. max_capacity (a
    skeleton arc at least what its chain needs); the others have a capacity of all the supply.
    """

    nodes: int
    arcs: int
    sources: int
    sinks: int
    supply: int
    transshipment_sources: int = 0
    transshipment_sinks: int = 0
    min_cost: int = 1
    max_cost: int = 10_000
    percent_max_cost: int = 0
    percent_capacitated: int = 100
    min_capacity: int = 1
    max_capacity: int = 1_000

    def __post_init__(self) -> None:
        for name, low, high in (
            ("sources", 1, _WIDTH_LIMIT),
            ("sinks", 1, _WIDTH_LIMIT),
            ("nodes", self.sources + self.sinks, MAX_NODES),
            ("transshipment_sources", 0, self.sources),
            ("transshipment_sinks", 0, self.sinks),
            ("supply", max(self.sources, self.sinks), _WIDTH_LIMIT),
            ("arcs", self.nodes - 1, min(self._pairs(), MAX_ARCS)),
            ("percent_max_cost", 0, 100),
            ("percent_capacitated", 0, 100),
            ("max_cost", self.min_cost, self.min_cost + _WIDTH_LIMIT - 1),
            ("min_capacity", 0, _WIDTH_LIMIT),
            ("max_capacity", self.min_capacity, _WIDTH_LIMIT),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value}: must be {low} to {high}")

    @property
    def first_head(self) -> int:
        """The first node that may have arcs in."""
        return self.sources - self.transshipment_sources

    @property
    def last_tail(self) -> int:
        """The end of the nodes that may have arcs out."""
        return self.nodes - self.sinks + self.transshipment_sinks

    def _pairs(self) -> int:
        both = max(0, self.last_tail - self.first_head)
        return self.last_tail * (self.nodes - self.first_head) - both


@dataclass(frozen=True)
class _Skeleton:
    """Arcs, and the flow for which each must have capacity; int64[k]."""

    tail: Int64Array
    head: Int64Array
    need: Int64Array


def netgen_network(options: NetgenOptions, seed: int) -> FlowNetwork:
    """A feasible network of exactly options.arcs arcs."""
    need_memory(
        f"a network of {options.nodes:,} nodes and {options.arcs:,} arcs",
        options.nodes * _BYTES_PER_NODE + options.arcs * _BYTES_PER_ARC,
    )
    draws = Draws(seed)
    produced = _shares(draws, options.supply, options.sources)
    consumed = _shares(draws, options.supply, options.sinks)
    skeleton = _skeleton(draws, options, produced, consumed)
    built = skeleton.tail.size
    tail, head = _random_pairs(draws, options, skeleton)
    tail, head = np.concatenate([skeleton.tail, tail]), np.concatenate([skeleton.head, head])

    cost = options.min_cost + draws.below(options.max_cost - options.min_cost + 1, options.arcs)
    dear = draws.below(100, built) < options.percent_max_cost
    cost[:built][dear] = options.max_cost
    capacity = options.min_capacity + draws.below(
        options.max_capacity - options.min_capacity + 1, options.arcs
    )
    capacity[:built] = np.maximum(capacity[:built], skeleton.need)
    capacity[draws.below(100, options.arcs) >= options.percent_capacitated] = options.supply

    network = FlowNetwork()
    network.add_nodes(
        np.concatenate(
            [
                produced,
                np.zeros(options.nodes - options.sources - options.sinks, dtype=np.int64),
                -consumed,
            ]
        )
    )
    order = np.argsort(tail, kind="stable")
    network.add_arcs(tail[order], head[order], capacity[order], cost[order])
    return network


def _shares(draws: Draws, total: int, count: int) -> Int64Array:
    """Random shares, int64[count], each at least 1, of sum `total`."""
    equal = total // count
    kept = 1 + draws.below(equal, count)
    rest = equal - kept
    rest[-1] += total - equal * count
    np.add.at(kept, draws.below(count, count), rest)
    return kept


def _skeleton(
    draws: Draws, options: NetgenOptions, produced: Int64Array, consumed: Int64Array
) -> _Skeleton:
    sources, first_sink = options.sources, options.nodes - options.sinks
    between = first_sink - sources
    dealt = between * _DEALT_PERCENT // 100
    chain = np.concatenate(
        [np.arange(sources), np.arange(dealt) % sources, draws.below(sources, between - dealt)]
    )
    member = np.argsort(chain, kind="stable")  # sources have the least ids: each begins its chain
    length = np.bincount(chain, minlength=sources)
    begin = np.cumsum(length) - length
    follows = np.ones(first_sink, dtype=bool)
    follows[begin] = False
    at = np.flatnonzero(follows)

    sink_order = np.argsort(draws.bits(options.sinks), kind="stable")
    produced_to, consumed_to = np.cumsum(produced), np.cumsum(consumed[sink_order])
    cut = np.union1d(produced_to, consumed_to)
    serving, served = np.searchsorted(produced_to, cut), np.searchsorted(consumed_to, cut)
    through = member[begin[serving] + draws.below(length[serving], cut.size)]
    return _Skeleton(
        np.concatenate([member[at - 1], through]),
        np.concatenate([member[at], first_sink + sink_order[served]]),
        np.concatenate([produced[chain[member[at]]], np.diff(cut, prepend=0)]),
    )


def _random_pairs(
    draws: Draws, options: NetgenOptions, skeleton: _Skeleton
) -> tuple[Int64Array, Int64Array]:
    """The tail and head of the arcs beyond the skeleton, all distinct, also from the skeleton's."""
    tails, heads = options.last_tail, options.nodes - options.first_head
    taken = skeleton.tail * heads + skeleton.head - options.first_head
    wanted = options.arcs - taken.size
    chosen = np.zeros(0, dtype=np.int64)
    if 2 * options.arcs > tails * heads:  # dense: a choice among all there are
        pair = np.setdiff1d(np.arange(tails * heads), taken)
        pair = pair[pair // heads != pair % heads + options.first_head]
        chosen = pair[np.argsort(draws.bits(pair.size), kind="stable")[:wanted]]
    while chosen.size < wanted:
        count = 2 * (wanted - chosen.size)
        tail, head = draws.below(tails, count), draws.below(heads, count)
        pair = (tail * heads + head)[tail != head + options.first_head]
        pair = np.concatenate([chosen, pair[~np.isin(pair, taken)]])
        _, first = np.unique(pair, return_index=True)
        chosen = pair[np.sort(first)][:wanted]
    return chosen // heads, chosen % heads + options.first_head
