"""Whatever the options, a generated workload keeps its contract, and is the same when generated
again."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.workload.checks import validate
from tests.fixtures.examples import examples

options = st.builds(
    SyntheticOptions,
    machines=st.integers(1, 300),
    slots_per_machine=st.integers(1, 5),
    machines_per_rack=st.integers(1, 50),
    slot_score_variance=st.sampled_from([0.0, 0.5, 8.0]),
    mean_duration_s=st.floats(0.01, 3.0),
    duration_sigma=st.sampled_from([0.0, 1.18, 3.0]),
    batch_tasks=st.integers(1, 40),
    job_batches_max=st.integers(1, 30),
    job_size_alpha=st.floats(0.1, 5.0),
    phase_s=st.floats(0.01, 1.0),
    load_percent=st.lists(st.integers(0, 150), min_size=1, max_size=4).filter(any).map(tuple),
    arrival_jitter_percent=st.integers(0, 100),
    poisson_arrivals=st.booleans(),
    service_permille=st.sampled_from([0, 300, 1000]),
    preference_groups=st.integers(0, 6),
    preference_zipf=st.floats(0, 4),
    preferred_fraction=st.floats(0.001, 1),
    no_preference_permille=st.sampled_from([0, 500, 1000]),
    rack_cost=st.sampled_from([None, 0, 400]),
)


@examples(60)
@given(options, st.integers(0, 2**64))
def test_a_generated_workload_is_valid_and_repeats(chosen: SyntheticOptions, seed: int) -> None:
    try:
        workload = generate(chosen, seed)
    except ValueError as error:
        assume("no batch arrives" not in str(error))
        raise
    validate(workload)
    again = generate(chosen, seed)
    assert np.array_equal(workload.duration_us, again.duration_us) and np.array_equal(
        workload.arrival_us, again.arrival_us
    )
    assert np.array_equal(workload.tasks.preference, again.tasks.preference)
    assert np.array_equal(workload.catalog.machine, again.catalog.machine)
