"""The figures of a slot simulation by phase, and its time series as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsync.model.slot_results import ConflictsAndScores, SlotResults
from parsync.model.slot_settings import SlotSettings

COLUMNS = (
    "start_s",
    "end_s",
    "group",
    "arrived",
    "claims",
    "conflicts",
    "same_tick_conflicts",
    "quality_conflicts",
    "stale_conflicts",
    "visible_conflicts",
    "commits",
    "delay_mean_s",
    "delay_p10_s",
    "delay_p50_s",
    "delay_p90_s",
    "score_mean",
    "backlog",
    "utilisation",
    "score_in_use",
    "best_score",
)


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """What happened in some time.

    Attributes:
        label: The time, in words.
        group: The schedulers counted, from 0; None: all.
        found: Conflicts per claim, their causes, and the scores of the slots in use.
        delay_mean_s, delay_p90_s: Of the tasks committed then; None if there were none.
        score: Mean score of the slots granted then; None if there were none.
        utilisation: The share of the cell's slot-time in use.
        backlog: Tasks arrived and not committed, at the end.
    """

    label: str
    group: int | None
    found: ConflictsAndScores
    delay_mean_s: float | None
    delay_p90_s: float | None
    score: float | None
    utilisation: float
    backlog: int


def phase_figures(settings: SlotSettings, found: SlotResults) -> list[PhaseFigures]:
    """The figures of each phase, of the time after the last, and of the whole run: of all groups,
    and, where there are several, of each. A bin of time counts where it begins."""
    groups = [None, *range(len(settings.groups))] if len(settings.groups) > 1 else [None]
    return [
        _figures(found, label, bins, group)
        for label, bins in _times(settings, found)
        for group in groups
    ]


def series_rows(found: SlotResults) -> Iterator[tuple[float | int | None, ...]]:
    """A row of COLUMNS for each bin of time and group of schedulers. Utilisation and the scores of
    the slots in use are those of the cell, by all groups."""
    utilisation = found.utilisation()
    for at, (start_ns, end_ns) in enumerate(zip(found.start_ns, found.end_ns, strict=True)):
        bins = slice(at, at + 1)
        cell = found.conflicts_and_scores(bins)
        for group in range(found.commits.shape[1]):
            yield (
                start_ns / 1e9,
                end_ns / 1e9,
                group,
                *(
                    int(column[at, group])
                    for column in (
                        found.arrived,
                        found.claims,
                        found.conflicts,
                        found.same_tick_conflicts,
                        found.quality_conflicts,
                        found.stale_conflicts,
                        found.visible_conflicts,
                        found.commits,
                    )
                ),
                delay_mean_s(found, bins, group),
                *(found.delay_quantile_s(part, bins, group) for part in (0.1, 0.5, 0.9)),
                score_mean(found, bins, group),
                int(found.backlog[at, group]),
                float(utilisation[at]),
                cell.score_in_use,
                cell.best_score,
            )


def delay_mean_s(found: SlotResults, bins: slice, group: int | None) -> float | None:
    """Mean delay of the tasks committed then; None if there were none."""
    mean_ns = _ratio(_sum(found.delay_ns, bins, group), _sum(found.commits, bins, group))
    return None if mean_ns is None else mean_ns / 1e9


def score_mean(found: SlotResults, bins: slice, group: int | None) -> float | None:
    """Mean score of the slots granted then; None if there were none."""
    steps = _ratio(_sum(found.score_steps, bins, group), _sum(found.commits, bins, group))
    return None if steps is None else found.lowest_score + steps * found.score_step


def _times(settings: SlotSettings, found: SlotResults) -> Iterator[tuple[str, slice]]:
    """The bins of each phase, of what is after them, and all."""
    start_s, starts_s = 0.0, found.start_ns / 1e9
    for phase in settings.phases:
        end_s = start_s + phase.duration_s
        first, last = np.searchsorted(starts_s, (start_s, end_s))
        yield f"{start_s:g} to {end_s:g} s", slice(int(first), int(last))
        start_s = end_s
    after = int(np.searchsorted(starts_s, start_s))
    if after < len(starts_s):
        yield f"{start_s:g} to {found.end_ns[-1] / 1e9:.4g} s", slice(after, len(starts_s))
    if len(settings.phases) > 1 or after < len(starts_s):
        yield "whole run", slice(0, len(starts_s))


def _figures(found: SlotResults, label: str, bins: slice, group: int | None) -> PhaseFigures:
    length_ns = (found.end_ns - found.start_ns)[bins].sum()
    backlog = found.backlog[bins][-1:]
    return PhaseFigures(
        label=label,
        group=group,
        found=found.conflicts_and_scores(bins, group),
        delay_mean_s=delay_mean_s(found, bins, group),
        delay_p90_s=found.delay_quantile_s(0.9, bins, group),
        score=score_mean(found, bins, group),
        utilisation=float(found.busy_ns[bins].sum() / max(1, length_ns * found.slots)),
        backlog=_sum(backlog, slice(None), group),
    )


def _sum(column: NDArray[np.int64], bins: slice, group: int | None) -> int:
    """The sum of a column [B, H] over bins, of a group or of all."""
    return int((column[bins] if group is None else column[bins, group]).sum())


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
