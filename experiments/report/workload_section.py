"""What the report says of the workload: its facts, and how the run started."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.summary_model import RunSummary, WorkloadFacts
from experiments.workloads.registry import ATTRIBUTION, SEEDS_VARY, WARM_UP_S
from parsync.metrics.quantity import duration


def _running_at_start(workload: WorkloadFacts) -> str:
    if workload.warm_up_us:
        return "and each arm's own running at the start"
    return f"{workload.initial_tasks:,} running at the start"


def workload_facts(summary: RunSummary) -> list[tuple[str, str]]:
    """Rows of the table of the workload: (name, value)."""
    workload = summary.workload
    rows = [
        ("Machines", f"{workload.machines:,}"),
        (
            "Capacity",
            ", ".join(
                f"{c:,} {d}" for d, c in zip(workload.dimensions, workload.capacity, strict=True)
            ),
        ),
        (
            "Tasks",
            f"{workload.tasks:,} ({workload.arrivals:,} arriving, {_running_at_start(workload)})",
        ),
        (
            "Run time on a preferred machine",
            f"{workload.preferred_permille / 10:g} % of that elsewhere",
        ),
        ("Length", duration(workload.end_us)),
    ]
    if workload.warm_up_us:
        rows.append(("Warm-up of each arm", duration(workload.warm_up_us)))
    for name, value in workload.facts.items():
        if name in (ATTRIBUTION, SEEDS_VARY, WARM_UP_S):
            continue
        shown = (
            f"{value:,}"
            if isinstance(value, int)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        rows.append((name.replace("_", " ").capitalize(), shown))
    return rows


def settled(summary: RunSummary) -> str:
    """What is left out at the start of each phase, in time and task lengths."""
    settle_us, length_us = summary.settle_us, summary.workload.mean_duration_us
    stretch = "of each phase" if len(summary.workload.phases) > 1 else "of the run"
    lengths = f" ({settle_us / length_us:.2g} mean task lengths)" if length_us else ""
    return f"the first {duration(settle_us)} {stretch}{lengths}"


def warm_up(summary: RunSummary) -> str:
    """How long each arm ran before time 0; "" if it did not."""
    length_us, mean_us = summary.workload.warm_up_us, summary.workload.mean_duration_us
    if not length_us:
        return ""
    lengths = f" ({length_us / mean_us:.2g} mean task lengths)" if mean_us else ""
    return f"{duration(length_us)}{lengths}"


def short_settling(summary: RunSummary) -> str:
    """A warning, if a cell that began empty, or with another load, was still filling when counting
    began. After a warm-up transient phases tell it (transient.py)."""
    settle_us, workload = summary.settle_us, summary.workload
    length_us = workload.mean_duration_us or 0
    if workload.initial_tasks or workload.warm_up_us or settle_us >= length_us:
        return ""
    return (
        f"Short warm-up: only {duration(settle_us)} of each phase are left out, "
        f"{settle_us / length_us:.2g} of a mean task length ({duration(length_us)}), so the "
        "cell was still filling when counting began: delays and conflicts are lower than in a "
        "cell that is full."
    )


@dataclass(frozen=True, slots=True)
class Start:
    """The tasks that wait as a trace begins.

    Attributes:
        is_left_out: Whether all other figures leave them out.
        left_out: Tasks submitted before counting begins, them included.
        counted: Those submitted later.
    """

    tasks: int
    is_left_out: bool
    left_out: int
    counted: int


def start_of(summary: RunSummary) -> Start | None:
    """The tasks that wait as the trace begins; None if there are none."""
    tasks = summary.workload.pending_at_start
    if not tasks or not summary.arms:
        return None
    first = summary.arms[0]
    counted = first.overall.submitted or 0
    is_left_out = any(arm.start is not None for arm in summary.arms)
    return Start(tasks, is_left_out, (first.totals.submitted or 0) - counted, counted)
