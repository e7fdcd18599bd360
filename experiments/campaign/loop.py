"""The one loop over many tasks: what is missing runs, is kept as soon as it is done, and goes on
where it was stopped; and the pools where tasks run: processes of this machine, the workers of a Ray
cluster, or for arms that run live this process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

from experiments.campaign.orphans import end_with_parent
from experiments.campaign.progress import processors
from experiments.campaign.task import F, Failed, Job, Measured, Store, Task, outcome
from experiments.interruption import Interruption, stop_signals_kept_from_children
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


T = TypeVar("T", bound=Task[Any])

_PROCESSES = Processes()


def missing(tasks: Sequence[T], store: Store[Any] | None) -> list[T]:
    """What has to run: the tasks whose results are not kept, each once, in their order; none
    stands before the one that it begins with."""
    found: dict[str, T] = {}

    def add(task: T) -> None:
        key = task.key()
        if key in found:
            found[key] = found[key].also(task)
        elif _kept(task, store) is None:
            if (before := task.before()) is not None:
                add(before)
            found[key] = task

    for task in tasks:
        add(task)
    return list(found.values())


def run_tasks(
    tasks: Sequence[Task[F]],
    interruption: Interruption,
    *,
    store: Store[F] | None = None,
    pool: Pool = _PROCESSES,
) -> Generator[tuple[int, Measured[F]], None, None]:
    """Run tasks, and yield (index, result) as they are done: first those that are kept.

    Tasks are begun in their order, those that take longest first where they say how long, but none
    before the one that it begins with, which is kept or among them. Tasks with equal keys are run
    once.

    Args:
        tasks: What to run.
        interruption: Looked at several times a second.
        store: Where results are kept as soon as they are there, and taken from the next time.
        pool: Where tasks run.

    Raises:
        KeyboardInterrupt: A stop signal was received. What is done is kept.
        AgoraError: A task does not get to its end, its process is killed each time, or its result
            cannot be kept.
    """
    alike: dict[str, list[int]] = {}
    left: dict[str, Task[F]] = {}
    for index, task in enumerate(tasks):
        key = task.key()
        alike.setdefault(key, []).append(index)
        left[key] = left[key].also(task) if key in left else task
    if store is not None:
        store.make()
        for key, task in list(left.items()):
            if (measured := _kept(task, store)) is not None:
                del left[key]
                for index in alike[key]:
                    yield index, measured
    interruption.check()
    begun_with: dict[str, Measured[F]] = {}  # the results that other tasks begin with
    while left:
        ready = {key: task for key, task in left.items() if not _waits(task, left)}
        left = {key: task for key, task in left.items() if key not in ready}
        wanted = {before.key() for task in left.values() if (before := task.before()) is not None}
        keys = sorted(ready, key=lambda key: -ready[key].expected_s)
        jobs = [Job(ready[key], _before(ready[key], begun_with, store)) for key in keys]
        with contextlib.closing(pool(jobs, interruption.check)) as outcomes:
            for place, result in outcomes:
                if isinstance(result, Failed):
                    raise AgoraError(result.reason)
                key = keys[place]
                if store is not None:
                    store.put(key, ready[key], result)
                if key in wanted:
                    begun_with[key] = result
                for index in alike[key]:
                    yield index, result


def _kept(task: Task[F], store: Store[F] | None) -> Measured[F] | None:
    """The result that is kept of a task, if it will do."""
    measured = None if store is None else store.get(task.key(), task.keeps)
    return measured if measured is not None and task.accepts(measured) else None


def _waits(task: Task[F], left: dict[str, Task[F]]) -> bool:
    """Whether the task that this one begins with has still to run."""
    before = task.before()
    return before is not None and before.key() in left


def _before(
    task: Task[F], known: dict[str, Measured[F]], store: Store[F] | None
) -> Measured[F] | None:
    """The result that a task begins with; None if it begins with nothing."""
    before = task.before()
    if before is None:
        return None
    key = before.key()
    if key not in known:
        assert store is not None, "it is kept, or was among the tasks"
        known[key] = store.result(key, before.keeps)
    return known[key]


class KeptRuns(Generic[F]):
    """Runs of a command that is continued until all are done, and then reads their results.

    Args:
        store: Where the results are kept.
        pool: Where the runs are done.
    """

    def __init__(self, store: Store[F], pool: Pool = _PROCESSES) -> None:
        self._store = store
        self._pool = pool
        self._read: dict[tuple[str, frozenset[str]], Measured[F]] = {}

    def run(
        self, work: Sequence[Task[F]], interruption: Interruption, on_done: Callable[[], None]
    ) -> None:
        """Run what is missing. Raises as run_tasks.

        Args:
            work: What is missing.
            interruption: Looked at several times a second.
            on_done: Called after each run.
        """
        results = run_tasks(work, interruption, store=self._store, pool=self._pool)
        with contextlib.closing(results):
            for _ in results:
                on_done()

    def result(self, key: str, keeps: Collection[str] = ()) -> Measured[F]:
        """The result of a run, which is done. Raises AgoraError if it cannot be read."""
        place = key, frozenset(keeps)
        if place not in self._read:
            self._read[place] = self._store.result(key, keeps)
        return self._read[place]
