"""The live line: what every scheduler did since the line was last shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parsync.metrics import histogram
from parsync.metrics.metric import Rows
from parsync.metrics.quantity import Quantity
from shared_state.tasks import Int64

DELAY_BOUNDS_US = tuple(
    1 << k for k in range(10, 28)
)  # 1 ms to 134 s; powers of two are edges of the histogram's buckets
_LAST_BUCKET_BELOW = np.append(
    histogram.bucket_of(np.array(DELAY_BOUNDS_US)) - 1, histogram.BUCKETS - 1
)

_OF_THE_CELL = ("running", "machines_up", "used_permille")
_NOT_SEEN = -1


# A metric's sums by agent since the start: int64[agents] of a part and of its whole.
LiveSums = tuple[Int64, Int64]


@dataclass(frozen=True, slots=True)
class LiveFigure:
    """A figure of one scheduler over the window, which a metric adds to the line (Metric.live)."""

    quantity: Quantity
    value: float | None


@dataclass(frozen=True, slots=True)
class SchedulerLine:
    """One scheduler over the window. A figure is None where nothing happened that it could rest on.

    Attributes:
        queue: Tasks submitted and not committed, at its last sample.
        delay: The delay of first commits in the window, whenever they were submitted.
        preferred_share: Of those with preferences, the share on a preferred machine.
        delays_below: How many of the delays are below each of DELAY_BOUNDS_US, and how many there
            are.
        delay_sum_us: Their sum, to 0.4 %.
        others: What other metrics add.
    """

    agent: int
    queue: int
    commits_per_s: float
    conflict_rate: float | None
    delay_p50_us: float | None
    delay_p99_us: float | None
    preferred_share: float | None
    delays_below: tuple[int, ...]
    delay_sum_us: int
    others: tuple[LiveFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures of the window (at_us - window_us, at_us]. cell figures: of the last sample, None
    before the first."""

    at_us: int
    window_us: int
    schedulers: tuple[SchedulerLine, ...]
    running: int | None
    machines_up: int | None
    used_permille: int | None

    @staticmethod
    def join(parts: Iterable[Snapshot]) -> Snapshot:
        """One snapshot from those of several actors, each of which recorded other agents."""
        parts = list(parts)
        lines = sorted(
            (line for part in parts for line in part.schedulers), key=lambda line: line.agent
        )
        cell = next((part for part in parts if part.running is not None), parts[0])
        return Snapshot(
            max(part.at_us for part in parts),
            max(part.window_us for part in parts),
            tuple(lines),
            cell.running,
            cell.machines_up,
            cell.used_permille,
        )


class LiveLine:
    """Counters that start anew at every snapshot, over agents 0..agents-1."""

    def __init__(self, agents: int) -> None:
        self._since_us = 0
        self._queue = np.zeros(agents, np.int64)
        self._cell = np.full(len(_OF_THE_CELL), _NOT_SEEN, np.int64)  # at its last sample
        self._shown: dict[str, LiveSums] = {}  # sums by quantity when the line was last shown
        self._commits, self._prefers, self._preferred, self._claims, self._conflicts = np.zeros(
            (5, agents), np.int64
        )
        self._delays = np.zeros((agents, histogram.BUCKETS), np.int64)

    def _clear(self) -> None:
        self._commits[:] = self._prefers[:] = self._preferred[:] = 0
        self._claims[:] = self._conflicts[:] = 0
        self._delays[:] = 0

    def add_up(self, rows: Rows) -> None:
        """Declare what is added up of a table."""
        if rows.table == "cell":
            for place, name in enumerate(_OF_THE_CELL):
                rows.store(self._cell, (place,), rows[name])
            return
        if rows.table not in ("tasks", "commits", "agents"):
            return
        agent = (rows["agent"],)
        if rows.table == "tasks":
            firsts = rows.first_commits
            delay_us = rows["commit_us"] - rows["submit_us"]
            firsts.add(self._delays, (*agent, delay_us.histogram_bucket()))
            firsts.add(self._commits, agent)
            firsts.where(rows["prefers"] == 1).add(self._prefers, agent)
            firsts.where(rows["preferred"] == 1).add(self._preferred, agent)
        elif rows.table == "commits":
            rows.add(self._claims, agent, rows["claims"])
            rows.add(self._conflicts, agent, rows.claims_in_conflict)
        else:
            rows.store(self._queue, agent, rows["queued"])

    def take(
        self, at_us: int, agents: Iterable[int], others: Sequence[tuple[Quantity, LiveSums]] = ()
    ) -> Snapshot:
        """Figures of `agents` since the last call; all counters begin anew.

        Args:
            others: Sums of other metrics since the start.
        """
        window_us = max(at_us - self._since_us, 1)
        since = [(quantity, self._since_shown(quantity.key, sums)) for quantity, sums in others]
        lines = tuple(self._line(agent, window_us, since) for agent in agents)
        self._since_us = at_us
        self._clear()
        running, machines_up, used_permille = (
            None if value == _NOT_SEEN else value for value in self._cell.tolist()
        )
        return Snapshot(at_us, window_us, lines, running, machines_up, used_permille)

    def _since_shown(self, key: str, sums: LiveSums) -> LiveSums:
        part, whole = (np.array(column, np.int64) for column in sums)
        shown = self._shown.get(key, (np.zeros_like(part), np.zeros_like(whole)))
        self._shown[key] = (part, whole)
        return part - shown[0], whole - shown[1]

    def _line(
        self, agent: int, window_us: int, others: Sequence[tuple[Quantity, LiveSums]]
    ) -> SchedulerLine:
        def share(part: int, whole: int) -> float | None:
            return part / whole if whole else None

        return SchedulerLine(
            agent=agent,
            queue=int(self._queue[agent]),
            commits_per_s=int(self._commits[agent]) * 1e6 / window_us,
            conflict_rate=share(int(self._conflicts[agent]), int(self._claims[agent])),
            delay_p50_us=histogram.quantile(self._delays[agent], 0.5),
            delay_p99_us=histogram.quantile(self._delays[agent], 0.99),
            preferred_share=share(int(self._preferred[agent]), int(self._prefers[agent])),
            delays_below=tuple(np.cumsum(self._delays[agent])[_LAST_BUCKET_BELOW].tolist()),
            delay_sum_us=int(self._delays[agent] @ histogram.MIDDLE),
            others=tuple(
                LiveFigure(quantity, share(int(part[agent]), int(whole[agent])))
                for quantity, (part, whole) in others
            ),
        )
