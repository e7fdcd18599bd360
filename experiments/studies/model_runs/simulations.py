"""Single slot simulations as runs, and what the other runs of models share with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.studies.model_runs.run import FIRST_SEED, ModelRun
from parsync.model.extra_slots import ExtraSlotsSearch
from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import ConflictsAndScores, SlotResults, simulate

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
