"""The table of the greedy kinds: which of the rows that fit a task gets (below, a line each), and
how their options turn into a scheduler."""

from __future__ import annotations

from pydantic import field_validator

from schedulers.capability import Capability
from schedulers.greedy.patience import PatienceByPrice, PatientScheduler
from schedulers.greedy.scheduler import DECISION, GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import Scheduler, SchedulerEnvironment
from schedulers.prices import registry
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


# Uniformly random among the rows that fit.
RANDOM = greedy_spec("random", PlacementKind.RANDOM)

# Omega's randomised first fit (Schwarzkopf et al., EuroSys 2013; its simulator's placement loop).
# Draw among the remaining candidates: a machine that fits is taken and stays a candidate, another
# is set aside for the rest of the attempt. An attempt is a run of tasks of one request, as the
# tasks of an Omega job are.
RANDOMIZED_FIRST_FIT = greedy_spec("randomized_first_fit", PlacementKind.RANDOMIZED_FIRST_FIT)

# The lowest row that fits. Schedulers that share a view all choose the same rows: the extreme of
# contention.
FIRST_FIT = greedy_spec("first_fit", PlacementKind.FIRST_FIT)

# The row that fits with the least room left, summed over dimensions as shares of the largest
# machine; ties to the lowest row.
BEST_FIT = greedy_spec("best_fit", PlacementKind.BEST_FIT)

# The row that fits with the most room, summed over dimensions as shares of the largest machine:
# also among preferred machines of equal cost, where the other kinds draw. Ties are broken at
# random, anew in each plan, so that schedulers that share a view do not all choose the same rows.
LOAD_SPREADING = greedy_spec("load_spreading", PlacementKind.LOAD_SPREADING)

# Preferred machines first, over the whole queue: in each round every task that can have one of its
# preferred machines gets one, in the order of the queue. Then the others get any. Of equally good
# machines a task gets the one with the most room, as of load_spreading.
PREFERRED_FIRST = greedy_spec("preferred_first", PlacementKind.LOAD_SPREADING, preferred_first=True)


class WeightedSamplingOptions(GreedyOptions):
    """Options as of the other kinds, but without prices: the slot score alone decides."""

    @field_validator("prices", mode="before")
    @classmethod
    def _knows_none(cls, kind: object) -> object:
        if kind != registry.NONE:
            raise ValueError(
                f"expected {registry.NONE!r}, got {kind!r}: weighted_sampling draws by slot score"
            )
        return kind


# Each row that fits with probability proportional to its slot score: exact weighted sampling
# without replacement (ParSync section 4.3).
WEIGHTED_SAMPLING = greedy_spec(
    "weighted_sampling", PlacementKind.WEIGHTED_SAMPLING, options=WeightedSamplingOptions
)
