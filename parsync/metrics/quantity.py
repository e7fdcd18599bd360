"""Figures: the base of every figure that a run writes, and what people compare: how each is called,
in which unit it is written, and which direction is better. A metric declares both as fields:

    class DelayFigures(Figures):
        delay_mean_us: Number | None = quantity(
            "Mean delay", Unit.DURATION, Better.LOWER, "From submission to first commit."
        )
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

LARGEST = 1e30  # of a figure: it can be added, drawn and shown
LARGEST_INTEGER = (1 << 63) - 1

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class Figures(BaseModel):
    """Named figures: whole numbers, floating-point numbers, or None where there is nothing to rest
    a figure on (never NaN)."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="null"
    )

    @classmethod
    def unknown(cls) -> Self:
        """With None for every figure."""
        return cls(**dict.fromkeys(cls.model_fields))


class Unit(Enum):
    """What the numbers of a figure count."""

    DURATION = "duration"  # microseconds, shown in the unit that suits
    SHARE = "share"  # 0..1, shown in per cent
    COUNT = "count"
    RATE = "rate"  # per second
    PLAIN = "plain"


class Better(Enum):
    """Which direction of a figure is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


MISSING = "–"
BEYOND_THE_END = "never"


class Quantity(BaseModel):
    """A figure that people compare.

    Args:
        key: Its name in a summary's figures.
        label: Its name for people.
        unit: What its numbers count, and so how they are written.
        better: Which direction is better.
        description: One sentence for a reader who meets it first.
        metric: The metric that it belongs to.
        headline: It stands in the report's first table and in the terminal's; the others are
            details.
        column_label: A short label for the terminal's narrow columns, if it belongs there.
        beside: The key of a headline quantity whose cell in the report's first table shows this one
            in small print.
        per_scheduler: It is shown scheduler by scheduler, too.
        unbounded: The value None means "beyond the end of the run", not "nothing known".
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    key: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    label: str = Field(min_length=1)
    unit: Unit = Field(strict=False)
    better: Better = Field(strict=False)
    description: str = Field(min_length=1)
    metric: str = ""
    headline: bool = False
    column_label: str = ""
    beside: str = ""
    per_scheduler: bool = False
    unbounded: bool = False

    def text(self, value: float | int | None, at_least: bool = False) -> str:
        """The value as people read it, three significant digits."""
        if value is None:
            return BEYOND_THE_END if self.unbounded else MISSING
        return ("≥ " if at_least else "") + _TEXT[self.unit](float(value))

    def text_of_digits(self, value: float, digits: int) -> str:
        """The value with so many significant digits."""
        return _TEXT[self.unit](value, digits)

    def difference_text(self, value: float | None) -> str:
        """A difference of two values, with its sign, two significant digits: shares in percentage
        points."""
        return MISSING if value is None else _sign(value) + self.spread_text(value)

    def spread_text(self, value: float) -> str:
        """The size of a difference."""
        size = abs(value)
        return (
            f"{_digits(size * 100, 2)} pp" if self.unit is Unit.SHARE else _TEXT[self.unit](size, 2)
        )


def quantity(
    label: str,
    unit: Unit,
    better: Better,
    description: str,
    *,
    headline: bool = False,
    column_label: str = "",
    beside: str = "",
    per_scheduler: bool = False,
    unbounded: bool = False,
) -> Any:
    """Declare a field of a model of figures as a quantity; see Quantity for the arguments."""
    more: dict[str, Any] = {
        "unit": unit,
        "better": better,
        "headline": headline,
        "column_label": column_label,
        "beside": beside,
        "per_scheduler": per_scheduler,
        "unbounded": unbounded,
    }
    return Field(title=label, description=description, json_schema_extra=more)


def quantities_of(figures: type[BaseModel], metric: str = "") -> list[Quantity]:
    """The quantities that a model of figures declares, in the order of its fields."""
    found = []
    for name, field in figures.model_fields.items():
        more: Any = field.json_schema_extra
        if isinstance(more, dict) and "unit" in more:
            label, text = field.title or "", field.description or ""
            found.append(Quantity(key=name, label=label, description=text, metric=metric, **more))
    return found


def headline(quantities: Iterable[Quantity]) -> list[Quantity]:
    """The quantities of the first table."""
    return [one for one in quantities if one.headline]


def _digits(value: float, digits: int = 3) -> str:
    """So many significant digits, never an exponent; whole numbers stay whole."""
    size = abs(value)
    if size == int(size) or size >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    rounded = float(f"{size:.{digits - 1}e}")  # 9.997 has one decimal less than 9.99
    decimals = digits - 1 - math.floor(math.log10(rounded))
    return f"{value:.{min(max(decimals, 0), 6)}f}"


def from_to(low: str, high: str) -> str:
    """The two ends of a range, with their unit once if it is the same."""
    number, _, unit = low.rpartition(" ")
    return f"{number if number and high.endswith(' ' + unit) else low} to {high}"


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
    """A rate: that of fast code runs into millions. From ten thousand on in thousands, so that a
    column of rates stays narrow in the terminal."""
    if abs(value) < 9_999.5:
        return f"{_digits(value, digits)}/s"
    if abs(value) < 999_500:
        return f"{_digits(value / 1e3, digits)} k/s"
    return f"{_digits(value / 1e6, digits)} M/s"


def _plain(value: float, digits: int = 3) -> str:
    """A number that may run into millions, as the cost of a whole cell."""
    return f"{_digits(value / 1e6, digits)} M" if abs(value) >= 1e6 else _digits(value, digits)


_TEXT = {
    Unit.DURATION: duration,
    Unit.SHARE: share,
    Unit.COUNT: _digits,
    Unit.RATE: _rate,
    Unit.PLAIN: _plain,
}


def is_better(quantity: Quantity, value: float, than: float) -> bool:
    return value < than if quantity.better is Better.LOWER else value > than
