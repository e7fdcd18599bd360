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
        read_far: The same, times the orders of magnitude below: the first touch of the pages of a
            large graph.
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
    read_far: int
    far: int

    @classmethod
    def of(cls, stats: Stats, size: int, reads_all: bool) -> SolverWork:
        """The counts of a resolve of a network of so many nodes and arcs, which began with reading
        all of it, or not."""
        steps = stats.scanned + stats.settled + stats.repaired + stats.pushes + stats.relabels
        read = max(stats.rebuilds, int(reads_all)) * size
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
            read=read,
            read_far=read * orders_beyond_cache(size),
            far=steps * orders_beyond_cache(size),
        )

    def duration_ps(self, algorithm: str) -> int:
        """What it takes an algorithm that is not the default, on the machine of the calibration."""
        weighted: int = sum(map(mul, _counts(self), _counts(WEIGHTS_PS[algorithm])))
        return weighted


_counts = attrgetter(*(field.name for field in fields(SolverWork)))
# Fitted on an x86-64 server core to the processor time of resolves
# (tests/benchmarks/calibrate_solver_work.py), with and without from_scratch: cost scaling and
# relaxation in 12 cells of up to 2,000 machines, network simplex and shortest paths of up to 500,
# cycle cancelling of 100. Predicted over true time (10 % below, median, 10 % above, and how many
# are off by more than two): cost scaling 0.64, 1.02, 1.39, 5 %; relaxation 0.60, 1.00, 1.34, 8 %;
# network simplex 0.66, 1.02, 1.30, 3 %; shortest paths 0.70, 0.95, 1.33, 1 %; cycle cancelling
# 0.82, 1.01, 1.17, none. Worst are incremental rounds of relaxation under preemption: median 0.46.
# A step of weight 0 comes with others, which have its time. What relaxation takes to read a large
# network was measured in the replay of the Google trace (2.4 million nodes and arcs: 150 to 180 ms
# for a solve from scratch); there the other columns give 0.45 of it, and cost scaling's 1.25.
WEIGHTS_PS: Mapping[str, SolverWork] = MappingProxyType(
    {
        "cost_scaling": SolverWork(
            resolves=11_500_000,
            scanned=3_000,
            settled=0,
            augmented=58_000,
            repaired=24_000,
            pushed=0,
            relabelled=0,
            ascended=0,
            pivoted=0,
            read=12_200,
            read_far=0,
            far=1_030,
        ),
        "relaxation": SolverWork(
            resolves=10_600_000,
            scanned=10_100,
            settled=14_200,
            augmented=0,
            repaired=248_000,
            pushed=3_450,
            relabelled=0,
            ascended=0,
            pivoted=0,
            read=6_360,
            read_far=3_100,
            far=590,
        ),
        "network_simplex": SolverWork(
            resolves=10_300_000,
            scanned=1_730,
            settled=0,
            augmented=0,
            repaired=77_600,
            pushed=69_500,
            relabelled=0,
            ascended=0,
            pivoted=142_000,
            read=18_700,
            read_far=0,
            far=0,
        ),
        "successive_shortest_path": SolverWork(
            resolves=21_000_000,
            scanned=2_270,
            settled=23_300,
            augmented=0,
            repaired=0,
            pushed=9_700,
            relabelled=0,
            ascended=0,
            pivoted=0,
            read=11_600,
            read_far=0,
            far=0,
        ),
        "cycle_cancelling": SolverWork(
            resolves=5_700_000,
            scanned=3_110,
            settled=0,
            augmented=0,
            repaired=0,
            pushed=94_800,
            relabelled=5_480,
            ascended=0,
            pivoted=0,
            read=41_900,
            read_far=0,
            far=0,
        ),
    }
)
DEFAULT_ALGORITHM = "incremental_ssp"
# Of a race: starting and joining threads; what the winner takes, beside threads that share caches
# and memory with it, over what it takes alone. Counted over true time of races of relaxation from
# scratch and cost scaling in 9 cells (10 % below, median, 10 % above): rounds that relaxation wins
# 0.70, 1.04, 1.67, those that cost scaling wins 0.40, 0.63, 1.02.
RACE_PS = 60_000_000
BESIDE_PERMILLE = 1_500
