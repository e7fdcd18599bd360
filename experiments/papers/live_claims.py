"""Claims about live runs: judged from valid runs only, and labelled with the demo's scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from experiments.papers.claim_bounds import UsedRuns
from experiments.papers.claims import ArmsOfSeed, Claim, ClaimResult, judge
from experiments.papers.figure import Results, Table
from experiments.papers.live_runs import EvidenceOfSeed, LiveEvidence
from experiments.statistics import median_interval
from experiments.summary_model import SeedFigures
from parsync.metrics.quantity import duration, share
from parsync.metrics.summary import ScopeFigures

_NOTE = (
    "Each cell: live, then the same arm in virtual time. A run that is not valid says nothing of "
    "its arm; the same command does it again."
)
_FIRST, _PEAK = 0, 2  # phases of 50 and 95 %


def judge_live(
    claim: Claim, seeds: Sequence[ArmsOfSeed], evidence: Sequence[EvidenceOfSeed]
) -> ClaimResult:
    """Whether a claim holds over some seeds of live runs, at the demo's scale.

    It is not comparable if a run that its statistic is computed from is not valid.

    Args:
        seeds: What the runs measured, seed by seed from seed 1.
        evidence: Of the live runs, seed by seed.
    """
    used = [UsedRuns(runs) for runs in seeds]
    result = judge(claim, used, at_paper_scale=False)
    reasons = [
        f"{_named(label, seed, len(evidence))}: {why}"
        for seed, (runs, of_seed) in enumerate(zip(used, evidence, strict=True), start=1)
        for label in runs.labels
        if label in of_seed and (why := of_seed[label].why_not_valid())
    ]
    if reasons:
        result = judge(
            replace(claim, incomparable=" ".join(dict.fromkeys(reasons))),
            seeds,
            at_paper_scale=False,
        )
    return result.model_copy(update={"scale": "demo"})


def beside_virtual_time(results: Results, evidence: Sequence[EvidenceOfSeed]) -> Table:
    """A row for each live arm: whether it was disturbed, and its figures beside those of the same
    arm in virtual time, as medians over the seeds.

    Args:
        results: Of the live runs, and of the same runs in virtual time.
        evidence: Of the live runs, seed by seed.
    """
    virtual = {run.arm.name: run.label for run in results.runs if not run.live}
    rows = []
    for run in results.runs:
        if run.live:
            live, same = results.of(run.label), results.of(virtual[run.arm.name])
            of_run = [of_seed[run.label] for of_seed in evidence]
            figures = [f"{text(live)} / {text(same)}" for text in _FIGURES]
            rows.append((run.label, _seconds(of_run), *figures))
    header = (
        "",
        "seconds disturbed",
        "mean delay in phase 1",
        "in phase 3",
        "conflicts per claim",
        "on preferred machines",
    )
    causes = [
        f" {_named(label, seed, len(evidence))} was disturbed in {its.validity.text}."
        for seed, of_seed in enumerate(evidence, start=1)
        for label, its in of_seed.items()
        if its.validity.is_disturbed
    ]
    return Table(header, tuple(rows), "".join((_NOTE, *causes)))


def _named(label: str, seed: int, seeds: int) -> str:
    """A run, by its seed only if there are several."""
    return f"'{label}'" if seeds == 1 else f"'{label}' with seed {seed}"


def _seconds(of_seeds: Sequence[LiveEvidence]) -> str:
    disturbed = sum(len(one.validity.disturbed) for one in of_seeds)
    seconds = sum(one.validity.seconds for one in of_seeds)
    verdict = "not valid" if any(one.why_not_valid() for one in of_seeds) else "valid"
    return f"{disturbed} of {seconds}: {verdict}"


def _delay(phase: int) -> Callable[[Sequence[SeedFigures]], str]:
    """The mean delay in a phase."""
    return lambda runs: _median("delay_mean_us", [run.phases[phase] for run in runs], duration)


def _share(key: str) -> Callable[[Sequence[SeedFigures]], str]:
    """A share over the whole run."""
    return lambda runs: _median(key, [run.overall for run in runs], share)


def _median(key: str, figures: Sequence[ScopeFigures], text: Callable[[float], str]) -> str:
    """The median over the seeds, marked if it is a lower bound."""
    median = median_interval([one.value(key) for one in figures]).estimate
    if median is None:
        return "not known"
    return ("≥ " if any(one.is_bound(key) for one in figures) else "") + text(median)


_FIGURES = (_delay(_FIRST), _delay(_PEAK), _share("conflict_rate"), _share("preferred_share"))
