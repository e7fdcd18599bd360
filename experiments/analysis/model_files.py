"""JSON files that hold a model: written whole or not at all, and checked field by field when read,
for a file may be of another version, truncated, or changed by hand."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from experiments.analysis.summary_model import FORMAT
from experiments.files import whole_file
from parsync.metrics.quantity import LARGEST, LARGEST_INTEGER
from parsync.runtime.json_files import read_bytes, unreadable
from schedulers.entry_points import first_problem
from shared_state.errors import AgoraError

DEEPEST = 40  # of nested values

_EXPECTED = {
    "bool": "true or false",
    "dict": "an object",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "an object",
    "string": "a text",
}

M = TypeVar("M", bound=BaseModel)


def write_model(path: Path, content: BaseModel) -> None:
    """Write a model; the file is whole, or as it was. Raises AgoraError if it cannot be written."""
    text = json.dumps(
        content.model_dump(mode="json"), indent=1, allow_nan=False, ensure_ascii=False
    )
    with writing(path), whole_file(path) as unfinished:
        unfinished.write_text(text + "\n", "utf-8")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into an AgoraError that names what cannot be written."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or path
        raise AgoraError(f"{place}: cannot write the results: {error.strerror}") from error


def read_model(path: Path, model: type[M]) -> M:
    """The model in a file. Raises AgoraError naming the file and the version it has, or the first
    field that cannot be used."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, beyond what Python reads
        raise AgoraError(f"{path}: not readable as JSON: {unreadable(error)}") from error
    if not isinstance(content, dict):
        raise AgoraError(f"{path}: expected an object, got {_shown(content)}")
    if content.get("format") != FORMAT:
        found = _shown(content["format"]) if "format" in content else "none"
        raise AgoraError(
            f"{path}: field format: expected {FORMAT}, as this version of Agora writes it, "
            f"got {found}"
        )
    _check_plain(path, "", content, 0)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = first_problem(error)
        raise AgoraError(f"{path}: {_described(first)}") from None  # which would be pages long


def _described(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong, with the field's path."""
    place = _named(error["loc"])
    if error["type"] == "value_error":  # a model's own check, which names the field in its message
        return f"field {place}{'.' if place else ''}{error['ctx']['error']}"
    return f"field {place}{_wrong(error)}"


def _wrong(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong with a field."""
    kind, got = error["type"], error["input"]
    if kind == "missing":
        return " is missing"
    if kind == "extra_forbidden":
        return ": not a field of this version"
    expected = _EXPECTED.get(kind.removesuffix("_type"))
    if expected is None:
        return f": {error['msg'][0].lower()}{error['msg'][1:]}, got {_shown(got)}"
    return f": expected {expected}, got {_shown(got)}"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:39]}…"


def _named(place: tuple[int | str, ...]) -> str:
    """The path of a field, such as arms[0].overall.delay_mean_us."""
    name = ""
    for before, part in pairwise(("", *place)):
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if before != "" else part
    return name


def _check_plain(path: Path, place: str, value: Any, depth: int) -> None:
    """No value, named or not, is beyond what can be shown and written again."""
    if depth > DEEPEST:
        raise AgoraError(f"{path}: field {place}: nested too deeply")
    if isinstance(value, dict):
        for name, part in value.items():
            _check_plain(path, place, name, depth)
            _check_plain(path, f"{place}.{name}" if place else name, part, depth + 1)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _check_plain(path, f"{place}[{number}]", part, depth + 1)
    elif isinstance(value, str):
        if not value.isprintable() and not _is_text(value):
            raise AgoraError(f"{path}: field {_written(place)}: expected Unicode text")
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise AgoraError(f"{path}: field {place}: expected a number of at most 63 bits")
    elif isinstance(value, float) and not abs(value) <= LARGEST:
        raise AgoraError(f"{path}: field {place}: expected a number, got {value:g}")


def _is_text(value: str) -> bool:
    """Lone surrogates can be read from JSON, but not written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _written(place: str) -> str:
    return place.encode("utf-8", "backslashreplace").decode()
