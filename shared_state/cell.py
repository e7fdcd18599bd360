"""The master cell: what is true, and the only place where it changes."""

from __future__ import annotations

import hashlib
import struct
import zlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state import _native
from shared_state._native import Released
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64
from shared_state.transaction import CommitResult, Holds, PartitionDelta, Transaction

__all__ = ["MAX_CAPACITY", "MAX_DIMENSIONS", "MAX_OVERCOMMIT_PERMILLE", "Cell", "Released"]

MAX_DIMENSIONS = 8
MAX_CAPACITY = 1 << 40
MAX_OVERCOMMIT_PERMILLE = 1_000_000  # limits stay within the 2^50 of native/cell.hpp

_CHECKPOINT_MAGIC = b"agora cell 3\n"
_DIGEST_BYTES = 16
# magic, checksum of the rest, digest of the shape; the state follows
_CHECKPOINT_HEAD = struct.Struct(f"<{len(_CHECKPOINT_MAGIC)}sI{_DIGEST_BYTES}s")


class Cell:
    """The master state, columnar in C++ (native/cell.hpp states its invariants). Not thread-safe.

    seqnum: uint32[M], up: bool[M], versions: int64[P] are read-only views of the live state, and so
    is used: int64[M, R] while nothing is held. Of one resource whose limits are at most 126 the
    cell keeps a byte per machine until somebody reads `used`; from then on it keeps that column. A
    call that raises has changed nothing. ValueError names the argument and row that is wrong.

    Room can be held for offers (two-level scheduling: Hindman et al., "Mesos", NSDI 2011). Nobody
    takes it until the hold ends. used + held <= limit on every machine and in every dimension, but
    for machines that an initial state has filled above their limit.
    """

    def __init__(
        self, spec: CellSpec, partitioning: Partitioning, priority: Int32 | None = None
    ) -> None:
        """An empty cell with every machine up.

        Args:
            spec: The machines.
            partitioning: Of them.
            priority: int32[n], of each task from id 0 on, 0 for others: claims may evict tasks of
                lower priority, whoever owns them (native/commit.cpp). None: schedulers evict their
                own tasks only.

        Raises:
            AgoraError: The spec is malformed, or the partitioning is of another cell.
        """
        _check_spec(spec, partitioning)
        self.spec = spec
        self.partitioning = partitioning
        self.priority = priority
        self._native = _native.Cell(
            spec.limit, partitioning.offsets, len(spec.dimensions), priority
        )
        self._show()

    @property
    def native(self) -> Any:
        """The compiled cell, for native code."""
        return self._native

    def _show(self) -> None:
        self.seqnum: NDArray[np.uint32] = self._native.seqnum
        self.up: NDArray[np.bool_] = self._native.up
        self.versions: Int64 = self._native.versions

    @property
    def used(self) -> Int64:
        """int64[M, R], what the tasks that run use of each machine.

        While nothing is held it changes with the cell; otherwise it is a copy.
        """
        used: Int64 = self._native.used
        return used

    @property
    def held(self) -> Int64:
        """int64[M, R], what is held of each machine for offers, as it stands."""
        held: Int64 = self._native.held
        return held

    @property
    def machines_up(self) -> int:
        """How many machines are up."""
        count: int = self._native.machines_up
        return count

    def commit(self, transaction: Transaction, now_us: int) -> CommitResult:
        """Decide a transaction: accept the claims that fit, first come first served.

        native/commit.cpp states the order, and what becomes of groups and victims. A claim is
        judged, in this order, MACHINE_DOWN, DUPLICATE (its task is placed, or was released: it has
        run), STALE (under SEQUENCE_NUMBER: the machine's number differs from what it was before
        this transaction; or the transaction names holds and none of them was left there), HELD (it
        does not fit, and would if nothing were held), FULL or EVICTED (it does not fit, and a
        victim named on its machine is gone or may not be ended). In a gang group that fails, the
        claims that fitted are GANG. The holds that the transaction names end, whatever becomes of
        its claims.
        """
        result: CommitResult = self._native.commit(transaction, now_us)
        return result

    def release(self, allocation: Int64, owner: Int32 | None, now_us: int) -> Released:
        """End allocations whose tasks have run; the cell never places these tasks again.

        Idempotent: ids that are not live, or are owned by another, are skipped.

        Args:
            allocation: int64[n].
            owner: int32[n], or None not to check owners.
            now_us: The cell's time.

        Returns: The allocations that were released, in order.
        """
        released: Released = self._native.release(allocation, owner)
        return released

    def load(self, task: Int64, machine: Int32, request: Int64, owner: Int32) -> Int64:
        """Place an initial state.

        Machines may exceed their limit: such machines are grandfathered, and take no claim that
        requests some of the resource that they exceed.

        Returns: int64[n], the allocation ids.
        """
        allocation: Int64 = self._native.load(task, machine, request, owner)
        return allocation

    def set_machines(self, machine: Int32, up: NDArray[np.bool_], now_us: int) -> Released:
        """Take machines (int32[n]) down or up (bool[n]), in order; no-ops are allowed.

        Returns: What ran on those that went down. The holds there end.
        """
        lost: Released = self._native.set_machines(machine, up)
        return lost

    def hold(self, holder: Int32, machine: Int32, amount: Int64, now_us: int) -> Int64:
        """Hold room for offers, one after the other.

        Args:
            holder: int32[k], the schedulers it is held for.
            machine: int32[k].
            amount: int64[k, R].
            now_us: The cell's time.

        Returns: int64[k], the ids of the holds, none of which was given before; -1 where the amount
            does not fit what is neither used nor held, or the machine is down.
        """
        hold: Int64 = self._native.hold(holder, machine, amount)
        return hold

    def end_holds(self, hold: Int64, now_us: int) -> Holds:
        """End holds (int64[k], ids); those that have ended, or never were, are skipped.

        Returns: Those that ended, in order.
        """
        ended: Holds = self._native.end_holds(hold)
        return ended

    def ended_holds(self) -> Holds:
        """The holds that the last commit or change of machines ended."""
        ended: Holds = self._native.ended_holds()
        return ended

    def holds(self) -> Holds:
        """The holds that have not ended, by id."""
        holds: Holds = self._native.holds()
        return holds

    def allocations(self, owner: int | None = None) -> Released:
        """The live allocations of one owner, or of all, in the order of their slots."""
        live: Released = self._native.allocations(-1 if owner is None else owner)
        return live

    def describe(self, allocation: Int64) -> Released:
        """The records of allocations that are live, or were ended by the last call.

        Raises:
            ValueError: An allocation is neither.
        """
        described: Released = self._native.describe(allocation)
        return described

    def delta_since(
        self, partition: int, version: int, now_us: int, with_seqnum: bool
    ) -> PartitionDelta:
        """The rows of a partition that changed after `version`; all of them for 0.

        Raises:
            ValueError: The partition is not at `version` yet.
        """
        delta: PartitionDelta = self._native.delta_since(partition, version, now_us, with_seqnum)
        return delta

    def snapshot(self, partition: int, now_us: int, with_seqnum: bool) -> PartitionDelta:
        """The delta that holds all rows of a partition."""
        return self.delta_since(partition, 0, now_us, with_seqnum)

    def checkpoint(self) -> bytes:
        """The whole state as bytes.

        The spec and the partitioning are not part of it, but restore() refuses others. With 200,000
        machines and as many allocations: 12 MB, about 10 ms.
        """
        state: bytes = self._native.checkpoint()
        shape = self._shape_digest
        return _CHECKPOINT_HEAD.pack(_CHECKPOINT_MAGIC, _checksum(shape, state), shape) + state

    @classmethod
    def restore(
        cls,
        spec: CellSpec,
        partitioning: Partitioning,
        checkpoint: bytes,
        priority: Int32 | None = None,
    ) -> Cell:
        """The cell that a checkpoint was taken of; it continues exactly as that one would.

        Raises:
            AgoraError: The checkpoint is damaged, or of another cell.
        """
        head, state = checkpoint[: _CHECKPOINT_HEAD.size], checkpoint[_CHECKPOINT_HEAD.size :]
        magic, checksum, shape = _CHECKPOINT_HEAD.unpack(head.ljust(_CHECKPOINT_HEAD.size, b"\0"))
        if magic != _CHECKPOINT_MAGIC or checksum != _checksum(shape, state):
            raise AgoraError("cell checkpoint: damaged, or written by another version")
        cell = cls(spec, partitioning, priority)
        if shape != cell._shape_digest:
            raise AgoraError("cell checkpoint: taken of another cell or another partitioning")
        try:
            cell._native.restore(state)
        except ValueError as error:
            raise AgoraError(f"cell {error}") from error
        cell._show()
        return cell

    def state_digest(self) -> bytes:
        """The blake2b-128 of the state, equal for cells that will answer everything alike."""
        return hashlib.blake2b(self._native.checkpoint(), digest_size=_DIGEST_BYTES).digest()

    @cached_property
    def _shape_digest(self) -> bytes:
        hashed = hashlib.blake2b(
            "\0".join(self.spec.dimensions).encode(), digest_size=_DIGEST_BYTES
        )
        hashed.update(np.ascontiguousarray(self.spec.limit).tobytes())
        hashed.update(self.partitioning.offsets.tobytes())
        return hashed.digest()


def _checksum(shape: bytes, state: bytes) -> int:
    return zlib.crc32(state, zlib.crc32(shape))


def _check_spec(spec: CellSpec, partitioning: Partitioning) -> None:
    dimensions = len(spec.dimensions)
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise AgoraError(
            f"cell: expected 1 to {MAX_DIMENSIONS} resource dimensions, got {dimensions}"
        )
    if spec.capacity.ndim != 2 or spec.capacity.shape[1] != dimensions or not len(spec.capacity):
        raise AgoraError(
            f"cell capacity: expected [machines, {dimensions}], got {list(spec.capacity.shape)}"
        )
    if (spec.capacity < 0).any() or (spec.capacity > MAX_CAPACITY).any():
        raise AgoraError(f"cell capacity: expected amounts in 0..{MAX_CAPACITY}")
    permille = spec.overcommit_permille
    if (
        permille.shape != (dimensions,)
        or (permille < 0).any()
        or (permille > MAX_OVERCOMMIT_PERMILLE).any()
    ):
        raise AgoraError(
            f"cell overcommit_permille: expected {dimensions} factors in "
            f"0..{MAX_OVERCOMMIT_PERMILLE}"
        )
    if partitioning.machines != spec.machines:
        raise AgoraError(
            f"partitioning: of {partitioning.machines} machines, the cell has {spec.machines}"
        )
