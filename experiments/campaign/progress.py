"""How far a command is: shown on a terminal in a line that changes, and elsewhere line by line."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text


def processors() -> int:
    """How many processors this process may run on: all of the machine, or those that taskset, a
    batch system or a container left it."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


EVERY_S = 8.0  # between two lines in a file or a pipe: no gap is longer than 10 s


class ProgressReport:
    """What a command says of its progress, stage by stage.

    On a terminal the line of a stage changes as it goes on, and is gone at its end. In a file or a
    pipe, whoever reads there sees a line about every EVERY_S seconds from the first stage to the
    end of the block, whether or not anything happens.

    Args:
        console: Where it is said.
        every_s: The time between two lines where the console is no terminal.
    """

    def __init__(self, console: Console, every_s: float = EVERY_S) -> None:
        self.console = console
        self._every_s = every_s
        self._stages: list[_Stage] = []  # the last is the one under way
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._say, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if not self.console.is_terminal:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextlib.contextmanager
    def stage(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show a stage for the length of the block.

        Args:
            what: Its name, and what is said of it at first.

        Yields:
            Changes what is said of it.
        """
        stage = _Stage(what)
        if self.console.is_terminal:
            with self.console.status(Text(what)) as status:
                yield lambda text: status.update(Text(text))
            return
        self._stages.append(stage)
        try:
            yield stage.change
        finally:
            self._stages.remove(stage)

    @contextlib.contextmanager
    def table(self, what: str) -> Iterator[Callable[[RenderableType, str], None]]:
        """Show a stage for the length of the block, on a terminal in a table.

        Args:
            what: Its name.

        Yields:
            Changes the table, and the line that is said elsewhere.
        """
        if not self.console.is_terminal:
            with self.stage(what) as change:
                yield lambda table, text: change(text)
            return
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:
            yield lambda table, text: live.update(table)

    def _say(self) -> None:
        while not self._ended.wait(self._every_s):
            for stage in self._stages[-1:]:
                try:
                    self.console.print(Text(str(stage)), soft_wrap=True)
                except (OSError, ValueError):  # nobody reads it, or its encoding lacks a character
                    return


class _Stage:
    """A stage, what is said of it, and when it began."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begun_s = time.monotonic()

    def change(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return f"{self._text} ({time_text(time.monotonic() - self._begun_s)} so far)"


class Progress:
    """Counts runs that are done, and estimates the time left from the pace of those before.

    The first ones do not count for the pace: their processes had to start.

    Args:
        total: All runs.
        at_once: The first of them, which are done already and take no time.
    """

    def __init__(self, total: int, at_once: int = 0) -> None:
        self._total = total
        self._slow = at_once + processors()
        self._done = 0
        self._begun_s = 0.0

    def step(self) -> str:
        """Count one more; the state in words, such as "3 of 8 runs, about 20 s left"."""
        self._done += 1
        done = f"{self._done} of {self._total} runs"
        if self._done <= self._slow:
            self._begun_s = time.monotonic()
            return done
        pace_s = (time.monotonic() - self._begun_s) / (self._done - self._slow)
        return f"{done}, about {time_text(pace_s * (self._total - self._done))} left"


def time_text(seconds: float) -> str:
    """A time as people say it, such as "40 s", "12 minutes", "3.5 hours" or "6.0 days"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86_400:,.1f} days"
