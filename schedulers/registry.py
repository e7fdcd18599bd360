"""Every kind of scheduler by name: ours, and those of packages with an entry point in the group
`agora.schedulers`.

A new kind is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.schedulers"]
    my_kind = "my_package.my_module:SPEC"
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from schedulers.decision_time import DecisionClock
from schedulers.interface import Scheduler, SchedulerEnvironment
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.schedulers"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "best_fit": "schedulers.greedy.best_fit:SPEC",
        "firmament": "schedulers.flow.kinds:FIRMAMENT",
        "first_fit": "schedulers.greedy.first_fit:SPEC",
        "flow_load_spreading": "schedulers.flow.kinds:LOAD_SPREADING",
        "load_spreading": "schedulers.greedy.load_spreading:SPEC",
        "quincy": "schedulers.flow.kinds:QUINCY",
        "random": "schedulers.greedy.random:SPEC",
        "randomized_first_fit": "schedulers.greedy.randomized_first_fit:SPEC",
        "weighted_sampling": "schedulers.greedy.weighted_sampling:SPEC",
    }
)


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """A kind of scheduler.

    options: a pydantic model that forbids unknown fields. build: creates a scheduler from validated
    options. retains_pending: the scheduler remembers the tasks it left waiting and may claim them
    in later plans; otherwise its agent offers them again. default_decision: the deterministic
    clock that gives its decision time unless the configuration sets another. evicts: its plans may
    end running tasks of its own; the ends of those tasks are reported to it.
    """

    kind: str
    options: type[BaseModel]
    build: Callable[[Any, SchedulerEnvironment], Scheduler]
    retains_pending: bool
    default_decision: DecisionClock
    evicts: bool = False

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        try:
            return self.options.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            if first["type"] == "extra_forbidden":
                known = ", ".join(sorted(self.options.model_fields)) or "none"
                raise AgoraError(
                    f"scheduler kind {self.kind!r} has no option {name!r}; its options: {known}"
                ) from error
            raise AgoraError(
                f"scheduler kind {self.kind!r}, option {name!r}: {first['msg']}"
            ) from error
        except Exception as error:  # of a validator that is somebody else's
            raise AgoraError(
                f"scheduler kind {self.kind!r}, options: {type(error).__name__}: {error}"
            ) from error


def kinds() -> tuple[str, ...]:
    """The names of all kinds, ascending."""
    return tuple(sorted(_locations()))


def get(kind: str) -> SchedulerSpec:
    """The spec of a kind. AgoraError if there is none, or if its entry point does not lead to a
    SchedulerSpec of that name."""
    locations = _locations()
    if kind not in locations:
        raise AgoraError(f"unknown scheduler kind {kind!r}; known: {', '.join(sorted(locations))}")
    location = locations[kind]
    module, _, attribute = location.partition(":")
    try:
        spec = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody else's module raises
        raise AgoraError(
            f"scheduler kind {kind!r}: cannot load {location}: {_why(error)}"
        ) from error
    if not isinstance(spec, SchedulerSpec) or spec.kind != kind:
        raise AgoraError(f"scheduler kind {kind!r}: {location} is not a SchedulerSpec of that kind")
    _check_fields(spec, location)
    return spec


def _why(error: BaseException) -> str:
    """An error of an import, with the file and line it comes from."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    if isinstance(error, ImportError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    of_module = [frame for frame in frames if frame.name == "<module>"]
    if isinstance(error, AttributeError) and not of_module:
        return str(error)
    place = (of_module or frames)[-1]
    return f"{place.filename}, line {place.lineno}: {type(error).__name__}: {error}"


def _check_fields(spec: SchedulerSpec, location: str) -> None:
    """AgoraError naming the field that cannot be used."""
    options: object = spec.options
    for field, fits, expected in (
        ("options", isinstance(options, type) and issubclass(options, BaseModel), "a BaseModel"),
        ("build", callable(spec.build), "a callable"),
        ("retains_pending", isinstance(spec.retains_pending, bool), "True or False"),
        (
            "default_decision",
            hasattr(spec.default_decision, "duration_us")
            and hasattr(spec.default_decision, "tasks_within"),
            "a DecisionClock",
        ),
        ("evicts", isinstance(spec.evicts, bool), "True or False"),
    ):
        if not fits:
            got = type(getattr(spec, field)).__name__
            raise AgoraError(
                f"scheduler kind {spec.kind!r}: {location}: field {field}: expected {expected}, "
                f"got a {got}"
            )


def _locations() -> dict[str, str]:
    """Kind -> "module:attribute". AgoraError if two packages claim one name."""
    locations = dict(BUILT_IN)
    for name, value in _installed(tuple(sys.path)):
        if locations.setdefault(name, value) != value:
            raise AgoraError(
                f"scheduler kind {name!r} is registered twice: {locations[name]} and {value}"
            )
    return locations


@lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(name, value) of the entry points of the packages on sys.path, which is `path`: reading all
    their metadata takes milliseconds."""
    return tuple((point.name, point.value) for point in entry_points(group=ENTRY_POINTS))
