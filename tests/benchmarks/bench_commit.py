"""The commit path: 200,000 machines, two dimensions, batches of 100 claims, log frames included;
peer: vectorised numpy.

Each batch repeats 5 of its machines and one of its tasks, and the cell fills to about 80 %, so
every kind of work occurs. One round commits all batches on a fresh cell; claims per second = CLAIMS
/ time of a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from parsync.core.codec import encode
from shared_state.cell import Cell
from shared_state.journal import EventDigest, JournalWriter
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int64
from shared_state.transaction import CommitResult, Reason, Transaction

MACHINES = 200_000
PARTITIONS = 20
SCHEDULERS = 20
BATCH = 100
BATCHES = 5_000
CLAIMS = BATCH * BATCHES
TARGET_CLAIMS_PER_S = 3_000_000
ROUNDS = 5


def make_spec() -> CellSpec:
    capacity = np.tile(np.array([[4000, 16_384]], np.int64), (MACHINES, 1))
    rack = (np.arange(MACHINES) // 40).astype(np.int32)
    return CellSpec(
        ("cpu_milli", "mem_mib"),
        capacity,
        rack,
        np.zeros(MACHINES, np.int64),
        np.array([1000, 1000]),
    )


def make_transactions(seed: int) -> list[Transaction]:
    rng = np.random.default_rng(seed)
    machine = rng.integers(0, MACHINES, (BATCHES, BATCH)).astype(np.int32)
    machine[:, 95:] = machine[:, :5]
    task = np.arange(CLAIMS).reshape(BATCHES, BATCH)
    task[:, 99] = task[:, 0]
    request = rng.integers(1, [2600, 10_000], (BATCHES, BATCH, 2))
    return [
        Transaction(
            b % SCHEDULERS,
            b // SCHEDULERS + 1,
            task[b],
            machine[b],
            request[b],
            np.zeros(BATCH, np.int64),
        )
        for b in range(BATCHES)
    ]


def repeated(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries have an equal among the others."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mask: NDArray[np.bool_] = counts[inverse] > 1
    return mask


@dataclass
class NumpyCell:
    """The same commit with whole-array numpy: optimistic, reasons, rivals, versions and ages; no
    evictions, gangs or allocations to release."""

    limit: Int64
    partition: Any
    used: Int64 = field(init=False)

    def __post_init__(self) -> None:
        rows = len(self.limit)
        self.used = np.zeros_like(self.limit)
        self.up = np.ones(rows, bool)
        self.seqnum = np.zeros(rows, np.uint32)
        self.claimant, self.earlier = np.full((2, rows), -1, np.int32)
        self.changed = np.zeros(rows, np.int64)
        self.versions = np.zeros(int(self.partition.max()) + 1, np.int64)
        self.placed = np.zeros(CLAIMS, bool)
        self.next_allocation = 0

    def commit(self, t: Transaction, now_us: int) -> CommitResult:
        machine, request, task = t.machine, t.request, t.task
        k = len(task)
        reason = np.zeros(k, np.int8)
        reason[(self.used[machine] + request > self.limit[machine]).any(axis=1)] = Reason.FULL
        reason[self.placed[task]] = Reason.DUPLICATE
        reason[~self.up[machine]] = Reason.MACHINE_DOWN
        entangled = repeated(machine) | repeated(task)
        free = {row: self.limit[row] - self.used[row] for row in machine[entangled].tolist()}
        placed: set[int] = set()
        for i in np.flatnonzero(entangled & ((reason == 0) | (reason == Reason.FULL))).tolist():
            row = int(machine[i])
            if int(task[i]) in placed:
                reason[i] = Reason.DUPLICATE
            elif (request[i] <= free[row]).all():
                free[row] = free[row] - request[i]
                placed.add(int(task[i]))
                reason[i] = Reason.ACCEPTED
            else:
                reason[i] = Reason.FULL
        accepted = reason == 0
        taken = machine[accepted]
        claimant = self.claimant[machine]
        other = claimant != t.scheduler
        rival = np.where(
            reason == Reason.FULL, np.where(other, claimant, self.earlier[machine]), -1
        ).astype(np.int32)
        np.add.at(self.used, taken, request[accepted])
        np.add.at(self.seqnum, taken, 1)
        self.earlier[machine[accepted & other]] = claimant[accepted & other]
        self.claimant[taken] = t.scheduler
        self.placed[task[accepted]] = True
        self.versions[np.unique(self.partition[taken])] += 1
        self.changed[taken] = self.versions[self.partition[taken]]
        allocation = np.full(k, -1, np.int64)
        allocation[accepted] = np.arange(self.next_allocation, self.next_allocation + len(taken))
        self.next_allocation += len(taken)
        none = np.zeros(0, np.int64)
        return CommitResult(
            t.sequence,
            reason,
            allocation,
            rival,
            now_us - t.synced_us,
            self.versions[self.partition[machine]],
            none,
        )


def commit_all(
    cell: Any, transactions: list[Transaction], journal: JournalWriter, digest: EventDigest
) -> int:
    accepted = 0
    for now_us, transaction in enumerate(transactions):
        frame = encode((now_us, transaction))
        journal.append(frame)
        digest.update(frame)
        accepted += int(np.count_nonzero(cell.commit(transaction, now_us).reason == 0))
    journal.flush()
    return accepted


def numpy_cell(spec: CellSpec, partitioning: Partitioning) -> NumpyCell:
    return NumpyCell(spec.limit, partitioning.of(np.arange(MACHINES, dtype=np.int32)))


@pytest.mark.benchmark(group="commit: 200,000 machines, 2 dimensions, batches of 100")
@pytest.mark.parametrize(
    "make", [pytest.param(Cell, id="agora"), pytest.param(numpy_cell, id="numpy")]
)
def test_commit(
    benchmark: Any, make: Callable[[CellSpec, Partitioning], Any], tmp_path: Path
) -> None:
    spec = make_spec()
    partitioning = Partitioning.by_topology(spec, PARTITIONS)
    transactions = make_transactions(seed=1)
    journals: list[JournalWriter] = []

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        journals.append(JournalWriter(tmp_path / f"{len(journals)}.log", sync=False))
        return (make(spec, partitioning), transactions, journals[-1], EventDigest()), {}

    accepted = benchmark.pedantic(commit_all, setup=setup, rounds=ROUNDS)
    for journal in journals:
        journal.close()
    if make is Cell:
        benchmark.extra_info.update(unit="claims/s", amount=CLAIMS, target=TARGET_CLAIMS_PER_S)
    assert 0.7 * CLAIMS < accepted < CLAIMS


def reference_answers(
    spec: CellSpec, partitioning: Partitioning, transactions: list[Transaction]
) -> list[CommitResult]:
    cell = Cell(spec, partitioning)
    return [cell.commit(t, now_us) for now_us, t in enumerate(transactions)]


def test_the_peer_answers_alike() -> None:
    spec = make_spec()
    partitioning = Partitioning.by_topology(spec, PARTITIONS)
    transactions = make_transactions(seed=2)[:500]
    peer = numpy_cell(spec, partitioning)
    for now_us, (t, ours) in enumerate(
        zip(transactions, reference_answers(spec, partitioning, transactions), strict=True)
    ):
        theirs = peer.commit(t, now_us)
        assert (ours.reason == theirs.reason).all() and (ours.version == theirs.version).all()
