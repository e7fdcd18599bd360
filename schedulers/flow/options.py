"""The options of flow schedulers: those that all have, and beside them those of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

from flowsolver.choices import AlgorithmChoice, algorithm_choices
from schedulers.flow.policies import registry
from schedulers.flow.policies.interface import TimePrice
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import Capability
from schedulers.prices.registry import PriceOptions
from shared_state.errors import AgoraError


def _parsed(given: Any) -> tuple[AlgorithmChoice, ...]:
    try:
        return algorithm_choices(given)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _as_written(racers: tuple[AlgorithmChoice, ...]) -> Any:
    written = [
        {
            field.name: value
            for field in fields(racer)
            if (value := getattr(racer, field.name)) != field.default
        }
        for racer in racers
    ]
    short = [table["name"] if len(table) == 1 else table for table in written]
    return short[0] if len(short) == 1 else short


# An algorithm of the solver with its settings, or several, which race. In a file a name, or a table
# { name = "cost_scaling", alpha = 9 }, or a list of them.
Algorithms = Annotated[
    tuple[AlgorithmChoice, ...], BeforeValidator(_parsed), PlainSerializer(_as_written)
]


class FlowOptions(PriceOptions):
    """The options that all policies share, those of slot prices among them.

    The price of leaving a task waiting rises by wait_cost per wait_quantum_us. Unset, policies that
    place by the workload's costs take the workload's price.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    has_potentials: ClassVar[bool] = True
    of_policy: ClassVar[Mapping[str, Any]] = {}  # defaults of options of a policy that has them

    policy: str = Field(
        "quincy",
        description="the name of the policy, which defines the arcs of the flow graph and their"
        " costs; its own options stand beside these",
    )
    wait_cost: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="how much the cost of waiting rises per wait_quantum_us; unset: the workload's"
        " price, or the policy's own",
    )
    wait_quantum_us: int | None = Field(
        None,
        ge=1,
        description="microseconds of waiting that cost wait_cost; unset: the workload's, or the"
        " policy's own",
    )
    algorithm: Algorithms = Field(
        (AlgorithmChoice("incremental_ssp"),),
        description="the algorithm of the solver: a name, or a table with settings, `{ name ="
        ' "cost_scaling", alpha = 9 }`; several in a list race, each on a thread of its own',
    )
    deterministic: bool = Field(
        True,
        description="in a race, the answer with the fewest counted operations is used, which is the"
        " same in every run; off: the first to arrive, in live runs only",
    )
    preemption: bool = Field(
        False,
        description="running tasks stay in the graph, and each round may evict them, to make room"
        " or to place them better; an evicted task starts over",
    )
    priority_preemption: bool = Field(
        False,
        description="tasks that the flow leaves waiting may take the room of running tasks of lower"
        ' priority, of whatever scheduler; the arm has to allow it: evictions = "lower_priority"',
    )
    migration: bool = Field(
        True,
        description="with preemption: a running task may be evicted to be placed on another"
        " machine; off: it stays, or is evicted and waits",
    )
    max_operations: int | None = Field(
        None,
        ge=1,
        le=1 << 62,
        description="operations counted by the solver after which a round ends early; tasks that"
        " the flow has not routed by then go on waiting or running; unset: no limit",
    )
    certify_every: int = Field(
        64,
        ge=1,
        description="the whole flow is proved optimal once in so many rounds; what a round changed"
        " is checked in that round",
    )
    repairs: int = Field(
        64,
        ge=0,
        description="the largest number of tasks per round that are placed one at a time, because"
        " the flow cannot express what they request (only if requests differ)",
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        """Refuse what means nothing beside the other options, unless it is the kind's default."""
        for name, acts, needed in (
            ("migration", self.preemption, "preemption is on"),
            ("deterministic", len(self.algorithm) > 1, "several algorithms race"),
        ):
            is_off = not getattr(self, name) and type(self).model_fields[name].default
            if is_off and not acts:
                raise ValueError(f"{name} = false: has no effect unless {needed}")
        return self

    @property
    def further_capabilities(self) -> frozenset[Capability]:
        found = set(super().further_capabilities)
        if self.preemption:
            found.add(Capability.EVICTS)
        if self.priority_preemption:
            found.add(Capability.PREEMPTS)
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
    return joined_options(of_kind, registry.get(name))


@lru_cache(maxsize=256)
def joined_options(of_kind: type[FlowOptions], policy: PolicySpec) -> type[FlowOptions]:
    """The model of a kind's options with those of a policy.

    Raises:
        AgoraError: Something in the policy's model has the name of something in the kind's, which
            would replace it.
    """
    of_policy = policy.options
    theirs = set(dir(of_policy)) | set(of_policy.model_fields)
    ours = set(dir(of_kind)) | set(of_kind.model_fields)
    shared = sorted(
        name
        for name in (theirs & ours) - set(dir(BaseModel))
        if not name.startswith(("__", "_abc"))
    )
    if shared:
        raise AgoraError(
            f"flow policy {policy.kind!r}: option {shared[0]!r} is also one of all flow "
            "schedulers; give it another name"
        )
    bases: Any = (of_kind, of_policy)
    changed: Any = {
        name: (field.annotation, FieldInfo.merge_field_infos(field, default=default))
        for name, default in of_kind.of_policy.items()
        if (field := of_policy.model_fields.get(name)) is not None
    }
    return cast(type[FlowOptions], create_model(of_kind.__name__, __base__=bases, **changed))
