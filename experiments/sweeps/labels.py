"""Names and values of parameters, for tables and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from experiments.toml_text import toml_path, toml_value

PlainValue = bool | int | float | str


def parameter_labels(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The shortest end of each path that is the end of no other one."""
    labels = []
    for path in paths:
        length = next(
            (
                size
                for size in range(1, len(path))
                if sum(other[-size:] == path[-size:] for other in paths) == 1
            ),
            len(path),
        )
        labels.append(toml_path(path[-length:]))
    return labels


def plain_value(value: Any) -> PlainValue:
    """A value that a column of a table can hold: a list of one number as the number, other lists
    and tables as TOML text."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else toml_value(value)


def value_text(value: PlainValue) -> str:
    """A plain value as people read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def assignments(labels: Sequence[str], values: Sequence[PlainValue]) -> str:
    """Parameters with their values, such as "machines = 100, gap_s = 0.5"."""
    pairs = zip(labels, values, strict=True)
    return ", ".join(f"{label} = {value_text(value)}" for label, value in pairs)
