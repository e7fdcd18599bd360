"""Runs of ParSync's models: simulations and searches whose results are a few small arrays.

They take seconds, not minutes, and need no configuration of the platform. A run may begin with the
results of another one, such as the bracket of a search. The kinds: a simulation of slots, a search
for S_extra, simulated rounds of Eq. 2, and the counts of a workload.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from experiments.analysis.statistics import Interval, median_interval
from experiments.campaign.loop import KeptRuns, missing
from experiments.campaign.task import ARRAYS, Arrays, Measured, Store, Task, content_key
from experiments.config.workload_config import WorkloadConfig
from parsync.model.equations import expected_conflicts
from parsync.model.extra_slots import ExtraSlots, ExtraSlotsSearch, find_extra_slots, widened
from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import ConflictsAndScores, SlotResults, simulate
from parsync.strict_model import deciding
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

FIRST_SEED = 1
FORMAT = 2  # of the arrays that runs keep: one more whenever they change


def numbered_seeds(count: int) -> list[int]:
    """The first seeds, as the option --seeds counts them: 1 to N."""
    return list(range(FIRST_SEED, FIRST_SEED + count))


@dataclass(frozen=True)
class ModelRun(ABC):
    """One run of a model, whatever its seed.

    Attributes:
        label: Its name among others; unique in a figure.
    """

    label: str

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What decides the results besides the seed, as values that JSON has."""

    @abstractmethod
    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """The results under a seed.

        Args:
            seed: Of all random draws.
            before: The results of the run before it; None if there is none.

        Raises:
            AgoraError: A parameter is wrong.
        """

    @property
    @abstractmethod
    def expected_s(self) -> float:
        """About how many seconds of a processor it takes."""

    def run_before(self, seed: int) -> tuple[ModelRun, int] | None:
        """The run, and its seed, whose results this one begins with; None if there is none."""
        return None

    def key(self, seed: int) -> str:
        """The content hash of what decides the results and of their format; not of the label."""
        before = self.run_before(seed)
        content = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "content": self.content(),
            "before": None if before is None else before[0].key(before[1]),
            "seed": seed,
        }
        return content_key(content)


@dataclass(frozen=True)
class DrawnRun(ModelRun):
    """Something that is run several times, with other draws. All fields decide its results, but
    for the label.

    Attributes:
        draws: How many times. Under seed s these are the draws (s - 1) * draws + 1 and following.
    """

    draws: int

    def content(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "label"}
        return {
            name: deciding(value) if isinstance(value, BaseModel) else value
            for name, value in values.items()
        }

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """The numbers of `once`, float64[draws] each.

        Raises:
            AgoraError: A run did not come to its end.
        """
        first = (seed - 1) * self.draws + 1
        found = [self.once(first + place) for place in range(self.draws)]
        return {name: np.array([one[name] for one in found]) for name in found[0]}

    @abstractmethod
    def once(self, draw: int) -> dict[str, float]:
        """What is kept of the run with one draw, by name."""


@dataclass(frozen=True)
class ModelTask(Task[None]):
    """A run under a seed."""

    run: ModelRun
    seed: int

    def named(self) -> tuple[str, int]:
        return self.run.label, self.seed

    def key(self) -> str:
        return self.run.key(self.seed)

    @property
    def keeps(self) -> Collection[str]:
        return (ARRAYS,)

    @property
    def expected_s(self) -> float:
        return self.run.expected_s

    def before(self) -> ModelTask | None:
        before = self.run.run_before(self.seed)
        return None if before is None else ModelTask(*before)

    def measure(self, before: Measured[None] | None) -> Measured[None]:
        try:
            arrays = self.run.measure(self.seed, None if before is None else before.arrays[ARRAYS])
        except AgoraError as error:
            raise AgoraError(f"{self}: {error}") from error
        return Measured(None, {ARRAYS: arrays})


class ModelRuns(KeptRuns[None]):
    """The runs of models that are kept in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Store(folder, NoneType))

    def missing(self, runs: Sequence[ModelRun], seeds: Sequence[int]) -> list[ModelTask]:
        """What has not run yet, each once; nothing before what it begins with."""
        return missing([ModelTask(run, seed) for seed in seeds for run in runs], self._store)

    def results(
        self, runs: Sequence[ModelRun], seeds: Sequence[int]
    ) -> tuple[Mapping[str, Arrays], ...]:
        """The results of runs by label, seed by seed; all of them are done. Raises AgoraError if
        one cannot be read."""
        return tuple(
            {run.label: self.result(run.key(seed), (ARRAYS,)).arrays[ARRAYS] for run in runs}
            for seed in seeds
        )


def number(arrays: Arrays, name: str) -> float | None:
    """A single number among the results; None where there is none (nan)."""
    value = float(arrays[name])
    return None if np.isnan(value) else value


# Of a whole simulation; all runs keep them under the same names.
NAMES = tuple(field.name for field in fields(ConflictsAndScores))
QUANTILES = (0.1, 0.5, 0.9)
_DECISION_S = 0.3e-6  # of a processor


@dataclass(frozen=True)
class SimulationRun(ModelRun):
    """One simulation.

    Attributes:
        settings: Without the seed.
    """

    settings: SlotSettings

    def content(self) -> dict[str, Any]:
        return {"settings": plain_settings(replace(self.settings, seed=FIRST_SEED))}

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        return summary(simulate(replace(self.settings, seed=seed)))

    @property
    def expected_s(self) -> float:
        return _DECISION_S * expected_decisions(self.settings)


def summary(found: SlotResults) -> dict[str, NDArray[Any]]:
    """What is kept of a simulation, over B bins, H groups and L parts of the gap.

    Returns:
        end_s float64[B]; utilisation float64[B]; backlog int64[B, H]; claims, conflicts and commits
        int64[B, H]; slice_claims, slice_conflicts, slice_commits and slice_conflict_delay_s
        [B, H, L]; delay_s and score float64[B, H, 3], the quantiles of the tasks committed in the
        bin, nan where there are none; last_commit_s; ending, as text; and the names of whole_run.
    """
    return {
        "end_s": found.end_ns / 1e9,
        "utilisation": found.utilisation(),
        "backlog": found.backlog,
        "claims": found.claims,
        "conflicts": found.conflicts,
        "commits": found.commits,
        "slice_claims": found.slice_claims,
        "slice_conflicts": found.slice_conflicts,
        "slice_commits": found.slice_commits,
        "slice_conflict_delay_s": found.slice_conflict_delay_ns / 1e9,
        "delay_s": _quantiles(found, found.delay_quantile_s),
        "score": _quantiles(found, found.score_quantile),
        "last_commit_s": np.array(found.last_commit_s),
        "ending": np.array(found.ending.name.lower()),
        **whole_run(found.conflicts_and_scores()),
    }


def _quantiles(
    found: SlotResults, quantile_of: Callable[[float, slice, int], float | None]
) -> NDArray[np.float64]:
    bins, groups = found.commits.shape
    values = np.full((bins, groups, len(QUANTILES)), np.nan)
    for at in range(bins):
        for group in range(groups):
            for place, fraction in enumerate(QUANTILES):
                value = quantile_of(fraction, slice(at, at + 1), group)
                values[at, group, place] = np.nan if value is None else value
    return values


def plain_settings(settings: SlotSettings | ExtraSlotsSearch) -> dict[str, Any]:
    """The fields of settings; members of enums by their names, so that a key does not depend on
    their numbers."""
    plain: dict[str, Any] = _plain(asdict(settings))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def expected_decisions(settings: SlotSettings) -> float:
    """About how many decisions a simulation makes: more where more schedulers can retry."""
    arrivals, capacity = 0.0, 0.0
    for index, group in enumerate(settings.groups):
        arrivals += sum(phase.duration_s * phase.rate_per_s[index] for phase in settings.phases)
        capacity += group.schedulers * settings.submission_s / group.decision_s
    return min(capacity, 4 * arrivals)


def whole_run(found: ConflictsAndScores | None) -> dict[str, NDArray[Any]]:
    """Why claims conflicted, and how good the slots in use were: an array of one float64 for each
    of NAMES, nan where it is not known.

    Args:
        found: Of the run; None if there was none.
    """
    values = {name: None if found is None else getattr(found, name) for name in NAMES}
    return {
        name: np.array(np.nan if value is None else float(value)) for name, value in values.items()
    }


_RUNS = 6.0  # of whole length in a search
_NEIGHBOUR = 3  # how many times as much, or less, a neighbouring setting may need


@dataclass(frozen=True)
class SearchRun(ModelRun):
    """A search for S_extra.

    Attributes:
        settings: Without the seed, and without extra slots.
        search: What keeping up means, and how closely to look.
        neighbour: The search with a similar setting whose bracket this one begins with. Not used
            where more slots do not always help (freed_at_once).
    """

    settings: SlotSettings
    search: ExtraSlotsSearch
    neighbour: SearchRun | None = None

    def content(self) -> dict[str, Any]:
        settings = plain_settings(replace(self.settings, seed=FIRST_SEED, extra_slots=0))
        return {"settings": settings, "search": plain_settings(self.search)}

    def run_before(self, seed: int) -> tuple[ModelRun, int] | None:
        if self.settings.freed_at_once:
            return None
        if seed != FIRST_SEED:
            return self, FIRST_SEED
        return None if self.neighbour is None else (self.neighbour, FIRST_SEED)

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        settings = replace(self.settings, seed=seed)
        bracket = None if before is None else self._bracket(seed, before)
        found = find_extra_slots(settings, self.search, bracket)
        at_answer = whole_run(found.found)
        return {"slots": np.array(settings.slots), **_arrays(found), **at_answer}

    @property
    def expected_s(self) -> float:
        return _RUNS * _DECISION_S * expected_decisions(self.settings)

    def _bracket(self, seed: int, before: Arrays) -> tuple[int, int] | None:
        low, high = number(before, "too_few"), number(before, "least")
        if low is None or high is None:
            return None
        if seed != FIRST_SEED:
            return widened((int(low), int(high)), self.search)
        return int(low) // _NEIGHBOUR, min(_NEIGHBOUR * int(high), self.search.largest)


def chained(
    values: Sequence[float], start: float, make: Callable[[float, SearchRun | None], SearchRun]
) -> list[SearchRun]:
    """A search for each value of a parameter. That of `start` begins with nothing; the others begin
    with its bracket, or with that of their neighbour towards it.

    Args:
        values: Different ones, `start` among them.
        make: The search of a value, and the neighbour that it begins with.
    """
    first = make(start, None)
    runs = [first]
    below = sorted((value for value in values if value < start), reverse=True)
    above = sorted(value for value in values if value > start)
    for side in (below, above):
        neighbour = first
        for value in side:
            neighbour = make(value, neighbour)
            runs.append(neighbour)
    return runs


def extra_slots(arrays: Arrays) -> float | None:
    """S_extra of a search; None if it found none."""
    return number(arrays, "least")


def extra_slots_interval(seeds: Sequence[Arrays]) -> Interval:
    """The median of S_extra over seeds, with its interval; none if a search found nothing.

    Each search knows its exact answer only to lie above the largest count that is too few and not
    above the count that it gives. So the lower limit is one of the counts that are too few: the
    interval has a width even if all seeds give the same count."""
    found = median_interval([extra_slots(arrays) for arrays in seeds])
    low = median_interval([_too_few(arrays) for arrays in seeds]).low
    if found.low is None or low is None:
        return found
    return found.model_copy(update={"low": low})


def _too_few(arrays: Arrays) -> float | None:
    """The largest count known to be too few; S_extra itself if none is."""
    too_few = number(arrays, "too_few")
    return extra_slots(arrays) if too_few is None else too_few


def _arrays(found: ExtraSlots) -> dict[str, NDArray[Any]]:
    """least and too_few, nan where there is none; reason; the simulations: extra_slots int64[n],
    keeps_up bool[n], last_commit_s float64[n]; islands int64[k]."""
    return {
        "least": np.array(np.nan if found.least is None else float(found.least)),
        "too_few": np.array(np.nan if found.too_few is None else float(found.too_few)),
        "reason": np.array(found.reason),
        "islands": np.array(found.islands, np.int64),
        "extra_slots": np.array([probe.extra_slots for probe in found.probes], np.int64),
        "keeps_up": np.array([probe.keeps_up for probe in found.probes], np.bool_),
        "last_commit_s": np.array([probe.last_commit_s for probe in found.probes], np.float64),
    }


_PICK_S = 0.1e-6  # of a processor, for each idle slot that a scheduler draws from


@dataclass(frozen=True)
class RoundsRun(ModelRun):
    """Rounds in which each scheduler picks slots uniformly, without replacement.

    Attributes:
        schedulers: A N.
        tasks: K / A of each.
        idle_slots: S_idle.
        rounds: How many rounds; at least 2.
    """

    schedulers: int
    tasks: int
    idle_slots: int
    rounds: int

    def content(self) -> dict[str, Any]:
        names = ("schedulers", "tasks", "idle_slots", "rounds")
        return {name: getattr(self, name) for name in names}

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """mean, error (standard error of the mean), and expected (Eq. 2): conflicts of a round."""
        rng = np.random.default_rng([seed, self.schedulers, self.tasks, self.idle_slots])
        conflicts = [self._conflicts(rng) for _ in range(self.rounds)]
        error = np.std(conflicts, ddof=1) / np.sqrt(self.rounds)
        return {
            "mean": np.array(np.mean(conflicts)),
            "error": np.array(error),
            "expected": expected_conflicts(self.schedulers, self.tasks, self.idle_slots),
        }

    @property
    def expected_s(self) -> float:
        return _PICK_S * self.rounds * self.schedulers * self.idle_slots

    def _conflicts(self, rng: np.random.Generator) -> int:
        picked = np.zeros(self.idle_slots, np.bool_)
        for _ in range(self.schedulers):
            picked[rng.choice(self.idle_slots, self.tasks, replace=False, shuffle=False)] = True
        return self.schedulers * self.tasks - int(picked.sum())


# The ends of the bins of run times in seconds: ten for each factor of ten.
RUN_TIME_ENDS_S = 10.0 ** (np.arange(-10, 41) / 10)
_TASK_S = 1e-6  # of a processor


@dataclass(frozen=True)
class WorkloadRun(ModelRun):
    """The arrivals and the run times of one workload.

    Attributes:
        workload: The kind and its options.
    """

    workload: WorkloadConfig

    def content(self) -> dict[str, Any]:
        return {"workload": self.workload.model_dump(mode="json")}

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        return counts(self.workload.make(seed))

    @property
    def expected_s(self) -> float:
        outline = self.workload.outline()
        return 1.0 if outline is None else _TASK_S * outline.tasks


def counts(workload: Workload) -> dict[str, NDArray[Any]]:
    """The counts of a workload, over S seconds and B bins of run times.

    Tasks that run at time 0 do not arrive, so they do not count. A job arrives with its first task.

    Returns:
        phase_end_s float64[L], of the load phases; tasks and jobs int64[S], that arrive in each
        second up to the end of the last phase; run_time_end_s float64[B], and shorter int64[B]:
        tasks with a run time below each; longer_than_run: tasks that outlast the run.
    """
    rows = workload.arrival_rows
    batch = np.repeat(np.arange(len(workload.arrival_us)), np.diff(workload.arrival_offsets))
    second = workload.arrival_us // 1_000_000
    end_us = workload.phases[-1].end_us
    seconds = -(-end_us // 1_000_000)
    # Batches are in the order of time, so the first row of a job is its arrival.
    _, first = np.unique(workload.tasks.job[rows], return_index=True)
    run_us = workload.duration_us[rows]
    finite_s = np.sort(run_us[run_us >= 0]) / 1e6
    return {
        "phase_end_s": np.array([phase.end_us / 1e6 for phase in workload.phases]),
        "tasks": np.bincount(second[batch], minlength=seconds)[:seconds],
        "jobs": np.bincount(second[batch[first]], minlength=seconds)[:seconds],
        "run_time_end_s": RUN_TIME_ENDS_S,
        "shorter": np.searchsorted(finite_s, RUN_TIME_ENDS_S, side="left"),
        "longer_than_run": np.array(np.count_nonzero(run_us < 0)),
    }
