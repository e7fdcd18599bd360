"""The page of a sweep, sweep.html: one file that loads nothing, made from sweep.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.analysis.model_files import read_model, writing
from experiments.config.decision_basis import basis_text, basis_title
from experiments.config.price_settings import REGRET_OF_PRICED_ARMS
from experiments.config.run_config import read_toml
from experiments.figures import style
from experiments.report.html import filled, save_page
from experiments.report.page import never_stop
from experiments.studies.sweeps.plots import MOST_PANELS, draw, panels, x_axis
from experiments.studies.sweeps.points_table import Column, columns
from experiments.studies.sweeps.result import SWEEP, ArmResult, SweepSummary
from experiments.studies.sweeps.sweep_file import SWEEP_FILE, value_text
from experiments.studies.sweeps.wording import (
    basis_sentence,
    difference_texts,
    interval_text,
    until_sentence,
)
from experiments.toml_text import toml_text
from parsync.metrics.quantity import Quantity
from parsync.metrics.regret import RegretMeans

PAGE = "sweep.html"
OPEN_ROWS = 40  # a table with more is folded


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot on the page, with what the figure means."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """Arms that may be compared with each other.

    Attributes:
        title: What their delays rest on.
        arms: Their names.
        baselines: Those that the others are compared with; none if there is one arm.
    """

    title: str
    arms: Sequence[str]
    baselines: Sequence[str]
    drawings: Sequence[Drawing]


def write_page(directory: Path, check: Callable[[], None] = never_stop) -> Path:
    """Draw the plots of a sweep and write its page.

    Args:
        directory: Of the sweep, with its sweep.json.
        check: Called before each plot; what it raises ends the drawing.

    Returns:
        The path of the page.

    Raises:
        AgoraError: There is no sweep, or something cannot be written.
    """
    summary = read_model(directory / SWEEP, SweepSummary)
    figures, path = directory / "figures", directory / PAGE
    with writing(path):
        figures.mkdir(exist_ok=True)
        sections = [
            _section(summary, number, arms, figures, check)
            for number, arms in enumerate(summary.sets())
        ]
        config = toml_text(read_toml(directory / SWEEP_FILE))
        text = render(summary, sections, config)
        save_page(path, text)
    return path


def shown_quantities(summary: SweepSummary) -> list[Quantity]:
    """The metrics, then the headline quantities that any combination has."""
    metrics = [summary.quantity(key) for key in summary.metrics]
    every = [*metrics, *(one for one in summary.quantities if one.headline and one not in metrics)]
    return [
        quantity
        for quantity in every
        if any(
            arm.figures[quantity.key].estimate is not None
            for one in summary.combinations
            for arm in one.arms
        )
    ]


def _section(
    summary: SweepSummary,
    number: int,
    arms: Sequence[str],
    figures: Path,
    check: Callable[[], None],
) -> Section:
    drawings = []
    every = panels(summary)
    parts = [every[at : at + MOST_PANELS] for at in range(0, len(every), MOST_PANELS)]
    for quantity in shown_quantities(summary):
        if quantity.key not in summary.metrics and not _differs(summary, quantity, arms):
            continue
        for place, part in enumerate(parts):
            check()
            figure = draw(summary, quantity, arms, part, by_browser=False)
            shown = draw(summary, quantity, arms, part, by_browser=True)
            if figure is None or shown is None:
                continue
            name = f"{quantity.key}-{number + 1}" + (f"-{place + 1}" if len(parts) > 1 else "")
            _, svg = style.save(figure, shown, figures, name)
            title = f"{quantity.label} against {_bottom(summary)}"
            drawings.append(Drawing(title, style.inline_svg(svg, title), quantity.description))
    rows = [arm for one in summary.combinations for arm in one.arms if arm.name in arms]
    baselines = list(dict.fromkeys(its.baseline for arm in rows for its in arm.comparisons))
    return Section(_title(rows), arms, baselines, drawings)


def _title(rows: Sequence[ArmResult]) -> str:
    """What the delays of these arms rest on."""
    titles = list(dict.fromkeys(basis_title(arm.basis) for arm in rows))
    if len({arm.basis.kind for arm in rows}) > 1:
        return "Clock classes that differ between combinations"
    return titles[0] if len(titles) == 1 else f"{titles[0]} to {basis_text(rows[-1].basis)}"


def _differs(summary: SweepSummary, quantity: Quantity, arms: Sequence[str]) -> bool:
    """Whether the medians of these arms are not all the same, such as 0 tasks not committed."""
    medians = {
        arm.figures[quantity.key].estimate
        for one in summary.combinations
        for arm in one.arms
        if arm.name in arms
    }
    return len(medians) > 1


def _bottom(summary: SweepSummary) -> str:
    axis = x_axis(summary)
    return next(one.label for one in summary.parameters if one.axis == axis)


def _prices_sentence(summary: SweepSummary) -> str:
    """What to keep in mind about regret, if arms with slot prices have any; "" otherwise."""
    has_regret = any(
        arm.prices and arm.figures[key].estimate is not None
        for one in summary.combinations
        for arm in one.arms
        for key in RegretMeans.model_fields
        if key in arm.figures
    )
    return REGRET_OF_PRICED_ARMS if has_regret else ""


def render(summary: SweepSummary, sections: Sequence[Section], config: str) -> str:
    """The page's text."""
    by_key = {one.key: one for one in summary.quantities}
    dictionary: list[Column] = columns(summary.parameters, summary.quantities)

    def mean(key: str, arm: ArmResult) -> str:
        return interval_text(by_key[key], arm.figures[key])

    def differences(key: str, arm: ArmResult, several: bool) -> list[str]:
        return difference_texts(by_key[key], arm, several)

    return filled(
        "sweep.html.j2",
        summary=summary,
        sections=sections,
        quantities=shown_quantities(summary),
        dictionary=dictionary,
        config=config,
        basis=basis_sentence(summary),
        until=until_sentence(summary),
        prices=_prices_sentence(summary),
        open_rows=OPEN_ROWS,
        mean=mean,
        differences=differences,
        value_text=value_text,
        place_of=summary.arms.index,
    )
