"""The cell against a slow model written with dicts, on random sequences of operations: every answer
and the whole state must agree."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_state.cell import Cell
from shared_state.invariants import CellAudit
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import CommitMode, ConflictCheck, PartitionDelta, Reason, Transaction

MACHINES = 6
TASKS = 14
SCHEDULERS = 3


@dataclass
class Model:
    """What native/cell.hpp and native/commit.cpp promise, in the plainest words."""

    limit: list[tuple[int, ...]]
    partition: list[int]
    used: dict[int, tuple[int, ...]] = field(default_factory=dict)
    up: dict[int, bool] = field(default_factory=dict)
    seqnum: dict[int, int] = field(default_factory=dict)
    claimants: dict[int, list[int]] = field(default_factory=dict)  # of each machine, in order
    versions: dict[int, int] = field(default_factory=dict)
    live: dict[int, tuple[int, int, int, tuple[int, ...]]] = field(
        default_factory=dict
    )  # id -> task, machine, owner, request
    ended: dict[int, int] = field(default_factory=dict)  # id -> machine
    holder: dict[int, int] = field(default_factory=dict)  # slot -> its last id
    taken: set[int] = field(default_factory=set)  # tasks that run or have run

    def __post_init__(self) -> None:
        for machine, limit in enumerate(self.limit):
            self.used[machine] = (0,) * len(limit)
            self.up[machine] = True
            self.seqnum[machine] = 0
            self.claimants[machine] = []
            self.versions[self.partition[machine]] = 0

    def add(self, machine: int, request: tuple[int, ...], sign: int) -> None:
        self.used[machine] = tuple(
            u + sign * r for u, r in zip(self.used[machine], request, strict=True)
        )

    def bump(self, machines: set[int]) -> None:
        for partition in {self.partition[m] for m in machines}:
            self.versions[partition] += 1

    def end(self, ids: list[int], finished: bool) -> None:
        for i in ids:
            task, machine, _, request = self.live.pop(i)
            self.ended[i] = machine
            self.add(machine, request, -1)
            if not finished:
                self.taken.discard(task)

    def begin(self, i: int, task: int, machine: int, owner: int, request: tuple[int, ...]) -> None:
        assert i >= 0 and i not in self.live and i not in self.ended, "an id is never given twice"
        self.live[i] = (task, machine, owner, request)
        self.holder[i & 0xFFFFFFFF] = i
        self.add(machine, request, +1)
        self.taken.add(task)
        self.seqnum[machine] += 1
        self.claimants[machine].append(owner)

    def rival(self, machine: int, loser: int) -> int:
        others = [scheduler for scheduler in self.claimants[machine] if scheduler != loser]
        return others[-1] if others else -1

    def commit(self, t: Transaction) -> tuple[list[int], list[int], list[int]]:
        """Reasons, rivals, victims that end. Accepted claims are not begun yet: the caller knows
        their ids."""
        k = len(t.task)
        victims = list(dict.fromkeys(t.evict.tolist() if t.evict is not None else []))
        mine = [v for v in victims if v in self.live and self.live[v][2] == t.scheduler]
        lost = {
            self.live[v][1] if v in self.live else self.ended[v]
            for v in victims
            if v not in mine and self.holder.get(v & 0xFFFFFFFF) == v
        }
        if t.commit_mode == CommitMode.INCREMENTAL:
            groups = [[i] for i in range(k)]
        else:
            keys = t.gang.tolist() if t.gang is not None else [-1] * k
            groups = [[i for i in range(k) if keys[i] == key] for key in dict.fromkeys(keys)]
        first: dict[int, tuple[int, int]] = {}  # why a claim was first rejected
        while True:
            trial = copy.deepcopy(self)
            trial.end(mine, finished=False)
            reasons, rivals = [0] * k, [-1] * k
            for group in groups:
                before = copy.deepcopy(trial)
                for i in group:
                    task, machine, request = (
                        int(t.task[i]),
                        int(t.machine[i]),
                        tuple(t.request[i].tolist()),
                    )
                    fits = all(
                        u + r <= m
                        for u, r, m in zip(
                            trial.used[machine], request, self.limit[machine], strict=True
                        )
                    )
                    stale = (
                        t.conflict_check == ConflictCheck.SEQUENCE_NUMBER
                        and int(t.seqnum[i]) != self.seqnum[machine]
                    )
                    if not trial.up[machine]:
                        reasons[i] = Reason.MACHINE_DOWN
                    elif task in trial.taken:
                        reasons[i] = Reason.DUPLICATE
                    elif stale:
                        reasons[i], rivals[i] = Reason.STALE, trial.rival(machine, t.scheduler)
                    elif not fits and machine in lost:
                        reasons[i] = Reason.EVICTED
                    elif not fits:
                        reasons[i], rivals[i] = Reason.FULL, trial.rival(machine, t.scheduler)
                    else:
                        trial.add(machine, request, +1)
                        trial.taken.add(task)
                        trial.claimants[machine].append(t.scheduler)
                if any(reasons[i] for i in group):
                    trial = before
                    for i in group:
                        reasons[i] = reasons[i] or Reason.GANG
            keep = []
            for v in mine:
                task, machine, _, _ = self.live[v]
                moves = [i for i in range(k) if t.task[i] == task]
                shares = [i for i in range(k) if t.machine[i] == machine]
                rely = moves or shares
                if not rely or any(reasons[i] == 0 for i in rely):
                    keep.append(v)
            first = {i: (reasons[i], rivals[i]) for i in range(k) if reasons[i]} | first
            if keep == mine:
                told = [
                    first[i]
                    if reasons[i] and first[i][0] != Reason.DUPLICATE
                    else (reasons[i], rivals[i])
                    for i in range(k)
                ]
                return [reason for reason, _ in told], [rival for _, rival in told], mine
            mine = keep


def make_spec(limits: list[list[int]]) -> CellSpec:
    capacity = np.array(limits, np.int64)
    names = tuple(f"r{i}" for i in range(capacity.shape[1]))
    m = len(limits)
    return CellSpec(
        names,
        capacity,
        np.arange(m, dtype=np.int32) // 2,
        np.zeros(m, np.int64),
        np.full(len(names), 1000),
    )


class Pair:
    """The cell, the model, a mirror kept by deltas alone, and an audit of every event."""

    def __init__(self, limits: list[list[int]], partitions: int) -> None:
        self.spec = make_spec(limits)
        self.partitioning = Partitioning.by_topology(self.spec, partitions)
        self.cell = Cell(self.spec, self.partitioning)
        rows = np.arange(self.spec.machines, dtype=np.int32)
        self.model = Model([tuple(x) for x in limits], self.partitioning.of(rows).tolist())
        self.mirror_used = np.full_like(self.spec.capacity, -1)
        self.mirror_seqnum = np.zeros(self.spec.machines, np.uint32)
        self.mirror_up = np.zeros(self.spec.machines, np.bool_)
        self.mirror_versions = [0] * partitions
        self.audit = CellAudit(self.spec, self.partitioning)
        self.known: set[int] = set()
        self.now_us = 0
        self.ids: list[int] = []

    def commit(self, t: Transaction) -> None:
        self.now_us += 7
        reasons, rivals, victims = self.model.commit(t)
        result = self.cell.commit(t, self.now_us)
        arrived = set(t.task.tolist()) - self.known
        self.known |= arrived
        self.audit.submitted(np.array(sorted(arrived), np.int64))
        self.audit.commit(t, result, self.now_us)
        assert result.reason.tolist() == reasons
        assert result.rival.tolist() == rivals
        assert result.evicted.tolist() == victims
        assert result.age_us.tolist() == [self.now_us - s for s in t.synced_us.tolist()]
        touched = {self.model.live[v][1] for v in victims}
        if victims:
            records = self.cell.describe(result.evicted)
            assert records.task.tolist() == [self.model.live[v][0] for v in victims]
        self.model.end(victims, finished=False)
        for i in np.flatnonzero(result.accepted).tolist():
            machine = int(t.machine[i])
            self.model.begin(
                int(result.allocation[i]),
                int(t.task[i]),
                machine,
                t.scheduler,
                tuple(t.request[i].tolist()),
            )
            self.ids.append(int(result.allocation[i]))
            touched.add(machine)
        self.model.bump(touched)
        assert (result.allocation[~result.accepted] == -1).all()
        assert result.version.tolist() == [
            self.model.versions[self.model.partition[m]] for m in t.machine.tolist()
        ]

    def release(self, ids: list[int], owners: list[int] | None) -> None:
        really = []
        for n, i in enumerate(ids):
            if (
                i in self.model.live
                and i not in really
                and (owners is None or self.model.live[i][2] == owners[n])
            ):
                really.append(i)
        expected = [self.model.live[i] for i in really]
        self.model.end(really, finished=True)
        self.model.bump({e[1] for e in expected})
        released = self.cell.release(
            np.array(ids, np.int64),
            None if owners is None else np.array(owners, np.int32),
            self.now_us,
        )
        self.audit.released(released, self.now_us)
        assert released.allocation.tolist() == really
        assert released.task.tolist() == [e[0] for e in expected]
        assert released.version.tolist() == [
            self.model.versions[self.model.partition[e[1]]] for e in expected
        ]
        assert [tuple(r) for r in released.request.tolist()] == [e[3] for e in expected]

    def set_machines(self, machines: list[int], ups: list[bool]) -> None:
        touched, downed = set(), set()
        for m, up in zip(machines, ups, strict=True):
            if self.model.up[m] != up:
                touched.add(m)
                self.model.up[m] = up
                downed |= set() if up else {m}
        lost = sorted(
            (i for i, a in self.model.live.items() if a[1] in downed), key=lambda i: i & 0xFFFFFFFF
        )
        self.model.end(lost, finished=False)
        self.model.bump(touched)
        answer = self.cell.set_machines(
            np.array(machines, np.int32), np.array(ups, np.bool_), self.now_us
        )
        self.audit.machines(
            np.array(machines, np.int32), np.array(ups, np.bool_), answer, self.now_us
        )
        assert answer.allocation.tolist() == lost
        assert self.cell.machines_up == int(self.cell.up.sum())

    def load(
        self, tasks: list[int], machines: list[int], requests: list[list[int]], owner: int
    ) -> None:
        kept = [
            n
            for n, t in enumerate(tasks)
            if t not in self.known and t not in tasks[:n] and self.model.up[machines[n]]
        ]
        task, machine = np.array(tasks, np.int64)[kept], np.array(machines, np.int32)[kept]
        request = np.array(requests, np.int64).reshape(len(tasks), len(self.spec.dimensions))[kept]
        ids = self.cell.load(task, machine, request, np.full(len(kept), owner, np.int32))
        self.known |= set(task.tolist())
        self.audit.loaded(task, machine, request, np.full(len(kept), owner, np.int32), ids)
        for n, i in enumerate(ids.tolist()):
            self.model.begin(i, int(task[n]), int(machine[n]), owner, tuple(request[n].tolist()))
        self.model.bump(set(machine.tolist()))
        self.ids.extend(ids.tolist())

    def check(self) -> None:
        m = self.model
        assert [tuple(row) for row in self.cell.used.tolist()] == [
            m.used[i] for i in range(self.spec.machines)
        ]
        assert self.cell.up.tolist() == list(m.up.values())
        assert self.cell.seqnum.tolist() == list(m.seqnum.values())
        assert self.cell.versions.tolist() == list(m.versions.values())
        allocations = self.cell.allocations()
        assert sorted(allocations.allocation.tolist()) == sorted(m.live)

    def sync(self, partition: int) -> PartitionDelta:
        delta = self.cell.delta_since(
            partition, self.mirror_versions[partition], self.now_us, with_seqnum=True
        )
        self.audit.delta(0, delta)
        rows = self.partitioning.rows(partition)
        row = delta.row.astype(np.int64) + rows.start
        self.mirror_used[row], self.mirror_up[row], self.mirror_seqnum[row] = (
            delta.used,
            delta.up,
            delta.seqnum,
        )
        self.mirror_versions[partition] = delta.to_version
        assert (self.mirror_used[rows] == self.cell.used[rows]).all() and (
            self.mirror_up[rows] == self.cell.up[rows]
        ).all()
        assert (self.mirror_seqnum[rows] == self.cell.seqnum[rows]).all()
        assert (np.diff(delta.row.astype(np.int64)) > 0).all()
        return delta


@st.composite
def transactions(draw: st.DrawFn, pair: Pair, sequence: int) -> Transaction:
    k = draw(st.integers(0, 7))
    dimensions = len(pair.spec.dimensions)
    ints = lambda low, high: st.lists(st.integers(low, high), min_size=k, max_size=k)  # noqa: E731
    check = draw(st.sampled_from(ConflictCheck))
    machine = np.array(draw(ints(0, pair.spec.machines - 1)), np.int32)
    seqnum = (
        pair.cell.seqnum[machine] - np.array(draw(ints(0, 1)), np.uint32)
        if check == ConflictCheck.SEQUENCE_NUMBER
        else None
    )
    request = draw(st.lists(st.integers(0, 2), min_size=k * dimensions, max_size=k * dimensions))
    evict = draw(st.none() | st.lists(st.sampled_from(pair.ids), max_size=5)) if pair.ids else None
    return Transaction(
        scheduler=draw(st.integers(0, SCHEDULERS - 1)),
        sequence=sequence,
        task=np.array(draw(ints(0, TASKS - 1)), np.int64),
        machine=machine,
        request=np.array(request, np.int64).reshape(k, dimensions),
        synced_us=np.array(draw(ints(0, 50)), np.int64),
        commit_mode=draw(st.sampled_from(CommitMode)),
        conflict_check=check,
        gang=np.array(draw(ints(-1, 2)), np.int64) if draw(st.booleans()) else None,
        seqnum=seqnum,
        evict=None if evict is None else np.array(evict, np.int64),
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_cell_agrees_with_the_model(data: st.DataObject) -> None:
    draw = data.draw
    dimensions = draw(st.integers(1, 3))
    limits = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=dimensions, max_size=dimensions),
            min_size=1,
            max_size=MACHINES,
        )
    )
    pair = Pair(limits, draw(st.integers(1, len(limits))))
    machines = st.integers(0, len(limits) - 1)
    for sequence in range(draw(st.integers(1, 14))):
        match draw(
            st.sampled_from(
                ["commit", "commit", "commit", "release", "machines", "load", "sync", "restore"]
            )
        ):
            case "commit":
                pair.commit(draw(transactions(pair, sequence)))
            case "release" if pair.ids:
                ids = draw(
                    st.lists(st.sampled_from(pair.ids) | st.integers(-2, 1 << 40), max_size=5)
                )
                owners = draw(
                    st.none()
                    | st.lists(st.integers(0, SCHEDULERS - 1), min_size=len(ids), max_size=len(ids))
                )
                pair.release(ids, owners)
            case "machines":
                chosen = draw(st.lists(machines, max_size=3))
                pair.set_machines(chosen, [draw(st.booleans()) for _ in chosen])
            case "load":
                tasks = draw(st.lists(st.integers(0, TASKS - 1), max_size=3))
                requests = [[draw(st.integers(0, 5)) for _ in range(dimensions)] for _ in tasks]
                pair.load(
                    tasks,
                    [draw(machines) for _ in tasks],
                    requests,
                    draw(st.integers(0, SCHEDULERS - 1)),
                )
            case "sync":
                pair.sync(draw(st.integers(0, pair.partitioning.count - 1)))
            case "restore":
                digest = pair.cell.state_digest()
                pair.cell = Cell.restore(pair.spec, pair.partitioning, pair.cell.checkpoint())
                assert pair.cell.machines_up == int(pair.cell.up.sum())
                assert pair.cell.state_digest() == digest
        pair.check()
    for partition in range(pair.partitioning.count):
        pair.sync(partition)
    pair.audit.matches(pair.cell)
    pair.audit.finish()
