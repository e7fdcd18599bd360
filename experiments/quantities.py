"""The figures people compare: what each is called, in which unit it is shown, and which way is
better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Unit(Enum):
    DURATION = "duration"  # microseconds, shown in the unit that suits
    SHARE = "share"  # 0..1, shown in per cent
    COUNT = "count"
    RATE = "rate"  # per second
    PLAIN = "plain"


class Better(Enum):
    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


MISSING = "–"
NEVER = "never"


@dataclass(frozen=True, slots=True)
class Quantity:
    """key: its name in a summary's figures. says: one sentence for a reader who meets it first.
    short: for the terminal's narrow columns, if it belongs there.

    never: the value None means "beyond the end of the run", not "nothing known".
    """

    key: str
    label: str
    unit: Unit
    better: Better
    says: str
    never: bool = False
    short: str = ""

    def text(self, value: float | int | None, at_least: bool = False) -> str:
        """The value as people read it, three significant digits."""
        if value is None:
            return NEVER if self.never else MISSING
        return ("≥ " if at_least else "") + _TEXT[self.unit](float(value))

    def difference_text(self, value: float | None) -> str:
        """A difference of two values, with its sign, two significant digits: shares in percentage
        points."""
        return MISSING if value is None else _sign(value) + self.spread_text(value)

    def spread_text(self, value: float) -> str:
        """The size of a difference, or half the width of an interval."""
        size = abs(value)
        return (
            f"{_digits(size * 100, 2)} pp" if self.unit is Unit.SHARE else _TEXT[self.unit](size, 2)
        )


def _digits(value: float, digits: int = 3) -> str:
    """So many significant digits, never an exponent; whole numbers stay whole."""
    size = abs(value)
    if size == int(size) or size >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    decimals = digits - 1 - math.floor(math.log10(size))
    return f"{value:.{min(decimals, 6)}f}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `12,345 tasks`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _sign(value: float) -> str:
    return "+" if value > 0 else "−" if value < 0 else "±"


def duration(value_us: float, digits: int = 3) -> str:
    """Microseconds in the unit that suits."""
    size = abs(value_us)
    if size < 999.5:
        return f"{_digits(value_us, digits)} µs"
    if size < 999_500:
        return f"{_digits(value_us / 1e3, digits)} ms"
    return f"{_digits(value_us / 1e6, digits)} s"


def share(value: float, digits: int = 3) -> str:
    return f"{_digits(value * 100, digits)} %"


def percent_change(value: float | None) -> str:
    """A relative difference in per cent with its sign, two significant digits; as a factor once it
    is more than threefold, without its digits beyond a thousandfold (the limits of two seeds)."""
    if value is None:
        return MISSING
    if value > 999:
        return "over ×1,000"
    if value > 2:
        return f"×{_digits(1 + value, 2)}"
    return f"{_sign(value)}{_digits(abs(value) * 100, 2)} %"


def _rate(value: float, digits: int = 3) -> str:
    return f"{_digits(value, digits)}/s"


def _plain(value: float, digits: int = 3) -> str:
    """A cost: that of a whole cell runs into millions."""
    return f"{_digits(value / 1e6, digits)} M" if abs(value) >= 1e6 else _digits(value, digits)


_TEXT = {
    Unit.DURATION: duration,
    Unit.SHARE: share,
    Unit.COUNT: _digits,
    Unit.RATE: _rate,
    Unit.PLAIN: _plain,
}

_LOWER, _HIGHER, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_TIME, _SHARE, _COUNT, _RATE, _PLAIN = Unit.DURATION, Unit.SHARE, Unit.COUNT, Unit.RATE, Unit.PLAIN

HEADLINE: tuple[Quantity, ...] = (
    Quantity(
        "delay_mean_us",
        "Mean delay",
        _TIME,
        _LOWER,
        "From submission to first commit; “≥”: tasks never committed are charged until the run was last seen.",
        short="Delay",
    ),
    Quantity(
        "delay_p99_us",
        "99th percentile of the delay",
        _TIME,
        _LOWER,
        "Over all submitted tasks; “≥”: those never committed are charged until the run was last seen.",
        never=True,
        short="p99",
    ),
    Quantity(
        "censored",
        "Tasks not committed",
        _COUNT,
        _LOWER,
        "Submitted and still waiting when the run ended.",
        short="Waiting",
    ),
    Quantity(
        "conflict_rate",
        "Conflict rate",
        _SHARE,
        _LOWER,
        "Claims rejected because another scheduler was first (stale, full, evicted) of all claims.",
        short="Conflicts",
    ),
    Quantity(
        "preferred_share",
        "Share on preferred machines",
        _SHARE,
        _HIGHER,
        "First commits on a preferred machine of all submitted tasks that prefer some.",
        short="Preferred",
    ),
    Quantity(
        "slot_score_mean",
        "Mean slot score",
        _PLAIN,
        _HIGHER,
        "Of the machines that tasks were placed on, over that of the cell's slots: 1 is what chance would choose.",
    ),
    Quantity(
        "input_local_share",
        "Input on the machine",
        _SHARE,
        _HIGHER,
        "Of the input data of placed tasks, by size; machines that hold less than a tenth of a task's input count as holding none.",
    ),
    Quantity(
        "input_rack_share",
        "Input in the rack",
        _SHARE,
        _HIGHER,
        "Of the input data of placed tasks, on the machine or elsewhere in its rack; racks that hold less than a tenth count as holding none.",
    ),
    Quantity(
        "cost_mean",
        "Mean placement cost",
        _PLAIN,
        _LOWER,
        "The workload's own cost of where a task was placed.",
    ),
    Quantity(
        "jct_mean_us",
        "Job completion time",
        _TIME,
        _LOWER,
        "Submission of a job to the end of its last task; “≥”: jobs that did not get there are charged until the run was last seen.",
        short="JCT",
    ),
    Quantity(
        "throughput_per_s",
        "Throughput",
        _RATE,
        _HIGHER,
        "First commits per second; what was submitted bounds it.",
    ),
)

DETAIL: tuple[Quantity, ...] = (
    Quantity(
        "delay_p50_us", "Median delay", _TIME, _LOWER, "Over all submitted tasks.", never=True
    ),
    Quantity(
        "delay_p90_us",
        "90th percentile of the delay",
        _TIME,
        _LOWER,
        "Over all submitted tasks.",
        never=True,
    ),
    Quantity(
        "jsd_mean_us",
        "Job scheduling delay",
        _TIME,
        _LOWER,
        "Submission of a job to its last first commit (JSD).",
    ),
    Quantity(
        "stet_mean_us",
        "Summed execution time of a job",
        _TIME,
        _LOWER,
        "Averaged over finished jobs (STET).",
    ),
    Quantity(
        "conflict_fraction",
        "Failed per successful transaction",
        _PLAIN,
        _LOWER,
        "Omega's conflict fraction; a transaction with any conflict has failed.",
    ),
    Quantity(
        "gang_rate",
        "Gang collateral",
        _SHARE,
        _LOWER,
        "Claims that fitted but whose gang did not, of all claims.",
    ),
    Quantity(
        "attempts_mean",
        "Claims per placed task",
        _PLAIN,
        _LOWER,
        "1 if no claim was ever rejected.",
    ),
    Quantity(
        "age_mean_us",
        "Age of the state decided on",
        _TIME,
        _NEITHER,
        "Averaged over claims, at the cell's commit.",
    ),
    Quantity(
        "preferred_time_share",
        "Time on a preferred machine",
        _SHARE,
        _HIGHER,
        "Of the time that tasks with preferences ran.",
    ),
    Quantity(
        "utilisation_mean",
        "Utilisation",
        _SHARE,
        _NEITHER,
        "Of the cell's first resource, averaged over samples.",
    ),
    Quantity("utilisation_max", "Highest utilisation", _SHARE, _NEITHER, "Largest sample."),
    Quantity(
        "backlog_mean",
        "PendingQueue",
        _COUNT,
        _LOWER,
        "Tasks submitted and not committed, averaged over samples.",
    ),
    Quantity(
        "backlog_end",
        "PendingQueue at the end",
        _COUNT,
        _LOWER,
        "At the last sample of the counted time.",
    ),
    Quantity(
        "busy_useful_share",
        "Deciding usefully",
        _SHARE,
        _NEITHER,
        "Share of a scheduler's time (Omega's busyness).",
    ),
    Quantity(
        "busy_wasted_share",
        "Deciding in vain",
        _SHARE,
        _LOWER,
        "Share of time spent on rounds with a conflict.",
    ),
    Quantity(
        "latency_first_share",
        "Time in latency-first",
        _SHARE,
        _NEITHER,
        "Share of samples; adaptive switches.",
    ),
    Quantity(
        "lost_us",
        "Work lost",
        _TIME,
        _LOWER,
        "Run time of tasks that were evicted or whose machine failed.",
    ),
    Quantity(
        "solve_p50_us",
        "Solver time per round",
        _TIME,
        _LOWER,
        "Median over the rounds of flow schedulers.",
    ),
    Quantity(
        "solve_max_us", "Longest solver time", _TIME, _LOWER, "Over the rounds of flow schedulers."
    ),
    Quantity(
        "round_p50_us",
        "Flow round, end to end",
        _TIME,
        _LOWER,
        "Graph update, solve and extraction; median.",
    ),
    Quantity(
        "decision_regret",
        "Decision regret per claim",
        _PLAIN,
        _LOWER,
        "Cost above the best placement of the same transaction's tasks on the true state just before its commit.",
    ),
    Quantity(
        "system_regret",
        "System regret, without migration",
        _PLAIN,
        _LOWER,
        "Cost of all running and waiting tasks above the least possible if running ones stay; mean over sampled instants.",
    ),
    Quantity(
        "system_regret_moving",
        "System regret, with migration",
        _PLAIN,
        _LOWER,
        "The same if running tasks may move, at no price.",
    ),
)

QUANTITIES: dict[str, Quantity] = {quantity.key: quantity for quantity in (*HEADLINE, *DETAIL)}


def is_better(quantity: Quantity, value: float, than: float) -> bool:
    return value < than if quantity.better is Better.LOWER else value > than
