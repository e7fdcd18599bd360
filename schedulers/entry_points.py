"""Kinds by name: those of this project, and those that installed packages register as entry points.

Schedulers, workloads and whatever else users add are found this way: a file with a SPEC, and one
line that leads to it, in a registry's table or in the metadata of a package. What is wrong with
such a SPEC, its options or its code is said in the words of this module.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from importlib.metadata import distributions, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from shared_state.errors import AgoraError

Spec = TypeVar("Spec")
LONGEST = 300  # characters of what somebody else's code says
WITH_FILE = "; one of your own is known with --with FILE.py"
Rule = tuple[str, bool, str]  # name of a field, whether its value can be used, what is expected


class NoOptions(BaseModel):
    """The options of a kind that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class EntryPointGroup(Generic[Spec]):
    """The kinds of one registry.

    Args:
        what: what a kind is called in messages, e.g. "scheduler kind".
        group: the entry point group that packages register in, e.g. "agora.schedulers".
        built_in: kind -> "module:attribute" of this project's own kinds.
        spec: the class that every kind is an instance of; it has a field `kind`.
        wrong: what is wrong with the fields of a spec, "" if nothing (see wrong_field).
        own: how a command is given a kind of the user's own, for the message on an unknown one.
    """

    what: str
    group: str
    built_in: Mapping[str, str]
    spec: type[Spec]
    wrong: Callable[[Spec], str] = lambda _: ""
    own: str = ""
    # specs found right, by kind: an arm asks for dozens when it is set up, a hundred checks each
    _right: dict[str, Spec] = field(default_factory=dict, init=False, repr=False, compare=False)

    def kinds(self) -> tuple[str, ...]:
        """The names of all kinds, ascending. AgoraError if two packages register one name."""
        return tuple(sorted(self._locations()))

    def listing(self) -> str:
        """All kinds for a message: "best_fit, first_fit, ..."."""
        return ", ".join(self.kinds())

    def location(self, kind: str) -> str:
        """Where a known kind is: "module:attribute"."""
        return self._locations()[kind]

    def get(self, kind: str) -> Spec:
        """The spec of a kind.

        Raises:
            AgoraError: there is no such kind, its module cannot be imported, what it leads to is
                not a spec of that kind, or a field of the spec cannot be used.
        """
        locations = self._locations()
        if kind not in locations:
            raise AgoraError(
                f"unknown {self.what} {kind!r}{near_match(kind, locations)}; known: "
                f"{self.listing()}{self.own}"
            )
        location = locations[kind]
        module, _, attribute = location.partition(":")
        try:
            spec = getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:  # whatever somebody else's module raises
            raise AgoraError(
                f"{self.what} {kind!r}: cannot load {location}: {cause(error)}"
            ) from error
        right = self._right.get(kind)
        if right is not None and right is spec:
            return right
        if not isinstance(spec, self.spec) or getattr(spec, "kind", None) != kind:
            raise AgoraError(
                f"{self.what} {kind!r}: {location} is not a {self.spec.__name__} of that kind"
            )
        wrong = self.wrong(spec)
        if wrong:
            raise AgoraError(f"{self.what} {kind!r}: {location}: {wrong}")
        self._right[kind] = spec
        return spec

    def _locations(self) -> dict[str, str]:
        """Kind -> "module:attribute". AgoraError if two packages register one name."""
        locations = dict(self.built_in)
        for name, value in _installed(self.group, tuple(sys.path)):
            if locations.setdefault(name, value) != value:
                raise AgoraError(
                    f"{self.what} {name!r} is registered twice: {locations[name]} and {value}"
                )
        return locations


def parse_options(
    what: str,
    kind: str,
    model: type[BaseModel],
    options: Mapping[str, Any],
    option: str = "option",
) -> BaseModel:
    """The options of a kind, validated. AgoraError naming the first that is unknown or wrong.

    Args:
        what: What a kind is called in messages.
        option: What an option is called in messages.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = first_problem(error)
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(model.model_fields)) or "none"
            raise AgoraError(
                f"{what} {kind!r} has no {option} {name!r}{near_match(name, model.model_fields)}; "
                f"its {option}s: {known}"
            ) from error
        place = f", {option} {name!r}" if name else ""
        raise AgoraError(f"{what} {kind!r}{place}: {wrong_value(first)}") from error
    except Exception as error:  # of a validator that is somebody else's
        raise AgoraError(f"{what} {kind!r}, {option}s: {type(error).__name__}: {error}") from error


def near_match(name: str, known: Iterable[str]) -> str:
    """A question for messages about an unknown name: " (did you mean 'settle_s'?)"; "" if no known
    name is like it."""
    near = get_close_matches(name, list(known), 1, cutoff=0.7)
    return f" (did you mean {near[0]!r}?)" if near else ""


def first_problem(error: ValidationError) -> ErrorDetails:
    """The first of pydantic's complaints. An unknown field goes before a missing one of the same
    model: it is often the missing one, misspelt."""
    problems = error.errors(include_url=False)
    for problem in problems:
        _drop_tracebacks(problem.get("ctx", {}).get("error"))
    first = problems[0]
    if first["type"] != "missing":
        return first
    unknown = (problem for problem in problems if problem["type"] == "extra_forbidden")
    return next((one for one in unknown if one["loc"][:-1] == first["loc"][:-1]), first)


def _drop_tracebacks(error: BaseException | None) -> None:
    """Forget where an error of a validator, and those that led to it, were raised.

    Python's garbage collector does not see what a ValidationError holds. Whoever keeps one in a
    variable closes a cycle: the validator's error, its traceback, the frames, that variable. None
    of what these frames hold would ever be freed.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def wrong_value(problem: ErrorDetails) -> str:
    """What is wrong with a value, in our own words or in pydantic's; then also what was given."""
    message = problem["msg"].removeprefix("Value error, ")
    if message != problem["msg"] or problem["type"] == "missing":
        return message
    return message + _got(problem["input"])


def _got(value: Any) -> str:
    """What was given, as TOML has it, if it is short."""
    if isinstance(value, bool):
        return f", got {str(value).lower()}"
    if not isinstance(value, int | float | str):
        return ""
    if isinstance(value, int) and value.bit_length() > 128:
        return f", got an integer of {value.bit_length()} bits"
    return f", got {value!r}" if len(repr(value)) <= 60 else ""


def wrong_field(spec: object, rules: Iterable[Rule]) -> str:
    """The first field of a spec that breaks its rule, "" if there is none."""
    for name, fits, expected in rules:
        if not fits:
            got = type(getattr(spec, name)).__name__
            return f"field {name}: expected {expected}, got a {got}"
    return ""


def unknown_member(what: str, given: Iterable[object], known: type[StrEnum]) -> str:
    """The first of `given` that is no member of an enum, "" if there is none."""
    unknown = sorted(map(repr, set(given) - set(known)))
    return f"unknown {what} {unknown[0]}; known: {', '.join(sorted(known))}" if unknown else ""


def is_model(value: Any) -> bool:
    """Whether a field of a spec is a pydantic model, as options must be."""
    return isinstance(value, type) and issubclass(value, BaseModel)


def shortened(text: str) -> str:
    """The first LONGEST characters of a text that somebody else wrote."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def raised(error: BaseException, owner: object = None) -> str:
    """What code that is somebody else's raised: `KeyError: 7 (lottery.py, line 31)`.

    Args:
        error: What was raised.
        owner: Whose code it is: an object, a class or a function. The line is the innermost one in
            the folder of its package, or in its file if it is in none. Without such a line it is
            the innermost of all.
    """
    place = _place(error, owner)
    said = _said(error)
    return f"{said} ({Path(place.filename).name}, line {place.lineno})" if place else said


def cause(error: BaseException, owner: object = None) -> str:
    """The same with the path first: `/home/me/mine.py, line 3: KeyError: 7`.

    Args:
        error: What was raised.
        owner: As of raised(). None: a module, while it was imported; the line is one of its own.
    """
    if owner is not None:
        place = _place(error, owner)
    elif isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    elif isinstance(error, ImportError):
        return str(error)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        of_module = [frame for frame in frames if frame.name == "<module>"]
        if isinstance(error, AttributeError) and not of_module:
            return str(error)
        place = (of_module or frames)[-1]
    said = _said(error)
    return f"{place.filename}, line {place.lineno}: {said}" if place else said


def _said(error: BaseException) -> str:
    """The error in one line, without its place."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be shown)"
    return shortened(type(error).__name__ + (f": {message}" if message else ""))


def _place(error: BaseException, owner: object) -> traceback.FrameSummary | None:
    """The innermost line of an owner's code that an error passed through, or of what users have
    added to it, such as a flow policy; else the innermost of all but the first, which is ours; None
    if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    code = owner if callable(owner) else type(owner)
    module = sys.modules.get(getattr(code, "__module__", ""))
    home = getattr(module, "__file__", None) or ""
    if home and getattr(module, "__package__", ""):
        home = str(Path(home).parent) + os.sep
    added = _modules_of_users()
    own = [
        summary
        for summary, (frame, _) in zip(frames, traceback.walk_tb(error.__traceback__), strict=True)
        if (home and summary.filename.startswith(home))
        or str(frame.f_globals.get("__name__", "")).partition(".")[0] in added
    ]
    return next(reversed(own or frames[1:]), None)


def _modules_of_users() -> set[str]:
    """The modules and packages that register kinds here, whether installed or given by --with."""
    return {
        point.module.partition(".")[0]
        for distribution in distributions()
        for point in distribution.entry_points
        if point.group.startswith("agora.")
    }


@lru_cache(maxsize=32)
def _installed(group: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The entry points of a group as (name, value), of the packages on sys.path, which is `path`:
    reading all their metadata takes milliseconds."""
    return tuple((point.name, point.value) for point in entry_points(group=group))
