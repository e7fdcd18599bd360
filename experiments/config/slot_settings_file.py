"""Settings of the slot simulator as TOML: files and values of --set, checked field by field.

    gap_s = 0.5
    sync = "diff_block"

    [[groups]]
    schedulers = 20
    batch_tasks = 50

    [[phases]]
    duration_s = 30.0
    rate_per_s = [3800.0]    # a rate for each group

Every field of SlotSettings may be given; members of enums by their names in lower case.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from experiments.config.toml_file import read_toml
from experiments.toml_text import toml_text, toml_value
from parsync.model.slot_settings import SlotSettings
from shared_state.errors import AgoraError

_LISTS = ("groups", "phases")


def load_settings(path: Path) -> SlotSettings:
    """The settings in a file. Fields that it leaves out have their defaults; groups and phases have
    none.

    Raises:
        AgoraError: Names the file and the line (syntax) or field (meaning).
    """
    tree = read_toml(path)
    try:
        settings: SlotSettings = _made(SlotSettings, tree, "")
    except AgoraError as error:
        raise AgoraError(f"{path}: {error}") from error
    return settings


def with_values(settings: SlotSettings, assignments: Sequence[str]) -> SlotSettings:
    """Settings with some fields changed.

    Args:
        assignments: As `field=value`, where the value is TOML, or a name without quotes. A field of
            `groups` or `phases`, as in `groups.strategy=adaptive`, is changed in each of them.

    Raises:
        AgoraError: An assignment names no field, or its value is of another type.
    """
    for text in assignments:
        path, equals, value = text.partition("=")
        try:
            if not equals:
                raise AgoraError("expected FIELD=VALUE")
            settings = _with_value(settings, path.strip(), _toml(value.strip()))
        except AgoraError as error:
            raise AgoraError(f"--set {text}: {error}") from error
    return settings


def settings_text(settings: SlotSettings) -> str:
    """The TOML text from which load_settings makes the same settings."""
    return toml_text(_plain(asdict(settings)))


def _with_value(settings: SlotSettings, path: str, value: Any) -> SlotSettings:
    name, dot, inner = path.partition(".")
    if not dot or name not in _LISTS:
        return replace(settings, **_values(SlotSettings, {path: value}, ""))
    members = getattr(settings, name)
    changes = _values(type(members[0]), {inner: value}, f"{name}.")
    changed: Any = {name: tuple(replace(member, **changes) for member in members)}
    return replace(settings, **changed)


def _made(kind: type, tree: Mapping[str, Any], place: str) -> Any:
    """A dataclass from plain values."""
    values = _values(kind, tree, place)
    for field in fields(kind):
        if field.default is MISSING and field.name not in values:
            raise AgoraError(f"{place}{field.name}: is missing")
    return kind(**values)


def _values(kind: type, tree: Mapping[str, Any], place: str) -> dict[str, Any]:
    hints = _hints(kind)
    for name in tree:
        if name not in hints:
            raise AgoraError(f"{place}{name}: unknown field; fields: {', '.join(hints)}")
    return {name: _value(hints[name], given, place + name) for name, given in tree.items()}


def _value(hint: Any, given: Any, place: str) -> Any:
    arguments = get_args(hint)
    if getattr(hint, "__origin__", None) is tuple:
        if not isinstance(given, list):
            raise AgoraError(f"{place}: expected a list, got {_shown(given)}")
        return tuple(
            _value(arguments[0], part, f"{place}.{number}") for number, part in enumerate(given)
        )
    if type(None) in arguments:  # a number or nothing, which TOML cannot say
        return _value(arguments[0], given, place)
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(given, dict):
            raise AgoraError(f"{place}: expected a table, got {_shown(given)}")
        return _made(hint, given, f"{place}.")
    if issubclass(hint, Enum):
        names = [member.name.lower() for member in hint]
        if given not in names:
            raise AgoraError(f"{place}: expected one of {', '.join(names)}, got {_shown(given)}")
        return hint[given.upper()]
    return _scalar(hint, given, place)


def _scalar(kind: type, given: Any, place: str) -> bool | int | float:
    is_bool = isinstance(given, bool)
    if kind is bool and is_bool:
        return bool(given)
    if kind is int and isinstance(given, int) and not is_bool:
        return given
    if kind is float and isinstance(given, int | float) and not is_bool:
        return float(given)
    expected = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    raise AgoraError(f"{place}: expected {expected}, got {_shown(given)}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _toml(text: str) -> Any:
    """A value of TOML; what is none is a name."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return read["value"] if len(read) == 1 else text


def _shown(given: Any) -> str:
    shown = toml_value(given)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
