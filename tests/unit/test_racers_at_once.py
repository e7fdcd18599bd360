"""The race of the kind `firmament` that the process of a live scheduler runs in each round: both
racers run at the same time, and Python's global lock is free meanwhile.

Load may slow all threads down, so nothing is said about how long anything takes. A thread in Python
looks again and again at how much processor time each other thread of the process has had.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flowsolver import IncrementalSolver, Status
from flowsolver.generate import contended_options, quincy_graph
from schedulers import registry
from schedulers.flow.options import FlowOptions

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads the threads' times from /proc"
)

TASKS = Path("/proc/self/task")
# Both racers take so long that even on a busy machine there are many looks meanwhile.
NETWORK = quincy_graph(contended_options(8_000, 103, 10), seed=3).network


def on_processor_ns() -> dict[int, int]:
    """What each thread of this process has run for, by its id."""
    spent = {}
    for thread in TASKS.iterdir():
        try:
            spent[int(thread.name)] = int((thread / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError, IndexError):  # it has just ended
            continue
    return spent


class Watcher:
    """Looks at the threads from a thread in Python, whenever that gets the global lock."""

    def __init__(self) -> None:
        self.looks: list[dict[int, int]] = []
        self.looking, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.is_set():
            self.looks.append(on_processor_ns())
            self.looking.set()

    @property
    def native_id(self) -> int | None:
        return self._thread.native_id

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        self.looking.wait()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def ran_between_looks(self) -> list[set[int]]:
        """For two looks in a row each: the threads that ran between them."""
        return [
            {thread for thread, ns in after.items() if ns > before.get(thread, ns)}
            for before, after in zip(self.looks, self.looks[1:], strict=False)
        ]


def racers_beside_this_thread(algorithm: object) -> set[int]:
    """Solve the network by Firmament's solver, with another `algorithm` if that is given. The
    threads that began with the call and that ran between the same two looks as the calling
    thread, which is a racer itself."""
    options = {"deterministic": False} if algorithm is None else {"algorithm": algorithm}
    parsed = registry.get("firmament").parse_options(options)
    assert isinstance(parsed, FlowOptions)
    solver = IncrementalSolver(NETWORK, parsed.algorithm, deterministic=parsed.deterministic)
    watcher = Watcher()
    known = set(on_processor_ns())
    with watcher.watching():
        status = solver.resolve()
    assert status is Status.OPTIMAL
    this = threading.get_native_id()
    beside = [ran for ran in watcher.ran_between_looks() if this in ran]
    assert beside, "the lock is not free during the call, or it is too short"
    return set().union(*beside) - known - {this, watcher.native_id}


def test_both_racers_run_at_once_without_the_global_lock() -> None:
    """Were they run one after the other, none would run beside the other. Did the call keep the
    lock, nobody would look meanwhile."""
    assert len(racers_beside_this_thread(None)) == 1


def test_an_algorithm_alone_runs_on_the_calling_thread() -> None:
    """So what is counted above is a racer."""
    assert racers_beside_this_thread("cost_scaling") == set()
