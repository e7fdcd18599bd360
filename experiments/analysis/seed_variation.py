"""What the seeds of a run vary, and what they leave the same.

An interval over seeds covers what the seed changes, and nothing else. A scheduler without random
choices, on a trace that no seed changes, has the same run under every seed.

Resamples of a trace have different loads, and delays depend on the load. Two loads are similar if
they differ by at most LIKE_LOAD of the higher one. Arms are compared seed by seed, so at the same
load. If the loads of the resamples are not similar, the report says that figures over the seeds mix
loads. Runs without a common seed are compared only if their loads are similar.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.summary_model import ArmSummary, ComparedArms, and_list, names_by_slug
from experiments.workloads.registry import SEEDS_VARY
from experiments.workloads.resampling import OFFERED_BY_TRACE, RESAMPLE

LIKE_LOAD = 0.05
MOST_LISTED = 10  # loads; of more, the lowest and the highest are shown


def is_same_under_every_seed(arm: ArmSummary, seeds: Sequence[int]) -> bool:
    """Whether no seed varied anything that the arm saw: the event logs of its runs are equal, so
    they are one run."""
    logs = {row.digest for row in arm.seeds if row.seed in seeds}
    return len(seeds) > 1 and len(logs) == 1


def are_like_loads(offered_permille: Sequence[int]) -> bool:
    """Whether delays under these loads may be compared."""
    return max(offered_permille) - min(offered_permille) <= LIKE_LOAD * max(offered_permille)


def what_seeds_vary(summary: ComparedArms) -> str:
    """What the paired seeds change, so what intervals over them cover; "" for fewer than two."""
    seeds = summary.paired.seeds
    if len(seeds) < 2:
        return ""
    said = summary.workload.facts.get(SEEDS_VARY)
    if not isinstance(said, str):
        said = (
            "All seeds have the same workload. They vary only the random choices of schedulers, "
            "syncs and messages, so intervals say nothing about other workloads, or other hours of "
            "a trace."
            if has_one_workload(summary)
            else "Seeds have different workloads; their kind does not say what a seed changes."
        )
    return " ".join(part for part in (said, _loads(summary), _same_runs(summary)) if part)


def has_one_workload(summary: ComparedArms) -> bool:
    """Whether all paired seeds have the same workload."""
    seeds = summary.paired.seeds
    return len({row.workload for arm in summary.arms for row in arm.seeds if row.seed in seeds}) < 2


def seed_note(summary: ComparedArms) -> str:
    """What a table must say about its seeds; "" where a seed changes the whole workload."""
    is_trace = has_one_workload(summary) or RESAMPLE in summary.workload.facts
    return what_seeds_vary(summary) if is_trace or _same_runs(summary) else ""


def _same_runs(summary: ComparedArms) -> str:
    seeds = summary.paired.seeds
    names = names_by_slug(summary.arms)
    same = [names[arm.slug] for arm in summary.arms if is_same_under_every_seed(arm, seeds)]
    if not same:
        return ""
    if len(same) == 1:
        return f"The run of {same[0]} does not depend on the seed, so it has no spread."
    return f"The runs of {and_list(same)} do not depend on the seed, so they have no spread."


def _loads(summary: ComparedArms) -> str:
    """The loads of resamples; "" for other workloads."""
    facts = summary.workload.facts
    if RESAMPLE not in facts or not summary.arms:
        return ""
    seeds = summary.paired.seeds
    loads = [row.offered_permille for row in summary.arms[0].seeds if row.seed in seeds]
    each = [f"{load / 10:g}" for load in loads]
    lowest, highest = min(loads) / 10, max(loads) / 10
    offered = and_list(each) if len(each) <= MOST_LISTED else f"{lowest:g} to {highest:g}"
    text = (
        f"Under seeds {seeds[0]} to {seeds[-1]} the resamples offer {offered} % of the cell, the "
        f"trace {facts.get(OFFERED_BY_TRACE, 0):g} %."
    )
    limit = f"{100 * LIKE_LOAD:g} %"
    if are_like_loads(loads):
        return f"{text} These loads are similar: they differ by at most {limit}."
    return (
        f"{text} These loads are not similar: they differ by more than {limit}. So a figure over "
        "the seeds and its interval mix loads. Compare arms by their differences, which are taken "
        "seed by seed, at the same load."
    )
