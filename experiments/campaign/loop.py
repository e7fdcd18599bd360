"""Runs many points, on this machine or on a Ray cluster.

Points are independent and depend on nothing but themselves, so a lost one is simply run again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from experiments.campaign.points import Point
from experiments.campaign.pool import local_map
from experiments.campaign.store import KeptPoints
from experiments.campaign.task import PointFailed, figures_of
from experiments.interruption import Interruption
from experiments.summary_model import SeedFigures
from shared_state.errors import AgoraError


def run_points(
    points: Sequence[Point],
    interruption: Interruption,
    *,
    keep: Path | None = None,
    address: str | None = None,
    processes: int | None = None,
) -> Generator[tuple[Point, SeedFigures], None, None]:
    """Run points and yield the figures of each as they are done, with the object that was given.

    Points are begun in their order. Points with equal keys are run once. Put points of one seed
    side by side: they share the workload.

    Args:
        points: What to run.
        interruption: Looked at several times a second.
        keep: A folder in which the figures of each point are kept as soon as it is done, and from
            which they are taken the next time. It is made if it is missing.
        address: A Ray cluster to run on: HOST:PORT or auto. None: a Ray that this process is
            connected to already, else processes of this machine.
        processes: How many points run at a time; None: one for each processor.

    Raises:
        KeyboardInterrupt: A stop signal was received.
        AgoraError: A point does not get to its end, its process is killed each time, or the cluster
            cannot be used.
    """
    alike: dict[str, list[Point]] = {}
    for point in points:
        alike.setdefault(point.key(), []).append(point)
    kept = None if keep is None else KeptPoints(keep)
    left: list[str] = []
    for key, its in alike.items():
        figures = None if kept is None else kept.get(key)
        if figures is None:
            left.append(key)
            continue
        for point in its:
            yield point, figures
    interruption.check()
    if not left:
        return
    firsts = [alike[key][0] for key in left]
    with (
        _parallel_map(address) as parallel_map,
        contextlib.closing(
            parallel_map(figures_of, firsts, interruption.check, processes)
        ) as results,
    ):
        for index, result in results:
            if isinstance(result, PointFailed):
                raise AgoraError(result.reason)
            key = left[index]
            if kept is not None:
                kept.put(key, firsts[index], result)
            for point in alike[key]:
                yield point, result


def check_address(address: str | None) -> None:
    """Refuse the address of a cluster that cannot be used, before anything runs. Ray is imported
    only if there is an address. Raises AgoraError naming the cause."""
    if address is not None:
        from parsync.runtime.live.address import checked_address

        checked_address(address)


class _ParallelMap(Protocol):
    """Calls a function for every item in other processes; yields (index, result) as they are
    done."""

    def __call__(
        self,
        function: Callable[[Point], SeedFigures | PointFailed],
        items: Sequence[Point],
        check: Callable[[], None],
        processes: int | None,
        /,
    ) -> Generator[tuple[int, SeedFigures | PointFailed], None, None]: ...


@contextlib.contextmanager
def _parallel_map(address: str | None) -> Iterator[_ParallelMap]:
    """Where points run. Ray is imported only if it is used."""
    if address is None and not _on_ray():
        yield local_map
        return
    from parsync.runtime.live.parallel_map import attached, ray_map

    with attached(address, figures_of.__module__):
        yield ray_map


def _on_ray() -> bool:
    """Whether this process is connected to a Ray: not unless it has imported it."""
    cluster = sys.modules.get("parsync.runtime.live.cluster")
    return cluster is not None and bool(cluster.connected())
