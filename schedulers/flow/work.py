"""The counted work of a round: what its decision time is made of under the Counted clock.

Steps differ too much in what they take to be summed as they are (looking at a half-edge takes
nanoseconds, bringing an arc in a tenth of a microsecond, an array call on nothing microseconds), so
each kind has a weight in picoseconds. The weights were fitted to the processor time of 658 rounds
of 20 cells: from 100 to 12,477 machines, half empty to oversubscribed, rounds of everything at
once, of 2 to 2,000 changes, of time passing, of lost machines.
tests/benchmarks/calibrate_flow_work.py has the rounds, makes the fit again and prints what it
leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, mul

from schedulers.decision_time import PS_PER_OPERATION

CACHED_BITS = 16  # graphs of fewer than 2^16 nodes and arcs stay in a processor's own cache


@dataclass(frozen=True, slots=True)
class RoundWork:
    """Counts of one round.

    Attributes:
        rounds: 1.
        joining, placing: 1 if some task joined the graph, or was placed.
        machines: Times resources, which the statistics pass looks at.
        table_rows: Of the task table.
        waiting: Tasks in the graph that are not running.
        added, removed: Nodes and arcs.
        altered: Capacities and costs set.
        scanned, settled, augmented, repaired: The solver's (flowsolver Stats).
        certified: Arcs whose optimality was checked.
        rebuilt: Nodes and arcs, if the solver rebuilt its residual graph.
        far: All nodes and arcs touched, times the binary orders of magnitude by which the graph
            exceeds 2^CACHED_BITS.
        tried: Tasks that were placed one at a time, or not, times machines.
    """

    rounds: int
    joining: int
    placing: int
    machines: int
    table_rows: int
    waiting: int
    added: int
    removed: int
    altered: int
    scanned: int
    settled: int
    augmented: int
    repaired: int
    certified: int
    rebuilt: int
    far: int
    tried: int

    @property
    def operations(self) -> int:
        """The weighted sum: an operation is what takes 100 ns on the machine of the calibration."""
        weighted: int = sum(map(mul, _counts(self), _WEIGHTS))
        return weighted // PS_PER_OPERATION


# Fitted on an x86-64 server core. Predicted over true time of the rounds: median 1.05, 10 % below
# 0.69, 10 % above 1.30, 3 % off by more than two; of the demo's cells median 1.1, 10 % below 0.7,
# 10 % above 1.4. Worst are rounds in which the solver solves an oversubscribed cell anew, after
# many changes at once: 0.25. The fit gives an augmentation nothing, as what it takes is in what
# comes with it; 50 ns are kept. On a run that was no part of the fit, the demo's flow arm: 0.85
# (0.75 to 0.92), with the platform's own work in the true time.
WEIGHTS_PS = RoundWork(
    rounds=290_000_000,
    joining=160_000_000,
    placing=100_000_000,
    machines=18_000,
    table_rows=15_000,
    waiting=160_000,
    added=140_000,
    removed=24_000,
    altered=62_000,
    scanned=850,
    settled=120_000,
    augmented=50_000,
    repaired=255_000,
    certified=25_000,
    rebuilt=39_000,
    far=14_000,
    tried=6_000,
)
# dataclasses.astuple copies each value: it took a tenth of a round.
_counts = attrgetter(*(field.name for field in fields(RoundWork)))
_WEIGHTS: tuple[int, ...] = _counts(WEIGHTS_PS)


def orders_beyond_cache(size: int) -> int:
    """Binary orders of magnitude by which a graph of `size` nodes and arcs is too large for the
    cache."""
    return max(0, size.bit_length() - CACHED_BITS)
