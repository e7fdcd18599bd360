"""The one loop over many tasks: what is missing runs, is kept as soon as it is done, and goes on
where it was stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any, Generic, TypeVar

from experiments.campaign.pool import Pool, Processes
from experiments.campaign.store import Store
from experiments.campaign.task import F, Failed, Job, Measured, Task
from experiments.interruption import Interruption
from shared_state.errors import AgoraError

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
