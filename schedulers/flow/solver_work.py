"""The counted work of the solver by algorithm: what its part of a decision takes under the Counted
clock. That of the default algorithm is part of RoundWork (scheduler.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter, mul
from types import MappingProxyType

from flowsolver import Stats

CACHED_BITS = 16  # graphs of fewer than 2^16 nodes and arcs stay in a processor's own cache


def orders_beyond_cache(size: int) -> int:
    """Binary orders of magnitude by which a graph of `size` nodes and arcs is too large for the
    cache."""
    return max(0, size.bit_length() - CACHED_BITS)


@dataclass(frozen=True, slots=True)
class SolverWork:
    """What a resolve did, in the counts of flowsolver's Stats. As weights: picoseconds of each.

    Attributes:
        resolves: 1.
        scanned, settled, augmented, repaired: Half-edges, nodes, paths; repairs after changes.
        pushed: Single arcs along which flow was sent.
        relabelled: Prices moved one at a time.
        ascended: Dual ascents.
        pivoted: Exchanges of tree arcs, cycles cancelled.
        read: Nodes and arcs of the network, as often as the solver read the whole of it.
        far: All steps, times the binary orders of magnitude by which the network is too large for
            the cache (orders_beyond_cache).
    """

    resolves: int
    scanned: int
    settled: int
    augmented: int
    repaired: int
    pushed: int
    relabelled: int
    ascended: int
    pivoted: int
    read: int
    far: int

    @classmethod
    def of(cls, stats: Stats, size: int, from_scratch: bool) -> SolverWork:
        """The counts of a resolve of a network of so many nodes and arcs."""
        steps = stats.scanned + stats.settled + stats.repaired + stats.pushes + stats.relabels
        return cls(
            resolves=1,
            scanned=stats.scanned,
            settled=stats.settled,
            augmented=stats.augmentations,
            repaired=stats.repaired,
            pushed=stats.pushes,
            relabelled=stats.relabels,
            ascended=stats.ascents,
            pivoted=stats.pivots,
            read=max(stats.rebuilds, int(from_scratch)) * size,
            far=steps * orders_beyond_cache(size),
        )

    def duration_ps(self, algorithm: str) -> int:
        """What it takes an algorithm that is not the default, on the machine of the calibration."""
        weighted: int = sum(map(mul, _counts(self), _counts(WEIGHTS_PS[algorithm])))
        return weighted


_counts = attrgetter(*(field.name for field in fields(SolverWork)))
WEIGHTS_PS: Mapping[str, SolverWork] = MappingProxyType(
    {
        name: SolverWork(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        for name in (
            "relaxation",
            "cost_scaling",
            "network_simplex",
            "successive_shortest_path",
            "cycle_cancelling",
        )
    }
)
DEFAULT_ALGORITHM = "incremental_ssp"
# Of a race: starting and joining threads, and what memory that two threads share costs the winner.
RACE_PS = 40_000_000
BESIDE_PERMILLE = 1000
