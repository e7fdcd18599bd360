"""What `agora model` does: the conflicts that ParSync's equations expect around a setting, their
table and their drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from rich import box
from rich.console import Console, Group
from rich.text import Text

from experiments.config.flags import numbers_of
from experiments.figures import style
from experiments.report.fitted_table import FittedTable
from parsync.metrics.quantity import counted, duration, share
from parsync.model.equations import (
    Float64,
    average_staleness_bounds_us,
    conflicts_with_countless_schedulers,
    expected_conflicts,
    expected_weighted_conflicts,
    score_classes,
    weighted_conflicts_with_countless_schedulers,
)
from shared_state.errors import AgoraError

_CURVE_POINTS = 81
_EXTRA_SHARES = (0.0, 0.05, 0.1, 0.2, 0.5)  # of the cell's slots
_LOADS_PERCENT = (0.0, 50.0, 80.0, 90.0, 95.0, 99.0)
_MOST_SCHEDULERS = 4  # times those of the setting
_LEAST_FACTOR = 8.0  # up to which A is drawn at least, as in the paper


@dataclass(frozen=True, slots=True)
class RoundSetting:
    """A cell and its schedulers at the beginning of a round.

    Attributes:
        schedulers: N.
        tasks: K, that each scheduler places in the round.
        slots: S, of the cell.
        load_percent: Share of the slots that are taken.
        score_variance: V of the slots' scores; 0 if slots are all alike.
        extra_slots: S_extra, further slots, all idle.
    """

    schedulers: int
    tasks: float
    slots: int
    load_percent: float
    score_variance: float
    extra_slots: int = 0

    @property
    def idle_slots(self) -> int:
        """S_idle."""
        return self.slots - round(self.slots * self.load_percent / 100) + self.extra_slots

    @property
    def claims(self) -> float:
        """N K."""
        return self.schedulers * self.tasks

    @property
    def highest_load_percent(self) -> float:
        """The load that leaves as many idle slots as a scheduler has tasks."""
        return 100 * (1 - self.tasks / (self.slots + self.extra_slots))


@dataclass(frozen=True, slots=True)
class Limit:
    """The conflicts that are approached as a parameter grows."""

    conflicts: float
    weighted_conflicts: float


@dataclass(frozen=True, slots=True)
class Variation:
    """A setting with different values of one parameter.

    Attributes:
        label: The parameter's name.
        own_value: The parameter's value in the setting itself.
        values: The parameter's values.
        value_texts: These in words.
        settings: The setting with each value.
        limit: Where conflicts have one.
    """

    label: str
    own_value: float
    values: tuple[float, ...]
    value_texts: tuple[str, ...]
    settings: tuple[RoundSetting, ...]
    limit: Limit | None = None

    def conflicts(self) -> Float64:
        """The expected conflicts if slots are all alike, Eq. 2: float64 [values]."""
        schedulers, tasks, idle_slots = self._columns()
        return expected_conflicts(schedulers, tasks, idle_slots)

    def weighted_conflicts(self) -> Float64:
        """The expected conflicts if slots are drawn by their scores: float64 [values]."""
        schedulers, tasks, idle_slots = self._columns()
        weights, shares = score_classes(self.settings[0].score_variance, 1)
        slots = idle_slots[:, None] * shares
        # the sum of shares may be just below 1
        return expected_weighted_conflicts(
            schedulers, np.minimum(tasks, slots.sum(axis=-1)), weights, slots
        )

    def claims(self) -> Float64:
        """Claims of a round: float64 [values]."""
        return np.array([one.claims for one in self.settings])

    def _columns(self) -> Float64:
        return np.array(
            [(one.schedulers, one.tasks, one.idle_slots) for one in self.settings], np.float64
        ).T


def table_variations(setting: RoundSetting, factors: Sequence[float]) -> list[Variation]:
    """Some values of each parameter, the setting's own among them.

    Args:
        factors: Values of A.
    """
    n = setting.schedulers
    loads = [
        one
        for one in _LOADS_PERCENT
        if replace(setting, load_percent=one).idle_slots >= setting.tasks
    ]
    return [
        by_schedulers(setting, sorted({1, -(-n // 2), n, 2 * n, _MOST_SCHEDULERS * n})),
        by_extra_slots(setting, sorted({round(setting.slots * one) for one in _EXTRA_SHARES})),
        by_load(setting, sorted({*loads, setting.load_percent})),
        by_factor(setting, sorted(set(factors))),
    ]


def curves(setting: RoundSetting, factors: Sequence[float]) -> list[Variation]:
    """As table_variations, with many values of each parameter."""
    n, most = setting.schedulers, setting.schedulers * _MOST_SCHEDULERS
    highest = max(*factors, _LEAST_FACTOR)
    return [
        by_schedulers(setting, _whole(1, most)),
        by_extra_slots(setting, _whole(0, setting.slots * max(_EXTRA_SHARES))),
        by_load(setting, np.linspace(0, setting.highest_load_percent, _CURVE_POINTS).tolist()),
        by_factor(setting, [number / n for number in _whole(n, highest * n)]),
    ]


def by_schedulers(setting: RoundSetting, values: Sequence[int]) -> Variation:
    """More schedulers for more tasks: each has K, as before."""
    return Variation(
        "Schedulers N, K each",
        setting.schedulers,
        tuple(values),
        tuple(f"N = {one:,}" for one in values),
        tuple(replace(setting, schedulers=one) for one in values),
    )


def by_extra_slots(setting: RoundSetting, values: Sequence[int]) -> Variation:
    """More slots, which are all idle."""
    return Variation(
        "Extra slots, idle",
        setting.extra_slots,
        tuple(values),
        tuple(f"+{one:,}" for one in values),
        tuple(replace(setting, extra_slots=one) for one in values),
    )


def by_load(setting: RoundSetting, values: Sequence[float]) -> Variation:
    """Other shares of slots that are taken; the tasks to place stay as many."""
    return Variation(
        "Load: slots taken (%)",
        setting.load_percent,
        tuple(values),
        tuple(f"{one:g} %" for one in values),
        tuple(replace(setting, load_percent=one) for one in values),
    )


def by_factor(setting: RoundSetting, values: Sequence[float]) -> Variation:
    """More schedulers for the same tasks, Eq. 3."""
    n, k = setting.schedulers, setting.tasks
    classes = score_classes(setting.score_variance, setting.idle_slots)
    return Variation(
        "Factor A, same tasks",
        1,
        tuple(values),
        tuple(f"A = {one:g}" for one in values),
        tuple(replace(setting, schedulers=round(one * n), tasks=k / one) for one in values),
        Limit(
            float(conflicts_with_countless_schedulers(n, k, setting.idle_slots)),
            float(weighted_conflicts_with_countless_schedulers(n, k, *classes)),
        ),
    )


def _whole(low: float, high: float) -> list[int]:
    """At most _CURVE_POINTS whole numbers from low to high."""
    return sorted({round(one) for one in np.linspace(low, high, _CURVE_POINTS)})


_FORMATS = {".png": style.write_png, ".svg": style.write_svg}
_MOST_TOGETHER = 10**9


def show(setting: RoundSetting, factor: str, gap_s: float, out: Path | None) -> None:
    """Print the table, and draw the plot to `out` if given.

    Args:
        factor: Values of A, joined by commas.
        gap_s: The synchronisation gap G.
        out: File to create; its suffix chooses the format.

    Raises:
        AgoraError: An option is out of its range, or `out` cannot be written.
    """
    if setting.tasks > setting.idle_slots:
        raise AgoraError(
            f"--tasks {setting.tasks:g}: expected at most the {setting.idle_slots:,} idle slots "
            f"that {setting.slots:,} slots have at {setting.load_percent:g} % load"
        )
    factors = _factors(factor, setting.schedulers)
    _check_out(out)
    console = Console()
    console.print(conflict_table(setting, table_variations(setting, factors)))
    console.print(staleness_line(setting.schedulers, gap_s))
    if out is not None:
        figure = draw(setting, curves(setting, factors))
        try:
            _FORMATS[out.suffix](figure, out)
        except OSError as error:
            raise AgoraError(f"--out {out}: cannot write it: {error.strerror}") from error


def _factors(text: str, schedulers: int) -> tuple[float, ...]:
    factors = numbers_of("--factor", text, float)
    for one in factors:
        if not 1 <= one <= _MOST_TOGETHER / schedulers:
            raise AgoraError(
                f"--factor {one:g}: expected at least 1, and at most {_MOST_TOGETHER:,} "
                "schedulers together"
            )
        if abs(one * schedulers - round(one * schedulers)) > 1e-6:
            raise AgoraError(
                f"--factor {one:g}: expected a whole number of schedulers, got "
                f"{one:g} * {schedulers} = {one * schedulers:g}"
            )
    return factors


def _check_out(out: Path | None) -> None:
    if out is None:
        return
    if out.suffix not in _FORMATS:
        raise AgoraError(f"--out {out}: expected a name ending in {', '.join(_FORMATS)}")
    if out.exists():
        raise AgoraError(f"--out {out}: already exists; choose another name")


def conflict_table(setting: RoundSetting, variations: Sequence[Variation]) -> Group:
    """A row for each value of each parameter. The setting itself is green."""
    is_weighted = setting.score_variance > 0
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", min_width=21)
    for head in ("N", "K", "idle slots", "conflicts", *(["by score"] if is_weighted else [])):
        table.add_column(head, justify="right")
    for variation in variations:
        table.add_row(Text(variation.label, style="bold"))
        _add_rows(table, setting, variation, is_weighted)
    note = 'Per cent: share of the N K claims. "conflicts": slots are all alike (Eq. 2).'
    if is_weighted:
        note += (
            ' "by score": slots are drawn with weight exp(score), and scores are normal with '
            f"variance {setting.score_variance:g}."
        )
    return Group(_sentence(setting), table, Text(note))


def _sentence(setting: RoundSetting) -> Text:
    return Text(
        f"Expected conflicts of a round: {counted(setting.schedulers, 'scheduler')} (N) with "
        f"{counted(int(setting.tasks), 'task')} each (K) pick from "
        f"{counted(setting.idle_slots, 'idle slot')}, all with the same fresh view. "
        f"{setting.load_percent:g} % of {counted(setting.slots, 'slot')} are taken."
    )


def _add_rows(
    table: FittedTable, setting: RoundSetting, variation: Variation, is_weighted: bool
) -> None:
    columns = [variation.conflicts()]
    if is_weighted:
        columns.append(variation.weighted_conflicts())
    for index, (text, one) in enumerate(
        zip(variation.value_texts, variation.settings, strict=True)
    ):
        counts = [float(column[index]) for column in columns]
        style = "green" if one == setting else ""
        first = [f"{one.schedulers:,}", _number(one.tasks), f"{one.idle_slots:,}"]
        _add_row(table, text, first, counts, one.claims, style)
    if variation.limit is not None:
        counts = [variation.limit.conflicts]
        if is_weighted:
            counts.append(variation.limit.weighted_conflicts)
        first = ["∞", "→ 0", f"{setting.idle_slots:,}"]
        _add_row(table, "limit", first, counts, setting.claims, "")


def _add_row(
    table: FittedTable,
    text: str,
    first: Sequence[str],
    counts: Sequence[float],
    claims: float,
    style: str,
) -> None:
    cells = [f"{_number(count)} {share(count / claims):>7}" for count in counts]
    table.add_row(
        *(Text(cell, style=style, no_wrap=True) for cell in (f"  {text}", *first, *cells))
    )


def staleness_line(schedulers: int, gap_s: float) -> Text:
    """Between which values the average staleness of a view lies, under two sync policies."""
    texts = []
    for name, blocks in (("StateSync", 1), (f"ParSync's DiffSyn, N = {schedulers:,}", schedulers)):
        low, high = (float(one) for one in average_staleness_bounds_us(gap_s * 1e6, blocks))
        texts.append(f"{name}: {duration(low)} to {duration(high)}")
    return Text(f"Average staleness of a view, G = {duration(gap_s * 1e6)}. {'; '.join(texts)}.")


def _number(value: float) -> str:
    """A number of tasks, claims or conflicts; three significant digits if it is small."""
    return f"{value:,.0f}" if value == int(value) or value >= 999.5 else f"{value:.3g}"


def draw(setting: RoundSetting, variations: Sequence[Variation]) -> Figure:
    """Four panels with equal ranges of y; a dot marks the setting itself."""
    own = _lines(setting, by_factor(setting, [1]))
    with style.drawing(2, 2, height_in=4.8) as (figure, panels):
        for axes, variation in zip(panels.flat, variations, strict=True):
            _draw_panel(axes, setting, variation, [float(conflicts[0]) for _, conflicts in own])
        style.equal_y(list(panels.flat))
        figure.supylabel("Expected conflicts of a round", fontsize=9.5)
        style.legend(figure, panels.flat[-1])
    return figure


def _lines(setting: RoundSetting, variation: Variation) -> list[tuple[str, Float64]]:
    """The lines of a panel, with their labels."""
    lines = [("slots all alike (Eq. 2)", variation.conflicts())]
    if setting.score_variance:
        label = f"drawn by score, V = {setting.score_variance:g}"
        lines.append((label, variation.weighted_conflicts()))
    return lines


def _draw_panel(
    axes: Axes, setting: RoundSetting, variation: Variation, own: Sequence[float]
) -> None:
    """A line for each kind of draw, and the limits that they approach.

    Args:
        own: The conflicts of the setting itself, of each line.
    """
    limit = variation.limit
    limits = [] if limit is None else [limit.conflicts, limit.weighted_conflicts]
    for index, (label, conflicts) in enumerate(_lines(setting, variation)):
        axes.plot(variation.values, conflicts, label=label, **style.line_style(index))
        axes.plot(variation.own_value, own[index], marker="o", ms=4, color=style.colour(index))
        for value in limits[index : index + 1]:
            axes.axhline(
                value,
                color=style.INK,
                linewidth=1,
                linestyle=":",
                label=None if index else "limit of many schedulers",
            )
    axes.plot(variation.values, variation.claims(), label="claims", color=style.INK, alpha=0.35)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(variation.label)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
