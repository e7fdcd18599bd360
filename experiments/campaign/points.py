"""Points: runs of one arm in virtual time, the tasks of sweeps, frontiers and paired seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.expected_time import on_this_machine_s
from experiments.campaign.loop import Pool, missing, pool_at, run_tasks
from experiments.campaign.running import figures_of_run, make_workload, seed_run
from experiments.campaign.task import Arrays, Measured, Store, Task, content_key
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from parsync.metrics.run_metrics import RunMetrics
from parsync.spec.arm import ArmConfig
from parsync.spec.former_kinds import group_as_keyed
from parsync.strict_model import deciding
from parsync.workload.workload import Workload

KEPT = "points"  # the folder of a sweep's or a frontier's results
FORMAT = 3  # of kept figures: raised when the same configuration and seed give other figures


@dataclass(frozen=True)
class Point(Task[SeedFigures]):
    """One run of one arm in virtual time.

    Args:
        config: Everything but the arm and the seed; its arms may be others.
        arm: The arm.
        seed: Of the workload and of all the arm's random draws.
        arrays: What is measured beside the figures: functions of modules, by the name under which
            their arrays are kept.
    """

    config: RunConfig
    arm: ArmConfig
    seed: int
    arrays: Mapping[str, Callable[[RunMetrics, Workload], Arrays]] = field(default_factory=dict)

    @property
    def keeps(self) -> Collection[str]:
        return self.arrays.keys()

    def also(self, other: Point) -> Point:
        return replace(self, arrays={**self.arrays, **other.arrays})

    def named(self) -> tuple[str, int]:
        return self.arm.name, self.seed

    def key(self) -> str:
        """The content hash of what decides the figures and of FORMAT.

        Fields that are marked NO_EFFECT do not count, nor does the version of Agora. Files that the
        workload reads count by size and time of change. A kind of scheduler that had another name
        counts by that one.
        """
        arm = deciding(self.arm)
        content = {
            "format": FORMAT,
            "config": deciding(self.config),
            "arm": {**arm, "groups": [group_as_keyed(group) for group in arm["groups"]]},
            "files": self.config.workload.file_stamps,
            "seed": self.seed,
        }
        return content_key(content)

    def measure(self, before: Measured[SeedFigures] | None) -> Measured[SeedFigures]:
        workload = workload_cache().make(self.config, self.seed)
        run = seed_run(self.config, self.arm, self.seed, workload)
        arrays = {name: its(run.metrics, workload) for name, its in self.arrays.items()}
        return Measured(figures_of_run(run, workload), arrays)


def paired_points(config: RunConfig) -> list[Point]:
    """Every arm of a configuration under each of its seeds, seed by seed."""
    return [
        Point(config, arm, config.seed + place)
        for place in range(config.seeds)
        for arm in config.arms
    ]


@dataclass(frozen=True, slots=True)
class Outlook:
    """How many runs of a sweep or a frontier are left, and about how long they take.

    Attributes:
        keys: Of all points, in their order. Points that are alike are one run.
        left: The keys of those that are not kept.
        processor_s: About how many seconds of a processor these take.
    """

    keys: Sequence[str]
    left: frozenset[str]
    processor_s: float

    @classmethod
    def of(
        cls, points: Sequence[Point], expected_s: Sequence[float], store: Store[SeedFigures] | None
    ) -> Outlook:
        """The outlook on points, each with about how long it takes."""
        keys = [point.key() for point in points]
        by_key = dict(zip(keys, expected_s, strict=True))
        left = frozenset(point.key() for point in missing(points, store))
        return cls(keys, left, sum(one_s for key, one_s in by_key.items() if key in left))

    @property
    def here_s(self) -> float:
        """About how many seconds they take on this machine."""
        return on_this_machine_s(self.processor_s, len(self.left))


def store_in(directory: Path) -> Store[SeedFigures]:
    """Where a sweep or a frontier with this directory keeps its results."""
    return Store(directory / KEPT, SeedFigures)


def run_points(
    points: Sequence[Point],
    interruption: Interruption,
    *,
    keep: Path | None = None,
    pool: Pool | None = None,
) -> Generator[tuple[Point, SeedFigures], None, None]:
    """Run points and yield the figures of each as they are done, with the object that was given.

    As run_tasks. Put points of one seed side by side: they share the workload.

    Args:
        keep: A folder in which the figures of each point are kept.
        pool: None: the Ray that this process is connected to, else processes of this machine.
    """
    store = None if keep is None else Store(keep, SeedFigures)
    runs = run_tasks(points, interruption, store=store, pool=pool or pool_at(None))
    with contextlib.closing(runs):
        for index, measured in runs:
            yield points[index], measured.figures


class WorkloadCache:
    """Keeps one workload: there is never room for two."""

    def __init__(self) -> None:
        self._made_from: tuple[str, float, int] | None = None
        self._workload: Workload | None = None

    def make(self, config: RunConfig, seed: int) -> Workload:
        """The workload of this configuration and seed. Errors as make_workload."""
        made_from = (config.workload.model_dump_json(), config.settle_s, seed)
        if self._workload is None or made_from != self._made_from:
            self._workload = None
            self._workload = make_workload(config, seed)
            self._made_from = made_from
        return self._workload


@cache
def workload_cache() -> WorkloadCache:
    """The cache of this process. A worker keeps it from one item of a map to the next, since a map
    hands it nothing but items."""
    return WorkloadCache()
