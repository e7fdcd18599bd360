"""Problems in files: DIMACS minimum-cost flow files (native/dimacs.hpp) or NumPy's .npz.

DIMACS is written without lower bounds; a comment says what was removed. An .npz has the arrays
tail, head, capacity, cost (per arc) and supply (per node). One of a problem with lower bounds has
two more, `low` and `base_cost` (DimacsProblem), so that solving it gives the flow and the cost of
the file it was made from.
"""

from __future__ import annotations

import codecs
import io
import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flowsolver import _flowsolver as native
from flowsolver.arguments import Int64Array, as_int64, need_type
from flowsolver.memory import need_memory
from flowsolver.network import MAX_ARCS, MAX_NODES, FlowNetwork, core_of
from flowsolver.solution import STATUS_TEXT, Solution, Status

_ZIP_MAGIC = b"PK\x03\x04"
_NO_PROBLEM = {
    b"\x1f\x8b": "compressed with gzip; unpack it first (gunzip)",
    b"BZh": "compressed with bzip2; unpack it first (bunzip2)",
    b"\xfd7zXZ": "compressed with xz; unpack it first (unxz)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first (unzstd)",
    codecs.BOM_UTF8: "begins with a byte order mark; save it as plain ASCII text",
    codecs.BOM_UTF16_LE: "UTF-16 text; save it as plain ASCII text",
    codecs.BOM_UTF16_BE: "UTF-16 text; save it as plain ASCII text",
}
_ARC_FIELDS = ("tail", "head", "capacity", "cost")
_FIELDS = (*_ARC_FIELDS, "supply")
_OPTIONAL_FIELDS = ("low", "base_cost")
_MOST = {"supply": MAX_NODES, "base_cost": 1}  # entries; of the others MAX_ARCS
_BYTES_PER_ENTRY = 24  # as read, as int64, and in the network


class DimacsError(ValueError):
    """A malformed file: `name`:`line` (from 1) and what is wrong there."""

    def __init__(self, name: str, line: int, what: str) -> None:
        super().__init__(f"{name}:{line}: {what}")
        self.name = name
        self.line = line


@dataclass(frozen=True)
class DimacsProblem:
    """A problem as read from a file.

    Lower bounds are removed from the network: the flow and the cost of the file's problem are the
    network's plus `low` (int64[m]) and `base_cost`.
    """

    network: FlowNetwork
    low: Int64Array
    base_cost: int

    @classmethod
    def without_bounds(cls, network: FlowNetwork, base_cost: int = 0) -> DimacsProblem:
        """A problem whose lower bounds are all 0."""
        return cls(network, np.zeros(network.num_arcs, dtype=np.int64), base_cost)


def parse_dimacs(text: bytes, name: str = "<input>") -> DimacsProblem:
    """Parse a DIMACS min file.

    Args:
        text: the content of the file.
        name: the file's name, for messages.

    Raises:
        DimacsError: names the file and the line.
    """
    need_type("text", text, bytes, "bytes")
    network, low, base_cost, line, error = native.parse_dimacs(text)
    if line > 0:
        raise DimacsError(name, line, error)
    return DimacsProblem(FlowNetwork(network), low, base_cost)


def write_dimacs(network: FlowNetwork, comments: Iterable[str] = ()) -> bytes:
    """The network as a DIMACS min file, after its comments, one line each."""
    return _comment_lines(comments) + native.write_dimacs(core_of(network))


def write_dimacs_solution(
    problem: DimacsProblem, solution: Solution, *, potentials: bool = False
) -> bytes:
    """The solution as text: `s <cost>` and a line `f <tail> <head> <flow>` per arc with flow.

    Cost and flow are those of the file's problem. For a solution that is BUDGET, a comment before
    the flow says so, and there are no potentials.

    Args:
        problem: the problem as read.
        solution: OPTIMAL or BUDGET.
        potentials: also write a line `p <node> <price>` per node in cs2's form: the least price is
            0, and cost + price[tail] - price[head] is >= 0 where flow can grow and <= 0 where it
            can shrink.

    Raises:
        ValueError: for any other status.
    """
    if solution.status not in (Status.OPTIMAL, Status.BUDGET):
        raise ValueError(f"no flow to write: {solution.status.name}")
    comments = []
    if solution.status is Status.BUDGET:
        comments.append(
            f"{STATUS_TEXT[Status.BUDGET]}: not optimal, "
            f"{unsent(problem.network, solution.flow)} units of supply not sent"
        )
    text = _comment_lines(comments) + b"s %d\n" % (solution.cost + problem.base_cost)
    text += native.write_dimacs_flow(problem.network.core, solution.flow + problem.low)
    if potentials and solution.status is Status.OPTIMAL and solution.potential.size > 0:
        price = solution.potential.max() - solution.potential
        text += b"".join(b"p %d %d\n" % line for line in enumerate(price.tolist(), start=1))
    return text


def unsent(network: FlowNetwork, flow: Int64Array) -> int:
    """The units of supply that the flow leaves at their source or at nodes in between."""
    excess = network.supply
    np.subtract.at(excess, network.tail, flow)
    np.add.at(excess, network.head, flow)
    return int(excess[excess > 0].sum())


def _comment_lines(comments: Iterable[str]) -> bytes:
    return "".join(f"c {comment}\n" for comment in comments).encode()


def parse_problem(data: bytes, name: str) -> DimacsProblem:
    """Parse a problem in DIMACS or .npz format; the content decides which.

    Raises:
        ValueError: names the file and the line or field.
        MemoryError: if the problem needs more memory than this machine has.
    """
    for beginning, what in _NO_PROBLEM.items():
        if data.startswith(beginning):
            raise ValueError(f"{name}: {what}")
    return parse_npz(data, name) if data.startswith(_ZIP_MAGIC) else parse_dimacs(data, name)


def write_problem(problem: DimacsProblem, npz: bool, comments: Iterable[str] = ()) -> bytes:
    """The problem as .npz or DIMACS. Only DIMACS has comments."""
    if npz:
        return write_npz(problem)
    return write_dimacs(problem.network, [*comments, *_bounds_comments(problem)])


def _bounds_comments(problem: DimacsProblem) -> list[str]:
    if not problem.low.any() and problem.base_cost == 0:
        return []
    return [
        "lower bounds are taken out: "
        f"costs here are lower by {problem.base_cost}, flows by each arc's bound"
    ]


class DeclaredArray(NamedTuple):
    """What the header of an array in an archive says."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def declared_arrays(
    archive: zipfile.ZipFile, names: Iterable[str] | None = None
) -> dict[str, DeclaredArray]:
    """What the headers of the arrays in an .npz archive say. No array is decompressed.

    Args:
        archive: The archive.
        names: The arrays asked for; those that are missing are left out. None: all.

    Raises:
        ValueError: A header's size is not that of its array. Other exceptions, of zipfile and of
            NumPy's reader of headers, for an archive that is damaged.
    """
    members = {
        member.filename.removesuffix(".npy"): member
        for member in archive.infolist()
        if member.filename.endswith(".npy")
    }
    declared = {}
    for name in members if names is None else (name for name in names if name in members):
        with archive.open(members[name].filename) as member:
            version = np.lib.format.read_magic(member)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise ValueError(f"{name} is of .npy version {version}, expected 1.0 or 2.0")
            try:
                shape, _, dtype = read(member)
            except Exception as error:  # it reads a Python literal
                raise ValueError(f"{name}: not a header of NumPy's") from error
            array = DeclaredArray(shape, dtype)
            if not dtype.hasobject and member.tell() + array.nbytes != members[name].file_size:
                raise ValueError(f"{name}: its header does not fit its size")
            declared[name] = array
    return declared


def parse_npz(data: bytes, name: str) -> DimacsProblem:
    """Parse a problem in .npz format.

    Raises:
        ValueError: names the file and the array.
        MemoryError: if the arrays are larger than this machine's memory. Their headers are checked
            before they are read: a few kilobytes of compressed zeros may declare gigabytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            declared = declared_arrays(archive, (*_FIELDS, *_OPTIONAL_FIELDS))
    except Exception as error:  # zipfile and NumPy raise many kinds, which differ by version
        raise _unreadable(name, error) from error
    _check_declared(declared, name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {field: file[field] for field in declared}
    except MemoryError:
        raise
    except Exception as error:
        raise _unreadable(name, error) from error
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


def _unreadable(name: str, error: Exception) -> ValueError:
    what = next(iter(str(error).splitlines()), "") or type(error).__name__
    return ValueError(f"{name}: not a readable .npz file: {what}")


def _check_declared(declared: dict[str, DeclaredArray], name: str) -> None:
    missing = [field for field in _FIELDS if field not in declared]
    if missing:
        raise ValueError(f"{name}: no array {missing[0]}")
    for field, array in declared.items():
        entries, most = math.prod(array.shape), _MOST.get(field, MAX_ARCS)
        if entries > most:
            raise ValueError(f"{name}: {field} has {entries:,} entries, at most {most:,} fit")
        if array.dtype.kind not in "iu" and not array.dtype.hasobject:
            raise ValueError(f"{name}: {field} holds {array.dtype}, expected integers")
    needed = _BYTES_PER_ENTRY * sum(math.prod(array.shape) for array in declared.values())
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
