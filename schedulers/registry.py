"""Every kind of scheduler by name: the project's, and those of installed packages.

A new kind is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.schedulers"]
    my_kind = "my_package.my_module:SPEC"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from schedulers.capability import Capability
from schedulers.decision_time import DecisionClock
from schedulers.entry_points import (
    EntryPointGroup,
    is_model,
    parse_options,
    unknown_member,
    wrong_field,
)
from schedulers.interface import Scheduler, SchedulerEnvironment

ENTRY_POINTS = "agora.schedulers"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "best_fit": "schedulers.greedy.kinds:BEST_FIT",
        "first_fit": "schedulers.greedy.kinds:FIRST_FIT",
        "flow_load_spreading": "schedulers.flow.kinds:LOAD_SPREADING",
        "load_spreading": "schedulers.greedy.kinds:LOAD_SPREADING",
        "mapreduce": "schedulers.mapreduce.scheduler:SPEC",
        "preempting": "schedulers.greedy.preempting:SPEC",
        "preferred_first": "schedulers.greedy.kinds:PREFERRED_FIRST",
        "quincy": "schedulers.flow.kinds:QUINCY",
        "random": "schedulers.greedy.kinds:RANDOM",
        "randomized_first_fit": "schedulers.greedy.kinds:RANDOMIZED_FIRST_FIT",
        "weighted_sampling": "schedulers.greedy.kinds:WEIGHTED_SAMPLING",
    }
)
# Firmament's evaluation runs Quincy's policy (OSDI 2016, section 7), so the flow scheduler of that
# policy is known by both names.
ALIASES: Mapping[str, str] = MappingProxyType({"firmament": "quincy"})


def _none(options: Any) -> frozenset[Capability]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """A kind of scheduler.

    Attributes:
        kind: Its name, as runs and entry points give it.
        options: A pydantic model that forbids unknown fields.
        build: Creates a scheduler from validated options.
        default_decision: The deterministic clock that gives its decision time unless the
            configuration sets another.
        capabilities: All that it can do and needs, whatever its options; none follows from another.
        further_capabilities: From validated options: those that it has besides.
    """

    kind: str
    options: type[BaseModel]
    build: Callable[[Any, SchedulerEnvironment], Scheduler]
    default_decision: DecisionClock
    capabilities: frozenset[Capability] = frozenset()
    further_capabilities: Callable[[Any], frozenset[Capability]] = _none

    def with_options(self, options: BaseModel) -> SchedulerSpec:
        """The kind with all capabilities that these validated options give it."""
        further = self.further_capabilities(options)
        return replace(self, capabilities=self.capabilities | further) if further else self

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("scheduler kind", self.kind, self.options, options)


def kinds() -> tuple[str, ...]:
    """The names of all kinds, ascending, without aliases."""
    return _GROUP.kinds()


def names() -> tuple[str, ...]:
    """Every name that a kind may be given by, aliases included, ascending."""
    return _GROUP.names()


def listing() -> str:
    """All kinds and aliases, for a message or a help text."""
    return _GROUP.listing()


def location(kind: str) -> str:
    """Where a known kind or alias is: "module:attribute"."""
    return _GROUP.location(kind)


def get(kind: str) -> SchedulerSpec:
    """The spec of a kind or alias.

    Raises:
        AgoraError: There is none, or its entry point does not lead to a SchedulerSpec of that name.
    """
    return _GROUP.get(kind)


def _wrong(spec: SchedulerSpec) -> str:
    """What is wrong with the fields of a spec, "" if nothing."""
    clock: object = spec.default_decision
    capabilities: object = spec.capabilities
    wrong = wrong_field(
        spec,
        (
            ("options", is_model(spec.options), "a BaseModel"),
            ("build", callable(spec.build), "a callable"),
            (
                "default_decision",
                hasattr(clock, "duration_us") and hasattr(clock, "tasks_within"),
                "a DecisionClock",
            ),
            ("capabilities", isinstance(capabilities, frozenset | set), "a set of Capability"),
            ("further_capabilities", callable(spec.further_capabilities), "a callable"),
        ),
    )
    return wrong or unknown_member("capability", spec.capabilities, Capability)


_GROUP = EntryPointGroup("scheduler kind", ENTRY_POINTS, BUILT_IN, SchedulerSpec, _wrong, ALIASES)
