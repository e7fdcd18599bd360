"""A parallel map over processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import TypeVar

from experiments.interruption import stop_signals_kept_from_children
from experiments.processors import processors
from parsync.runtime.orphans import end_with_parent
from shared_state.errors import AgoraError

POLL_S = 0.1  # for a stop signal
ATTEMPTS = 3  # at an item whose process is killed

Item = TypeVar("Item")
Result = TypeVar("Result")


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
