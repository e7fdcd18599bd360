"""The cell against a slow model written with dicts, on random sequences of operations: every answer
and the whole state must agree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_state.cell import Cell
from shared_state.transaction import CommitMode, ConflictCheck, Transaction
from tests.fixtures.cell_model import MACHINES, SCHEDULERS, TASKS, Pair
from tests.fixtures.examples import examples


@st.composite
def transactions(draw: st.DrawFn, pair: Pair, sequence: int) -> Transaction:
    k = draw(st.integers(0, 7))
    dimensions = len(pair.spec.dimensions)
    ints = lambda low, high: st.lists(st.integers(low, high), min_size=k, max_size=k)  # noqa: E731
    check = draw(st.sampled_from(ConflictCheck))
    held = [machine for _, machine, _ in pair.model.holds.values()]
    anywhere = st.integers(0, pair.spec.machines - 1)
    there = st.sampled_from(held) | anywhere if held else anywhere
    machine = np.array(draw(st.lists(there, min_size=k, max_size=k)), np.int32)
    seqnum = (
        pair.cell.seqnum[machine] - np.array(draw(ints(0, 1)), np.uint32)
        if check == ConflictCheck.SEQUENCE_NUMBER
        else None
    )
    request = draw(st.lists(st.integers(0, 2), min_size=k * dimensions, max_size=k * dimensions))
    evict = draw(st.none() | st.lists(st.sampled_from(pair.ids), max_size=5)) if pair.ids else None
    holds = (
        draw(st.none() | st.lists(st.sampled_from(pair.hold_ids), max_size=5))
        if pair.hold_ids
        else None
    )
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
        holds=None if holds is None else np.array(holds, np.int64),
    )


@examples(150)
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
    priority = draw(st.none() | st.lists(st.integers(-1, 2), min_size=TASKS, max_size=TASKS))
    pair = Pair(limits, draw(st.integers(1, len(limits))), priority)
    machines = st.integers(0, len(limits) - 1)
    for sequence in range(draw(st.integers(1, 14))):
        match draw(
            st.sampled_from(
                [
                    *["commit"] * 3,
                    *("release", "machines", "load", "sync", "restore"),
                    *("hold", "hold", "end_holds"),
                ]
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
            case "hold":
                holders = draw(st.lists(st.integers(0, SCHEDULERS - 1), max_size=4))
                amounts = [[draw(st.integers(0, 2)) for _ in range(dimensions)] for _ in holders]
                pair.hold(holders, [draw(machines) for _ in holders], amounts)
            case "end_holds" if pair.hold_ids:
                ids = st.sampled_from(pair.hold_ids) | st.integers(-2, 1 << 40)
                pair.end_holds(draw(st.lists(ids, max_size=5)))
            case "sync":
                pair.sync(draw(st.integers(0, pair.partitioning.count - 1)))
            case "restore":
                digest = pair.cell.state_digest()
                pair.cell = Cell.restore(
                    pair.spec, pair.partitioning, pair.cell.checkpoint(), pair.cell.priority
                )
                assert pair.cell.machines_up == int(pair.cell.up.sum())
                assert pair.cell.state_digest() == digest
        pair.check()
    for partition in range(pair.partitioning.count):
        pair.sync(partition)
    pair.audit.matches(pair.cell)
    pair.audit.finish()
