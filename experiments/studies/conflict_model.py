"""The execution of `agora model`: the conflicts that ParSync's equations expect."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from experiments.config.option_values import numbers_of
from experiments.figures import style
from experiments.studies import conflict_model_figures
from experiments.studies.conflict_model_terminal import conflict_table, staleness_line
from experiments.studies.conflict_variations import RoundSetting, curves, table_variations
from shared_state.errors import AgoraError

_FORMATS = {".png": style.write_png, ".svg": style.write_svg}
_MOST_SCHEDULERS = 10**9


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
        figure = conflict_model_figures.draw(setting, curves(setting, factors))
        try:
            _FORMATS[out.suffix](figure, out)
        except OSError as error:
            raise AgoraError(f"--out {out}: cannot write it: {error.strerror}") from error


def _factors(text: str, schedulers: int) -> tuple[float, ...]:
    factors = numbers_of("--factor", text, float)
    for one in factors:
        if not 1 <= one <= _MOST_SCHEDULERS / schedulers:
            raise AgoraError(
                f"--factor {one:g}: expected at least 1, and at most {_MOST_SCHEDULERS:,} "
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
