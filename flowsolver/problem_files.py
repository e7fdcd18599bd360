"""Problems in files: DIMACS (native/dimacs.hpp) or NumPy's .npz (npz.py).

DIMACS is written without lower bounds; a comment says what was removed.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from flowsolver.dimacs import DimacsProblem, parse_dimacs, write_dimacs
from flowsolver.npz import parse_npz, write_npz

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
