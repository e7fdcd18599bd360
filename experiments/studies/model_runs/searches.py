"""Searches for S_extra as runs: how many extra slots a setting needs.

A search may begin with the bracket of one with a similar setting, and under a further seed it
begins with that of the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.statistics import Interval, median_interval
from experiments.campaign.task import Arrays
from experiments.studies.model_runs.run import FIRST_SEED, ModelRun, number
from experiments.studies.model_runs.simulations import expected_decisions, plain_settings, whole_run
from parsync.model.extra_slots import ExtraSlots, ExtraSlotsSearch, find_extra_slots, widened
from parsync.model.slot_settings import SlotSettings

_DECISION_S = 0.3e-6  # of a processor
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
