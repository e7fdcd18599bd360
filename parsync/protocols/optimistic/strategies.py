"""Strategies: how an agent ranks partitions from one decision round to the next (ParSync section
5.2), and how long its rounds last."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.protocols import _native
from schedulers.interface import PartitionRanking
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

# How many rounds a prompt scheduler has time for from one synchronisation of DiffSyn to the next.
PROMPT_ROUNDS = 8


class StrategyKind(StrEnum):
    """How an agent ranks partitions: those of ParSync section 5.2, and two of Agora's."""

    OPTIMISTIC = "optimistic"  # not at all: the whole view is one pool
    QUALITY_FIRST = "quality_first"
    LATENCY_FIRST = "latency_first"
    ADAPTIVE = "adaptive"
    FRESHEST_PREFERRED = "freshest_preferred"  # preferred machines, the freshest of them first
    PROMPT = "prompt"  # as quality-first, in rounds of a fraction of G/N

    @property
    def ranks_by_quality(self) -> bool:
        """Whether some of its batches look for the best partition."""
        return self in (StrategyKind.QUALITY_FIRST, StrategyKind.ADAPTIVE, StrategyKind.PROMPT)


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

    @property
    def native(self) -> _native.Strategy:
        """The strategy in native code (parsync/protocols/native/strategies.hpp)."""
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

    @property
    def native(self) -> _native.Strategy:
        return _native.Strategy.fixed(int(self.fixed))

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        return PartitionRanking(self.native.ranking(delay_average_us))


@dataclass(frozen=True, slots=True)
class AdaptiveStrategy:
    """Quality-first while the average delay is below tau, else latency-first."""

    tau_us: int

    @property
    def rounds_per_sync(self) -> int | None:
        return None

    @property
    def native(self) -> _native.Strategy:
        return _native.Strategy.adaptive(self.tau_us)

    def ranking(self, delay_average_us: int) -> PartitionRanking:
        return PartitionRanking(self.native.ranking(delay_average_us))


def longest_round_us(strategy: Strategy, gap_us: int, agents: int) -> int | None:
    """How long a decision round of one of so many agents may last at most, with this gap; None: as
    long as it takes."""
    rounds = strategy.rounds_per_sync
    return None if rounds is None else gap_us // (agents * rounds)


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


class RoundRankings(_native.RoundRankings):
    """The ranking of each decision round of an agent (parsync/protocols/native/strategies.hpp).

    With a strategy of their own, long jobs are ranked apart from others: ParSync's supplement B
    keeps short jobs within a partition, and lets long ones resort to a global view. Run times are
    not known beforehand, so long jobs are those of TaskClass.SERVICE. Then all tasks of a
    round are short, or all are long.

    Args:
        strategy: Of all jobs, or of those that are not long.
        long_strategy: Of long jobs; None: as the others.
        task_class: int8[tasks], the TaskClass of every task.

    Attributes:
        tells_lengths: Whether the ranking of a round depends on its tasks.
    """

    def __init__(
        self, strategy: Strategy, long_strategy: Strategy | None, task_class: NDArray[np.int8]
    ) -> None:
        long_jobs = None if long_strategy is None else long_strategy.native
        super().__init__(strategy.native, long_jobs, task_class)

    def begin_batch(self, delay_average_us: int) -> None:
        """A batch begins; `delay_average_us` is the agent's average scheduling delay."""
        super().begin_batch(delay_average_us)

    @property
    def ranking(self) -> PartitionRanking:
        """The ranking of a round, or of one about jobs that are not long."""
        return PartitionRanking(super().ranking)

    def of(self, task: Int64) -> tuple[PartitionRanking, int]:
        """The ranking of a round about the first of these tasks, int64[n], and how many of them
        share it."""
        ranking, count = super().of(task)
        return PartitionRanking(ranking), count


class DelayAverage(_native.DelayAverage):
    """Exponential moving average of the scheduling delay in fixed point: integers only, so every
    machine switches at the same task.

    One fully committed batch weighs `coefficient_permille`; a part of a batch weighs its share.

    Args:
        coefficient_permille: See above.

    Attributes:
        us: The average.
    """

    def add(self, delay_sum_us: int, committed: int, batch_size: int) -> None:
        """`committed` tasks of a batch of `batch_size` had delays that sum to `delay_sum_us`.

        Raises:
            ValueError: The batch is empty.
            OverflowError: The mean delay is 2^47 us or more.
        """
        super().add(delay_sum_us, committed, batch_size)
