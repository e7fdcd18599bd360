"""What is checked before a sweep begins, and what is learned from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.campaign.expected_time import expected_run_s
from experiments.campaign.points import WorkloadCache
from experiments.decision_basis import DecisionBasis, decision_basis
from experiments.preconditions import check_arms, check_memory
from experiments.running import make_metrics
from experiments.summary import distinct
from experiments.sweeps.labels import assignments, parameter_labels, plain_value
from experiments.sweeps.sweep_file import Combination, Sweep
from parsync.metrics.quantity import Quantity
from parsync.metrics.summary import quantities
from shared_state.errors import AgoraError
from shared_state.tasks import NO_PREFERENCE


@dataclass(frozen=True, slots=True)
class SweepFacts:
    """What is known of a sweep before it runs.

    Attributes:
        bases: What the delays of each arm rest on, by combination and arm.
        quantities: That any arm has.
        prefers: Whether any task prefers a machine, by the combination that made a workload.
        expected_s: Processor time of a run, by combination and arm.
    """

    bases: dict[tuple[int, str], DecisionBasis]
    quantities: Sequence[Quantity]
    expected_s: dict[tuple[int, str], float]
    prefers: dict[int, bool]


def check_sweep(sweep: Sweep) -> SweepFacts:
    """Try everything that can be refused: every workload is made once, every scheduler, too.

    Raises:
        AgoraError: Names the combination and what is wrong with it.
    """
    labels = parameter_labels([one.path for one in sweep.parameters])
    workloads = WorkloadCache()
    checked: dict[str, float] = {}  # expected times by workload and arm
    facts = SweepFacts({}, [], {}, {})
    found: list[Quantity] = []
    for one in sweep.combinations:
        try:
            found += _check(one, workloads, checked, facts)
        except AgoraError as error:
            values = [plain_value(value) for value in one.values]
            raise AgoraError(f"with {assignments(labels, values)}: {error}") from error
    return SweepFacts(facts.bases, distinct(found), facts.expected_s, facts.prefers)


def _check(
    combination: Combination,
    workloads: WorkloadCache,
    checked: dict[str, float],
    facts: SweepFacts,
) -> list[Quantity]:
    """Check one combination, and add to the facts. Returns quantities of arms that are new."""
    config = combination.config
    options = f"{config.workload.model_dump_json()} {config.settle_s}"
    keys = {arm.name: f"{options} {arm.model_dump_json()}" for arm in config.arms}
    new = [arm for arm in config.arms if keys[arm.name] not in checked]
    found: list[Quantity] = []
    if new:
        check_memory(config, None)
        workload = workloads.make(config, config.seed)
        check_memory(config, workload)
        check_arms(config.model_copy(update={"arms": tuple(new)}), workload)
        arriving = workload.tasks.preference[workload.arrival_rows]
        facts.prefers[combination.number] = bool((arriving != NO_PREFERENCE).any())
        warm_up = config.workload.make_warm_up(config.seed)
        for arm in new:
            checked[keys[arm.name]] = expected_run_s(arm, workload, warm_up)
            found += quantities(make_metrics(config, arm, workload))
    outline = config.workload.outline()
    for arm in config.arms:
        place = combination.number, arm.name
        facts.bases[place] = decision_basis(
            arm, outline, config.virtual.message_us, config.virtual.measured_times
        )
        facts.expected_s[place] = checked[keys[arm.name]]
    return found
