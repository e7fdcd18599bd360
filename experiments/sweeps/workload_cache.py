"""The workload that a process made last, so that the arms of a seed share it."""

from __future__ import annotations

from functools import cache

from experiments.config import RunConfig
from experiments.running import make_workload
from parsync.workload.workload import Workload


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
