"""The registry's line for a greedy kind."""

from __future__ import annotations

from schedulers.capability import Capability
from schedulers.greedy.patience import PatientScheduler
from schedulers.greedy.price_patience import PatienceByPrice
from schedulers.greedy.scheduler import DECISION, GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import Scheduler, SchedulerEnvironment
from schedulers.registry import SchedulerSpec


def greedy_spec(
    name: str,
    kind: PlacementKind,
    *,
    preferred_first: bool = False,
    options: type[GreedyOptions] = GreedyOptions,
) -> SchedulerSpec:
    """The spec of a greedy kind.

    Args:
        name: Of the kind.
        kind: Which row of a pool a task gets.
        preferred_first: Whether a round takes the whole queue, and every task that can have a
            preferred machine gets one before the others are placed.
        options: The model of its options.
    """

    def build(options: GreedyOptions, environment: SchedulerEnvironment) -> Scheduler:
        greedy = GreedyScheduler(kind, environment, preferred_first)
        estimator = options.estimator(environment)
        if estimator is not None:
            greedy.place_by(options, estimator, estimator.shared_demand)
        if options.patience_by_price:
            patience = PatienceByPrice(options, environment.catalog, options.patience_us)
            return PatientScheduler(greedy, environment, patience)
        if options.patience_us:
            return PatientScheduler(greedy, environment, options.patience_us)
        return greedy

    def further(options: GreedyOptions) -> frozenset[Capability]:
        keeps = options.patience_us > 0 or options.patience_by_price
        memory = Capability.KEEPS_PENDING if keeps else Capability.IGNORES_CHANGES
        return frozenset({memory, *options.further_capabilities})

    return SchedulerSpec(
        name,
        options,
        build,
        default_decision=DECISION,
        capabilities=frozenset({Capability.PLANS_WHOLE_QUEUE} if preferred_first else ()),
        further_capabilities=further,
    )
