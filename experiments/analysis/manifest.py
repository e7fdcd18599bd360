"""The manifest of a run: the size and the SHA-256 digest of every file that it left, in
manifest.json, which is written last.

It shows damage, and changes by hand. It does not prove that a run is honest: whoever changes a file
can write another manifest. What the events of a run can show is therefore computed again
(`agora replay`). The logs of live runs are not in it: ended.json has their digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from experiments.analysis.model_files import writing
from experiments.files import whole_file
from parsync.runtime.json_files import field_of, read_json, to_json
from parsync.runtime.recomputed_tables import Difference
from shared_state.errors import AgoraError

MANIFEST = "manifest.json"
FORMAT = 1
_LOGS = {".journal", ".checkpoint", ".records"}
_CHUNK = 1 << 20


def write_manifest(directory: Path) -> None:
    """Write the manifest of a run directory, whole or not at all. Raises AgoraError naming a file
    that cannot be read or written."""
    _write(directory, {path: _described(directory / path) for path in _files(directory)})


def renew_manifest(directory: Path, paths: Iterable[Path]) -> None:
    """Describe files anew that were made again from a finished run, such as its report; without a
    manifest, do nothing. Raises AgoraError as write_manifest and changed_files."""
    known = read_manifest(directory)
    if known is None:
        return
    made = {path.relative_to(directory).as_posix(): _described(path) for path in paths}
    _write(directory, {**known, **made})


def read_manifest(directory: Path) -> dict[str, dict[str, Any]] | None:
    """What the manifest of a run says of its files, by path; None if there is none. Raises
    AgoraError naming the manifest, and the field that cannot be used."""
    path = directory / MANIFEST
    if not path.exists():
        return None
    files = field_of(path, read_json(path, FORMAT), "files", dict)
    for name, file in files.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not isinstance(file, dict):
            raise AgoraError(f"{path}: field files: {name!r}: expected a file of the run")
        field_of(path, file, "bytes", int)
        field_of(path, file, "sha256", str)
    return files


def changed_files(
    directory: Path, known: Mapping[str, Mapping[str, Any]], under: str = ""
) -> list[Difference]:
    """The files that are not as the manifest says, in its order.

    Args:
        directory: Of the run.
        known: Its manifest.
        under: The folder to look at; "": all.
    """
    found = []
    for name, expected in known.items():
        if under and not name.startswith(f"{under}/"):
            continue
        path = directory / name
        if not path.is_file():
            found.append(Difference(path, f"is missing: it is in {MANIFEST}"))
            continue
        got = _described(path)
        if got["bytes"] != expected["bytes"]:
            text = f"has {got['bytes']:,} bytes, not the {expected['bytes']:,} of {MANIFEST}"
            found.append(Difference(path, text))
        elif got != expected:
            found.append(Difference(path, f"its SHA-256 digest is not the one in {MANIFEST}"))
    return found


def _files(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix not in _LOGS and path.name != MANIFEST:
            yield path.relative_to(directory).as_posix()


def _described(path: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise AgoraError(f"{path}: cannot read it: {error.strerror}") from error
    return {"bytes": size, "sha256": digest.hexdigest()}


def _write(directory: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    path = directory / MANIFEST
    content = {"format": FORMAT, "files": dict(sorted(files.items()))}
    with writing(path), whole_file(path) as unfinished:
        unfinished.write_bytes(to_json(content))
