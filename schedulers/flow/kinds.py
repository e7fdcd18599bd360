"""The kinds of flow scheduler, and their lines for the registry."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from pydantic import create_model

from flowsolver.choices import AlgorithmChoice
from schedulers.decision_clock import Counted
from schedulers.flow.options import Algorithms, FlowOptions, options_with_policy, wait_price
from schedulers.flow.policies import registry as policies
from schedulers.flow.policies.interface import TimePrice
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import Capability, SchedulerEnvironment
from schedulers.registry import SchedulerSpec

# The scheduler counts its work weighted, in units of 100 ns on the machine of the calibration
# (RoundWork): 200 stands for a machine half as fast.
DECISION = Counted(ns_per_operation=100)
# A round re-optimises the graph of all tasks, waiting and running: it needs to know what became of
# each, takes long, and how long cannot be told before.
CAPABILITIES = frozenset(
    {
        Capability.KEEPS_PENDING,
        Capability.WANTS_ENDS,
        Capability.WAITS_FOR_OUTCOME,
        Capability.PLANS_WHOLE_QUEUE,
        Capability.OWN_PROCESS,
        Capability.MEASURED_WHEN_LIVE,
    }
)


class LoadSpreadingFlowOptions(FlowOptions):
    """Options of flow schedulers whose policy is load spreading unless they name another."""

    policy: str = "load_spreading"


class FirmamentOptions(FlowOptions):
    """Options of Firmament, with the settings of its paper (OSDI 2016; docs/firmament.md has each
    with its source).

    Attributes:
        algorithm: Relaxation from scratch, with arc prioritisation (sections 6.1 and 5.3.1), races
            incremental cost scaling with price refine, efficient task removal and the tuned alpha
            (sections 6.2 and 5.3.2, footnote 3).
        preemption, migration: Every round reconsiders what runs (sections 3.1 and 3.3).
    """

    of_policy = MappingProxyType({"may_wait": True, "place_margin": 0})

    algorithm: Algorithms = (
        AlgorithmChoice("relaxation", from_scratch=True),
        AlgorithmChoice("cost_scaling", alpha=9),
    )
    preemption: bool = True


class QuincySchedulerOptions(FlowOptions):
    """Options of Quincy, with the settings of its paper (SOSP 2009; docs/firmament.md has each with
    its source).

    Attributes:
        algorithm: Cost scaling, from scratch in every round (section 4.3), with the alpha that
            Firmament's paper says it has (footnote 3).
        preemption, migration: On, as in the variant that the paper's conclusions rest on.
    """

    # The paper states no margin for staying. Without one, running tasks change places that cost the
    # same, round after round, and none gets done.
    of_policy = MappingProxyType({"may_wait": True, "place_margin": 0})

    algorithm: Algorithms = (AlgorithmChoice("cost_scaling", from_scratch=True, alpha=2),)
    preemption: bool = True


def build_as_published(options: FlowOptions, environment: SchedulerEnvironment) -> FlowScheduler:
    """As build(). A second of progress counts as two of waiting, unless the options say otherwise:
    Quincy takes the seconds that a task has run off its cost, and prices waiting at half a unit per
    second (the cost model `quincy` of Firmament's code)."""
    if getattr(options, "progress_cost", 0) is None:
        catalog = environment.catalog
        price = wait_price(options, TimePrice(catalog.wait_cost, catalog.wait_quantum_us))
        second = price.cost * 1_000_000 // price.quantum_us
        options = options.model_copy(update={"progress_cost": 2 * second})
    return build(options, environment)


def build(options: FlowOptions, environment: SchedulerEnvironment) -> FlowScheduler:
    """A flow scheduler with the policy that its options name."""
    policy = policies.get(options.policy).build(options, environment)
    policy.kind = options.policy
    return FlowScheduler(policy, options, environment)


def further_capabilities(options: FlowOptions) -> frozenset[Capability]:
    """What these options give a flow scheduler besides CAPABILITIES."""
    found = set(options.further_capabilities)
    if len(options.algorithm) > 1:
        found.add(Capability.RACES)
        if not options.deterministic:
            found.add(Capability.DEPENDS_ON_TIMING)
    return frozenset(found)


def _with_policy(options: FlowOptions) -> frozenset[Capability]:
    """The same, and what the policy that they name adds."""
    ranked = policies.get(options.policy).ranked
    return further_capabilities(options) | (frozenset() if ranked else {Capability.UNMODELLED})


def _kind(
    name: str,
    options: type[FlowOptions],
    build: Callable[[Any, SchedulerEnvironment], FlowScheduler] = build,
) -> SchedulerSpec:
    return SchedulerSpec(
        name,
        options,
        build,
        default_decision=DECISION,
        capabilities=CAPABILITIES,
        further_capabilities=_with_policy,
        options_for=options_with_policy,
    )


def kind_with_policy(policy: str) -> SchedulerSpec:
    """A kind of flow scheduler that has this policy unless its options name another, and its
    name."""
    options = create_model("FlowOptions", __base__=FlowOptions, policy=(str, policy))
    return _kind(policy, options)


FLOW = _kind("flow", FlowOptions)
FIRMAMENT = _kind("firmament", FirmamentOptions, build_as_published)
QUINCY = _kind("quincy", QuincySchedulerOptions, build_as_published)
LOAD_SPREADING = _kind("flow_load_spreading", LoadSpreadingFlowOptions)
