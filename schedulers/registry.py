"""Every kind of scheduler by name: the project's, those of installed packages, and those of files
and modules that a command was given (registered).

A new kind is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.schedulers"]
    my_kind = "my_package.my_module:SPEC"
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from schedulers.decision_clock import DecisionClock
from schedulers.entry_points import (
    WITH_FILE,
    EntryPointGroup,
    cause,
    is_model,
    parse_options,
    unknown_member,
    wrong_field,
)
from schedulers.flow.policies import registry as flow_policies
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import Capability, Scheduler, SchedulerEnvironment
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.schedulers"
_METADATA = "Metadata-Version: 2.1\nName: agora-given\nVersion: 0\n"  # of registered()

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "best_fit": "schedulers.greedy.kinds:BEST_FIT",
        "firmament": "schedulers.flow.kinds:FIRMAMENT",
        "first_fit": "schedulers.greedy.kinds:FIRST_FIT",
        "flow": "schedulers.flow.kinds:FLOW",
        "flow_load_spreading": "schedulers.flow.kinds:LOAD_SPREADING",
        "kubernetes": "schedulers.scoring.kinds:KUBERNETES",
        "load_spreading": "schedulers.greedy.kinds:LOAD_SPREADING",
        "mapreduce": "schedulers.mapreduce.scheduler:SPEC",
        "nomad": "schedulers.scoring.kinds:NOMAD",
        "preempting": "schedulers.greedy.kinds:PREEMPTING",
        "preferred_first": "schedulers.greedy.kinds:PREFERRED_FIRST",
        "quincy": "schedulers.flow.kinds:QUINCY",
        "random": "schedulers.greedy.kinds:RANDOM",
        "randomized_first_fit": "schedulers.greedy.kinds:RANDOMIZED_FIRST_FIT",
        "stranded": "schedulers.scoring.kinds:STRANDED",
        "swarmkit": "schedulers.scoring.kinds:SWARMKIT",
        "weighted_sampling": "schedulers.greedy.kinds:WEIGHTED_SAMPLING",
    }
)


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
        options_for: The model of options that depend on other options: from `options` and what was
            given. None: it is `options`.
    """

    kind: str
    options: type[BaseModel]
    build: Callable[[Any, SchedulerEnvironment], Scheduler]
    default_decision: DecisionClock
    capabilities: frozenset[Capability] = frozenset()
    further_capabilities: Callable[[Any], frozenset[Capability]] = _none
    options_for: Callable[[Any, Mapping[str, Any]], type[BaseModel]] | None = None

    def with_options(self, options: BaseModel) -> SchedulerSpec:
        """The kind with all capabilities that these validated options give it."""
        further = self.further_capabilities(options)
        return replace(self, capabilities=self.capabilities | further) if further else self

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        model = self.options
        if self.options_for is not None:
            model = self.options_for(model, options)
        return parse_options("scheduler kind", self.kind, model, options)


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
            (
                "options_for",
                spec.options_for is None or callable(spec.options_for),
                "a callable or None",
            ),
        ),
    )
    return wrong or unknown_member("capability", spec.capabilities, Capability)


_GROUP = EntryPointGroup("scheduler kind", ENTRY_POINTS, BUILT_IN, SchedulerSpec, _wrong, WITH_FILE)
kinds, listing = _GROUP.kinds, _GROUP.listing
location, get = _GROUP.location, _GROUP.get


@contextmanager
def registered(locations: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Make kinds of schedulers known to this process, and to those that it starts, in the block.
    For a flow policy that is a flow scheduler with the policy, of its name.

    They are registered as an installed package registers its own: sys.path gets a folder with the
    metadata of an entry point, and where necessary the folder of the file. Both come last, so that
    they hide no other module. Processes that Python or Ray start inherit sys.path.

    Args:
        locations: For each kind "package.module:SPEC", or "path/of/a_file.py:SPEC". Without
            ":SPEC", the attribute is SPEC. Modules are also looked for in the working directory.

    Yields:
        The kinds' names, as their specs have them, in the order of the locations.

    Raises:
        AgoraError: A module cannot be found or imported, another module of its name comes first,
            or the attribute is not a SchedulerSpec or PolicySpec, or its kind is already taken.
    """
    before = list(sys.path)
    with TemporaryDirectory(prefix="agora-with-") as folder:
        try:
            points: dict[str, str] = {}
            policies: dict[str, str] = {}
            kinds = []
            for given in locations:
                module, attribute = _module_of(given)
                spec = _load(given, module, attribute)
                point = f"{module}:{attribute}"
                if isinstance(spec, PolicySpec):
                    policies[spec.kind] = point
                    _write_kind(Path(folder), spec.kind)
                    point = f"agora_given_{spec.kind}:SPEC"
                if points.setdefault(spec.kind, point) != point:
                    raise AgoraError(
                        f"--with {given}: kind {spec.kind!r} is also that of {points[spec.kind]}"
                    )
                kinds.append(spec.kind)
            known = set(_GROUP.kinds())
            # of an installed package, the kind is known already
            new = {
                kind: point
                for kind, point in points.items()
                if kind not in known or location(kind) != point
            }
            known = set(flow_policies.kinds())
            new_policies = {
                kind: point
                for kind, point in policies.items()
                if kind not in known or flow_policies.location(kind) != point
            }
            _write_metadata(Path(folder), new, new_policies)
            sys.path.append(folder)
            for kind in points:
                get(kind)
            yield tuple(kinds)
        finally:
            sys.path[:] = before


def _module_of(location: str) -> tuple[str, str]:
    """(module, attribute) of a location; the folder that the module is found in is on sys.path
    then."""
    place, colon, attribute = location.rpartition(":")
    if not colon or attribute.endswith(".py"):
        place, attribute = location, "SPEC"
    if not place.endswith(".py"):
        if not all(part.isidentifier() for part in (*place.split("."), attribute)):
            raise AgoraError(f"--with {location}: expected package.module:SPEC or FILE.py")
        if find_spec(place.partition(".")[0]) is None:
            _on_path(Path.cwd())
        return place, attribute
    file = Path(place).resolve()
    if not file.is_file():
        raise AgoraError(f"--with {place}: no such file")
    if not file.stem.isidentifier():
        raise AgoraError(f"--with {place}: {file.stem!r} is not a name for a Python module")
    _on_path(file.parent)
    found = find_spec(file.stem)
    if found is None or found.origin is None or Path(found.origin).resolve() != file:
        other = "another" if found is None else found.origin
        raise AgoraError(
            f"--with {place}: {other} is imported as {file.stem!r} instead; give the file another "
            "name"
        )
    return file.stem, attribute


def _on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _load(location: str, module: str, attribute: str) -> SchedulerSpec | PolicySpec:
    try:
        spec = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody else's module raises
        raise AgoraError(f"--with {location}: cannot load it: {cause(error)}") from error
    if not isinstance(spec, SchedulerSpec | PolicySpec):
        raise AgoraError(
            f"--with {location}: expected a SchedulerSpec or a PolicySpec, got a "
            f"{type(spec).__name__}"
        )
    return spec


def _write_kind(folder: Path, policy: str) -> None:
    """Write a module with the kind that has a policy into a folder."""
    lines = (
        "from schedulers.flow.kinds import kind_with_policy",
        "",
        f"SPEC = kind_with_policy({policy!r})",
    )
    file = folder / f"agora_given_{policy}.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_metadata(folder: Path, points: dict[str, str], policies: dict[str, str]) -> None:
    """Write the metadata of a package that registers these kinds and policies."""
    metadata = folder / "agora_given-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(_METADATA, encoding="utf-8")
    lines = []
    for group, named in ((ENTRY_POINTS, points), (flow_policies.ENTRY_POINTS, policies)):
        lines += [f"[{group}]", *(f"{kind} = {point}" for kind, point in named.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
