"""TOML text of plain values, which the standard library can only read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def toml_text(tree: Mapping[str, Any]) -> str:
    """Return the TOML text of nested mappings, lists of mappings, and scalars.

    Keys with value None are left out. tomllib reads the rest back unchanged.
    """
    lines: list[str] = []
    _table(tree, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(tree: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    nested: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if value is None:
            continue
        if isinstance(value, Mapping) or (
            _is_list(value) and value and all(isinstance(item, Mapping) for item in value)
        ):
            nested.append((key, value))
        else:
            lines.append(f"{_key(key)} = {_scalar(value)}")
    for key, value in nested:
        here = (*path, _key(key))
        if isinstance(value, Mapping):
            lines.extend(["", f"[{'.'.join(here)}]"])
            _table(value, here, lines)
        else:
            for item in value:
                lines.extend(["", f"[[{'.'.join(here)}]]"])
                _table(item, here, lines)


def toml_value(value: Any) -> str:
    """Return the TOML text of one value; a mapping as an inline table, without what is None."""
    return _scalar(value)


def toml_path(path: Sequence[str]) -> str:
    """Return a dotted key, its parts quoted where TOML requires it."""
    return ".".join(map(_key, path))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _string(key)


def _string(text: str) -> str:
    """Quote as JSON does. TOML has the same escapes, requires one for DEL and has no surrogates."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if _is_list(value):
        return "[" + ", ".join(_scalar(item) for item in value) + "]"
    if isinstance(value, Mapping):
        parts = (
            f"{_key(key)} = {_scalar(item)}" for key, item in value.items() if item is not None
        )
        return "{" + ", ".join(parts) + "}"
    return _string(str(value))
