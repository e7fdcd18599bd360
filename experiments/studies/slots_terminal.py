"""A slot simulation for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.studies.slot_series import PhaseFigures
from parsync.metrics.quantity import duration, share

_NONE = "–"
_NOTE = (
    "Conflicts: with a claim at the same instant, over a slot of more than mean weight, or of a "
    "stale view alone. Visible: the slot was in use when the claim was decided. Mean scores: of "
    "the slots in use, and of as many of the best slots."
)


def phases_table(figures: Sequence[PhaseFigures], title: str, ending: str) -> Group:
    """Two tables with a row for each phase, and below it one for each group of schedulers, if there
    are several: what happened, and why claims conflicted and how good the slots in use were.

    Args:
        figures: In the order of the rows.
        title: What is simulated, in a sentence.
        ending: How the run ended, in a sentence.
    """
    width = max(len(one.label) for one in figures)
    heads = ("conflicts", "mean delay", "90 % within", "score", "utilisation", "backlog")
    table = _empty(heads, width)
    for one in figures:
        table.add_row(
            _name(one),
            _share(one.found.conflict_rate),
            *(
                _NONE if value_s is None else duration(value_s * 1e6)
                for value_s in (one.delay_mean_s, one.delay_p90_s)
            ),
            _score(one.score),
            share(one.utilisation) if one.group is None else "",
            f"{one.backlog:,}",
        )
    return Group(Text(title), table, Text(ending), _causes(figures, width), Text(_NOTE))


def _causes(figures: Sequence[PhaseFigures], width: int) -> FittedTable:
    heads = ("same tick", "preferred", "stale", "visible", "in use", "best")
    table = _empty(heads, width)
    for one in figures:
        found, of_cell = one.found, one.group is None
        table.add_row(
            _name(one),
            _share(found.same_tick_conflict_share),
            _share(found.quality_conflict_share),
            _share(found.stale_conflict_share),
            _share(found.visible_conflict_share),
            _score(found.score_in_use) if of_cell else "",
            _score(found.best_score) if of_cell else "",
        )
    return table


def _empty(heads: Sequence[str], width: int) -> FittedTable:
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", min_width=width)
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _name(one: PhaseFigures) -> str:
    return one.label if one.group is None else f"  group {one.group}"


def _share(value: float | None) -> str:
    return _NONE if value is None else share(value)


def _score(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"
