"""ClusterView against a model that recomputes everything from lists: any sequence of syncs, claims,
answers and releases."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import PartitionDelta, Reason
from shared_state.view import ClusterView
from tests.fixtures.examples import examples

MACHINES = 9
RETURNS_AT_ONCE = {Reason.GANG, Reason.DUPLICATE}


@dataclass
class Overlay:
    machine: int
    amount: np.ndarray
    until: int | None  # version that ends it; None: in flight
    closes: bool  # nobody knows the machine's sequence number while it lasts


@dataclass
class Model:
    """Truth (used, up, seqnum, changed, versions of a cell) and belief (what was synced, and
    overlays)."""

    limit: np.ndarray
    partition: np.ndarray
    used: np.ndarray
    up: np.ndarray
    seqnum: np.ndarray
    changed: np.ndarray
    versions: list[int]
    seen_used: np.ndarray
    seen_up: np.ndarray
    seen_seqnum: np.ndarray
    held: list[int]
    synced_us: list[int]
    overlays: list[Overlay] = field(default_factory=list)
    tickets: dict[int, list[Overlay]] = field(default_factory=dict)

    def free(self) -> np.ndarray:
        free = self.limit - self.seen_used
        for overlay in self.overlays:
            free[overlay.machine] -= overlay.amount
        for machine in {overlay.machine for overlay in self.overlays if overlay.closes}:
            free[machine] -= 1 << 55
        free[~self.seen_up] = -1
        return free

    def open_rows(self) -> int:
        free = self.free()
        return int((self.seen_up & (free > 0).any(axis=1)).sum())

    def shows(self, machine: int, version: int) -> bool:
        p = self.partition[machine]
        return self.synced_us[p] >= 0 and version <= self.held[p]


class ViewMachine(RuleBasedStateMachine):
    @initialize(
        dimensions=st.integers(1, 3),
        with_seqnum=st.booleans(),
        unread=st.integers(0, 50),
        data=st.data(),
    )
    def start(self, dimensions, with_seqnum, unread, data):
        self.unread = unread  # looks without reading whole columns, which change how it keeps them
        capacity = data.draw(
            st.lists(
                st.lists(st.integers(0, 4), min_size=dimensions, max_size=dimensions),
                min_size=MACHINES,
                max_size=MACHINES,
            )
        )
        offsets = np.array([0, 2, 3, MACHINES], np.int64)
        spec = CellSpec(
            tuple(f"d{r}" for r in range(dimensions)),
            np.array(capacity, np.int64),
            np.zeros(MACHINES, np.int32),
            np.arange(MACHINES, dtype=np.int64),
            np.full(dimensions, 1500, np.int64),
        )
        self.dimensions = dimensions
        self.with_seqnum = with_seqnum
        self.now_us = 0
        self.offsets = offsets
        shape = (MACHINES, dimensions)
        self.model = Model(
            limit=spec.limit,
            partition=np.repeat([0, 1, 2], np.diff(offsets)),
            used=np.zeros(shape, np.int64),
            up=np.ones(MACHINES, bool),
            seqnum=np.zeros(MACHINES, np.uint32),
            changed=np.zeros(MACHINES, np.int64),
            versions=[0, 0, 0],
            seen_used=np.zeros(shape, np.int64),
            seen_up=np.zeros(MACHINES, bool),
            seen_seqnum=np.zeros(MACHINES, np.uint32),
            held=[0, 0, 0],
            synced_us=[-1, -1, -1],
        )
        self.view = ClusterView(spec, Partitioning(offsets), with_seqnum)

    requests = st.lists(
        st.tuples(
            st.integers(0, MACHINES - 1), st.lists(st.integers(0, 3), min_size=3, max_size=3)
        ),
        max_size=5,
    )

    def columns(self, claims):
        machine = np.array([m for m, _ in claims], np.int32)
        request = np.array([r for _, r in claims], np.int64).reshape(-1, 3)[:, : self.dimensions]
        return machine, np.ascontiguousarray(request)

    @rule(
        machine=st.integers(0, MACHINES - 1),
        used=st.lists(st.integers(0, 7), min_size=3, max_size=3),
        up=st.booleans(),
    )
    def the_cell_changes(self, machine, used, up):
        model = self.model
        p = model.partition[machine]
        model.versions[p] += 1
        model.used[machine] = used[: self.dimensions]
        model.up[machine] = up
        model.seqnum[machine] += 1
        model.changed[machine] = model.versions[p]

    @rule(
        p=st.integers(0, 2),
        snapshot=st.booleans(),
        row=st.sampled_from([np.uint16, np.uint32]),
        used=st.sampled_from([np.int8, np.int64]),
    )
    def sync(self, p, snapshot, row, used):
        model = self.model
        self.now_us += 1
        start, end = self.offsets[p], self.offsets[p + 1]
        first = 0 if snapshot else model.held[p]
        rows = np.arange(start, end)
        if first > 0:
            rows = rows[model.changed[rows] > first]
        seqnum = model.seqnum[rows] if self.with_seqnum else None
        self.view.apply(
            PartitionDelta(
                p,
                first,
                model.versions[p],
                self.now_us,
                (rows - start).astype(row),
                model.used[rows].astype(used),
                model.up[rows],
                seqnum,
            )
        )
        model.seen_used[start:end] = model.used[start:end]
        model.seen_up[start:end] = model.up[start:end]
        model.seen_seqnum[rows] = model.seqnum[rows]
        model.held[p] = model.versions[p]
        model.synced_us[p] = self.now_us
        model.overlays = [
            o
            for o in model.overlays
            if o.until is None or model.partition[o.machine] != p or o.until > model.held[p]
        ]

    @rule(claims=requests)
    def claim(self, claims):
        machine, request = self.columns(claims)
        ticket = self.view.claim(machine, request)
        assert ticket not in self.model.tickets
        mine = [
            Overlay(int(m), r, None, self.with_seqnum)
            for m, r in zip(machine, request, strict=True)
        ]
        self.model.tickets[ticket] = mine
        self.model.overlays += mine

    @precondition(lambda self: self.model.tickets)
    @rule(data=st.data())
    def settle(self, data):
        model = self.model
        ticket = data.draw(st.sampled_from(sorted(model.tickets)))
        mine = model.tickets.pop(ticket)
        reasons = [data.draw(st.sampled_from(list(Reason))) for _ in mine]
        versions = [
            data.draw(st.integers(0, model.versions[model.partition[o.machine]] + 2)) for o in mine
        ]
        self.view.settle(ticket, np.array(reasons, np.int8), np.array(versions, np.int64))
        for overlay, reason, version in zip(mine, reasons, versions, strict=True):
            overlay.until = version
            overlay.closes = self.with_seqnum and reason == Reason.STALE
            if reason in RETURNS_AT_ONCE or model.shows(overlay.machine, version):
                model.overlays = [o for o in model.overlays if o is not overlay]
            if reason == Reason.ACCEPTED and not model.shows(overlay.machine, version):
                model.seen_seqnum[overlay.machine] += 1

    @precondition(lambda self: self.model.tickets)
    @rule(data=st.data())
    def withdraw(self, data):
        ticket = data.draw(st.sampled_from(sorted(self.model.tickets)))
        mine = self.model.tickets.pop(ticket)
        self.view.withdraw(ticket)
        self.model.overlays = [o for o in self.model.overlays if not any(o is m for m in mine)]

    @rule(claims=requests, ahead=st.integers(-1, 2))
    def released(self, claims, ahead):
        machine, request = self.columns(claims)
        model = self.model
        version = np.array(
            [max(0, model.versions[model.partition[m]] + ahead) for m in machine], np.int64
        )
        self.view.released(machine, request, version)
        for m, r, v in zip(machine, request, version, strict=True):
            if not model.shows(int(m), int(v)):
                model.overlays.append(Overlay(int(m), -r, int(v), False))

    @rule()
    def reset(self):
        model = self.model
        self.view.reset()
        model.seen_up[:] = False
        model.seen_seqnum[:] = 0
        model.held = [0, 0, 0]
        model.synced_us = [-1, -1, -1]
        model.overlays = [o for o in model.overlays if o.until is None]

    @rule(ticket=st.integers(10**6, 10**7), p=st.integers(0, 2))
    def refused(self, ticket, p):
        """Bad calls change nothing: the invariants look right after."""
        model = self.model
        ahead = PartitionDelta(
            p,
            model.held[p] + 1,
            model.held[p] + 1,
            self.now_us,
            np.zeros(0, np.uint16),
            np.zeros((0, self.dimensions), np.int8),
            np.zeros(0, bool),
            None,
        )
        for call in (
            lambda: self.view.apply(ahead),
            lambda: self.view.withdraw(ticket),
            lambda: self.view.settle(ticket, np.zeros(0, np.int8), np.zeros(0, np.int64)),
        ):
            try:
                call()
            except ValueError:
                continue
            raise AssertionError("not refused")

    @invariant()
    def agrees(self):
        if not hasattr(self, "model"):
            return
        model = self.model
        fits = (model.free() > 0).all(axis=1) & model.seen_up
        one = np.ones((1, self.dimensions), np.int64)
        assert fits.tolist() == [
            self.view.first_oversubscribed(np.array([m], np.int32), one) == -1
            for m in range(MACHINES)
        ]
        if self.unread > 0:
            self.unread -= 1
        else:
            assert np.array_equal(self.view.free, model.free())
            assert np.array_equal(self.view.up, model.seen_up)
        assert self.view.versions.tolist() == model.held
        assert self.view.synced_us.tolist() == model.synced_us
        assert self.view.open_rows == model.open_rows()
        if self.with_seqnum:
            assert np.array_equal(self.view.seqnum, model.seen_seqnum)


TestView = ViewMachine.TestCase
TestView.settings = settings(examples(120), stateful_step_count=40)
