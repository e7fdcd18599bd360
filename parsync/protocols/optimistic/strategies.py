"""Strategies: how an agent ranks partitions from one decision round to the next (ParSync section
5.2), and how long its rounds last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from parsync.protocols.optimistic.choices import StrategyKind
from schedulers.interface import PartitionRanking
from shared_state.errors import AgoraError

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
        """How many rounds fit at least into G/N, the time between two synchronisations of DiffSyn
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
