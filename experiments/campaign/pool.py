"""Pools: where the tasks of a campaign run.

Processes of this machine, the workers of a Ray cluster, or for arms that run live this process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Protocol, TypeVar

from experiments.campaign.orphans import end_with_parent
from experiments.campaign.task import F, Failed, Job, Measured, outcome
from experiments.interruption import stop_signals_kept_from_children
from experiments.processors import processors
from shared_state.errors import AgoraError

POLL_S = 0.1  # for a stop signal
ATTEMPTS = 3  # at an item whose process is killed

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Protocol):
    """Runs jobs, begun in their order, and yields (index, outcome) as they are done.

    check is called several times a second, and what it raises ends the jobs. So does the end of the
    iteration. Raises AgoraError if a job's process is lost each time, or the pool cannot be used.
    """

    def __call__(
        self, jobs: Sequence[Job[F]], check: Callable[[], None], /
    ) -> Generator[tuple[int, Measured[F] | Failed], None, None]: ...


@dataclass(frozen=True, slots=True)
class Processes:
    """The pool of processes of this machine. at_a_time: None: one for each processor."""

    at_a_time: int | None = None

    def __call__(
        self, jobs: Sequence[Job[F]], check: Callable[[], None], /
    ) -> Generator[tuple[int, Measured[F] | Failed], None, None]:
        """As Pool."""
        return local_map(outcome, jobs, check, self.at_a_time)


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The pool of workers of a Ray cluster, which is imported only if it is used.

    Args:
        address: HOST:PORT or auto; None: the Ray that this process is connected to.
    """

    address: str | None

    def __call__(
        self, jobs: Sequence[Job[F]], check: Callable[[], None], /
    ) -> Generator[tuple[int, Measured[F] | Failed], None, None]:
        """As Pool."""
        if not jobs:
            return
        from parsync.runtime.live.ray_glue.parallel_map import attached, ray_map

        with (
            attached(self.address, type(jobs[0].task).__module__),
            contextlib.closing(ray_map(outcome, jobs, check)) as outcomes,
        ):
            yield from outcomes


def this_process(
    jobs: Sequence[Job[F]], check: Callable[[], None], /
) -> Generator[tuple[int, Measured[F] | Failed], None, None]:
    """The pool of tasks that need what only this process has, such as the runner of live arms: one
    after the other, looking at a stop signal themselves."""
    for index, job in enumerate(jobs):
        check()
        yield index, outcome(job)


def pool_at(address: str | None) -> Pool:
    """The cluster at an address; without one, the Ray that this process is connected to already, or
    processes of this machine."""
    # who is connected has imported it
    cluster = sys.modules.get("parsync.runtime.live.ray_glue.cluster")
    connected = cluster is not None and bool(cluster.connected())
    return RayCluster(address) if address is not None or connected else Processes()


def check_address(address: str | None) -> None:
    """Refuse the address of a cluster that cannot be used, before anything runs. Ray is imported
    only if there is an address. Raises AgoraError naming the cause."""
    if address is not None:
        from parsync.runtime.live.ray_glue.cluster import checked_address

        checked_address(address)


def local_map(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    check: Callable[[], None],
    processes: int | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Call a function for every item in processes of this machine; yield (index, result) as they
    are done.

    The processes do not hear stop signals; they end when the iteration or this process does. If one
    is killed, most often for lack of memory, what ran then runs again with half as many processes.

    Args:
        function: Of a module, so that other processes can import it. Raises nothing.
        items: Begun in this order; str(item) names one.
        check: Called several times a second; what it raises ends the map.
        processes: How many; None: one for each processor that this process may use.

    Raises:
        AgoraError: A process was killed at each attempt at an item.
    """
    waiting = deque(range(len(items)))
    killed: Counter[int] = Counter()
    most = min(processes or processors(), len(items))
    while waiting:
        lost: list[int] = []  # whose process was killed, or another one of the pool
        running: dict[Future[Result], int] = {}
        with _pool(most) as pool:
            while running or (waiting and not lost):
                with stop_signals_kept_from_children():  # the pool starts processes in submit()
                    # No more than can run: the others need not run again if a process is killed.
                    while waiting and not lost and len(running) < most:
                        index = waiting.popleft()
                        try:
                            running[pool.submit(function, items[index])] = index
                        except BrokenProcessPool:
                            lost.append(index)
                done, _ = wait(running, POLL_S, FIRST_COMPLETED)
                for future in done:
                    index = running.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        lost.append(index)
                    else:
                        yield index, result
                check()
        killed.update(lost)
        for index in sorted(lost, reverse=True):
            if killed[index] == ATTEMPTS:
                raise AgoraError(
                    f"{items[index]}: its process was killed {ATTEMPTS} times, perhaps for lack of "
                    "memory"
                )
            waiting.appendleft(index)
        most = max(1, most // 2)


@contextlib.contextmanager
def _pool(processes: int) -> Generator[ProcessPoolExecutor, None, None]:
    """A pool whose processes are killed at the end of the block."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with stop_signals_kept_from_children():  # the pool's locks start Python's resource tracker
        pool = ProcessPoolExecutor(processes, context, end_with_parent, (os.getpid(),))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        _kill(others)


def _kill(others: Set[BaseProcess]) -> None:
    """Kill this process's children, all but the others."""
    for process in set(multiprocessing.active_children()) - others:
        process.kill()  # the one signal they hear
