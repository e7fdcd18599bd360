"""A slot simulation for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.slot_series import PhaseFigures
from parsync.metrics.quantity import duration, share

_NONE = "–"


def phases_table(figures: Sequence[PhaseFigures], title: str, ending: str) -> Group:
    """A row for each phase, and below it one for each group of schedulers, if there are several.

    Args:
        figures: In the order of the rows.
        title: What is simulated, in a sentence.
        ending: How the run ended, in a sentence.
    """
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", min_width=max(len(one.label) for one in figures))
    for head in ("conflicts", "mean delay", "90 % within", "score", "utilisation", "backlog"):
        table.add_column(head, justify="right")
    for one in figures:
        table.add_row(
            one.label if one.group is None else f"  group {one.group}",
            _NONE if one.conflict_rate is None else share(one.conflict_rate),
            *(
                _NONE if value_s is None else duration(value_s * 1e6)
                for value_s in (one.delay_mean_s, one.delay_p90_s)
            ),
            _NONE if one.score is None else f"{one.score:.2f}",
            share(one.utilisation) if one.group is None else "",
            f"{one.backlog:,}",
        )
    return Group(Text(title), table, Text(ending))
