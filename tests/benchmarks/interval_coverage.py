"""Many seeds of small cells: the data by which intervals over seeds are judged.

A cell of 400 slots, 3 s of virtual time at 70 or 95 % load, one or four schedulers. Under each seed
two arms meet the same workload, after the same warm-up. Kept are the mean and the 99th percentile
of each arm's delay.

    python -m tests.benchmarks.interval_coverage collect --seeds 2000

Run again, it goes on where it stopped. A run takes about 0.04 s of a core.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
from collections.abc import Sequence
from pathlib import Path

from experiments.arm_config import ArmConfig, GroupConfig
from experiments.config import RunConfig
from experiments.presets import Scale, greedy_group
from experiments.running import make_metrics, make_workload
from experiments.warm_up import state_after
from experiments.workload_config import WorkloadConfig
from experiments.workloads.synthetic_options import SyntheticOptions
from parsync.metrics.delay import DelayMetric
from parsync.runtime.virtual.run import run_virtual
from parsync.workload.start import starting_from
from parsync.workload.workload import Workload

DATA = Path(__file__).parent / "data" / "interval_seeds.csv"
COLUMNS = (
    "schedulers",
    "load_percent",
    "seed",
    "arm_mean_us",
    "arm_p99_us",
    "baseline_mean_us",
    "baseline_p99_us",
)
SCHEDULERS, LOADS_PERCENT = (1, 4), (70, 95)
PARTITIONS = 4
SAMPLE_US = 500_000
DRAIN_US = 60_000_000


def configuration(schedulers: int, load_percent: int) -> RunConfig:
    """The arm and its baseline on a small cell at one load."""
    cell = SyntheticOptions(
        machines=40,
        batch_tasks=20,
        mean_duration_s=1.0,
        phase_s=3.0,
        load_percent=(load_percent,),
    )
    scale = Scale(cell, schedulers, PARTITIONS, gap_s=0.1, tau_s=0.4, drain_s=60.0, settle_s=0.0)
    groups = _one(scale) if schedulers == 1 else _sharing(scale)
    return RunConfig(
        workload=WorkloadConfig.of("synthetic", cell),
        arms=tuple(
            ArmConfig(name=name, partitions=PARTITIONS, groups=(group,))
            for name, group in zip(("arm", "baseline"), groups, strict=True)
        ),
        settle_s=0.0,
        drain_s=60.0,
        heartbeat_us=10_000,
    )


def _one(scale: Scale) -> tuple[GroupConfig, GroupConfig]:
    """Preferred first, and greedy with load spreading."""
    first, spreading = (
        greedy_group(scale, "optimistic", 1, "state_aligned", kind=kind)
        for kind in ("preferred_first", "load_spreading")
    )
    return first, spreading


def _sharing(scale: Scale) -> tuple[GroupConfig, GroupConfig]:
    """ParSync quality-first, and StateSync aligned quality-first."""
    parsync, aligned = (
        greedy_group(scale, "quality_first", scale.schedulers, sync)
        for sync in ("diff_block", "state_aligned")
    )
    return parsync, aligned


def delays_of_seed(config: RunConfig, seed: int) -> list[float]:
    """The mean and the 99th percentile of the arm's delay, then of the baseline's, in us."""
    workload, warm_up = make_workload(config, seed), config.workload.make_warm_up(seed)
    assert warm_up is not None, "the cell begins steady"
    message_us, limit_s = config.virtual.message_us, config.plan_limit_s
    specs = [arm.spec(seed, config.heartbeat_us, SAMPLE_US, live=False) for arm in config.arms]
    state = state_after(specs[-1], warm_up, lambda _: None, message_us, limit_s)
    begins = starting_from(workload, state)
    found: list[float] = []
    for arm in config.arms:
        found += _delays(config, arm, begins, seed)
    return found


def _delays(config: RunConfig, arm: ArmConfig, workload: Workload, seed: int) -> list[float]:
    metrics = make_metrics(config, arm, workload)
    outcome = run_virtual(
        arm.spec(seed, config.heartbeat_us, SAMPLE_US, live=False),
        workload,
        DRAIN_US,
        lambda record: metrics.add(record.table, record.columns),
        lambda _: None,
        config.virtual.message_us,
        plan_limit_s=config.plan_limit_s,
    )
    assert outcome.drained, f"seed {seed}: a delay would be a lower bound"
    metrics.flush()
    agents = range(arm.groups[0].count)
    delay = metrics.get(DelayMetric)
    figures = delay.figures(metrics.scope(agents, None, metrics.kept()))
    assert figures.delay_mean_us is not None and figures.delay_p99_us is not None
    return [figures.delay_mean_us, figures.delay_p99_us]


def collect(path: Path, seeds: Sequence[int], command: str) -> None:
    """Append the seeds that a file lacks, seed by seed and condition by condition.

    Args:
        path: The file; its first line says how it was made.
        seeds: Those that it shall have.
        command: How it is made, for a new file.
    """
    if not path.exists():
        path.write_text(f"# {command}\n{','.join(COLUMNS)}\n", "utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        file.readline()
        done = {
            (int(row["schedulers"]), int(row["load_percent"]), int(row["seed"]))
            for row in csv.DictReader(file)
        }
    configurations = {
        (schedulers, load): configuration(schedulers, load)
        for schedulers in SCHEDULERS
        for load in LOADS_PERCENT
    }
    with path.open("a", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        for seed in seeds:
            for condition, config in configurations.items():
                if (*condition, seed) not in done:
                    delays = delays_of_seed(config, seed)
                    rows.writerow((*condition, seed, *(f"{one:.1f}" for one in delays)))
            file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(required=True)
    more = parts.add_parser("collect", help="run the seeds that the data lack")
    more.add_argument("--seeds", type=int, default=2000)
    more.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    head = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    )
    command = f"python -m tests.benchmarks.interval_coverage collect --seeds {given.seeds}"
    collect(given.data, range(1, 1 + given.seeds), f"{command}, commit {head.stdout.strip()}")


if __name__ == "__main__":
    main()
