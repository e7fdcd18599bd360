"""The options by which a scheduler uses slot prices."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from schedulers.capability import Capability
from schedulers.constraints import refuse_constraints
from schedulers.interface import SchedulerEnvironment
from schedulers.prices import registry
from schedulers.prices.price_check import CheckedEstimator, checked
from shared_state.errors import AgoraError

ONE_PERMILLE = 1000


class PriceMode(StrEnum):
    """How prices enter a decision."""

    TIE = "tie"  # of places of equal cost the one with the lowest price
    PAID = "paid"  # the place with the lowest cost + weight x price


class PriceScope(StrEnum):
    """Which placements have a price."""

    ALL = "all"
    ELSEWHERE = "elsewhere"  # those on machines that the task does not prefer


class PriceOptions(BaseModel):
    """What the options of a scheduler that can use slot prices have in common.

    Attributes:
        prices: The kind of estimator; none: the scheduler knows no prices.
        price_options: Options of that kind.
        price_mode: How prices enter a decision.
        price_weight_permille: The weight of prices that are paid.
        price_scope: Which placements have a price.
        share_demand: Whether prices rest on the tasks of all schedulers that share demand, not only
            on the scheduler's own.
    """

    has_potentials: ClassVar[bool] = False  # the scheduler knows its flow's potentials

    prices: str = registry.NONE
    price_options: dict[str, Any] = Field(default_factory=dict)
    price_mode: PriceMode = Field(PriceMode.TIE, strict=False)
    price_weight_permille: int = Field(ONE_PERMILLE, ge=1, le=1_000_000)
    price_scope: PriceScope = Field(PriceScope.ALL, strict=False)
    share_demand: bool = False

    @field_validator("prices")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind != registry.NONE:
            _spec_of(kind)
        return kind

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.prices == registry.NONE:
            given = self.model_fields_set & (PriceOptions.model_fields.keys() - {"prices"})
            if given:
                raise ValueError(f"{min(given)}: has no effect without prices")
            return self
        if self.price_mode is PriceMode.TIE and "price_weight_permille" in self.model_fields_set:
            raise ValueError('price_weight_permille: has no effect with price_mode = "tie"')
        spec = _spec_of(self.prices)
        if spec.needs_potentials and not self.has_potentials:
            raise ValueError(f"prices: {self.prices!r} needs a flow scheduler")
        if self.share_demand and not spec.shares_demand:
            raise ValueError(f"share_demand: prices {self.prices!r} do not rest on demand")
        try:
            spec.parse_options(self.price_options)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def further_capabilities(self) -> frozenset[Capability]:
        """What a scheduler can do and needs with these options."""
        return frozenset({Capability.SHARES_DEMAND} if self.share_demand else ())

    def estimator(self, environment: SchedulerEnvironment) -> CheckedEstimator | None:
        """The estimator of a scheduler's prices; None if it knows none."""
        if self.prices == registry.NONE:
            return None
        refuse_constraints(environment.catalog, "slot prices")
        spec = registry.get(self.prices)
        estimator = spec.build(spec.parse_options(self.price_options), environment)
        one = checked(self.prices, estimator, *environment.cell.capacity.shape)
        if self.share_demand:
            one.share_demand()
        return one


def _spec_of(kind: str) -> registry.SlotPriceSpec:
    """The spec of a kind. ValueError, as pydantic expects it, if there is none."""
    try:
        return registry.get(kind)
    except AgoraError as error:
        raise ValueError(f"{error}, {registry.NONE}") from error
