"""Kinds of schedulers that no package registers: a file or module that a command was given."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from schedulers import registry
from schedulers.entry_points import cause
from schedulers.registry import ENTRY_POINTS, SchedulerSpec
from shared_state.errors import AgoraError

_METADATA = "Metadata-Version: 2.1\nName: agora-given\nVersion: 0\n"


@contextmanager
def registered(locations: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Make kinds of schedulers known to this process, and to those that it starts, in the block.

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
            or the attribute is not a SchedulerSpec, or its kind is already taken.
    """
    before = list(sys.path)
    with TemporaryDirectory(prefix="agora-with-") as folder:
        try:
            points: dict[str, str] = {}
            kinds = []
            for location in locations:
                module, attribute = _module_of(location)
                spec = _load(location, module, attribute)
                point = f"{module}:{attribute}"
                if points.setdefault(spec.kind, point) != point:
                    raise AgoraError(
                        f"--with {location}: kind {spec.kind!r} is also that of {points[spec.kind]}"
                    )
                kinds.append(spec.kind)
            known = set(registry.names())
            # of an installed package, the kind is known already
            new = {
                kind: point
                for kind, point in points.items()
                if kind not in known or registry.location(kind) != point
            }
            _write_metadata(Path(folder), new)
            sys.path.append(folder)
            for kind in points:
                registry.get(kind)
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


def _load(location: str, module: str, attribute: str) -> SchedulerSpec:
    try:
        spec = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody else's module raises
        raise AgoraError(f"--with {location}: cannot load it: {cause(error)}") from error
    if not isinstance(spec, SchedulerSpec):
        raise AgoraError(
            f"--with {location}: expected a SchedulerSpec, got a {type(spec).__name__}"
        )
    return spec


def _write_metadata(folder: Path, points: dict[str, str]) -> None:
    metadata = folder / "agora_given-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(_METADATA, encoding="utf-8")
    lines = [f"[{ENTRY_POINTS}]", *(f"{kind} = {point}" for kind, point in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
