"""How often intervals over seeds cover what they estimate (docs/intervals.md).

Many seeds of small cells are run once and kept: a cell of 400 slots, 3 s of virtual time at 70 or
95 % load, one or four schedulers. Under each seed two arms meet the same workload, after the same
warm-up. Kept are the mean and the 99th percentile of each arm's delay.

    python -m tests.benchmarks.interval_coverage collect --seeds 2000
    python -m tests.benchmarks.interval_coverage table      # of the kept data, for the page

`collect` goes on where it stopped. A run takes about 0.04 s of a core.

What is true is what all kept seeds say together. They are shuffled and cut into groups of five and
of ten, each seed in one group; then shuffled again. The limits of a coverage are those of Clopper
and Pearson at 95 %, over all groups. With a single cut of 2,000 seeds, 400 groups of five, even an
interval that covers exactly 93.75 % has a lower limit of about 91 %: too little to choose by.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.analysis.statistics import median_interval
from experiments.campaign.running import make_metrics, make_workload
from experiments.config.presets import Scale, greedy_group
from experiments.config.run_config import RunConfig
from experiments.config.warm_up import state_after
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.synthetic import SyntheticOptions
from parsync.metrics.kinds.delay import DelayMetric
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.workload.workload import Workload, starting_from

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
GROUPS_OF = (5, 10)
SHUFFLES = 100
LEAST = 0.93  # the lower limit of a coverage, in every row
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
    specs = [arm.seeded(seed, config.heartbeat_us, SAMPLE_US, live=False) for arm in config.arms]
    state = state_after(specs[-1], warm_up, lambda _: None, message_us, limit_s)
    begins = starting_from(workload, state)
    found: list[float] = []
    for arm in config.arms:
        found += _delays(config, arm, begins, seed)
    return found


def _delays(config: RunConfig, arm: ArmConfig, workload: Workload, seed: int) -> list[float]:
    metrics = make_metrics(config, arm, workload)
    outcome = run_virtual(
        arm.seeded(seed, config.heartbeat_us, SAMPLE_US, live=False),
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


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to make an interval.

    Attributes:
        label: Its name.
        estimand: What it estimates.
        truth: That of all seeds.
        limits: Of groups of seeds, float64[groups, seeds]: low and high, float64[groups] each.
    """

    label: str
    estimand: str
    truth: Callable[[Floats], float]
    limits: Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a method covers in a row.

    Attributes:
        share: Of the groups.
        low, high: The limits of that share.
    """

    share: float
    low: float
    high: float


def _students_t(values: Floats) -> tuple[Floats, Floats]:
    n = values.shape[1]
    half = stats.t.ppf(0.975, n - 1) * values.std(axis=1, ddof=1) / np.sqrt(n)
    middle = values.mean(axis=1)
    return middle - half, middle + half


def _order_statistics(values: Floats) -> tuple[Floats, Floats]:
    """The limits of experiments.analysis.statistics, for many groups at once."""
    n = values.shape[1]
    place = median_interval([float(value) for value in range(n)]).low
    assert place is not None
    ordered = np.sort(values, axis=1)
    return ordered[:, int(place)], ordered[:, n - 1 - int(place)]


def _mean_of_logs(values: Floats) -> float:
    return float(np.log(values).mean())


METHODS = (
    Method("t", "mean", lambda values: float(values.mean()), _students_t),
    Method(
        "t of logarithms",
        "geometric mean",
        _mean_of_logs,
        lambda values: _students_t(np.log(values)),
    ),
    Method(
        "order statistics", "median", lambda values: float(np.median(values)), _order_statistics
    ),
)


def read(path: Path) -> tuple[str, dict[str, Floats]]:
    """How the data were made, and their columns."""
    with path.open(encoding="utf-8", newline="") as file:
        made = file.readline().removeprefix("#").strip()
        rows = list(csv.DictReader(file))
    return made, {name: np.array([float(row[name]) for row in rows]) for name in COLUMNS}


def rows_of(data: dict[str, Floats]) -> Iterator[tuple[str, Floats, Floats]]:
    """Each row of the table: its label, the figure under each seed, and the same for Student's t,
    which takes a difference where the others take a ratio."""
    for schedulers in SCHEDULERS:
        for load in LOADS_PERCENT:
            here = (data["schedulers"] == schedulers) & (data["load_percent"] == load)
            for figure in ("mean", "p99"):
                arm, baseline = (data[f"{of}_{figure}_us"][here] for of in ("arm", "baseline"))
                where = f"{schedulers} | {load} % | {figure}"
                yield f"{where} | an arm", arm, arm
                yield f"{where} | its baseline", baseline, baseline
                yield f"{where} | paired", arm / baseline, arm - baseline


def coverage(method: Method, values: Floats, of: int) -> Coverage:
    """How often intervals of groups of so many seeds cover what all seeds say."""
    truth, generator = method.truth(values), np.random.default_rng(1)
    covered = groups = 0
    for _ in range(SHUFFLES):
        whole = len(values) // of * of
        low, high = method.limits(generator.permutation(values)[:whole].reshape(-1, of))
        covered += int(((low <= truth) & (truth <= high)).sum())
        groups += len(low)
    limits = stats.binomtest(covered, groups).proportion_ci(0.95, method="exact")
    return Coverage(covered / groups, float(limits.low), float(limits.high))


def tables(data: dict[str, Floats]) -> str:
    """Both tables of the page, as Markdown: the least coverage of each method, then every row."""
    found: dict[tuple[str, int], list[Coverage]] = {}
    lines = []
    for label, values, for_t in rows_of(data):
        cells = []
        for method in METHODS:
            for of in GROUPS_OF:
                one = coverage(method, for_t if method.label == "t" else values, of)
                found.setdefault((method.label, of), []).append(one)
                cells.append(f"{100 * one.share:.1f} ({100 * one.low:.1f})")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    least = [
        f"| {method.label} | {method.estimand} | "
        + " | ".join(_least(found[method.label, of]) for of in GROUPS_OF)
        + " |"
        for method in METHODS
    ]
    columns = [f"{method.label}, {of}" for method in METHODS for of in GROUPS_OF]
    return "\n".join(
        [
            "| method | estimand | least coverage, 5 seeds | least coverage, 10 seeds |",
            "|---|---|---:|---:|",
            *least,
            "",
            f"| schedulers | load | delay | of | {' | '.join(columns)} |",
            "|---:|---:|---|---|" + "---:|" * len(columns),
            *lines,
        ]
    )


def _least(found: Sequence[Coverage]) -> str:
    """The least lower limit, and whether it is enough."""
    low = min(one.low for one in found)
    passed = sum(one.low >= LEAST for one in found)
    return f"{100 * low:.1f} %, {passed} of {len(found)} rows pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(required=True)
    more = parts.add_parser("collect", help="run the seeds that the data lack")
    more.add_argument("--seeds", type=int, default=2000)
    more.add_argument("--data", type=Path, default=DATA)
    more.set_defaults(run=_collect)
    shown = parts.add_parser("table", help="print the tables of the page")
    shown.add_argument("--data", type=Path, default=DATA)
    shown.set_defaults(run=_show)
    given = parser.parse_args()
    given.run(given)


def _show(given: argparse.Namespace) -> None:
    made, data = read(given.data)
    print(f"Made by `{made}`\n\n{tables(data)}")


def _collect(given: argparse.Namespace) -> None:
    head = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    )
    command = f"python -m tests.benchmarks.interval_coverage collect --seeds {given.seeds}"
    collect(given.data, range(1, 1 + given.seeds), f"{command}, commit {head.stdout.strip()}")


if __name__ == "__main__":
    main()
