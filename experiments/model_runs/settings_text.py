"""Settings of models as values that JSON has."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import Any

from parsync.model.extra_slots import ExtraSlotsSearch
from parsync.model.slot_settings import SlotSettings


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
