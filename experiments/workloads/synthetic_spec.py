"""The kind of generated workloads, for the registry."""

from __future__ import annotations

from experiments.workloads.expected_rates import expected_rates
from experiments.workloads.registry import WorkloadSpec
from experiments.workloads.steady_state import warm_up
from experiments.workloads.synthetic import generate
from experiments.workloads.synthetic_options import SyntheticOptions
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


def _load(options: SyntheticOptions, seed: int) -> Workload:
    try:
        return generate(options, seed)
    except ValueError as error:
        raise AgoraError(f"workload: {error}") from error


def _seeds_vary(options: SyntheticOptions) -> str:
    return (
        "A seed draws the whole workload: machines' scores, preferences, run times, and arrivals "
        "as far as the options leave them open. Intervals are about workloads with these options."
    )


SPEC = WorkloadSpec(
    "synthetic",
    SyntheticOptions,
    _load,
    outline=SyntheticOptions.outline,
    with_duration=SyntheticOptions.phase_length,
    with_machines=SyntheticOptions.cell_size,
    warm_up=warm_up,
    expected_rates=expected_rates,
    seeds_vary=_seeds_vary,
)
