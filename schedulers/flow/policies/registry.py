"""Every policy by name: the project's, and those of installed packages.

A new policy is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.flow_policies"]
    my_policy = "my_package.my_module:SPEC"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from schedulers.entry_points import WITH_FILE, EntryPointGroup, is_model, wrong_field
from schedulers.flow.policies.interface import Policy
from schedulers.interface import SchedulerEnvironment

ENTRY_POINTS = "agora.flow_policies"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "coco": "schedulers.flow.policies.coco:SPEC",
        "energy_aware": "schedulers.flow.policies.energy_aware:SPEC",
        "load_spreading": "schedulers.flow.policies.load_spreading:SPEC",
        "network_aware": "schedulers.flow.policies.network_aware:SPEC",
        "octopus": "schedulers.flow.policies.octopus:SPEC",
        "quincy": "schedulers.flow.policies.quincy:SPEC",
        "random": "schedulers.flow.policies.plain:RANDOM",
        "shortest_job_first": "schedulers.flow.policies.shortest_job_first:SPEC",
        "trivial": "schedulers.flow.policies.plain:TRIVIAL",
        "void": "schedulers.flow.policies.plain:VOID",
        "whare_map": "schedulers.flow.policies.whare_map:SPEC",
    }
)


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy that flow schedulers can have.

    Attributes:
        kind: Its name, as the option `policy` of flow schedulers and entry points give it.
        options: A pydantic model of its own options. A flow scheduler's options are these and those
            of its kind in one table, so none has the name of one of FlowOptions.
        build: Creates a policy from validated options, which also have those of the scheduler
            (FlowOptions).
        ranked: Whether arms with it are ranked beside others. False where no run shows what the
            policy is for: tasks run as long whatever else runs beside them, and no energy is
            counted.
    """

    kind: str
    options: type[BaseModel]
    build: Callable[[Any, SchedulerEnvironment], Policy]
    ranked: bool = True


def _wrong(spec: PolicySpec) -> str:
    """What is wrong with the fields of a spec, "" if nothing."""
    return wrong_field(
        spec,
        (
            ("options", is_model(spec.options), "a BaseModel"),
            ("build", callable(spec.build), "a callable"),
            ("ranked", isinstance(spec.ranked, bool), "a bool"),
        ),
    )


_GROUP = EntryPointGroup("flow policy", ENTRY_POINTS, BUILT_IN, PolicySpec, _wrong, WITH_FILE)
kinds, location, get = _GROUP.kinds, _GROUP.location, _GROUP.get
