"""The kinds of flow scheduler, and their lines for the registry."""

from __future__ import annotations

from schedulers.decision_clock import Counted
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.policies import registry as policies
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


def build(options: FlowOptions, environment: SchedulerEnvironment) -> FlowScheduler:
    """A flow scheduler with the policy that its options name."""
    policy = policies.get(options.policy).build(options, environment)
    return FlowScheduler(policy, options, environment)


def further_capabilities(options: FlowOptions) -> frozenset[Capability]:
    return options.further_capabilities


QUINCY = SchedulerSpec(
    "quincy",
    FlowOptions,
    build,
    default_decision=DECISION,
    capabilities=CAPABILITIES,
    further_capabilities=further_capabilities,
    options_for=options_with_policy,
)
LOAD_SPREADING = SchedulerSpec(
    "flow_load_spreading",
    LoadSpreadingFlowOptions,
    build,
    default_decision=DECISION,
    capabilities=CAPABILITIES,
    further_capabilities=further_capabilities,
    options_for=options_with_policy,
)
