"""The parameters of a sweep: which value of a configuration each one sets, and to what.

A parameter is written where it stands in a configuration, with a list of values:

    [sweep.grid]
    workload.machines = [100, 200]
    arms."ParSync adaptive".groups.adaptive.protocol.gap_s = [0.1, 0.5]

Arms and groups are named; `"*"` stands for all that have the option. Entries of other lists are
counted from 0.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.toml_text import toml_path, toml_value
from shared_state.errors import AgoraError

EVERY = "*"
NAMED = ("arms", "groups")  # lists whose entries are addressed by their names
# What a sweep sets itself, and what has no effect in virtual time.
_NOT_SWEPT = {
    "name": "it has no effect on figures",
    "seed": "[sweep] seeds sets how many seeds each combination runs",
    "seeds": "[sweep] seeds sets how many seeds each combination runs",
    "runtime": "a sweep runs in virtual time",
    "live": "a sweep runs in virtual time",
    "frontier": "it has no effect on a sweep",
    "sensitivity_seeds": "it has no effect on a sweep",
}

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of the configuration that differs between the combinations of a sweep.

    Attributes:
        path: Where it stands, arms and groups by name.
        values: What it is set to, at least one.
    """

    path: Path
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return toml_path(self.path)

    def targets(self, resolved: Mapping[str, Any]) -> list[Path]:
        """The paths that it sets, without `*`. Raises AgoraError if it names an arm or group that
        does not exist, or if no arm or group has its option.

        Args:
            resolved: The whole configuration with its defaults.
        """
        if EVERY not in self.path:
            _exists(self.path, resolved)  # raises; an option that is not there has a default
            return [self.path]
        found = [path for path in _expanded(self.path, resolved, ()) if _exists(path, resolved)]
        if not found:
            raise AgoraError(f"{self}: no arm has this option")
        return found


def read_parameters(table: Mapping[str, Any], where: str) -> list[Parameter]:
    """The parameters of a table of lists.

    Raises:
        AgoraError: Names a key that is not swept, or whose value is no list of values.
    """
    found = list(_leaves(table, (), where))
    for parameter in found:
        first = parameter.path[0]
        if first in _NOT_SWEPT:
            raise AgoraError(f"{where}.{parameter}: cannot be swept: {_NOT_SWEPT[first]}")
        if first == "arms" and len(parameter.path) < 3:
            raise AgoraError(f"{where}.{parameter}: expected an option of an arm, arms.NAME.OPTION")
        if first == "arms" and parameter.path[2:] in (("name",), ("groups",)):
            raise AgoraError(f"{where}.{parameter}: cannot be swept; it says which arm this is")
    return found


def _leaves(table: Mapping[str, Any], above: Path, where: str) -> Iterable[Parameter]:
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, Mapping):
            yield from _leaves(value, path, where)
        elif not isinstance(value, list) or not value:
            got = toml_value(value)
            raise AgoraError(
                f"{where}.{toml_path(path)}: expected a list of values, "
                f"got {got if len(got) <= 60 else got[:59] + '…'}"
            )
        elif "." in key and key.replace(".", "").replace("_", "").isalnum() and not above:
            raise AgoraError(f"{where}.{toml_path(path)}: write {key} without quotes")
        else:
            yield Parameter(path, tuple(value))


def check_apart(targets: Sequence[tuple[Parameter, Path]]) -> None:
    """Raise AgoraError if two parameters set the same value, or one a part of another's."""
    taken: dict[Path, Parameter] = {}
    for parameter, path in targets:
        if path in taken:
            raise AgoraError(f"{parameter}: {toml_path(path)} is given twice")
        taken[path] = parameter
    for path, parameter in taken.items():
        for length in range(1, len(path)):
            if path[:length] in taken:
                raise AgoraError(f"{parameter}: {taken[path[:length]]} is given, too")


def with_values(tree: Mapping[str, Any], values: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """A copy of a configuration with some values set. Tables that are missing are made, since
    defaults need not be written.

    Raises:
        AgoraError: A path leads through something that is no table.
    """
    changed = copy.deepcopy(dict(tree))
    for path, value in values:
        inner: Any = changed
        for depth, part in enumerate(path[:-1]):
            inner = _entered(inner, part, path[: depth + 1])
        last = path[-1]
        if isinstance(inner, list):
            inner[_place(inner, last, path)] = copy.deepcopy(value)
        elif isinstance(inner, dict):
            inner[last] = copy.deepcopy(value)
        else:
            raise AgoraError(f"{toml_path(path)}: {toml_path(path[:-1])} is no table")
    return changed


def _entered(inner: Any, part: str, path: Path) -> Any:
    if isinstance(inner, dict):
        return inner.setdefault(part, {})
    if isinstance(inner, list):
        return inner[_place(inner, part, path)]
    raise AgoraError(f"{toml_path(path)}: {toml_path(path[:-1])} is no table")


def _place(entries: Sequence[Any], part: str, path: Path) -> int:
    """The place of an entry of a list, by its name or its number."""
    if path[-2] in NAMED:
        names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
        if part in names:
            return names.index(part)
        kind = path[-2].removesuffix("s")
        known = ", ".join(map(str, names))
        raise AgoraError(f"{toml_path(path)}: there is no {kind} {part!r}; expected one of {known}")
    if not part.isdecimal() or int(part) >= len(entries):
        raise AgoraError(
            f"{toml_path(path)}: expected a number from 0 to {len(entries) - 1} for an entry of "
            f"{toml_path(path[:-1])}"
        )
    return int(part)


def _expanded(path: Path, inner: Any, done: Path) -> Iterable[Path]:
    """The path with each `*` replaced by the names of entries."""
    if not path:
        yield done
        return
    part, rest = path[0], path[1:]
    if part != EVERY:
        after: Any = None
        if isinstance(inner, dict):
            after = inner.get(part)
        elif isinstance(inner, list):
            after = inner[_place(inner, part, (*done, part))]
        yield from _expanded(rest, after, (*done, part))
        return
    if not done or done[-1] not in NAMED or not isinstance(inner, list):
        raise AgoraError(f'{toml_path((*done, part))}: "*" stands for arms or groups only')
    for entry in inner:
        yield from _expanded(rest, entry, (*done, entry["name"]))


def _exists(path: Path, resolved: Any) -> bool:
    """Whether the configuration has a value there. Raises AgoraError if the path names an arm or a
    group that does not exist, or an entry beyond the end of a list."""
    inner = resolved
    for depth, part in enumerate(path):
        if isinstance(inner, list):
            inner = inner[_place(inner, part, path[: depth + 1])]
        elif isinstance(inner, dict) and part in inner:
            inner = inner[part]
        else:
            return False
    return True
