"""Names of arms within sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.analysis.summary_model import ArmSummary


def in_sentence(name: str) -> str:
    """The name; in quotation marks if it has a comma, which would look like one of the
    sentence."""
    return f"“{name}”" if "," in name else name


def names_by_slug(arms: Iterable[ArmSummary]) -> dict[str, str]:
    """The names of arms as they stand in sentences."""
    return {arm.slug: in_sentence(arm.name) for arm in arms}


def and_list(names: Sequence[str]) -> str:
    """Names one after another, such as "A, B and C"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
