"""The nodes of a cluster: checks before actors are put on them, and the code that is shipped to
them.

Each node answers a few questions in a task of its own. What would go wrong later, or make the
figures false, is refused in one line that names the node.

The nodes need our packages, and those that are registered as entry points. Ray sends one folder to
them and puts it first on the path of their workers. It holds copies of these packages, and of
nothing else that is installed beside them. Shipped code takes precedence over an installation on
the node, so that all workers run the code of the command that was started. Actors import nothing of
`experiments` and of the packages of workloads: the command that starts a run makes the workload,
and actors get the tables. The runs of a sweep make their own.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError, RuntimeEnvSetupError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from parsync.runtime.live.ray_glue.internals import free_resources
from shared_state.errors import AgoraError

ANSWER_S = 45.0
SKEW_NS = 10_000_000
ACTORS_BYTES = 100  # of Ray's memory resource: every actor of a run reserves one byte
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
_ACTORS = "parsync.runtime.live.cell_host"  # imports whatever an actor does


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself.

    Attributes:
        python, numpy: Their versions.
        problem: Why its workers cannot import the actors, or "".
        sees: Whether it sees the marker in the run directory.
        writes: Whether it can write next to the marker.
    """

    python: str
    numpy: str
    problem: str
    sees: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A node's clock, read between two readings of ours; ns since the Unix epoch."""

    before_ns: int
    node_ns: int
    after_ns: int

    @property
    def ahead_ns(self) -> int:
        """How far the node's clock is at least ahead of ours; negative if it is behind, 0 if the
        readings do not tell."""
        if self.node_ns > self.after_ns:
            return self.node_ns - self.after_ns
        return min(0, self.node_ns - self.before_ns)


def check_nodes(directory: Path) -> None:
    """Ask every living node of the cluster. AgoraError naming the first that cannot take part in a
    run whose directory is `directory`, and why."""
    marker = directory / f".seen-by-all-nodes-{uuid.uuid4().hex[:12]}"
    marker.touch()
    try:
        nodes = _addresses()
        deadline = time.monotonic() + ANSWER_S
        for node, facts in _facts(nodes, _ACTORS, str(marker), deadline).items():
            _refuse(nodes[node], objection(facts, directory))
        clock = ray.remote(num_cpus=0, max_retries=0)(_clock())
        for node, address in nodes.items():
            reading = _read_clock(_on(clock, node), address, deadline)
            if abs(reading.ahead_ns) > SKEW_NS:
                _refuse(address, skewed(reading.ahead_ns))
    finally:
        for left in directory.glob(f"{marker.name}*"):
            left.unlink(missing_ok=True)


def check_imports(module: str) -> None:
    """Ask every living node of the cluster. AgoraError naming the first whose workers run another
    Python or numpy than this process, or cannot import `module`."""
    nodes = _addresses()
    for node, facts in _facts(nodes, module, "", time.monotonic() + ANSWER_S).items():
        _refuse(nodes[node], objection(facts, None))


def _addresses() -> dict[str, str]:
    """The addresses of the living nodes, by id."""
    return {node["NodeID"]: node["NodeManagerAddress"] for node in living_nodes()}


def _facts(
    nodes: Mapping[str, str], module: str, marker: str, deadline: float
) -> dict[str, NodeFacts]:
    """What each node says of itself, by id."""
    ask = ray.remote(num_cpus=0, max_retries=0)(_questions())
    calls = {node: _on(ask, node).remote(module, marker) for node in nodes}
    return {node: NodeFacts(*_answer(call, nodes[node], deadline)) for node, call in calls.items()}


def _refuse(address: str, complaint: str) -> None:
    if complaint:
        raise AgoraError(f"node {address}: {complaint}")


def living_nodes() -> list[dict[str, Any]]:
    """The cluster's nodes that are up, as Ray describes them."""
    return [node for node in ray.nodes() if node["Alive"]]


def home_and_head() -> tuple[tuple[str, int], tuple[str, int]]:
    """Where this machine's node and the head node listen, of the Ray that this process is connected
    to."""
    context = ray.get_runtime_context()
    own = context.get_node_id()
    [home] = [node for node in living_nodes() if node["NodeID"] == own]
    host, _, port = context.gcs_address.rpartition(":")
    return (home["NodeManagerAddress"], home["NodeManagerPort"]), (host.strip("[]"), int(port))


def nodes_with_room(home: str) -> list[str]:
    """The ids of the nodes that scheduler hosts may be put on, `home` last: its processors have the
    other actors already. AgoraError if there is no room."""
    total = {node["NodeID"]: node["Resources"] for node in living_nodes()}
    return room(total, free_resources(), home)


def room(
    total: Mapping[str, Mapping[str, float]], free: Mapping[str, Mapping[str, float]], home: str
) -> list[str]:
    """The nodes that have room for the actors, checked.

    Actors reserve no processor, but where others have reserved all of them, decisions would wait
    and the figures be false. A node without processors takes part only as `home`.

    Args:
        total, free: The resources of each node; other jobs have reserved those that are not free.
    """
    if free.get(home, {}).get("memory", 0) < ACTORS_BYTES:
        raise AgoraError(
            "the cluster has no room: other jobs have reserved all memory of this machine's node"
        )
    with_processors = [node for node in total if total[node].get("CPU", 0) > 0]
    with_room = [
        node
        for node in with_processors
        if free.get(node, {}).get("CPU", 0) > 0
        and free.get(node, {}).get("memory", 0) >= ACTORS_BYTES
    ]
    if with_processors and not with_room:
        raise AgoraError(
            "the cluster has no room: other jobs have reserved all CPUs or all memory of each of "
            f"its {len(with_processors)} nodes"
        )
    return sorted(with_room, key=lambda node: (node == home, node)) or [home]


def objection(facts: NodeFacts, directory: Path | None) -> str:
    """Why a node that says this cannot take part; "" if it can.

    Args:
        directory: The run directory that it must see; None if nothing is read or written there.
    """
    ours = sys.version.split()[0]
    if facts.python != ours:
        return f"runs Python {facts.python}, this process {ours}; every node needs the same"
    if facts.numpy != np.__version__:
        return (
            f"has numpy {facts.numpy or '(none)'}, this process {np.__version__}; every node "
            "needs the same"
        )
    if facts.problem:
        return f"cannot import Agora there: {facts.problem}"
    if directory is None:
        return ""
    if not facts.sees:
        return f"does not see the run directory {directory}; it must be on a shared file system"
    if not facts.writes:
        return f"cannot write into the run directory {directory}"
    return ""


def skewed(ahead_ns: int) -> str:
    """What is wrong with a clock that is so far ahead."""
    side = "ahead of" if ahead_ns > 0 else "behind"
    return (
        f"its clock is {abs(ahead_ns) / 1e9:.3g} s {side} this machine's; both clocks "
        "measure delays between nodes: synchronise them (NTP)"
    )


def _on(task: Any, node: str) -> Any:
    return task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))


def _answer(call: Any, address: str, deadline: float) -> Any:
    try:
        return ray.get(call, timeout=max(0.0, deadline - time.monotonic()))
    except GetTimeoutError as error:
        raise AgoraError(f"node {address}: started no worker within {ANSWER_S:.0f} s") from error
    except RuntimeEnvSetupError as error:
        raise AgoraError(
            f"node {address}: cannot load the shipped code: {' '.join(str(error).split())}"
        ) from error
    except RayError as error:
        raise AgoraError(f"node {address}: {' '.join(str(error).split())}") from error


def _read_clock(clock: Any, address: str, deadline: float) -> ClockReading:
    """The shortest of a few readings: the first may have to start a worker."""
    readings = []
    for _ in range(3):
        before_ns = time.time_ns()
        node_ns = _answer(clock.remote(), address, deadline)
        readings.append(ClockReading(before_ns, node_ns, time.time_ns()))
    return min(readings, key=lambda reading: reading.after_ns - reading.before_ns)


# Functions that go to the nodes whole, since our packages may be what is missing there.


def _clock() -> Callable[[], int]:
    def clock() -> int:
        import time

        return time.time_ns()

    return clock


def _questions() -> Callable[[str, str], tuple[str, str, str, bool, bool]]:
    def ask(actors: str, marker: str) -> tuple[str, str, str, bool, bool]:
        import importlib
        import os
        import sys

        numpy_version = problem = ""
        try:
            numpy_version = importlib.import_module("numpy").__version__
            importlib.import_module(actors)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        sees, writes = os.path.exists(marker), False
        if sees:
            own = f"{marker}-{os.uname().nodename}-{os.getpid()}"
            try:
                with open(own, "x"):
                    writes = True
                os.unlink(own)
            except OSError:
                pass
        return sys.version.split()[0], numpy_version, problem, sees, writes

    return ask


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
