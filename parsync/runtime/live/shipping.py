"""What a cluster's nodes need of the code: our packages, and those that are registered as entry
points.

Ray sends one folder to the nodes and puts it first on the path of their workers. It holds copies of
these packages, and of nothing else that is installed beside them. Shipped code takes precedence
over an installation on the node, so that all workers run the code of the command that was started.

Actors import nothing of `experiments` and of the packages of workloads: the command that starts a
run makes the workload, and actors get the tables. The runs of a sweep make their own.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

PACKAGES = ("flowsolver", "shared_state", "schedulers", "parsync", "experiments")
GROUPS = (
    "agora.schedulers",
    "agora.protocols",
    "agora.sync_policies",
    "agora.metrics",
    "agora.workloads",
)
_CACHES = shutil.ignore_patterns("__pycache__")
_NOT_NEEDED = shutil.ignore_patterns("__pycache__", "native", "CMakeLists.txt", "*.pyi")
_METADATA = "Metadata-Version: 2.1\nName: agora-shipped\nVersion: 0\n"


def fill(folder: Path) -> None:
    """Copy into an empty folder what the nodes need. An entry point whose module is not found is
    left out: its registry says so when its kind is asked for."""
    for package in PACKAGES:
        _copy(package, folder, _NOT_NEEDED)
    points = []
    for group in GROUPS:
        for point in entry_points(group=group):
            with contextlib.suppress(ImportError, ValueError):
                _copy(point.module, folder, _CACHES)
                points.append(point)
    if points:
        _register(points, folder)


def _copy(module: str, folder: Path, ignore: Callable[..., set[str]]) -> None:
    """Copy the package or top-level file that `module` is in. Above it there may be namespace
    packages, which have no file of their own."""
    spec = _outermost(module)
    if not spec.has_location or spec.origin is None:
        raise ImportError(f"{spec.name!r} is not a file")
    source, target = Path(spec.origin), folder.joinpath(*spec.name.split("."))
    target.parent.mkdir(parents=True, exist_ok=True)
    if spec.submodule_search_locations is None:
        shutil.copy(source, target.parent / source.name)
    elif not target.exists():
        shutil.copytree(source.parent, target, ignore=ignore)


def _outermost(module: str) -> ModuleSpec:
    """The outermost package or file that holds `module`. ImportError if there is none."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        spec = find_spec(name)
        if spec is None:
            raise ImportError(f"no module named {name!r}")
        if spec.origin is not None:
            return spec
    raise ImportError(f"{module!r} is a folder without code")


def _register(points: Sequence[EntryPoint], folder: Path) -> None:
    """Make the entry points known where only the folder is: the metadata of a package."""
    metadata = folder / "agora_shipped-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(_METADATA, encoding="utf-8")
    lines = []
    for group, registered in groupby(points, lambda point: point.group):
        lines += [f"[{group}]", *(f"{point.name} = {point.value}" for point in registered)]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def runtime_env(folder: Path) -> dict[str, Any]:
    """What Ray is told about a filled folder."""
    shipped = {entry.name.partition(".")[0] for entry in folder.iterdir()}
    return {
        "working_dir": str(folder),
        "worker_process_setup_hook": _import_shipped_first(tuple(sorted(shipped))),
    }


def _import_shipped_first(shipped: tuple[str, ...]) -> Callable[[], None]:
    """What a worker does before it imports anything: look for these packages in the folder that was
    shipped, which is its working directory. An editable installation on the node would otherwise go
    before the path."""

    # a function of its own goes to the workers whole: they have no package yet to find it in
    def look_here_first() -> None:
        import os
        import sys
        from importlib.machinery import PathFinder

        here = os.getcwd()

        class Shipped:
            @staticmethod
            def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
                if name.partition(".")[0] not in shipped:
                    return None
                return PathFinder.find_spec(name, [here] if path is None else path, target)

        sys.meta_path.insert(0, Shipped)

    return look_here_first
