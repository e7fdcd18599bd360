"""Frozen dataclasses of plain values as JSON objects and back: numbers, texts, enums by their
names, tuples, and dataclasses in them. What is read is checked field by field."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from shared_state.errors import AgoraError

_KINDS = {bool: "true or false", int: "a whole number", str: "a text"}
_INT64 = 1 << 63
_T = TypeVar("_T")
# By a field's declared type: how to make its value from (plain value, where it stands).
Readers = Mapping[Any, Callable[[Any, str], Any]]


def to_plain(value: Any) -> Any:
    """What json.dumps can write. Mappings and what is no dataclass are left as they are."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, IntEnum):
        return value.name
    return [to_plain(part) for part in value] if isinstance(value, tuple) else value


def from_plain(kind: type[_T], plain: Any, where: str, readers: Readers) -> _T:
    """The dataclass of which to_plain made `plain`. Fields that are missing have their defaults.

    Args:
        readers: Functions that read fields of other types.

    Raises:
        AgoraError: Names the first field at fault, which begins with `where`.
    """
    if not isinstance(plain, Mapping):
        raise AgoraError(f"{where}: expected an object")
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(plain) - set(fields))
    if unknown:
        raise AgoraError(f"{where}.{unknown[0]}: unknown field")
    missing = [
        name
        for name, field in fields.items()
        if name not in plain and field.default is dataclasses.MISSING
    ]
    if missing:
        raise AgoraError(f"{where}.{missing[0]}: missing")
    values = {name: _value(hints[name], plain[name], f"{where}.{name}", readers) for name in plain}
    return kind(**values)


def _value(kind: Any, plain: Any, where: str, readers: Readers) -> Any:
    if kind in readers:
        return readers[kind](plain, where)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # X | None
        (kind,) = (part for part in parts if part is not type(None))
        return None if plain is None else _value(kind, plain, where, readers)
    if origin is tuple:
        if not isinstance(plain, list):
            raise AgoraError(f"{where}: expected a list")
        return tuple(
            _value(parts[0], part, f"{where}[{k}]", readers) for k, part in enumerate(plain)
        )
    if issubclass(kind, IntEnum):
        if not isinstance(plain, str) or plain not in kind.__members__:
            raise AgoraError(f"{where}: expected one of {', '.join(kind.__members__)}")
        return kind[plain]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return from_plain(kind, plain, where, readers)
    if type(plain) is not kind or (kind is int and not -_INT64 <= plain < _INT64):
        raise AgoraError(f"{where}: expected {_KINDS[kind]}")
    return plain
