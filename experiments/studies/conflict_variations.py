"""What `agora model` varies around a setting, and the conflicts that are expected there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parsync.model.equations import (
    Float64,
    conflicts_with_countless_schedulers,
    expected_conflicts,
    expected_weighted_conflicts,
    score_classes,
    weighted_conflicts_with_countless_schedulers,
)

_CURVE_POINTS = 81
_EXTRA_SHARES = (0.0, 0.05, 0.1, 0.2, 0.5)  # of the cell's slots
_LOADS_PERCENT = (0.0, 50.0, 80.0, 90.0, 95.0, 99.0)
_MOST_SCHEDULERS = 4  # times those of the setting
_LEAST_FACTOR = 8.0  # up to which A is drawn at least, as in the paper


@dataclass(frozen=True, slots=True)
class RoundSetting:
    """A cell and its schedulers at the beginning of a round.

    Attributes:
        schedulers: N.
        tasks: K, that each scheduler places in the round.
        slots: S, of the cell.
        load_percent: Share of the slots that are taken.
        score_variance: V of the slots' scores; 0 if slots are all alike.
        extra_slots: S_extra, further slots, all idle.
    """

    schedulers: int
    tasks: float
    slots: int
    load_percent: float
    score_variance: float
    extra_slots: int = 0

    @property
    def idle_slots(self) -> int:
        """S_idle."""
        return self.slots - round(self.slots * self.load_percent / 100) + self.extra_slots

    @property
    def claims(self) -> float:
        """N K."""
        return self.schedulers * self.tasks

    @property
    def highest_load_percent(self) -> float:
        """The load that leaves as many idle slots as a scheduler has tasks."""
        return 100 * (1 - self.tasks / (self.slots + self.extra_slots))


@dataclass(frozen=True, slots=True)
class Limit:
    """The conflicts that are approached as a parameter grows."""

    conflicts: float
    weighted_conflicts: float


@dataclass(frozen=True, slots=True)
class Variation:
    """A setting with different values of one parameter.

    Attributes:
        label: The parameter's name.
        own_value: The parameter's value in the setting itself.
        values: The parameter's values.
        value_texts: These in words.
        settings: The setting with each value.
        limit: Where conflicts have one.
    """

    label: str
    own_value: float
    values: tuple[float, ...]
    value_texts: tuple[str, ...]
    settings: tuple[RoundSetting, ...]
    limit: Limit | None = None

    def conflicts(self) -> Float64:
        """The expected conflicts if slots are all alike, Eq. 2: float64 [values]."""
        schedulers, tasks, idle_slots = self._columns()
        return expected_conflicts(schedulers, tasks, idle_slots)

    def weighted_conflicts(self) -> Float64:
        """The expected conflicts if slots are drawn by their scores: float64 [values]."""
        schedulers, tasks, idle_slots = self._columns()
        weights, shares = score_classes(self.settings[0].score_variance, 1)
        slots = idle_slots[:, None] * shares
        # the sum of shares may be just below 1
        return expected_weighted_conflicts(
            schedulers, np.minimum(tasks, slots.sum(axis=-1)), weights, slots
        )

    def claims(self) -> Float64:
        """Claims of a round: float64 [values]."""
        return np.array([one.claims for one in self.settings])

    def _columns(self) -> Float64:
        return np.array(
            [(one.schedulers, one.tasks, one.idle_slots) for one in self.settings], np.float64
        ).T


def table_variations(setting: RoundSetting, factors: Sequence[float]) -> list[Variation]:
    """Some values of each parameter, the setting's own among them.

    Args:
        factors: Values of A.
    """
    n = setting.schedulers
    loads = [
        one
        for one in _LOADS_PERCENT
        if replace(setting, load_percent=one).idle_slots >= setting.tasks
    ]
    return [
        by_schedulers(setting, sorted({1, -(-n // 2), n, 2 * n, _MOST_SCHEDULERS * n})),
        by_extra_slots(setting, sorted({round(setting.slots * one) for one in _EXTRA_SHARES})),
        by_load(setting, sorted({*loads, setting.load_percent})),
        by_factor(setting, sorted(set(factors))),
    ]


def curves(setting: RoundSetting, factors: Sequence[float]) -> list[Variation]:
    """As table_variations, with many values of each parameter."""
    n, most = setting.schedulers, setting.schedulers * _MOST_SCHEDULERS
    highest = max(*factors, _LEAST_FACTOR)
    return [
        by_schedulers(setting, _whole(1, most)),
        by_extra_slots(setting, _whole(0, setting.slots * max(_EXTRA_SHARES))),
        by_load(setting, np.linspace(0, setting.highest_load_percent, _CURVE_POINTS).tolist()),
        by_factor(setting, [number / n for number in _whole(n, highest * n)]),
    ]


def by_schedulers(setting: RoundSetting, values: Sequence[int]) -> Variation:
    """More schedulers for more tasks: each has K, as before."""
    return Variation(
        "Schedulers N, K each",
        setting.schedulers,
        tuple(values),
        tuple(f"N = {one:,}" for one in values),
        tuple(replace(setting, schedulers=one) for one in values),
    )


def by_extra_slots(setting: RoundSetting, values: Sequence[int]) -> Variation:
    """More slots, which are all idle."""
    return Variation(
        "Extra slots, idle",
        setting.extra_slots,
        tuple(values),
        tuple(f"+{one:,}" for one in values),
        tuple(replace(setting, extra_slots=one) for one in values),
    )


def by_load(setting: RoundSetting, values: Sequence[float]) -> Variation:
    """Other shares of slots that are taken; the tasks to place stay as many."""
    return Variation(
        "Load: slots taken (%)",
        setting.load_percent,
        tuple(values),
        tuple(f"{one:g} %" for one in values),
        tuple(replace(setting, load_percent=one) for one in values),
    )


def by_factor(setting: RoundSetting, values: Sequence[float]) -> Variation:
    """More schedulers for the same tasks, Eq. 3."""
    n, k = setting.schedulers, setting.tasks
    classes = score_classes(setting.score_variance, setting.idle_slots)
    return Variation(
        "Factor A, same tasks",
        1,
        tuple(values),
        tuple(f"A = {one:g}" for one in values),
        tuple(replace(setting, schedulers=round(one * n), tasks=k / one) for one in values),
        Limit(
            float(conflicts_with_countless_schedulers(n, k, setting.idle_slots)),
            float(weighted_conflicts_with_countless_schedulers(n, k, *classes)),
        ),
    )


def _whole(low: float, high: float) -> list[int]:
    """At most _CURVE_POINTS whole numbers from low to high."""
    return sorted({round(one) for one in np.linspace(low, high, _CURVE_POINTS)})
