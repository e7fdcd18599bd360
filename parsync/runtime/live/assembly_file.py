"""What a run was made of, in a file beside its logs: a pickled Assembly, and the digest that tells
damage from difference.

File: blake2b-128 of the rest, then the pickle.
"""

from __future__ import annotations

import hashlib
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

from parsync.runtime.assembly import Assembly
from shared_state.errors import AgoraError

ASSEMBLY_FILE = "assembly.pickle"
_DIGEST_BYTES = 16
_TRUSTED_PACKAGES = ("parsync", "schedulers", "shared_state", "experiments")
_TRUSTED_NAMES = ("ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar")  # of numpy


class _AssemblyReader(pickle.Unpickler):
    """Builds nothing but the classes an assembly is made of."""

    def find_class(self, module: str, name: str) -> Any:
        package = module.partition(".")[0]
        if package == "numpy" and name in _TRUSTED_NAMES:
            return super().find_class(module, name)
        if package in _TRUSTED_PACKAGES and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in it")


def write_assembly(directory: Path, assembly: Assembly) -> None:
    """Into an existing directory. AgoraError naming the file if it does not fit on the disk."""
    path = directory / ASSEMBLY_FILE
    data = pickle.dumps(assembly, protocol=5)
    try:
        with path.open("wb") as file:
            file.write(_digest(data))
            file.write(data)
    except OSError as error:
        raise AgoraError(f"{path}: cannot write it: {error.strerror}") from error


def read_assembly(directory: Path) -> Assembly:
    """The arm and workload of a run. AgoraError naming the file if it is missing or damaged, or of
    another version."""
    path = directory / ASSEMBLY_FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AgoraError(
            f"{path}: cannot read what the run was made of: {error.strerror}"
        ) from error
    body = data[_DIGEST_BYTES:]
    if _digest(body) != data[:_DIGEST_BYTES]:
        raise AgoraError(f"{path}: damaged: its digest is wrong")
    try:
        assembly = _AssemblyReader(BytesIO(body)).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        AttributeError,
        ImportError,
        ValueError,
        TypeError,
    ) as error:
        raise AgoraError(f"{path}: cannot read what the run was made of: {error}") from error
    if not isinstance(assembly, Assembly):
        raise AgoraError(f"{path}: not what a run was made of")
    return assembly


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
