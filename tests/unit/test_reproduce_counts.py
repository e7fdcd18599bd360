"""What Fig. 1 and section 5.1 of ParSync are computed from: counts of a workload, and conflicts by
half of the gap."""

import numpy as np
import pytest

from experiments.config.workload_config import WorkloadConfig
from experiments.papers.parsync.models import (
    SETTINGS,
    conflict_rate,
    delay_share,
    growth,
    short_share,
)
from experiments.papers.parsync.models import section51_runs as runs
from experiments.studies.model_runs import counts
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.synthetic import SyntheticOptions
from parsync.model.slot_settings import SyncMode


def test_counts_are_those_of_the_arrivals_one_by_one() -> None:
    options = SyntheticOptions(machines=40, phase_s=3.0, batch_tasks=7, start="steady")
    workload = WorkloadConfig.of("synthetic", options).make(3)
    found = counts(workload)
    tasks, jobs = [0] * 15, [0] * 15
    seen, short = set(), 0
    for batch, at_us in enumerate(workload.arrival_us.tolist()):
        first, last = workload.arrival_offsets[batch : batch + 2]
        for row in workload.arrival_rows[first:last].tolist():
            tasks[at_us // 1_000_000] += 1
            short += workload.duration_us[row] < 10_000_000
            job = int(workload.tasks.job[row])
            if job not in seen:
                jobs[at_us // 1_000_000] += 1
            seen.add(job)
    assert found["tasks"].tolist() == tasks
    assert found["jobs"].tolist() == jobs
    assert short_share(found) == short / sum(tasks)
    assert found["phase_end_s"].tolist() == [3.0, 6.0, 9.0, 12.0, 15.0]


def test_the_halves_of_the_gap_are_compared_after_the_warm_up() -> None:
    def column(*by_half: tuple[float, float]) -> np.ndarray:
        return np.array([[half] for half in by_half])

    arrays = {
        "end_s": np.array([10.0, 11.0, 12.0]),
        "slice_claims": column((9, 9), (10, 10), (10, 30)),
        "slice_conflicts": column((9, 9), (4, 6), (6, 18)),
        "slice_commits": column((0, 0), (6, 4), (4, 12)),
        "slice_conflict_delay_s": column((7, 7), (1.0, 2.0), (1.0, 6.0)),
    }
    assert conflict_rate(arrays, 0) == 0.5
    assert conflict_rate(arrays, 1) == 0.6
    assert growth(arrays) == pytest.approx(1.2)
    # 0.2 s a task in the first half, 0.5 s in the second
    assert delay_share(arrays, 0) == pytest.approx(2 / 7)
    assert delay_share(arrays, 1) == pytest.approx(5 / 7)


def test_nothing_is_known_of_a_gap_without_claims() -> None:
    empty = np.zeros((1, 1, 2))
    names = ("slice_claims", "slice_conflicts", "slice_commits", "slice_conflict_delay_s")
    arrays = {"end_s": np.array([20.0]), **dict.fromkeys(names, empty)}
    assert conflict_rate(arrays, 0) is None
    assert growth(arrays) is None
    assert delay_share(arrays, 1) is None


@pytest.mark.parametrize("scale", ReproduceScale)
def test_section_51_has_the_papers_extra_slots(scale: ReproduceScale) -> None:
    for run, setting in zip(runs(scale), SETTINGS, strict=True):
        assert run.settings.extra_slots / run.settings.slots == 0.075
        assert run.settings.sync is setting.sync
        assert run.settings.schedulers == 20
    assert {setting.sync for setting in SETTINGS} == {
        SyncMode.STATE_ALIGNED,
        SyncMode.STATE_STAGGERED,
    }
