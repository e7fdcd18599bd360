"""Which arms had phases that were not stationary."""

from __future__ import annotations

from experiments.analysis.summary_model import ArmSummary, ComparedArms

MOST_NAMED = 3  # arms


def is_transient(arm: ArmSummary, phase: int) -> bool:
    """Whether backlog or utilisation of a phase drifted."""
    return arm.phases[phase].transient is True


def transient_phases(summary: ComparedArms) -> str:
    """One sentence with the phases that were transient, and in which arms; "" if none was."""
    found: list[str] = []
    for phase in range(len(summary.workload.phases)):
        arms = [
            arm.name for arm in summary.arms if phase < len(arm.phases) and is_transient(arm, phase)
        ]
        if len(arms) == len(summary.arms) > 1:
            found.append(f"{phase + 1} (all arms)")
        elif arms:
            more = f" and {len(arms) - MOST_NAMED} more" if len(arms) > MOST_NAMED else ""
            found.append(f"{phase + 1} ({', '.join(arms[:MOST_NAMED])}{more})")
    if not found:
        return ""
    phases = "Transient phase" if len(found) == 1 else "Transient phases"
    return f"{phases}, in which backlog or utilisation drifted: {', '.join(found)}."
