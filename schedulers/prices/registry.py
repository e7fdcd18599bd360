"""Every kind of slot price estimator by name: the project's, and those of installed packages.

A new kind is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.slot_prices"]
    my_prices = "my_package.my_module:SPEC"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from schedulers.entry_points import EntryPointGroup, is_model, parse_options, wrong_field
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPriceEstimator

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


def kinds() -> tuple[str, ...]:
    """The names of all kinds, ascending, without NONE."""
    return _GROUP.kinds()


def get(kind: str) -> SlotPriceSpec:
    """The spec of a kind.

    Raises:
        AgoraError: There is none, or its entry point does not lead to a SlotPriceSpec of that name.
    """
    return _GROUP.get(kind)


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
