"""Problems as NumPy's .npz: the arrays tail, head, capacity, cost (per arc) and supply (per node).

A problem with lower bounds has two more arrays, `low` and `base_cost` (DimacsProblem), so that
solving it gives the flow and the cost of the file it was made from.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib

import numpy as np

from flowsolver.arguments import Int64Array, as_int64
from flowsolver.dimacs import DimacsProblem
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, MAX_NODES, FlowNetwork

_ARC_FIELDS = ("tail", "head", "capacity", "cost")
_FIELDS = (*_ARC_FIELDS, "supply")
_OPTIONAL_FIELDS = ("low", "base_cost")
_MOST = {"supply": MAX_NODES, "base_cost": 1}  # entries; of the others MAX_ARCS
_BYTES_PER_ENTRY = 24  # as read, as int64, and in the network

_UNREADABLE = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def parse_npz(data: bytes, name: str) -> DimacsProblem:
    """Parse a problem in .npz format.

    Raises:
        ValueError: names the file and the array.
        MemoryError: if the arrays are larger than this machine's memory. Their headers are checked
            before they are read: a few kilobytes of compressed zeros may declare gigabytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            shapes = _declared(archive)
    except _UNREADABLE as error:
        raise ValueError(f"{name}: not a readable .npz file: {error}") from error
    _check_declared(shapes, name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {field: file[field] for field in shapes}
    except _UNREADABLE as error:
        raise ValueError(f"{name}: not a readable .npz file: {error}") from error
    try:
        return _problem({field: as_int64(field, array) for field, array in arrays.items()})
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def write_npz(problem: DimacsProblem) -> bytes:
    """The problem as .npz, with numbers in 32 bits where they fit."""
    network = problem.network
    arrays = {field: getattr(network, field) for field in _FIELDS}
    if problem.low.any() or problem.base_cost != 0:
        arrays.update(low=problem.low, base_cost=np.array([problem.base_cost]))
    file = io.BytesIO()
    np.savez_compressed(
        file, allow_pickle=False, **{field: _narrowed(array) for field, array in arrays.items()}
    )
    return file.getvalue()


def _declared(archive: zipfile.ZipFile) -> dict[str, tuple[int, ...]]:
    """The shapes of the problem's arrays, according to their headers."""
    members = set(archive.namelist())
    shapes = {}
    for field in (*_FIELDS, *_OPTIONAL_FIELDS):
        if f"{field}.npy" not in members:
            continue
        with archive.open(f"{field}.npy") as member:
            version = np.lib.format.read_magic(member)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise ValueError(f"{field} is of .npy version {version}, expected 1.0 or 2.0")
            shapes[field] = read(member)[0]
    return shapes


def _check_declared(shapes: dict[str, tuple[int, ...]], name: str) -> None:
    missing = [field for field in _FIELDS if field not in shapes]
    if missing:
        raise ValueError(f"{name}: no array {missing[0]}")
    for field, shape in shapes.items():
        entries, most = math.prod(shape), _MOST.get(field, MAX_ARCS)
        if entries > most:
            raise ValueError(f"{name}: {field} has {entries:,} entries, at most {most:,} fit")
    needed = _BYTES_PER_ENTRY * sum(math.prod(shape) for shape in shapes.values())
    need_memory(f"{name}: a network of this size", needed)


def _problem(columns: dict[str, Int64Array]) -> DimacsProblem:
    arcs = columns["tail"].size
    for field in ("low", *_ARC_FIELDS):
        if field in columns and columns[field].size != arcs:
            raise ValueError(f"{field} has {columns[field].size} entries, tail {arcs}")
    network = FlowNetwork()
    network.add_nodes(columns["supply"])
    network.add_arcs(*(columns[field] for field in _ARC_FIELDS))
    base = columns.get("base_cost", np.zeros(1, dtype=np.int64))
    if base.size != 1:
        raise ValueError(f"base_cost has {base.size} entries, expected 1")
    problem = DimacsProblem.without_bounds(network, int(base[0]))
    return DimacsProblem(network, columns.get("low", problem.low), problem.base_cost)


def _narrowed(array: Int64Array) -> np.ndarray:
    narrow = array.astype(np.int32)
    return narrow if (narrow == array).all() else array
