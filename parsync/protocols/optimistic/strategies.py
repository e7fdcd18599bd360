"""Strategies: how an agent ranks partitions from one decision round to the next (ParSync section
5.2), and how long its rounds last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.protocols.optimistic.choices import StrategyKind
from schedulers.interface import PartitionRanking
from shared_state.errors import AgoraError
from shared_state.tasks import Int64, TaskClass

# How many rounds a prompt scheduler has time for from one synchronisation of DiffSyn to the next.
PROMPT_ROUNDS = 8

_FIXED = {
    StrategyKind.OPTIMISTIC: PartitionRanking.OPTIMISTIC,
    StrategyKind.QUALITY_FIRST: PartitionRanking.QUALITY_FIRST,
    StrategyKind.LATENCY_FIRST: PartitionRanking.LATENCY_FIRST,
    StrategyKind.FRESHEST_PREFERRED: PartitionRanking.FRESHEST_PREFERRED,
    StrategyKind.PROMPT: PartitionRanking.QUALITY_FIRST,
}


class Strategy(Protocol):
    @property
    def rounds_per_sync(self) -> int | None:
        """At least how many rounds fit into G/N, the time between two synchronisations of DiffSyn
        (ParSync section 5.1); None: a round may be longer."""
        ...

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        """The ranking for a batch begun when the agent's average scheduling delay is
        `delay_average_us`."""
        ...


@dataclass(frozen=True, slots=True)
class FixedStrategy:
    """One ranking throughout."""

    fixed: PartitionRanking
    rounds_per_sync: int | None = None

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        return self.fixed


@dataclass(frozen=True, slots=True)
class AdaptiveStrategy:
    """Quality-first while the average delay is below tau, else latency-first."""

    tau_us: int

    @property
    def rounds_per_sync(self) -> int | None:
        return None

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        return (
            PartitionRanking.LATENCY_FIRST
            if delay_average_us >= self.tau_us
            else PartitionRanking.QUALITY_FIRST
        )


def make_strategy(kind: StrategyKind, tau_us: int) -> Strategy:
    """The strategy that a configuration names. Raises AgoraError if adaptive has no positive
    threshold tau."""
    if kind != StrategyKind.ADAPTIVE:
        return FixedStrategy(_FIXED[kind], PROMPT_ROUNDS if kind == StrategyKind.PROMPT else None)
    if tau_us <= 0:
        raise AgoraError(
            f"tau_us: {tau_us} is not positive; adaptive switches when the average delay reaches it"
        )
    return AdaptiveStrategy(tau_us)


class RoundRankings:
    """The ranking of each decision round of an agent.

    With a strategy of their own, long jobs are ranked apart from others: ParSync's supplement B
    keeps short jobs within a partition, and lets long ones resort to a global view. Run times are
    not known beforehand, so long jobs are those of TaskClass.SERVICE. Then all tasks of a
    round are short, or all are long.

    Args:
        strategy: Of all jobs, or of those that are not long.
        long_strategy: Of long jobs; None: as the others.
        task_class: int8[tasks], the TaskClass of every task.
    """

    def __init__(
        self, strategy: Strategy, long_strategy: Strategy | None, task_class: NDArray[np.int8]
    ) -> None:
        self._strategy = strategy
        self._long_strategy = long_strategy
        self._task_class = task_class
        self._long = PartitionRanking.OPTIMISTIC
        self.begin_batch(0)

    def begin_batch(self, delay_average_us: int) -> None:
        """A batch begins; `delay_average_us` is the agent's average scheduling delay."""
        self.ranking = self._strategy.ranking(delay_average_us)
        if self._long_strategy is not None:
            self._long = self._long_strategy.ranking(delay_average_us)

    @property
    def tells_lengths(self) -> bool:
        """Whether the ranking of a round depends on its tasks."""
        return self._long_strategy is not None

    def of(self, task: Int64) -> tuple[PartitionRanking, int]:
        """The ranking of a round about the first of these tasks, int64[n], and how many of them
        share it."""
        is_long = self._task_class[task] == TaskClass.SERVICE
        if not len(task):
            return self.ranking, 0
        others = np.flatnonzero(is_long != is_long[0])
        count = int(others[0]) if len(others) else len(task)
        return (self._long if is_long[0] else self.ranking), count


@dataclass(slots=True)
class DelayAverage:
    """Exponential moving average of the scheduling delay in fixed point: integers only, so every
    machine switches at the same task.

    One fully committed batch weighs `coefficient_permille`; a part of a batch weighs its share.
    Kept in units of 2**-FRACTION microseconds.
    """

    coefficient_permille: int
    scaled: int = 0

    FRACTION = 16

    @property
    def us(self) -> int:
        return self.scaled >> self.FRACTION

    def add(self, delay_sum_us: int, committed: int, batch_size: int) -> None:
        """`committed` tasks of a batch of `batch_size` had delays that sum to `delay_sum_us`."""
        if committed <= 0:
            return
        mean_scaled = (delay_sum_us << self.FRACTION) // committed
        numerator = self.coefficient_permille * min(committed, batch_size)
        self.scaled += (mean_scaled - self.scaled) * numerator // (1000 * batch_size)
