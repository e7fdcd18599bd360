"""Every kind of slot price estimator by name: the project's, and those of installed packages.

A new kind is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.slot_prices"]
    my_prices = "my_package.my_module:SPEC"

Below it stand the options by which a scheduler uses slot prices, and the estimator that it then
has, whose prices are checked as they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from schedulers.entry_points import EntryPointGroup, is_model, parse_options, wrong_field
from schedulers.interface import Capability, SchedulerEnvironment
from schedulers.objective import refuse_constraints
from schedulers.prices.interface import (
    LearnsPotentials,
    SharesDemand,
    SlotPriceEstimator,
    SlotPrices,
)
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView

ENTRY_POINTS = "agora.slot_prices"
NONE = "none"  # no estimator: a scheduler that has it knows no prices

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "demand": "schedulers.prices.kinds:DEMAND",
        "fluid": "schedulers.prices.kinds:FLUID",
        "implied": "schedulers.prices.kinds:IMPLIED",
        "membership": "schedulers.prices.kinds:MEMBERSHIP",
        "occupancy": "schedulers.prices.kinds:OCCUPANCY",
        "potentials": "schedulers.prices.kinds:POTENTIALS",
    }
)


@dataclass(frozen=True, slots=True)
class SlotPriceSpec:
    """A kind of slot price estimator.

    Attributes:
        kind: Its name, as options of schedulers and entry points give it.
        options: A pydantic model that forbids unknown fields.
        build: Creates an estimator from validated options.
        needs_potentials: Whether its estimators learn from the rounds of a flow scheduler
            (interface.LearnsPotentials), so that no other scheduler can use them.
        shares_demand: Whether its estimators can learn from the tasks of other schedulers
            (interface.SharesDemand).
    """

    kind: str
    options: type[BaseModel]
    build: Callable[[Any, SchedulerEnvironment], SlotPriceEstimator]
    needs_potentials: bool = False
    shares_demand: bool = False

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("kind of slot prices", self.kind, self.options, options)


def _wrong(spec: SlotPriceSpec) -> str:
    """What is wrong with the fields of a spec, "" if nothing."""
    return wrong_field(
        spec,
        (
            ("options", is_model(spec.options), "a BaseModel"),
            ("build", callable(spec.build), "a callable"),
            ("needs_potentials", isinstance(spec.needs_potentials, bool), "a bool"),
            ("shares_demand", isinstance(spec.shares_demand, bool), "a bool"),
        ),
    )


_GROUP = EntryPointGroup("kind of slot prices", ENTRY_POINTS, BUILT_IN, SlotPriceSpec, _wrong)
kinds, get = _GROUP.kinds, _GROUP.get  # without NONE


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

    prices: str = NONE
    price_options: dict[str, Any] = Field(default_factory=dict)
    price_mode: PriceMode = Field(PriceMode.TIE, strict=False)
    price_weight_permille: int = Field(ONE_PERMILLE, ge=1, le=1_000_000)
    price_scope: PriceScope = Field(PriceScope.ALL, strict=False)
    share_demand: bool = False

    @field_validator("prices")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind != NONE:
            _spec_of(kind)
        return kind

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.prices == NONE:
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
        if self.prices == NONE:
            return None
        refuse_constraints(environment.catalog, "slot prices")
        spec = get(self.prices)
        estimator = spec.build(spec.parse_options(self.price_options), environment)
        one = checked(self.prices, estimator, *environment.cell.capacity.shape)
        if self.share_demand:
            one.share_demand()
        return one


def _spec_of(kind: str) -> SlotPriceSpec:
    """The spec of a kind. ValueError, as pydantic expects it, if there is none."""
    try:
        return get(kind)
    except AgoraError as error:
        raise ValueError(f"{error}, {NONE}") from error


class CheckedEstimator:
    """An estimator that refuses to hand out broken prices.

    Args:
        kind: Its kind, for messages.
        estimator: Whose prices are checked, each object once.
        machines: M of the cell.
        dimensions: R of the cell.

    Attributes:
        shared_demand: The estimator, if it shares demand.
    """

    def __init__(
        self, kind: str, estimator: SlotPriceEstimator, machines: int, dimensions: int
    ) -> None:
        self.kind = kind
        self.shared_demand: SharesDemand | None = None
        self._estimator = estimator
        self._shape = machines, dimensions
        self._checked: SlotPrices | None = None
        self.operations = 0

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """As in SlotPriceEstimator."""
        self._estimator.offered(task, preference, request)

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """As in SlotPriceEstimator. AgoraError if the prices, or the counted work, are broken."""
        prices = self._estimator.update(view, now_us)
        if prices is not self._checked:
            self._require(broken_price_rule(prices, *self._shape))
            self._checked = prices
        operations = self._estimator.operations
        if not isinstance(operations, int) or operations < 0:
            self._require(f"operations: expected an integer of at least 0, got {operations!r}")
        self.operations = operations
        return prices

    def share_demand(self) -> None:
        """Let it share demand from now on. AgoraError if it is no SharesDemand."""
        estimator = self._estimator
        if not isinstance(estimator, SharesDemand):
            missing = "take_new() and learn_demand()"
            raise AgoraError(f"slot prices {self.kind!r}: shares_demand: expected {missing}")
        estimator.share_demand()
        self.shared_demand = estimator

    def _require(self, broken: str) -> None:
        if broken:
            raise AgoraError(f"slot prices {self.kind!r}: {broken}")


class CheckedLearner(CheckedEstimator):
    """The same for one that learns potentials. Its estimator is a LearnsPotentials."""

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        """As in LearnsPotentials."""
        assert isinstance(self._estimator, LearnsPotentials)
        self._estimator.learn_potentials(machine, sink, now_us)


def checked(
    kind: str, estimator: SlotPriceEstimator, machines: int, dimensions: int
) -> CheckedEstimator:
    """An estimator whose prices are checked. It learns potentials if the one given does.

    Args:
        kind, estimator, machines, dimensions: As in CheckedEstimator.
    """
    learns = isinstance(estimator, LearnsPotentials)
    return (CheckedLearner if learns else CheckedEstimator)(kind, estimator, machines, dimensions)


def broken_price_rule(prices: object, machines: int, dimensions: int) -> str:
    """What is wrong with prices of a cell, as `field: what`; "" if nothing."""
    if not isinstance(prices, SlotPrices):
        return f"expected SlotPrices, got a {type(prices).__name__}"
    levels = prices.price.shape[1] if getattr(prices.price, "ndim", 0) == 2 else 1
    for field, shape in (
        ("price", (machines, max(1, levels))),
        ("slots", (machines,)),
        ("unit", (dimensions,)),
    ):
        column = getattr(prices, field)
        if column.dtype != np.int64 or column.shape != shape:
            expected = ", ".join(map(str, shape))
            return f"{field}: expected int64[{expected}], got {column.dtype}{list(column.shape)}"
        if column.size and int(column.min()) < 0:
            return f"{field}: expected 0 or more, got {int(column.min())}"
    falls = np.argwhere(prices.price[:, 1:] < prices.price[:, :-1])
    if len(falls):
        machine, column = falls[0].tolist()
        pair = prices.price[machine, column : column + 2].tolist()
        return (
            f"price: expected columns that never fall, got {pair[0]} and then {pair[1]} for "
            f"machine {machine}"
        )
    return ""
