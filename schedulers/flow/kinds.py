"""The kinds of flow scheduler: a policy each, their options, and their lines for the registry."""

from __future__ import annotations

from pydantic import Field

from schedulers.capability import Capability
from schedulers.decision_time import Counted
from schedulers.flow.policies.load_spreading import LoadSpreading
from schedulers.flow.policies.policy import Policy, TimePrice
from schedulers.flow.policies.quincy import Quincy
from schedulers.flow.scheduler import FlowOptions, FlowScheduler
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from schedulers.registry import SchedulerSpec

# The scheduler counts its work weighted, in units of 100 ns on the machine of the calibration
# (scheduler.RoundWork): 200 stands for a machine half as fast.
DECISION = Counted(ns_per_operation=100)
# A round re-optimises the graph of all tasks, waiting and running: it needs to know what became of
# each, takes long, and how long cannot be told before.
CAPABILITIES = frozenset(
    {
        Capability.KEEPS_PENDING,
        Capability.EVICTS,
        Capability.WANTS_ENDS,
        Capability.WAITS_FOR_OUTCOME,
        Capability.PLANS_WHOLE_QUEUE,
        Capability.OWN_PROCESS,
        Capability.MEASURED_WHEN_LIVE,
    }
)


class QuincyOptions(FlowOptions):
    """Options of Quincy's policy.

    Attributes:
        may_wait: Whether a task waits while that costs less than its best free place. If not, a
            task is placed whenever there is room.
        max_task_arcs: A preference set of more machines and racks than this gets an aggregator that
            its tasks share.
        patience_s: How long after its submission a task may wait at no cost for one of its
            preferred machines. Afterwards waiting costs as if patience_s were 0.
    """

    may_wait: bool = False
    max_task_arcs: int = Field(16, ge=0)
    patience_s: float = Field(0.0, ge=0, le=1e6, allow_inf_nan=False)


class LoadSpreadingOptions(FlowOptions):
    """Options of load spreading.

    Attributes:
        step_cost: What each task already on a machine adds to the cost of the next.
        unscheduled_cost: Of a task left waiting.
        levels: Arcs to a machine, at most.
    """

    step_cost: int = Field(100, ge=0, le=1_000_000)
    unscheduled_cost: int = Field(1_000_000, ge=0, le=1_000_000_000)
    levels: int = Field(32, ge=1)


def _wait_price(options: FlowOptions, otherwise: TimePrice) -> TimePrice:
    cost = otherwise.cost if options.wait_cost is None else options.wait_cost
    quantum_us = (
        otherwise.quantum_us if options.wait_quantum_us is None else options.wait_quantum_us
    )
    return TimePrice(cost, quantum_us)


def build_quincy(options: QuincyOptions, environment: SchedulerEnvironment) -> FlowScheduler:
    catalog = environment.catalog
    price = _wait_price(options, TimePrice(catalog.wait_cost, catalog.wait_quantum_us))
    policy = Quincy(
        environment.cell,
        catalog,
        options.max_task_arcs,
        price,
        options.may_wait,
        round(options.patience_s * 1e6),
    )
    return FlowScheduler(policy, options, environment)


def build_load_spreading(
    options: LoadSpreadingOptions, environment: SchedulerEnvironment
) -> FlowScheduler:
    refuse_constraints(environment.catalog, "flow_load_spreading")
    price = _wait_price(options, Policy.wait_price)
    policy = LoadSpreading(options.step_cost, options.unscheduled_cost, options.levels, price)
    return FlowScheduler(policy, options, environment)


def further_capabilities(options: FlowOptions) -> frozenset[Capability]:
    return options.further_capabilities


QUINCY = SchedulerSpec(
    "quincy",
    QuincyOptions,
    build_quincy,
    default_decision=DECISION,
    capabilities=CAPABILITIES,
    further_capabilities=further_capabilities,
)
LOAD_SPREADING = SchedulerSpec(
    "flow_load_spreading",
    LoadSpreadingOptions,
    build_load_spreading,
    default_decision=DECISION,
    capabilities=CAPABILITIES,
    further_capabilities=further_capabilities,
)
