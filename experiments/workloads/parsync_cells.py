"""ParSync's cell (section 6) and the demo's, which has its ratios at a tenth of its size."""

from __future__ import annotations

from experiments.workloads.synthetic_options import SyntheticOptions


def demo_options(quick: bool = False) -> SyntheticOptions:
    """A tenth of ParSync's cell at its ratios: 2,000 machines x 10 slots in racks of 40, tasks of
    mean 2 s; phases of 6 s.

    Args:
        quick: Half of that cell and tasks of half the length, so as many tasks per second; a phase
            can be two task lengths then, of which one settles, in 2 s.
    """
    if not quick:
        return SyntheticOptions()
    return SyntheticOptions(
        machines=1_000, mean_duration_s=1.0, load_percent=(50, 95, 50), phase_s=2.0
    )


def paper_options() -> SyntheticOptions:
    """ParSync's cell (section 6): 200,000 machines of one slot, tasks of mean 5 s, 40,000 tasks/s
    at 100 %, phases of 60 s.

    104 groups that together prefer every machine once are calibrated on Table 1: in the five phases
    of 60 s, tau = 1 s, latency-first gets 33 % of tasks onto preferred machines, adaptive 72 % and
    quality-first 76 %. The paper's mean execution times imply 33, 64 and 74 % over all its alphas.
    The cell is empty when a run begins, as in the paper.
    """
    return SyntheticOptions(
        machines=200_000,
        slots_per_machine=1,
        mean_duration_s=5.0,
        phase_s=60.0,
        preference_groups=104,
        preferred_fraction=1 / 104,
        start="cold",
    )
