"""Whether two versions of the engine give the same figures, where they draw differently.

Run it in a checkout of each, then compare the two files:

    python -m tests.benchmarks.engine_differences run OLD.jsonl --seeds 24
    python -m tests.benchmarks.engine_differences compare OLD.jsonl NEW.jsonl

The runs: every arm of the main comparison with modelled decision times, for 6 s at a load of 95 %,
three of them on a cell with slot scores, too; and, for every fourth seed, ParSync's cell for 3 s.
Both versions get the same workloads. What is compared, seed by seed: mean delay, rejected claims,
and tasks on preferred machines. An interval is one of Student's t over the seeds, at 95 % for all
comparisons together (Bonferroni).
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scipy.stats import t as student

from experiments.campaign.running import make_workload
from experiments.config.presets import default_arms, demo_scale, paper_scale
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from parsync.metrics.record import Record
from parsync.metrics.tables import CONFLICT_COLUMNS
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from tests.benchmarks.bench_virtual import CASES, Case
from tests.fixtures.changed import changed

MESSAGE_US = 500
DRAIN_US = 60_000_000
FIRST_SEED = 1000
SCORES = {"slot_score_variance": 2.0, "preference_groups": 0}
WITH_SCORES = ("ParSync adaptive", "ParSync quality-first", "Greedy, one scheduler")
LIMITS = {"delay, %": 1.0, "conflicts, points": 0.3, "preferred, points": 0.2}


def runs(seed: int) -> Iterator[tuple[str, SeededArm, Workload]]:
    """The runs of a seed: name, arm and workload."""
    scale = demo_scale(False)
    options = {"load_percent": (95,), "phase_s": 6.0}
    arms = [arm for arm in default_arms(scale) if "own speed" not in arm.name]
    for suffix, changes in (("", options), (", slot scores", options | SCORES)):
        synthetic = scale.synthetic.model_copy(update=changes)
        config = RunConfig(
            workload=WorkloadConfig.of("synthetic", synthetic),
            arms=tuple(arms),
            settle_s=1.0,
            drain_s=DRAIN_US / 1e6,
        )
        workload = make_workload(config, seed)
        for arm in arms:
            if not suffix or arm.name in WITH_SCORES:
                sample_us = config.sample_us(workload)
                spec = arm.seeded(seed, config.heartbeat_us, sample_us, live=False)
                yield arm.name + suffix, spec, workload
    if seed % 4 == 0:
        for name in CASES:
            case = Case.of(name, 3.0)
            spec = changed(case.spec(), seed=seed)
            machines = f"{paper_scale().synthetic.machines:,} machines"
            yield f"{name}, {machines}", spec, make_workload(case.config, seed)


def figures(spec: SeededArm, workload: Workload) -> tuple[float, float, float]:
    """Of a run: mean delay in us, rejected per claim, preferred per task that prefers machines."""
    sums: dict[str, int] = defaultdict(int)

    def take(record: Record) -> None:
        of = record.columns
        if record.table == "tasks":
            first = of["first"].astype(bool)
            prefers = first & of["prefers"].astype(bool)
            sums["tasks"] += int(first.sum())
            sums["delay_us"] += int((of["start_us"] - of["submit_us"])[first].sum())
            sums["prefers"] += int(prefers.sum())
            sums["preferred"] += int((prefers & of["preferred"].astype(bool)).sum())
        elif record.table == "commits":
            sums["claims"] += int(of["claims"].sum())
            sums["rejected"] += sum(int(of[why].sum()) for why in CONFLICT_COLUMNS)

    run_virtual(spec, workload, DRAIN_US, take, lambda _: None, MESSAGE_US)
    return (
        sums["delay_us"] / sums["tasks"],
        sums["rejected"] / sums["claims"],
        sums["preferred"] / max(sums["prefers"], 1),
    )


def run(out: Path, seeds: int) -> None:
    """Write the figures of all runs, a line of JSON each."""
    with out.open("w", encoding="utf-8", buffering=1) as file:
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            for name, spec, workload in runs(seed):
                file.write(json.dumps([name, seed, *figures(spec, workload)]) + "\n")


def read(path: Path) -> dict[tuple[str, int], list[float]]:
    """The figures of a file by run and seed."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(name, seed): values for name, seed, *values in rows}


def compare(old: Path, new: Path) -> None:
    """Print the differences of what is in both files."""
    before, after = read(old), read(new)
    pairs: dict[str, list[tuple[list[float], list[float]]]] = defaultdict(list)
    for key in sorted(before.keys() & after.keys()):
        pairs[key[0]].append((before[key], after[key]))
    print(f"{'':52} seeds  " + "".join(f"{name:>24}" for name in LIMITS))
    for name, of_seeds in pairs.items():
        seeds = len(of_seeds)
        if seeds < 2:
            continue
        mean_us = sum(left[0] for left, _ in of_seeds) / seeds
        width = student.ppf(1 - 0.05 / 2 / (len(LIMITS) * len(pairs)), seeds - 1)
        shown = ""
        for place, limit in enumerate(LIMITS.values()):
            scale = 100 / mean_us if place == 0 else 100
            found = [(right[place] - left[place]) * scale for left, right in of_seeds]
            mean = sum(found) / seeds
            spread = math.sqrt(sum((one - mean) ** 2 for one in found) / (seeds - 1))
            half = width * spread / math.sqrt(seeds)
            mark = " " if abs(mean) + half <= limit else "*"
            shown += f"{f'{mean:+.3f} ± {half:.3f}{mark}':>24}"
        print(f"{name:52} {seeds:5}  {shown}")
    print(f"* not shown to be within {', '.join(map(str, LIMITS.values()))}")


def main() -> None:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="write the figures of this checkout")
    running.add_argument("out", type=Path)
    running.add_argument("--seeds", type=int, default=24)
    running.set_defaults(command=lambda asked: run(asked.out, asked.seeds))
    comparing = commands.add_parser("compare", help="print the differences of two files")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.set_defaults(command=lambda asked: compare(asked.old, asked.new))
    asked = parser.parse_args()
    asked.command(asked)


if __name__ == "__main__":
    main()
