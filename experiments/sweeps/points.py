"""The points of sweeps: runs of one arm in virtual time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from experiments.config import RunConfig
from parsync.spec.arm import ArmConfig
from parsync.strict_model import deciding

FORMAT = 3  # of kept figures: raised when the same configuration and seed give other figures


@dataclass(frozen=True, slots=True)
class Point:
    """One run of one arm in virtual time.

    Args:
        config: Everything but the arm and the seed; its arms may be others.
        arm: The arm.
        seed: Of the workload and of all the arm's random draws.
    """

    config: RunConfig
    arm: ArmConfig
    seed: int

    def __str__(self) -> str:
        return f"'{self.arm.name}', seed {self.seed}"

    def key(self) -> str:
        """The content hash of what decides the figures and of FORMAT, 32 hexadecimal digits.

        Fields that are marked NO_EFFECT do not count, nor does the version of Agora. Files that the
        workload reads count by size and time of change.
        """
        content = {
            "format": FORMAT,
            "config": deciding(self.config),
            "arm": deciding(self.arm),
            "files": self.config.workload.file_stamps,
            "seed": self.seed,
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def paired_points(config: RunConfig) -> list[Point]:
    """Every arm of a configuration under each of its seeds, seed by seed."""
    return [
        Point(config, arm, config.seed + place)
        for place in range(config.seeds)
        for arm in config.arms
    ]
