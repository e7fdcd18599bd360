"""Simulated rounds of the conflict model: a Monte Carlo check of ParSync's Eq. 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.studies.model_runs.run import ModelRun
from parsync.model.equations import expected_conflicts

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
