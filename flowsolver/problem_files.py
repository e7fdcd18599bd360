"""Problems in files: DIMACS, or NumPy's .npz with the arrays tail, head, capacity, cost and supply.

A problem with lower bounds has two arrays more in its .npz, `low` and `base_cost` (DimacsProblem),
so that solving it gives the flow and the cost of the file it came from. DIMACS is written without
lower bounds; a comment tells what was taken out.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable

import numpy as np

from flowsolver.dimacs import DimacsProblem, parse_dimacs, write_dimacs
from flowsolver.network import FlowNetwork, Int64Array, as_int64

_ZIP_MAGIC = b"PK\x03\x04"
_ARC_FIELDS = ("tail", "head", "capacity", "cost")


def parse_problem(data: bytes, name: str) -> DimacsProblem:
    """A problem from a file's bytes, in the format they are in. ValueError naming the file and the
    line or field."""
    return _parse_npz(data, name) if data.startswith(_ZIP_MAGIC) else parse_dimacs(data, name)


def write_problem(problem: DimacsProblem, npz: bool, comments: Iterable[str] = ()) -> bytes:
    """The problem as .npz or DIMACS; only DIMACS has comments."""
    return (
        _write_npz(problem)
        if npz
        else write_dimacs(problem.network, [*comments, *_bounds_comments(problem)])
    )


def _bounds_comments(problem: DimacsProblem) -> list[str]:
    if not problem.low.any() and problem.base_cost == 0:
        return []
    return [
        f"lower bounds are taken out: costs here are lower by {problem.base_cost}, flows by each arc's bound"
    ]


def _write_npz(problem: DimacsProblem) -> bytes:
    network = problem.network
    arrays = {field: getattr(network, field) for field in (*_ARC_FIELDS, "supply")}
    if problem.low.any() or problem.base_cost != 0:
        arrays.update(low=problem.low, base_cost=np.array([problem.base_cost]))
    file = io.BytesIO()
    np.savez_compressed(
        file, allow_pickle=False, **{field: _narrowed(array) for field, array in arrays.items()}
    )
    return file.getvalue()


def _narrowed(array: Int64Array) -> np.ndarray:
    """In 32 bits where they suffice."""
    narrow = array.astype(np.int32)
    return narrow if (narrow == array).all() else array


def _parse_npz(data: bytes, name: str) -> DimacsProblem:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {field: file[field] for field in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{name}: not a readable .npz file: {error}") from error
    missing = [field for field in (*_ARC_FIELDS, "supply") if field not in arrays]
    if missing:
        raise ValueError(f"{name}: no array {missing[0]}")
    try:
        columns = {field: as_int64(field, array) for field, array in arrays.items()}
        for field in ("low", *_ARC_FIELDS):
            if field in columns and columns[field].size != columns["tail"].size:
                raise ValueError(
                    f"{field} has {columns[field].size} entries, tail {columns['tail'].size}"
                )
        network = FlowNetwork()
        network.add_nodes(columns["supply"])
        network.add_arcs(*(columns[field] for field in _ARC_FIELDS))
        if "base_cost" in columns and columns["base_cost"].size != 1:
            raise ValueError(f"base_cost has {columns['base_cost'].size} entries, expected 1")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    problem = DimacsProblem.without_bounds(
        network, int(columns["base_cost"][0]) if "base_cost" in columns else 0
    )
    return (
        DimacsProblem(network, columns["low"], problem.base_cost) if "low" in columns else problem
    )
