"""The end of a run: summary.json, figures, report.html, and the comparison on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.run_directory import Run, write_run
from experiments.analysis.summary import ArmResult, RunFacts, slugs_of_runs, summary_of_results
from experiments.analysis.summary_model import (
    MACHINES,
    Prediction,
    SeedFigures,
    Sensitivity,
    WorkloadFacts,
)
from experiments.campaign.arm_runners import live_validity
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRun
from experiments.command_line import output_console
from experiments.config.decision_basis import decision_basis, decision_capacity
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from experiments.report.gangs import tears_gangs
from experiments.report.terminal import comparison_table
from experiments.studies.run.calibration import write_calibration
from experiments.version import version_text
from parsync.metrics.summary import quantities, series, summarise
from parsync.spec.arm import decision_clock

if TYPE_CHECKING:
    from experiments.figures import Drawn  # matplotlib takes a second to import


class ArmResults:
    """The runs of arms in figures, each made once: that takes tens of milliseconds, and a run shows
    them several times."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[ArmRun, ArmResult]] = {}  # by the run's id()

    def of(
        self,
        config: RunConfig,
        run: ArmRun,
        seeds: Mapping[int, Mapping[str, SeedFigures]] = MappingProxyType({}),
    ) -> ArmResult:
        """As arm_result; of the same run, with the same configuration."""
        if id(run) not in self._made:
            self._made[id(run)] = run, arm_result(config, run, {})
        return replace(self._made[id(run)][1], seeds=_seeds_of(run, seeds))


def finish_run(
    config: RunConfig,
    workload: WorkloadFacts,
    runs: Sequence[ArmRun],
    live_runs: Sequence[ArmRun],
    results: ArmResults,
    seeds: Mapping[int, Mapping[str, SeedFigures]],
    sensitivity: Sequence[Sensitivity],
    predictions: Mapping[str, Prediction],
    directory: Path,
    partial: str,
    report: ProgressReport,
    interruption: Interruption,
    drawn: Callable[[], Drawn],
) -> OSError | None:
    """Write everything into the run directory and show the comparison. Returns why that could not
    be printed; None if it was.

    Args:
        runs: The runs that the arms are compared by.
        live_runs: The separate live runs.
        results: Of these runs, as far as they are made.
        predictions: Of live runs, by name of the arm.
        partial: Why the run did not get to its end, "" if it did.
        report: Shows that the report is being made.
        interruption: Raises KeyboardInterrupt once the results are written, if a stop signal comes
            meanwhile; one that came before is why the run is partial.
        drawn: Returns the figures that are drawn of these runs already; called last.
    """
    known = interruption.received

    def check() -> None:
        if not known:
            interruption.check()

    facts = _facts(config, partial)
    with report.stage("writing the results"):
        arms, live = _results(config, runs, live_runs, results, seeds, predictions)
        summary = summary_of_results(facts, workload, arms, live, sensitivity)
        write_run(directory, summary, arms, live)
        of_arms = [
            *zip(runs, summary.arms, strict=True),
            *zip(live_runs, summary.live_runs, strict=True),
        ]
        times = [run.times for run, arm in of_arms if run.live and arm.has_sound_run]
        write_calibration(directory, times, config.live.hosts, config.live.tick_ms * 1000)
    failed: OSError | None = None
    try:
        output_console().print(comparison_table(summary))
    except OSError as error:  # standard output is full or closed: the report is made all the same
        failed = error
    with report.stage("drawing the report"):
        from experiments.report.page import write_report  # matplotlib takes a second to import

        path = write_report(directory, check, drawn())
    report.console.print(Text(f"report: {path}"), soft_wrap=True)
    return failed


def run_so_far(
    config: RunConfig,
    workload: WorkloadFacts,
    runs: Sequence[ArmRun],
    live_runs: Sequence[ArmRun],
    results: ArmResults,
    seeds: Mapping[int, Mapping[str, SeedFigures]],
    directory: Path,
) -> Run:
    """A run that goes on, as if it were finished, for the page and its figures.

    Args:
        runs, live_runs, results, seeds: As in finish_run, as far as they are known.
    """
    arms, live = _results(config, runs, live_runs, results, seeds, {})
    summary = summary_of_results(_facts(config, ""), workload, arms, live)
    described = (*summary.arms, *summary.live_runs)
    series = {
        one.slug: dict(arm.series) for one, arm in zip(described, (*arms, *live), strict=True)
    }
    return Run(directory, summary, series)


def preview(
    config: RunConfig, workload: WorkloadFacts, runs: Sequence[ArmRun], results: ArmResults
) -> Group:
    """The comparison of arms that have all run in virtual time, for the terminal. results: as in
    finish_run."""
    arms = [results.of(config, run) for run in runs]
    return comparison_table(summary_of_results(_facts(config, ""), workload, arms))


def _results(
    config: RunConfig,
    runs: Sequence[ArmRun],
    live_runs: Sequence[ArmRun],
    results: ArmResults,
    seeds: Mapping[int, Mapping[str, SeedFigures]],
    predictions: Mapping[str, Prediction],
) -> tuple[list[ArmResult], list[ArmResult]]:
    """The runs that the arms are compared by, and the separate live runs, in figures."""
    of_live = config.of_live_runs()
    live = [
        replace(results.of(of_live, run), prediction=predictions.get(run.arm.name))
        for run in live_runs
    ]
    return [results.of(config, run, seeds) for run in runs], live


def _facts(config: RunConfig, partial: str) -> RunFacts:
    return RunFacts(
        seed=config.seed,
        version=version_text(),
        runtime=config.compared_runtime,
        settle_us=settle_us(config),
        config=config.model_dump(mode="json"),
        partial=partial,
    )


def slugs_of_arms(config: RunConfig) -> tuple[dict[str, str], dict[str, str]]:
    """The names of the folders of all arms, and of their separate live runs, by the arms'
    names."""
    names = [arm.name for arm in config.arms]
    live = [arm.name for arm in config.arms if config.has_separate_live_run(arm)]
    of_arms, of_live = slugs_of_runs(names, live, config.live_cell)
    return dict(zip(names, of_arms, strict=True)), dict(zip(live, of_live, strict=True))


def arm_result(
    config: RunConfig, run: ArmRun, seeds: Mapping[int, Mapping[str, SeedFigures]]
) -> ArmResult:
    """An arm's run in figures.

    Args:
        config: The run's; of a separate live run, RunConfig.of_live_runs().
        seeds: The seeds of all arms, by seed and arm name.
    """
    arm, live = run.arm, run.live
    outline = config.workload.outline()
    capacity = [] if outline is None else decision_capacity(arm, outline)
    notes = dict(run.notes)
    if live and config.live.machines is not None:
        notes[MACHINES] = config.live.machines
    return ArmResult(
        name=arm.name,
        runtime="ray" if live else "virtual",
        mix=[group.model_dump(mode="json", exclude_none=True) for group in arm.groups],
        sync=arm.sync,
        strategy=", ".join(arm.strategies),
        decision_clock=", ".join(
            dict.fromkeys(
                type(decision_clock(group, arm.partitions, live)).__name__ for group in arm.groups
            )
        ),
        basis=decision_basis(
            arm, outline, config.virtual.message_us, config.virtual.measured_times
        ),
        clock_notes=notes,
        figures=summarise(run.metrics),
        quantities=quantities(run.metrics),
        series=series(run.metrics),
        digest=run.digest,
        seeds=_seeds_of(run, seeds),
        watched=run.watched,
        partial=bool(run.stopped),
        restarts=run.restarts,
        decision_capacity=capacity,
        validity=live_validity(config, run) if live else None,
        tears_gangs="" if run.metrics.run.gangs is None else tears_gangs(arm),
    )


def _seeds_of(
    run: ArmRun, seeds: Mapping[int, Mapping[str, SeedFigures]]
) -> dict[int, SeedFigures]:
    """The figures of a run's arm, by seed."""
    name = run.arm.name
    return {seed: figures[name] for seed, figures in seeds.items() if name in figures}
