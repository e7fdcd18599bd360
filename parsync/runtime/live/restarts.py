"""StatusLine was away in a live run, from when on, and for how long: told by the logs."""

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
    """An actor that lost its process. at_us: run time of its last sign of life. away_us: from then
    until the cell heard of its next epoch (of the cell itself: until it went on); None if the run
    ended before."""

    actor: str
    at_us: int
    away_us: int | None


def restarts(directory: Path, lost: Collection[str]) -> tuple[Restart, ...]:
    """Every restart in the run whose logs are in `directory`, in order of time. lost: actors that
    were gone at its end. Errors as read_cell_log.

    Two epochs between two steps of a host are one restart; one before its first step is at 0.
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
    """Of the actor's epochs; stepped: of the first that the cell heard of."""
    return min((epoch for epoch, _ in handled_logs(directory, name)), default=stepped)


def _last_handled_us(directory: Path, name: str) -> int:
    """When an actor handled the last event that it has on record."""
    logs = (path for _, path in handled_logs(directory, name))
    return max((at_us for path in logs for at_us in handled_times_us(path)), default=0)
