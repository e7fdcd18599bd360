"""The kind of generated workloads, for the registry."""

from __future__ import annotations

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


SPEC = WorkloadSpec(
    "synthetic",
    SyntheticOptions,
    _load,
    outline=SyntheticOptions.outline,
    with_duration=SyntheticOptions.phase_length,
    warm_up=warm_up,
)
