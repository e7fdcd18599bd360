"""The options of flow schedulers: those that all have, and beside them those of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from schedulers.flow.policies import registry
from schedulers.flow.policies.interface import TimePrice
from schedulers.interface import Capability
from schedulers.prices.registry import PriceOptions


class FlowOptions(PriceOptions):
    """The options that all policies share, those of slot prices among them.

    The price of leaving a task waiting rises by wait_cost per wait_quantum_us. Unset, policies that
    place by the workload's costs take the workload's price.

    Attributes:
        policy: The name of the policy, which defines the arcs of the flow graph and their costs.
            Its own options stand beside these.
        preemption: Whether running tasks stay in the graph, and may be evicted for others or to be
            placed better; an evicted task starts over.
        certify_every: Rounds between checks of the whole optimality certificate (what a round
            touched is checked in that round).
        repairs: Tasks per round, at most, that are placed one at a time because the flow cannot
            express what they request (only when requests differ).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    has_potentials: ClassVar[bool] = True

    policy: str = "quincy"
    wait_cost: int | None = Field(None, ge=0, le=1_000_000)
    wait_quantum_us: int | None = Field(None, ge=1)
    preemption: bool = False
    certify_every: int = Field(64, ge=1)
    repairs: int = Field(64, ge=0)

    @property
    def further_capabilities(self) -> frozenset[Capability]:
        found = set(super().further_capabilities)
        if self.preemption:
            found.add(Capability.EVICTS)
        return frozenset(found)


def wait_price(options: FlowOptions, otherwise: TimePrice) -> TimePrice:
    """The price of waiting that the options set, or another one where they do not."""
    cost = otherwise.cost if options.wait_cost is None else options.wait_cost
    quantum_us = (
        otherwise.quantum_us if options.wait_quantum_us is None else options.wait_quantum_us
    )
    return TimePrice(cost, quantum_us)


def options_with_policy(of_kind: type[FlowOptions], given: Mapping[str, Any]) -> type[FlowOptions]:
    """The model of a kind's options with those of the policy that `given` names.

    Raises:
        AgoraError: There is no such policy, or it cannot be loaded.
    """
    name = given.get("policy", of_kind.model_fields["policy"].default)
    if not isinstance(name, str):
        return of_kind  # which refuses it
    return _joined(of_kind, registry.get(name).options)


@lru_cache(maxsize=256)
def _joined(of_kind: type[FlowOptions], of_policy: type[BaseModel]) -> type[FlowOptions]:
    bases: Any = (of_kind, of_policy)
    return cast(type[FlowOptions], create_model(of_kind.__name__, __base__=bases))
