"""What the report says of live runs: which were disturbed, and what virtual time had predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from experiments.report.arm_names import in_sentence
from experiments.summary_model import (
    ArmSummary,
    ComparedArms,
    Prediction,
    RunSummary,
    SeedSummary,
)
from parsync.metrics.quantity import Quantity, Unit, counted, duration, percent_change
from parsync.metrics.validity import Validity

ALIKE = 0.05  # arms that differ by less than this part have no order
SHOWN = ("delay_mean_us", "delay_p99_us", "preferred_share", "conflict_rate")


def disturbed_runs(summary: ComparedArms) -> list[str]:
    """A sentence for each live run that was disturbed: which, and the evidence."""
    return [
        f"The live run of {in_sentence(arm.name)} was disturbed and wins nothing. "
        f"{arm.validity.text}."
        for arm in summary.arms
        if arm.validity is not None and arm.validity.is_disturbed
    ]


def live_soundness(summary: RunSummary) -> str:
    """Which live runs can be trusted, in a sentence; "" without any."""
    live = [arm for arm in summary.arms if arm.validity is not None and arm.validity.seconds]
    if not live:
        return ""
    disturbed = [arm.name for arm in live if arm.is_disturbed]
    if not disturbed:
        return f"None of {counted(len(live), 'live run')} was disturbed."
    names = ", ".join(map(in_sentence, disturbed))
    return f"Disturbed, so that they win nothing: {names} (of {len(live)})."


def live_disagreement(summary: RunSummary) -> str:
    """A sentence or more, if live runs put arms into another order by mean delay than virtual time
    did under the same seed; "" if they do not.

    Only arms that may be ranked beside each other are compared, and only live runs that got to
    their end undisturbed. Arms whose delays differ by less than a twentieth have no order.
    """
    found = [
        f"{in_sentence(first.name)} waits less than {in_sentence(second.name)} {where}, and longer "
        f"{other}."
        for one in summary.sets()
        for first, second, where, other in _reversed(one.arms, summary.seed)
    ]
    if not found:
        return ""
    return "Live runs and virtual time disagree about the order of arms: " + " ".join(found)


def _reversed(
    arms: Sequence[ArmSummary], seed: int
) -> list[tuple[ArmSummary, ArmSummary, str, str]]:
    """The pairs of arms whose order is not the same, each as (first live, second live, ...)."""
    known = [
        (arm, live, virtual)
        for arm in arms
        if (predicted := in_virtual_time(arm, seed)) is not None
        if arm.has_sound_run
        if (live := arm.overall.value("delay_mean_us")) is not None
        if (virtual := predicted.overall.value("delay_mean_us")) is not None
    ]
    found = []
    for (a, live_a, virtual_a), (b, live_b, virtual_b) in combinations(known, 2):
        live, virtual = _order(live_a, live_b), _order(virtual_a, virtual_b)
        if live * virtual < 0:
            first, second = (a, b) if live < 0 else (b, a)
            found.append((first, second, "in the live runs", "in virtual time"))
    return found


def _order(a: float, b: float) -> int:
    """-1 if a is less than b by more than ALIKE, 1 if it is more, else 0."""
    if abs(a - b) <= ALIKE * max(a, b):
        return 0
    return -1 if a < b else 1


def in_virtual_time(arm: ArmSummary, seed: int) -> SeedSummary | None:
    """What virtual time found for a live arm under the run's own seed; None if it was not run."""
    if arm.runtime != "ray":
        return None
    return next((row for row in arm.seeds if row.seed == seed), None)


@dataclass(frozen=True, slots=True)
class Predicted:
    """A figure of a live run beside its prediction.

    Attributes:
        error: How far the prediction is from the measurement, with its sign: of durations as a part
            of the measurement, of shares in percentage points.
    """

    quantity: Quantity
    measured: str
    predicted: str
    error: str


@dataclass(frozen=True, slots=True)
class PredictedArm:
    """A live arm, its place among the arms, whether it was disturbed, and its figures."""

    name: str
    place: int
    disturbed: bool
    figures: tuple[Predicted, ...]


def predictions(summary: RunSummary) -> list[PredictedArm]:
    """Each live arm whose run in virtual time is known, with the figures of SHOWN."""
    found = []
    for place, arm in enumerate(summary.arms):
        predicted = arm.prediction or in_virtual_time(arm, summary.seed)
        if predicted is None:
            continue
        figures = [
            _predicted(quantity, arm, predicted)
            for key in SHOWN
            if (quantity := summary.quantity(key)) is not None
        ]
        found.append(PredictedArm(arm.name, place, arm.is_disturbed, tuple(figures)))
    return found


def _predicted(quantity: Quantity, arm: ArmSummary, row: SeedSummary | Prediction) -> Predicted:
    live, virtual = arm.overall.value(quantity.key), row.overall.value(quantity.key)
    error = ""
    if live is not None and virtual is not None:
        relative = quantity.unit is Unit.DURATION and live
        error = (
            percent_change((virtual - live) / live)
            if relative
            else quantity.difference_text(virtual - live)
        )
    return Predicted(quantity, quantity.text(live), quantity.text(virtual), error)


def validity_text(validity: Validity) -> str:
    """Whether a live run was disturbed, with the evidence, or what little there was of it."""
    if not validity.seconds:
        return "not measured"
    if validity.is_disturbed:
        return f"disturbed in {validity.text}"
    if validity.disturbed:
        return f"valid; disturbed in no more than {validity.text}"
    return f"valid: {counted(validity.seconds, 'second')}, none of them disturbed"


def prediction_basis(summary: RunSummary) -> str:
    """What virtual time assumed of messages."""
    if any(arm.prediction is not None for arm in summary.arms):
        return (
            "For its prediction an arm ran in virtual time, where processes stepped and ticked as "
            "the live runtime's do, with times measured in the other undisturbed live arms of this "
            "run."
        )
    virtual = summary.config.get("virtual")
    calibrated = isinstance(virtual, dict) and virtual.get("calibration") is not None
    message_us = virtual.get("message_us") if isinstance(virtual, dict) else None
    if isinstance(message_us, int) and not calibrated:
        return (
            f"Virtual time had messages take {duration(message_us)} each, and no ticks. A live run "
            "hands messages on with the steps of its processes, once per tick or a little more "
            "often, so delays of a few tens of milliseconds are longer live. "
            "agora run --calibrate RUN makes virtual time do the same."
        )
    return (
        "Virtual time stepped and ticked as the live runtime does, with times measured in the live "
        "runs that it was calibrated on."
    )
