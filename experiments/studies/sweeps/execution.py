"""The execution of `agora sweep`: checks, then the runs, then table, plots and page.

Its directory can be gone on with after any end:

sweep.toml      the sweep as resolved, the configuration in it
points/         the figures of each run (campaign/task.py)
points.parquet  a row for each run (result.py)
sweep.json      the model SweepSummary (result.py)
figures/        one PNG and one SVG for each plot
sweep.html      the page, self-contained
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.text import Text

from experiments.analysis.model_files import write_model
from experiments.analysis.summary import distinct
from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.directories import directory_of, holds
from experiments.campaign.expected_time import check_length, expected_run_s
from experiments.campaign.loop import check_address, missing, pool_at, run_tasks
from experiments.campaign.points import KEPT, Outlook, Point, WorkloadCache, store_in
from experiments.campaign.preconditions import check_arms, check_memory, naming_file
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.running import make_metrics
from experiments.command_line import error_console, output_console
from experiments.config.decision_basis import DecisionBasis, decision_basis
from experiments.interruption import Interruption, stop_signals_noted
from experiments.studies.sweeps.looks import LOOKS
from experiments.studies.sweeps.page import write_page
from experiments.studies.sweeps.result import (
    POINTS,
    SWEEP,
    Row,
    SweepSummary,
    looked_at,
    summarise_sweep,
    swept_parameters,
    write_points,
)
from experiments.studies.sweeps.sweep_file import (
    SWEEP_FILE,
    Combination,
    Sweep,
    assignments,
    parameter_labels,
    plain_value,
    read_sweep,
)
from experiments.studies.sweeps.wording import metric_tables
from experiments.toml_text import toml_text
from experiments.version import version_text
from parsync.metrics.kinds.quality import PreferenceMetric, PreferenceSetMetric
from parsync.metrics.quantity import Quantity, counted
from parsync.metrics.summary import ScopeFigures, quantities
from parsync.runtime.command_line import BAD_INPUT
from shared_state.errors import AgoraError
from shared_state.tasks import NO_PREFERENCE

# What of [sweep] may change when a sweep goes on: its runs stay what they are.
_MAY_CHANGE = {f"sweep.{name}" for name in ("name", "seeds", "metric", "baseline", "until")}


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of `agora sweep`; None for those that were not given."""

    file: Path | None = None
    out: Path | None = None
    resume: Path | None = None
    address: str | None = None
    seeds: int | None = None
    until: str | None = None
    metric: list[str] | None = None
    baseline: list[str] | None = None
    long: bool = False

    @property
    def changes(self) -> dict[str, Any]:
        """The fields of [sweep] that are given."""
        given = {
            "seeds": self.seeds,
            "until": self.until,
            "metric": self.metric,
            "baseline": self.baseline,
        }
        return {name: value for name, value in given.items() if value not in (None, [])}


def start(options: SweepOptions) -> int:
    """Run what the options of `agora sweep` describe. Return the exit status.

    Everything that can be refused is tried before the first run.

    Raises:
        AgoraError: An option or the file is wrong, or the sweep failed.
    """
    with ProgressReport(error_console()) as report:
        return _start(options, report)


def _start(options: SweepOptions, report: ProgressReport) -> int:
    """As start. report: receives the progress."""
    file, out = _places(options)
    sweep = read_sweep(file, options.changes)
    text = toml_text(sweep.tree())
    goes_on = holds(out, SWEEP_FILE, text, "sweep", _MAY_CHANGE)
    with naming_file(file), report.stage("making the workloads"):
        facts = check_sweep(sweep)
        _check_metric(sweep, facts)
    check_address(options.address)
    plan = _points(sweep.combinations, 0, _most_seeds(sweep))
    outlook = Outlook.of(
        [point for _, point in plan],
        [facts.expected_s[one.number, point.arm.name] for one, point in plan],
        store_in(out) if goes_on and out is not None else None,
    )
    if options.address is None:
        check_length(outlook.here_s, options.long)
    with stop_signals_noted() as interruption:
        try:
            interruption.check()
            with directory_of(out, goes_on, SWEEP_FILE, text, "sweep") as directory:
                _announce(sweep, outlook, directory, options.address, report.console)
                return _run(sweep, facts, directory, options.address, report, interruption)
        except KeyboardInterrupt:
            return interruption.exit_status


def _places(options: SweepOptions) -> tuple[Path, Path | None]:
    """The file and the directory. Raises AgoraError if they are not given once each."""
    if options.resume is None:
        if options.file is None:
            raise AgoraError("FILE: missing; expected a sweep's TOML file, or --resume DIR")
        return options.file, options.out
    if options.out is not None:
        raise AgoraError("--out: has no effect with --resume, which goes on in its directory")
    if not (options.resume / SWEEP_FILE).is_file():
        raise AgoraError(f"--resume {options.resume}: not a sweep: it has no {SWEEP_FILE}")
    return options.file or options.resume / SWEEP_FILE, options.resume


@dataclass(frozen=True, slots=True)
class SweepFacts:
    """What is known of a sweep before it runs.

    Attributes:
        bases: What the delays of each arm rest on, by combination and arm.
        quantities: That any arm has.
        prefers: Whether any task prefers a machine, by the combination that made a workload.
        expected_s: Processor time of a run, by combination and arm.
    """

    bases: dict[tuple[int, str], DecisionBasis]
    quantities: Sequence[Quantity]
    expected_s: dict[tuple[int, str], float]
    prefers: dict[int, bool]


def check_sweep(sweep: Sweep) -> SweepFacts:
    """Try everything that can be refused: every workload is made once, every scheduler, too.

    Raises:
        AgoraError: Names the combination and what is wrong with it.
    """
    labels = parameter_labels([one.path for one in sweep.parameters])
    workloads = WorkloadCache()
    checked: dict[str, float] = {}  # expected times by workload and arm
    facts = SweepFacts({}, [], {}, {})
    found: list[Quantity] = []
    for one in sweep.combinations:
        try:
            found += _check(one, workloads, checked, facts)
        except AgoraError as error:
            values = [plain_value(value) for value in one.values]
            raise AgoraError(f"with {assignments(labels, values)}: {error}") from error
    return SweepFacts(facts.bases, distinct(found), facts.expected_s, facts.prefers)


def _check(
    combination: Combination,
    workloads: WorkloadCache,
    checked: dict[str, float],
    facts: SweepFacts,
) -> list[Quantity]:
    """Check one combination, and add to the facts. Returns quantities of arms that are new."""
    config = combination.config
    options = f"{config.workload.model_dump_json()} {config.settle_s}"
    keys = {arm.name: f"{options} {arm.model_dump_json()}" for arm in config.arms}
    new = [arm for arm in config.arms if keys[arm.name] not in checked]
    found: list[Quantity] = []
    if new:
        check_memory(config, None)
        workload = workloads.make(config, config.seed)
        check_memory(config, workload)
        check_arms(config.model_copy(update={"arms": tuple(new)}), workload)
        arriving = workload.tasks.preference[workload.arrival_rows]
        facts.prefers[combination.number] = bool((arriving != NO_PREFERENCE).any())
        warm_up = config.workload.make_warm_up(config.seed)
        for arm in new:
            checked[keys[arm.name]] = expected_run_s(arm, workload, warm_up)
            found += quantities(make_metrics(config, arm, workload))
    outline = config.workload.outline()
    for arm in config.arms:
        place = combination.number, arm.name
        facts.bases[place] = decision_basis(
            arm, outline, config.virtual.message_us, config.virtual.measured_times
        )
        facts.expected_s[place] = checked[keys[arm.name]]
    return found


def _check_metric(sweep: Sweep, facts: SweepFacts) -> None:
    """Raise AgoraError if no arm has a metric, or `until` has nothing to compare."""
    known = {one.key: one for one in facts.quantities}
    for key in sweep.section.metric:
        if key not in known:
            keys = ", ".join(sorted(known))
            raise AgoraError(f"sweep.metric: unknown {key!r}; expected one of {keys}")
        of_preferences = known[key].metric in (PreferenceMetric.kind, PreferenceSetMetric.kind)
        if of_preferences and not any(facts.prefers.values()):
            raise AgoraError(
                f"sweep.metric: {key!r}: no task of these workloads prefers any machine; expected "
                "a metric such as delay_mean_us"
            )
    if sweep.target is None:
        return
    metric = sweep.first_metric(facts.quantities)
    for one in sweep.combinations:
        if not looked_at(sweep, one, facts.bases, metric, sweep.target, {}):
            raise AgoraError(
                "sweep.until: expected two arms that can be compared; no two have clocks of the "
                "same class and capacity"
            )


class _Done:
    """The runs of a sweep that are done.

    Attributes:
        runs: The figures by combination and arm, then by seed.
        rows: Of the table.
        keys: Of the points that ran. Combinations that are alike share a run.
    """

    def __init__(self, sweep: Sweep, facts: SweepFacts) -> None:
        self._bases = facts.bases
        self._values = [[plain_value(value) for value in one.values] for one in sweep.combinations]
        self._workloads: dict[tuple[int, int], tuple[str, str]] = {}
        self.runs: dict[tuple[int, str], dict[int, ScopeFigures]] = {}
        self.rows: list[Row] = []
        self.keys: set[str] = set()

    def add(self, combination: Combination, point: Point, figures: SeedFigures) -> None:
        """Take a run. Raises AgoraError if another arm met another workload under its seed."""
        number, name, seed = combination.number, point.arm.name, point.seed
        other, digest = self._workloads.setdefault((number, seed), (name, figures.workload))
        if digest != figures.workload:
            raise AgoraError(
                f"seed {seed}: '{other}' and '{name}' met different workloads: its files have "
                "changed since the sweep began; choose a new --out"
            )
        self.runs.setdefault((number, name), {})[seed] = figures.overall
        self.keys.add(point.key())
        self.rows.append(
            Row(
                combination=number,
                values=self._values[number],
                arm=name,
                basis=self._bases[number, name],
                seed=seed,
                digest=figures.digest,
                workload=figures.workload,
                figures=figures.overall,
            )
        )


def _run(
    sweep: Sweep,
    facts: SweepFacts,
    directory: Path,
    address: str | None,
    report: ProgressReport,
    interruption: Interruption,
) -> int:
    """Run what is left of a sweep, and write its results. Return the exit status."""
    console = report.console
    interruption.note = f"`agora sweep --resume {quote(str(directory))}` goes on"
    done = _Done(sweep, facts)
    reason, status = "", 0
    try:
        for stage in _stages(sweep, facts, done):
            _run_stage(stage, done, directory, address, report, interruption)
    except KeyboardInterrupt:
        reason, status = "interrupted", interruption.exit_status
    except (AgoraError, MemoryError) as error:
        reason, status = str(error) or "not enough memory", BAD_INPUT
    if not done.rows:
        if not any((directory / KEPT).glob("*.json")):
            shutil.rmtree(directory, ignore_errors=True)
        if status == BAD_INPUT:
            raise AgoraError(reason)
        console.print("Stopped before the first run ended; nothing was written.")
        return status
    place = {arm.name: number for number, arm in enumerate(sweep.combinations[0].config.arms)}
    done.rows.sort(key=lambda row: (row.combination, row.seed, place[row.arm]))
    summary = summarise_sweep(
        sweep, facts.bases, facts.quantities, done.runs, len(done.keys), version_text(), reason
    )
    _write(summary, sweep, done.rows, directory, report, interruption)
    if status == BAD_INPUT:
        raise AgoraError(reason)
    return status


Stage = Sequence[tuple[Combination, Point]]


def _stages(sweep: Sweep, facts: SweepFacts, done: _Done) -> Iterator[Stage]:
    """The runs in the order in which they are asked for, seed by seed. With a target, each stage
    goes up to the next look, with the combinations that have not reached it."""
    target = sweep.target
    if target is None:
        yield _points(sweep.combinations, 0, sweep.section.seeds)
        return
    metric = sweep.first_metric(facts.quantities)
    left: Sequence[Combination] = sweep.combinations
    before = 0
    for seeds in LOOKS:
        yield _points(left, before, seeds)
        known = {
            one.number: looked_at(sweep, one, facts.bases, metric, target, done.runs)
            for one in left
        }
        left = [
            one
            for one in left
            if not all(difference.reached for difference in known[one.number].values())
        ]
        before = seeds


def _points(combinations: Sequence[Combination], first: int, after: int) -> Stage:
    return [
        (one, Point(one.config, arm, one.config.seed + place))
        for place in range(first, after)
        for one in combinations
        for arm in one.config.arms
    ]


def _run_stage(
    stage: Stage,
    done: _Done,
    directory: Path,
    address: str | None,
    report: ProgressReport,
    interruption: Interruption,
) -> None:
    """Run the points of a stage, as far as they are not kept."""
    points, store = [point for _, point in stage], store_in(directory)
    runs = len({point.key() for point in points})  # points that are alike are one run
    progress = Progress(runs, runs - len(missing(points, store)))
    results = run_tasks(points, interruption, store=store, pool=pool_at(address))
    with report.stage("sweep") as show, contextlib.closing(results):
        counted_before = len(done.keys)
        steps = 0
        for index, measured in results:
            done.add(*stage[index], measured.figures)
            if len(done.keys) - counted_before > steps:  # else it shares the run of another
                steps += 1
                show(progress.step())


def _most_seeds(sweep: Sweep) -> int:
    """The seeds of each combination; with a target, at most."""
    return LOOKS[-1] if sweep.target is not None else sweep.section.seeds


def _announce(
    sweep: Sweep, outlook: Outlook, directory: Path, address: str | None, console: Console
) -> None:
    """Say how many runs there are, how many are left, and about how long they will take."""
    all_runs, left = len(set(outlook.keys)), len(outlook.left)
    arms = len(sweep.combinations[0].config.arms)
    up_to = "up to " if sweep.target is not None else ""
    text = (
        f"{counted(len(sweep.combinations), 'combination')}, {counted(arms, 'arm')}, "
        f"{up_to}{counted(_most_seeds(sweep), 'seed')}: {up_to}{counted(all_runs, 'run')}"
    )
    if left < all_runs:
        text += f"; {all_runs - left:,} are done, {left:,} are left"
    if left:
        where = (
            f"{time_text(outlook.processor_s)} of processor time"
            if address is not None
            else f"{time_text(outlook.here_s)} on this machine"
        )
        text += f", which may take {up_to}about {where}"
    console.print(Text(f"{text}."), soft_wrap=True)
    store, keys = store_in(directory), outlook.keys
    if unusable := store.unusable(dict.fromkeys(keys, ())) or store.unknown(keys):
        console.print(Text(unusable), soft_wrap=True)


def _write(
    summary: SweepSummary,
    sweep: Sweep,
    rows: Sequence[Row],
    directory: Path,
    report: ProgressReport,
    interruption: Interruption,
) -> None:
    """Write everything, and show the metrics on the terminal."""
    console = report.console
    if summary.partial:
        console.print("Writing partial results (press Ctrl-C again to quit without them).")
    write_points(directory / POINTS, swept_parameters(sweep), summary.quantities, rows)
    write_model(directory / SWEEP, summary)
    known = interruption.received
    with report.stage("page"):
        page = write_page(directory, lambda: None if known else interruption.check())
    output_console().print(metric_tables(summary))
    console.print(Text(f"page: {page}"), soft_wrap=True)
