"""How often tasks of each preference set arrive on average, as the options of generated workloads
say."""

from __future__ import annotations

import numpy as np

from experiments.workloads.draws import zipf_table
from experiments.workloads.registry import ExpectedRates
from experiments.workloads.synthetic_options import SyntheticOptions


def expected_rates(options: SyntheticOptions) -> ExpectedRates | None:
    """The rates of a generated workload. None where they are not constant in a phase: with
    services, which never end, and with a popularity that drifts."""
    if options.service_permille or options.preference_drift_s:
        return None
    groups = options.preference_groups
    share = np.ones(1)
    if groups:
        weight = np.diff(zipf_table(groups, options.preference_zipf), prepend=0).astype(np.float64)
        without = options.no_preference_permille / 1000
        share = np.concatenate([[without], (1 - without) * weight / weight.sum()])
    load = np.array(options.load_percent, np.float64) / 100
    return ExpectedRates(
        per_s=np.outer(load * options.tasks_per_s, share), mean_us=options.mean_duration_s * 1e6
    )
