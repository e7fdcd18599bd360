"""What the report says of live runs: which were disturbed, and what virtual time had predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from experiments.analysis.summary_model import (
    ArmSummary,
    ComparedArms,
    Prediction,
    RunSummary,
    in_sentence,
)
from parsync.metrics.kinds.validity import Validity
from parsync.metrics.quantity import Quantity, Unit, counted, duration, percent_change

ALIKE = 0.05  # arms that differ by less than this part have no order
SHOWN = ("delay_mean_us", "delay_p99_us", "preferred_share", "conflict_rate")


def disturbed_runs(summary: ComparedArms) -> list[str]:
    """A sentence for each live run that was disturbed: which, and the evidence."""
    return [
        f"The live run of {in_sentence(arm.name)} was disturbed and is not ranked. "
        f"{arm.validity.text}."
        for arm in summary.ran_live
        if arm.validity is not None and arm.validity.is_disturbed
    ]


def live_cells(summary: ComparedArms) -> str:
    """In a sentence or two, the cell of live runs that have another one than the arms are compared
    on; "" if none has."""
    sizes = list(dict.fromkeys(arm.machines for arm in summary.ran_live if arm.machines))
    if not sizes:
        return ""
    whole = summary.workload.machines
    machines = " or ".join(f"{size:,}" for size in sizes)
    return (
        f"Live runs had a cell of {machines} machines instead of {whole:,}. The load of each phase "
        "is the same. Decisions take longer in proportion, so that the schedulers of an arm can "
        "decide on the same share of the arrivals as on the whole cell."
    )


def live_note(summary: RunSummary) -> str:
    """What live runs mean for the answer, in a line; "" without any."""
    live = [arm for arm in summary.ran_live if arm.validity is not None and arm.validity.seconds]
    if not live:
        return ""
    disturbed = sum(arm.is_disturbed for arm in live)
    were = "was" if disturbed == 1 else "were"
    of_live = f"{disturbed} of {counted(len(live), 'live run')} {were} disturbed by other work"
    if summary.runtime == "ray":
        not_ranked = "is not ranked" if disturbed == 1 else "are not ranked"
        return f"{of_live} on this machine and {not_ranked}." if disturbed else ""
    rests = "The answer rests on virtual time, which other work on the machine does not affect"
    if disturbed:
        return f"{rests}; {of_live}."
    are = "is" if len(live) == 1 else "are"
    return f"{rests}; {counted(len(live), 'live run')} {are} reported separately."


def live_soundness(summary: RunSummary) -> str:
    """Which live runs can be trusted, in a sentence; "" without any."""
    live = [arm for arm in summary.ran_live if arm.validity is not None and arm.validity.seconds]
    if not live:
        return ""
    disturbed = [arm.name for arm in live if arm.is_disturbed]
    if not disturbed:
        return f"None of {counted(len(live), 'live run')} was disturbed."
    names = ", ".join(map(in_sentence, disturbed))
    return f"Disturbed, and so not ranked: {names} (of {len(live)})."


def live_disagreement(summary: RunSummary) -> str:
    """A sentence or more, if live runs put arms into another order by mean delay than virtual time
    did under the same seed, on a cell of the same size; "" if they do not.

    Only arms that may be ranked beside each other are compared, and only live runs that got to
    their end undisturbed. Arms whose delays differ by less than a twentieth have no order.
    """
    found = [
        f"{in_sentence(first.name)} waits less than {in_sentence(second.name)} in the live runs, "
        "and longer in virtual time."
        for one in summary.sets()
        for first, second in _reversed(summary, one.arms)
    ]
    if not found:
        return ""
    return "Live runs and virtual time disagree about the order of arms: " + " ".join(found)


def _reversed(
    summary: RunSummary, arms: Sequence[ArmSummary]
) -> list[tuple[ArmSummary, ArmSummary]]:
    """The pairs of comparable arms whose order is not the same live, each in its order there."""
    run_live = {arm.name: arm for arm in summary.live_runs if arm.has_sound_run}
    known = [
        (arm, live, virtual)
        for arm in arms
        if (live_run := run_live.get(arm.name)) is not None and not arm.partial
        if (live := live_run.overall.value("delay_mean_us")) is not None
        if (virtual := _delay_in_virtual_time(arm, live_run)) is not None
    ]
    found = []
    for (a, live_a, virtual_a), (b, live_b, virtual_b) in combinations(known, 2):
        live, virtual = _order(live_a, live_b), _order(virtual_a, virtual_b)
        if live * virtual < 0:
            found.append((a, b) if live < 0 else (b, a))
    return found


def _delay_in_virtual_time(arm: ArmSummary, live: ArmSummary) -> float | None:
    """The mean delay of an arm in virtual time, on a cell as large as that of its live run."""
    if live.machines is None:
        return arm.overall.value("delay_mean_us")
    return None if live.prediction is None else live.prediction.overall.value("delay_mean_us")


def _order(a: float, b: float) -> int:
    """-1 if a is less than b by more than ALIKE, 1 if it is more, else 0."""
    if abs(a - b) <= ALIKE * max(a, b):
        return 0
    return -1 if a < b else 1


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
    """A live run, and its figures beside their predictions."""

    run: ArmSummary
    figures: tuple[Predicted, ...]


def predictions(summary: RunSummary) -> list[PredictedArm]:
    """Each live run whose run in virtual time is known, with the figures of SHOWN."""
    in_virtual_time = {arm.name: arm for arm in summary.arms if not arm.partial}
    found = []
    for arm in summary.live_runs:
        predicted: ArmSummary | Prediction | None = arm.prediction
        if predicted is None and arm.machines is None:
            predicted = in_virtual_time.get(arm.name)
        if predicted is None:
            continue
        figures = [
            _predicted(quantity, arm, predicted)
            for key in SHOWN
            if (quantity := summary.quantity(key)) is not None
        ]
        found.append(PredictedArm(arm, tuple(figures)))
    return found


def _predicted(
    quantity: Quantity, arm: ArmSummary, prediction: ArmSummary | Prediction
) -> Predicted:
    live, virtual = arm.overall.value(quantity.key), prediction.overall.value(quantity.key)
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
    known = [arm for arm in summary.live_runs if arm.prediction is not None]
    cell = " Its cell was that of the live run." if any(arm.machines for arm in known) else ""
    on = {arm.name: arm.prediction.calibrated_on for arm in known if arm.prediction is not None}
    if any(on.values()):
        measured = (
            "in the live run itself, so its error shows only what virtual time leaves out, not how"
            " much two live runs differ"
            if all(its in ([], [name]) for name, its in on.items())
            else "in the other undisturbed live arms of this run"
        )
        return (
            "For its prediction an arm ran in virtual time, where processes stepped and ticked as "
            f"the live runtime's do, with times measured {measured}.{cell}"
        )
    if (message_us := modelled_message_us(summary)) is not None:
        return (
            f"Virtual time had messages take {duration(message_us)} each, and no ticks.{cell} A "
            "live run hands messages on with the steps of its processes, once per tick or a little "
            "more often, so delays of a few tens of milliseconds are longer live. "
            "agora run --calibrate RUN makes virtual time do the same."
        )
    return (
        "Virtual time stepped and ticked as the live runtime does, with times measured in the live "
        f"runs that it was calibrated on.{cell}"
    )


def modelled_message_us(summary: RunSummary) -> int | None:
    """The time of every message in virtual time; None where times were measured live."""
    virtual = summary.config.get("virtual")
    if not isinstance(virtual, dict) or virtual.get("calibration") is not None:
        return None
    message_us = virtual.get("message_us")
    return message_us if isinstance(message_us, int) else None
