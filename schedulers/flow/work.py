"""The counted work of a round: what its decision time is made of under the Counted clock.

Steps differ too much in what they take to be summed as they are (looking at a half-edge takes
nanoseconds, bringing an arc in a tenth of a microsecond, an array call on nothing microseconds), so
each kind has a weight in picoseconds. The weights were fitted to the processor time of 658 rounds
of 20
cells: from 100 to 12,477 machines, half empty to oversubscribed, rounds of everything at once, of 2
to 2,000 changes, of time passing, of lost machines. tests/benchmarks/calibrate_flow_work.py has the
rounds, makes the fit again and prints what it leaves.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

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
    far: int
    tried: int

    @property
    def operations(self) -> int:
        """The weighted sum: an operation is what takes 100 ns on the machine of the calibration."""
        counts: tuple[int, ...] = astuple(self)
        weighted: int = sum(a * b for a, b in zip(counts, _WEIGHTS, strict=True))
        return weighted // PS_PER_OPERATION


# Fitted on an x86-64 server core. Predicted over true time of the rounds: median 1.00, 10 % below
# 0.78, 10 % above 1.20, 0.8 % off by more than two. Worst are bursts in the demo's oversubscribed
# cell, whose solver scans long lists of preferred machines: 0.5. On runs that were no part of the
# fit: the demo's flow arm 1.11 (0.96 to 1.23), its mix 1.08 (0.82 to 1.22), the Google trace's
# first seconds 0.87 (0.73 to 1.08).
WEIGHTS_PS = RoundWork(
    rounds=240_000_000,
    joining=220_000_000,
    placing=140_000_000,
    machines=55_000,
    table_rows=30_000,
    waiting=220_000,
    added=110_000,
    removed=72_000,
    altered=36_000,
    scanned=1_400,
    settled=96_000,
    augmented=200_000,
    repaired=240_000,
    certified=7_800,
    far=15_000,
    tried=8_800,
)
_WEIGHTS = astuple(WEIGHTS_PS)


def orders_beyond_cache(size: int) -> int:
    """Binary orders of magnitude by which a graph of `size` nodes and arcs is too large for the
    cache."""
    return max(0, size.bit_length() - CACHED_BITS)
