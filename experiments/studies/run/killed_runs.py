"""The summary of a run that was killed before it could write one, made of what it left behind.

Arms that had ended have their figures on disk (analysis/run_directory.py), and so has every paired
seed. The arm that was running is made of its measurements where they are sound: its Parquet files
if it closed them, the logs of a live arm otherwise. In virtual time it keeps no log, and a Parquet
file that was not closed cannot be read: such an arm is named, and repeated by running config.toml
again.

What is written is summary.json, series.npz of that arm, and the Parquet files of a live one, in the
place of those that its actors had not closed. Nothing else that was there is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from experiments.analysis.cell_watch import Watched, settle_us
from experiments.analysis.model_files import read_model, write_model
from experiments.analysis.run_directory import SUMMARY, kept_arm, write_series
from experiments.analysis.summary import RunFacts, describe, distinct, summary_of, workload_facts
from experiments.analysis.summary_model import (
    ArmSummary,
    KeptArm,
    KeptSeed,
    Restart,
    RunSummary,
    SeedFigures,
    WorkloadFacts,
)
from experiments.campaign.directories import is_locked, locked
from experiments.campaign.preconditions import CONFIG_FILE
from experiments.campaign.running import ArmRun, make_metrics
from experiments.config.run_config import RunConfig, load_config
from experiments.studies.run.finishing import arm_result, slugs_of_arms
from experiments.studies.run.fluid_bound import phase_bounds
from experiments.version import version_text
from parsync.metrics.quantity import Quantity, duration
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.arm_directory import VIRTUAL_LOG, read_end
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.logs import CELL_LOG, has_records
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.recovered_measurements import measure_killed
from parsync.runtime.records import merge_parts, read_records, record_files
from parsync.runtime.workload_files import WORKLOAD_DIR, read_workload
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

_LOG = "log"  # of a live arm


def run_in_progress(directory: Path) -> AbstractContextManager[None]:
    """Mark a run directory as being written for the length of the block: finish_killed refuses
    it."""
    return locked(directory / CONFIG_FILE, "run")


def in_progress(directory: Path) -> bool:
    """Whether the run of a directory is still going on. Raises AgoraError if it is no run
    directory."""
    path = directory / CONFIG_FILE
    if not directory.is_dir():
        what = "not a directory" if directory.exists() else "no such directory"
        raise AgoraError(f"{directory}: {what}")
    if not path.is_file():
        raise AgoraError(f"{directory}: not a run directory: it has no {CONFIG_FILE}")
    return is_locked(path)


def summary_so_far(directory: Path) -> RunSummary:
    """The summary of the arms that have ended, of a run in progress; nothing is written. Raises
    AgoraError if none has, or a file cannot be read."""
    config = load_config(directory / CONFIG_FILE)
    found = _Found(directory, config)
    of_arms, of_live = slugs_of_arms(config)
    for slug in (*of_arms.values(), *of_live.values()):
        found.take_ended(slug)
    if not found.arms:
        raise AgoraError(f"{directory}: its run is in progress, and no arm of it has ended yet")
    going_on = f"still in progress: {len(found.arms)} of {len(of_arms)} arms have ended"
    return found.summary("; ".join([going_on, *found.lacks]))


def finish_killed(directory: Path) -> None:
    """Write the summary of a run directory without one. Raises AgoraError if it is none, if its run
    is still going on, and if nothing can be made of it."""
    if in_progress(directory):
        raise AgoraError(f"{directory}: its run is still in progress; wait for its end")
    path = directory / CONFIG_FILE
    config = load_config(path)
    found = _Found(directory, config)
    of_arms, of_live = slugs_of_arms(config)
    for of_runs in (of_arms, of_live):
        for arm in config.arms:
            if arm.name in of_runs:
                found.take(arm, of_runs[arm.name])
    if not found.arms:
        why = "; ".join(found.lacks) or "killed before its first arm began"
        raise AgoraError(
            f"{directory}: nothing to report: {why}; "
            f"`agora run --config {quote(str(path))}` runs it again"
        )
    write_model(directory / SUMMARY, found.summary(found.partial()))


class _Found:
    """What is left of a run.

    Attributes:
        arms, live_runs, workload: As in the summary.
        lacks: What is missing, a phrase each.
    """

    def __init__(self, directory: Path, config: RunConfig) -> None:
        self._directory = directory
        self._config = config
        self._seeds: dict[int, dict[str, SeedFigures]] = {}  # of each arm, by its slug
        self._read: Workload | None = None
        self._of_live = slugs_of_arms(config)[1].values()  # the folders
        self._not_run = 0
        self._not_live = 0
        self.arms: list[ArmSummary] = []
        self.live_runs: list[ArmSummary] = []
        self.quantities: list[Quantity] = []
        self.lacks: list[str] = []
        self.workload: WorkloadFacts | None = None
        self.version = version_text()
        for path in sorted((directory / "seeds").glob("*.json")):
            try:
                kept = read_model(path, KeptSeed)
            except AgoraError as error:
                self.lacks.append(str(error))
            else:
                self._seeds[kept.seed] = kept.arms

    def take(self, arm: ArmConfig, slug: str) -> None:
        """The next arm of the configuration, or the next separate live run."""
        folder = self._directory / "arms" / slug
        if not folder.is_dir():
            self._not_live += slug in self._of_live
            self._not_run += slug not in self._of_live
            return
        try:
            kept = kept_arm(folder) or self._unfinished(arm, slug, folder)
        except AgoraError as error:
            live = "the live run of " if slug in self._of_live else ""
            self.lacks.append(f"{live}'{arm.name}' is missing: {error}")
            return
        self._add(kept, slug)

    def take_ended(self, slug: str) -> None:
        """The next arm of the configuration, or live run, if it has ended."""
        kept = kept_arm(self._directory / "arms" / slug)
        if kept is not None:
            self._add(kept, slug)

    def summary(self, partial: str) -> RunSummary:
        """The summary of the arms taken, of which there must be one.

        Args:
            partial: Why the run did not get to its end, "" if it did.
        """
        assert self.workload is not None, "there are arms"
        facts = RunFacts(
            seed=self._config.seed,
            version=self.version,
            runtime=self._config.compared_runtime,
            settle_us=settle_us(self._config),
            config=self._config.model_dump(mode="json"),
            partial=partial,
        )
        return summary_of(facts, self.workload, self.arms, self.quantities, self.live_runs)

    def partial(self) -> str:
        """Why the run did not get to its end, "" if it had: only its report is missing then."""
        lacks = list(self.lacks)
        if self._not_run:
            lacks.append(f"{self._not_run} of {len(self._config.arms)} arms did not run")
        if self._not_live:
            lacks.append(f"{self._not_live} of {len(self._of_live)} live runs did not begin")
        expected = self._config.seeds * len(self._config.arms) if self._config.seeds > 1 else 0
        done = sum(len(arms) for arms in self._seeds.values())
        if done < expected:
            lacks.append(f"{done} of {expected} runs of the paired seeds are complete")
        if expected and self._config.sensitivity_seeds:
            lacks.append("the runs with other decision times are missing")
        return "; ".join(lacks)

    def _add(self, kept: KeptArm, slug: str) -> None:
        """Add an arm with what is there of its paired seeds."""
        if kept.stopped:
            self.lacks.append(f"'{kept.arm.name}': {kept.stopped}")
        seeds = [
            its[slug].in_summary(seed) for seed, its in sorted(self._seeds.items()) if slug in its
        ]
        self.workload = kept.workload
        self.quantities += kept.quantities
        found = self.live_runs if slug in self._of_live else self.arms
        found.append(kept.arm.model_copy(update={"seeds": seeds}))

    def _unfinished(self, arm: ArmConfig, slug: str, folder: Path) -> KeptArm:
        """An arm without figures. Raises AgoraError if its measurements cannot be read."""
        workload = self._workload_of_run()
        config = self._config
        if slug in self._of_live:
            config = config.of_live_runs()
            arm = next(one for one in config.arms if one.name == arm.name)
        measure = _from_logs if has_records(folder / _LOG) else _from_parquet
        own = (folder / _LOG if _ran_live(folder) else folder) / WORKLOAD_DIR
        begins = read_workload(own) if own.is_dir() else workload  # with what its warm-up left
        measured = measure(config, arm, begins, folder)
        run = ArmRun(
            arm,
            measured.metrics,
            measured.digest,
            measured.notes,
            measured.stopped,
            wall_s=0.0,
            watched=Watched(),
            restarts=measured.restarts,
            live=_ran_live(folder),
        )
        result = arm_result(config, run, {})
        write_series(folder, result.series)
        if not measured.stopped:
            self.lacks.append(f"'{arm.name}': its regret was not computed")
        bounds = phase_bounds(self._config.workload, workload, settle_us(self._config))
        facts = workload_facts(workload, bounds)
        return KeptArm(
            version=self.version,
            stopped=measured.stopped,
            workload=facts,
            quantities=distinct(result.quantities),
            arm=describe(result, slug),
        )

    def _workload_of_run(self) -> Workload:
        """Read the workload from the run's tables. Raises AgoraError if they cannot be read."""
        if self._read is None:
            self._read = read_workload(self._directory / WORKLOAD_DIR)
        return self._read


@dataclass(frozen=True, slots=True)
class _Measured:
    """The measurements of an arm; fields are as in ArmRun, and the digest is "" if it is not
    known."""

    metrics: RunMetrics
    notes: Mapping[str, Any]
    stopped: str
    digest: str
    restarts: Sequence[Restart] = ()


def _from_logs(config: RunConfig, arm: ArmConfig, workload: Workload, folder: Path) -> _Measured:
    """Measure a live arm whose actors had not handed their measurements over, from its logs. Raises
    AgoraError naming a log that cannot be read."""
    spec = arm.seeded(config.seed, config.heartbeat_us, config.sample_us(workload), live=True)
    options = LiveOptions(
        journal_dir=folder / _LOG,
        records_dir=folder,
        hosts=config.live.hosts,
        tick_us=config.live.tick_ms * 1000,
    )
    metrics_maker = partial(copy.deepcopy, make_metrics(config, arm, workload))
    killed = measure_killed(Assembly.of(spec, workload), options, metrics_maker)
    killed.metrics.flush()
    merge_parts(folder, killed.metrics.tables)
    notes = {
        "ended_us": killed.ended_us,
        "tick_us": options.tick_us,
        "notes": list(killed.notes),
    }
    return _Measured(
        killed.metrics,
        notes,
        _stopped(killed.ended_us),
        killed.digest,
        [Restart(**asdict(restart)) for restart in killed.restarts],
    )


def _from_parquet(config: RunConfig, arm: ArmConfig, workload: Workload, folder: Path) -> _Measured:
    """Measure an arm that had closed its Parquet files. Raises AgoraError if it had not."""
    metrics = make_metrics(config, arm, workload)
    files = record_files(folder, metrics.tables)
    if not files:
        raise AgoraError("killed before it wrote any measurements")
    for table, rows in read_records(files, metrics.tables):
        metrics.add(table, rows)
    metrics.flush()
    live = _ran_live(folder)
    end = read_end(folder / _LOG if live else folder)
    if end is None or end.stopped:
        return _Measured(metrics, {"ended_us": metrics.last_us}, _stopped(metrics.last_us), "")
    log = end.logs.get(CELL_LOG if live else VIRTUAL_LOG)
    return _Measured(metrics, {"ended_us": metrics.last_us}, "", log.digest if log else "")


def _ran_live(folder: Path) -> bool:
    """Whether an arm's files are of a run on Ray."""
    return (folder / _LOG).is_dir()


def _stopped(ended_us: int) -> str:
    return f"killed; its figures end {duration(ended_us)} into the run"
