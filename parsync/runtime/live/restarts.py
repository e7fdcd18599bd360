"""The restarts of a live run's actors, found in its logs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from parsync.core.addresses import ARRIVALS, COORDINATOR, WORKERS
from parsync.runtime.live.cell_log import CELL_LOG, Frame, read_cell_log
from parsync.runtime.live.handled_log import handled_logs, handled_times_us
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL
from parsync.runtime.live.steps import head_of

_OTHERS = {WORKERS: WORKER_POOL, ARRIVALS: SOURCE, COORDINATOR: COORDINATOR_NAME}


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of an actor.

    Attributes:
        actor: Its name.
        at_us: Run time of the last event that is known of the process that ended.
        away_us: From then until the first step of its next epoch; of the cell: until its next
            epoch began. None if the run ended before.
    """

    actor: str
    at_us: int
    away_us: int | None


def restarts(directory: Path, lost: Collection[str]) -> tuple[Restart, ...]:
    """Every restart of a run, in order of time.

    Two restarts between two steps of a host count as one. A restart before its first step is at 0.

    Args:
        directory: Of the run's logs.
        lost: Actors that were gone at the end of the run.

    Raises:
        AgoraError: As read_cell_log.
    """
    frames = read_cell_log(directory / CELL_LOG)
    names = _OTHERS | {host: name for host, name, _ in next(frames)[2]}
    found: list[Restart] = []
    last_us: dict[int, int] = {}
    epoch_of: dict[int, int] = {}
    now_us = 0
    for frame in frames:
        if frame[0] == Frame.EPOCH:
            if frame[1] > 0:
                found.append(Restart(CELL, now_us, max(0, frame[2] - now_us)))
            now_us = frame[2]
            continue
        now_us = frame[1]
        host, epoch, _ = head_of(frame[2])
        if host not in epoch_of:
            epoch_of[host] = _first_epoch(directory, names[host], epoch)
        if epoch_of[host] != epoch:
            before_us = last_us.get(host, 0)
            found.append(Restart(names[host], before_us, max(0, now_us - before_us)))
            epoch_of[host] = epoch
        last_us[host] = now_us
    heard_us = {names[host]: at_us for host, at_us in last_us.items()} | {CELL: now_us}
    for name in lost:
        at_us = max(heard_us.get(name, 0), _last_handled_us(directory, name))
        found.append(Restart(name, at_us, None))
    return tuple(sorted(found, key=lambda restart: (restart.at_us, restart.actor)))


def _first_epoch(directory: Path, name: str, stepped: int) -> int:
    """The actor's first epoch.

    Args:
        stepped: The first epoch from which the cell had a step.
    """
    return min((epoch for epoch, _ in handled_logs(directory, name)), default=stepped)


def _last_handled_us(directory: Path, name: str) -> int:
    """When an actor handled the last event that it has on record."""
    logs = (path for _, path in handled_logs(directory, name))
    return max((at_us for path in logs for at_us in handled_times_us(path)), default=0)
