"""The stages of a run: its arms, in virtual time and live, the paired seeds, the frontier, the
sensitivity of the results, and the report, which is rewritten as more arrives."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.frontier_model import FRONTIER
from experiments.analysis.run_directory import Run, keep_arm, write_seed
from experiments.analysis.summary import workload_facts
from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.arm_runners import ArmJob, run_and_show, run_arms_virtual
from experiments.campaign.expected_time import ExpectedTimes
from experiments.campaign.points import Point, paired_points, run_points
from experiments.campaign.preconditions import runs_at_a_time
from experiments.campaign.progress import Progress, ProgressReport
from experiments.campaign.running import ArmRun, ArmRunner, figures_of_run, make_workload
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from experiments.studies.frontiers.execution import FrontierOfRun
from experiments.studies.run.calibration import prediction_points, predictions_of
from experiments.studies.run.drawing import DrawingThread
from experiments.studies.run.finishing import (
    ArmResults,
    finish_run,
    preview,
    run_so_far,
    slugs_of_arms,
)
from experiments.studies.run.fluid_bound import phase_bounds
from experiments.studies.run.sensitivity import Choice, changed_points, sensitivity
from experiments.version import version_text
from parsync.metrics.quantity import counted
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

if TYPE_CHECKING:
    from experiments.figures import Drawn  # matplotlib takes a second to import

REPORT_EVERY_S = 10.0  # a shorter run has one report, at its end


class _Part(StrEnum):
    """What runs in virtual time after the arms; the value says it to people."""

    PAIRED = "paired seeds"
    FRONTIER = "frontiers"
    CHANGED = "other decision times"


_INTERRUPTED = {
    _Part.PAIRED: "interrupted during the paired seeds",
    _Part.FRONTIER: "interrupted during the frontier",
    _Part.CHANGED: "interrupted during the runs with other decision times",
}


def _interrupted(left: Mapping[_Part, int]) -> str:
    """Why a run is partial that is interrupted while so many runs of each part are left."""
    return next((why for part, why in _INTERRUPTED.items() if left[part]), "interrupted")


@dataclass(frozen=True, slots=True)
class _LaterRun:
    """A run after those of the arms.

    Attributes:
        place: Runs with a lower one are begun before.
        take: Takes its figures.
    """

    part: _Part
    place: tuple[int, int]
    point: Point
    take: Callable[[SeedFigures], None]


class Stages:
    """A run under way: its stages, and what they have come to so far.

    Attributes:
        runs: The runs that the arms are compared by, of those that have ended, by name.
        live_runs: The separate live runs, likewise.
        seeds: The figures of the paired seeds, by seed and name of the arm.
        before_live: Called before the first separate live run.
        broken: Why runs ended of which a scheduler broke its contract.
        doing: Why the run is partial if it is interrupted now.
    """

    def __init__(
        self,
        config: RunConfig,
        workload: Workload,
        directory: Path,
        report: ProgressReport,
        run_arm: ArmRunner,
        interruption: Interruption,
    ) -> None:
        self._config = config
        self._workload = workload
        self._directory = directory
        self._report = report
        self._console = report.console
        self._run_arm = run_arm
        self._interruption = interruption
        with report.stage("how far placements can go"):
            bounds = phase_bounds(config.workload, workload, settle_us(config))
        self._facts = workload_facts(workload, bounds)
        self._times = ExpectedTimes(workload, None)
        self._version = version_text()
        self._of_live = config.of_live_runs()
        self._live = [arm for arm in self._of_live.arms if config.has_separate_live_run(arm)]
        self._slug, self._live_slug = slugs_of_arms(config)
        self._changed: list[tuple[Choice, Point, SeedFigures]] = []
        self._predicted: dict[str, SeedFigures] = {}
        self._results = ArmResults()
        self._drawing = DrawingThread()
        self._report_begun: Future[Path] | None = None
        self._arms_drawn: Future[Drawn] | None = None
        self._reported = False
        self._reported_s = time.monotonic()
        self.runs: dict[str, ArmRun] = {}
        self.live_runs: dict[str, ArmRun] = {}
        self.seeds: dict[int, dict[str, SeedFigures]] = {}
        self.broken: list[str] = []
        self.before_live: Callable[[], None] = _nothing
        self.doing = "interrupted"

    @property
    def missing(self) -> str:
        """What arms have not run, or not where they were to run; "" if none."""
        parts = []
        missing = len(self._config.arms) - len(self.runs)
        if missing:
            parts.append(f"{missing} of {len(self._config.arms)} arms did not run")
        if waiting := [arm for arm in self._not_yet_live() if arm.name in self.runs]:
            parts.append(f"{len(waiting)} of {len(self._live)} live arms ran in virtual time only")
        return "; ".join(parts)

    def arms(self) -> None:
        """Run every arm. Where arms are compared in virtual time, all run there before any runs on
        Ray: that takes seconds, and the live runs confirm or contradict it.

        Raises:
            AgoraError: An arm cannot go on.
            KeyboardInterrupt: A stop signal was received.
        """
        config, separate = self._config, bool(self._live)
        if separate:
            self._all_in_virtual_time()
        alone = self._live or list(config.arms)
        workload = self._workload
        if separate:
            config, workload = self._of_live, self._live_workload()
            self.before_live()
        for number, arm in enumerate(alone, start=1):
            self._await_drawing()  # it would disturb a live run
            self.doing = f"'{arm.name}': interrupted"
            cell = f" on {config.live.machines:,} machines" if config.live.machines else ""
            title = f"{number}/{len(alone)} {arm.name}{f', live{cell}' if separate else ''}"
            slug = (self._live_slug if separate else self._slug)[arm.name]
            job = ArmJob(arm, self._run_arm, self._folder(slug))
            interruption, report = self._interruption, self._report
            self._ended(run_and_show(config, job, workload, title, report, interruption))
            self.doing = "interrupted"
            if number < len(alone) or config.seeds > 1:
                interruption.check()
                self._report_so_far()

    def _live_workload(self) -> Workload:
        """The workload of the separate live runs."""
        if self._config.live_cell is None:
            return self._workload
        with self._report.stage("making the workload of the live runs"):
            return make_workload(self._of_live, self._config.seed)

    def _all_in_virtual_time(self) -> None:
        self.doing = "interrupted in virtual time"
        longest_first = sorted(self._config.arms, key=self._times.run_s, reverse=True)
        arms = [(arm, self._folder(self._slug[arm.name])) for arm in longest_first]
        processes = runs_at_a_time(self._config, self._workload)
        progress = Progress(len(arms))
        with (
            self._report.stage("all arms in virtual time") as show,
            contextlib.closing(
                run_arms_virtual(self._config, arms, self._interruption, processes)
            ) as runs,
        ):
            for run in runs:
                self._ended(run)
                show(f"all arms in virtual time: {progress.step()}")
        self.doing = "interrupted"
        if any(not run.stopped for run in self.runs.values()):
            self._console.print(preview(self._config, self._facts, self.in_order(), self._results))
        self._interruption.check()
        self._report_so_far()

    def _ended(self, run: ArmRun) -> None:
        """Keep what a run of an arm came to."""
        name = run.arm.name
        separate = run.live and bool(self._live)
        (self.live_runs if separate else self.runs)[name] = run
        if run.broken:
            where = ", live" if separate else ""
            self.broken.append(f"'{name}'{where}: {run.stopped}")
        elif run.stopped:
            self.doing = f"'{name}': {run.stopped}"
            if run.interrupted:
                raise KeyboardInterrupt
            raise AgoraError(self.doing)
        elif not run.live and (self._live or self._config.seeds > 1):
            self._of_seed(self._config.seed, name, figures_of_run(run, self._workload))
        config, slug = self._config, self._slug[name]
        if separate:
            config, slug = self._of_live, self._live_slug[name]
        result = self._results.of(config, run)
        keep_arm(self._directory, result, slug, self._facts, self._version, run.stopped)

    def later_runs(self) -> None:
        """Run all arms over the paired seeds, the architectures behind them over their knobs, and
        some arms with other choices about decision times. All are one map, so that no processor
        waits for the last runs of each. The arms that ran in virtual time have run under the first
        paired seed already.

        Raises:
            KeyboardInterrupt: A stop signal was received. If the paired seeds are done, the seeds
                of the frontier that are whole are written.
            AgoraError: A run does not get to its end, or the frontier cannot be written.
        """
        config = self._config
        frontier = FrontierOfRun(config, self.seeds) if config.frontier.architectures else None
        wanted = [*self._paired_runs(), *self._frontier_runs(frontier), *self._changed_runs()]
        by_id = {id(one.point): one for one in wanted}
        left = Counter(one.part for one in wanted)
        # The longest first, so that no process is left with one when the others are done; of the
        # paired seeds one after the other, so that a run that is stopped has whole ones.
        wanted.sort(key=lambda one: (*one.place, -self._times.run_s(one.point.arm)))
        parts = [part for part in _Part if left[part]]
        what = f"{', '.join(part.value for part in parts)}, in virtual time"
        self._draw_arms()
        self._report_so_far()
        try:
            self.doing = _interrupted(left)
            for point, figures in self._points([one.point for one in wanted], what):
                one = by_id[id(point)]
                one.take(figures)
                left[one.part] -= 1
                self.doing = _interrupted(left)
                if left[one.part]:
                    continue
                if one.part is _Part.PAIRED:
                    self._report_so_far()
                elif one.part is _Part.FRONTIER and frontier is not None:
                    frontier.write(self._workload, self._directory)
        except KeyboardInterrupt:
            if frontier is not None and left[_Part.FRONTIER] and not left[_Part.PAIRED]:
                with contextlib.suppress(AgoraError):  # no seed is whole
                    frontier.write(self._workload, self._directory)
            raise
        if frontier is not None and not frontier.points:
            frontier.write(self._workload, self._directory)
        self.doing = "interrupted"

    def _paired_runs(self) -> Iterator[_LaterRun]:
        done = self.seeds.get(self._config.seed, {})
        for point in paired_points(self._config):
            if point.seed != self._config.seed or point.arm.name not in done:
                take = partial(self._of_seed, point.seed, point.arm.name)
                yield _LaterRun(_Part.PAIRED, (0, point.seed), point, take)

    def _frontier_runs(self, frontier: FrontierOfRun | None) -> Iterator[_LaterRun]:
        if frontier is not None:
            for index, point in enumerate(frontier.points):
                yield _LaterRun(_Part.FRONTIER, (1, 0), point, partial(frontier.take, index))

    def _changed_runs(self) -> Iterator[_LaterRun]:
        for choice, point in changed_points(self._config):
            yield _LaterRun(_Part.CHANGED, (1, 0), point, partial(self._of_choice, choice, point))

    def _of_choice(self, choice: Choice, point: Point, figures: SeedFigures) -> None:
        """Keep the figures of an arm with another choice about decision times."""
        self._changed.append((choice, point, figures))

    def _of_seed(self, seed: int, name: str, figures: SeedFigures) -> None:
        """Keep the figures of an arm under a paired seed."""
        of_seed = self.seeds.setdefault(seed, {})
        of_seed[name] = figures
        kept = {self._slug[arm]: its for arm, its in of_seed.items()}
        write_seed(self._directory, seed, kept)

    def predictions(self) -> None:
        """Run the live arms in virtual time, calibrated on each other. Errors as later_runs."""
        points = prediction_points(self._config, self._live_in_order())
        if not points:
            return
        self.doing = "interrupted during the predictions of live runs"
        for point, figures in self._points(points, "predictions of live runs, in virtual time"):
            self._predicted[point.arm.name] = figures
        self.doing = "interrupted"

    def _points(self, points: Sequence[Point], what: str) -> Iterator[tuple[Point, SeedFigures]]:
        """Run points and show how far they are."""
        progress = Progress(len(points))
        with (
            self._report.stage(what) as show,
            contextlib.closing(run_points(points, self._interruption)) as runs,
        ):
            for point, figures in runs:
                yield point, figures
                show(f"{what}: {progress.step()}")

    def finish(self, reason: str) -> OSError | None:
        """Write the results and the report. Returns and raises as finish_run."""
        if reason:
            self._drawing.stop()
        return finish_run(
            self._config,
            self._facts,
            self.in_order(),
            self._live_in_order(),
            self._results,
            self.seeds,
            sensitivity(self._slug, self._changed),
            predictions_of(self._config, self._live_in_order(), self._predicted),
            self._directory,
            reason,
            self._report,
            self._interruption,
            self._drawn_at_last,
        )

    def _drawn_at_last(self) -> Drawn:
        """The figures of the arms, when nothing is being drawn any more."""
        self._drawing.wait(_nothing)
        return self._drawn()

    def in_order(self) -> list[ArmRun]:
        """The runs that the arms are compared by, in the order of the configuration."""
        return self._ordered(self.runs)

    def _live_in_order(self) -> list[ArmRun]:
        return self._ordered(self.live_runs)

    def _ordered(self, runs: Mapping[str, ArmRun]) -> list[ArmRun]:
        return [runs[arm.name] for arm in self._config.arms if arm.name in runs]

    def _report_so_far(self) -> None:
        """Begin to write the report with what there is, unless that was done just before."""
        to_come = self._to_come()
        if not to_come or time.monotonic() - self._reported_s < REPORT_EVERY_S:
            return
        runs, live = self._whole_runs()
        if not runs:
            return
        seeds = {seed: dict(figures) for seed, figures in self.seeds.items()}

        def write() -> Path:
            from experiments.report.page import write_report_so_far

            return write_report_so_far(self._so_far(runs, live, seeds), to_come, self._drawn())

        self._report_begun = self._drawing.begin(write)
        self._reported_s = time.monotonic()

    def _await_drawing(self) -> None:
        """Wait for the report that was begun. Raises AgoraError if it could not be written."""
        if self._report_begun is None:
            return
        with self._report.stage("drawing the report"):
            self._drawing.wait(self._interruption.check)
        path = self._report_begun.result()
        self._report_begun = None
        if not self._reported:
            self._console.print(Text(f"report so far: {path}"), soft_wrap=True)
        self._reported = True

    def _draw_arms(self) -> None:
        """Begin to draw those figures of the final report that need nothing that is to come."""
        runs, live = self._whole_runs()

        def draw() -> Drawn:
            from experiments.report.page import draw_arms

            return draw_arms(self._so_far(runs, live, {}), self._drawing.check)

        self._arms_drawn = self._drawing.begin(draw)

    def _so_far(
        self,
        runs: Sequence[ArmRun],
        live: Sequence[ArmRun],
        seeds: Mapping[int, Mapping[str, SeedFigures]],
    ) -> Run:
        return run_so_far(
            self._config, self._facts, runs, live, self._results, seeds, self._directory
        )

    def _drawn(self) -> Drawn:
        """The figures of the arms that are drawn; none if that failed: the report tries again."""
        drawn = self._arms_drawn
        if drawn is None or not drawn.done() or drawn.exception() is not None:
            return {}
        return drawn.result()

    def _whole_runs(self) -> tuple[list[ArmRun], list[ArmRun]]:
        """The runs of arms, and the separate live runs, that got to their end."""
        runs, live = (
            [run for run in those if not run.stopped]
            for those in (self.in_order(), self._live_in_order())
        )
        return runs, live

    def _not_yet_live(self) -> list[ArmConfig]:
        return [arm for arm in self._live if arm.name not in self.live_runs]

    def _to_come(self) -> list[str]:
        """What the run has still to do, in words."""
        config, waiting = self._config, self._not_yet_live()
        parts = []
        if waiting:
            parts.append(
                f"{counted(len(waiting), 'live run')}: {', '.join(a.name for a in waiting)}"
            )
        rest = len(config.arms) - len(self.runs)
        if rest and not waiting:
            parts.append(counted(rest, "arm"))
        seeds = range(config.seed, config.seed + config.seeds)
        left = [seed for seed in seeds if len(self.seeds.get(seed, {})) < len(config.arms)]
        if config.seeds > 1 and left:
            parts.append(f"{counted(len(left), 'paired seed')} for confidence intervals")
        if config.frontier.architectures and config.seeds > 1 and not self._has_frontier():
            parts.append("the frontiers of the architectures")
        if config.seeds > 1 and len(self._changed) < len(changed_points(config)):
            parts.append("how far the results depend on decision times")
        return parts

    def _has_frontier(self) -> bool:
        return (self._directory / FRONTIER).exists()

    def _folder(self, slug: str) -> Path:
        return self._directory / "arms" / slug


def _nothing() -> None:
    """What has to be done before a live run where its runner is ready."""
