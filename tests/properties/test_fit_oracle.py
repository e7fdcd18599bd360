"""Whether a request fits, everywhere that is asked, against a definition in a few lines: a resource
that is requested at 0 is not checked, also on machines that are overdrawn in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.equilibrium import _that_fit
from schedulers.flow.extraction import fit_together, place_singly
from schedulers.objective import BestPlacement
from schedulers.units import fits_somewhere, units_in
from shared_state.cell import Cell
from shared_state.invariants import CellAudit
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, PreferenceCatalog, TaskBatch, fits
from shared_state.transaction import PartitionDelta, Reason, Transaction
from shared_state.view import ClusterView

Amounts = Sequence[int]


def fits_in(request: Amounts, free: Amounts) -> bool:
    return all(wanted == 0 or wanted <= left for wanted, left in zip(request, free, strict=True))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Limits and uses of machines, int64[M, R], some overdrawn, and requests, int64[n, R]."""
    machines, dimensions = draw(st.integers(1, 6)), draw(st.integers(1, 3))

    def rows(count: int, most: int, least: int = 0) -> np.ndarray:
        amounts = st.lists(st.integers(least, most), min_size=dimensions, max_size=dimensions)
        drawn = draw(st.lists(amounts, min_size=count, max_size=count))
        return np.array(drawn, np.int64).reshape(count, dimensions)

    request = rows(draw(st.integers(1, 12)), 3)
    request[~request.any(axis=1), draw(st.integers(0, dimensions - 1))] = 1
    return rows(machines, 4), rows(machines, 6), request


def spec_of(limit: np.ndarray) -> CellSpec:
    machines, dimensions = limit.shape
    return CellSpec(
        tuple("abc"[:dimensions]),
        limit,
        np.zeros(machines, np.int32),
        np.zeros(machines, np.int64),
        np.full(dimensions, 1000, np.int64),
    )


def tasks_of(request: np.ndarray) -> TaskBatch:
    n = len(request)
    zero, zero32 = np.zeros(n, np.int64), np.zeros(n, np.int32)
    return TaskBatch(
        np.arange(n, dtype=np.int64),
        zero,
        request,
        zero32,
        zero,
        zero32,
        zero + NO_GANG,
        np.zeros(n, np.int8),
    )


@settings(deadline=None)
@given(worlds())
def test_helpers_agree(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    limit, used, request = world
    free = limit - used
    expected = [[fits_in(one, row) for row in free.tolist()] for one in request.tolist()]
    assert fits(request[:, None], free).tolist() == expected
    assert [fits(one, free).tolist() for one in request] == expected
    with pytest.raises(ValueError, match="free: expected an array int64"):
        fits(request[0], free.astype(np.float64))
    assert fits_somewhere(request, free).tolist() == [any(row) for row in expected]
    for one in request:
        for row, units in zip(free, units_in(free, one).tolist(), strict=True):
            assert fits_in(one * units, row) or units == 0
            assert not fits_in(one * (units + 1), row)
    alike = BestPlacement(spec_of(limit), CATALOG)
    for one in request:
        whole = sum(units_in(free, one).tolist())
        tasks = np.broadcast_to(one, (9, len(one)))
        best = alike.cost(free, np.zeros(9, np.int32), tasks)
        assert (best.cost, best.exact) == (WAIT * max(9 - whole, 0), True)


WAIT = 7
CATALOG = PreferenceCatalog(
    *(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)) * 2,
    np.zeros(1, np.int64),
    np.full(1, WAIT, np.int64),
)


@settings(deadline=None)
@given(worlds(), st.data())
def test_placements_that_fit_together(
    world: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    """Each is judged as if those before it, of the same machine, had been placed."""
    limit, used, request = world
    free, n = limit - used, len(request)
    machine = np.array(data.draw(st.lists(st.integers(0, len(free) - 1), min_size=n, max_size=n)))
    left = free.copy()
    expected = []
    for row, one in zip(machine.tolist(), request, strict=True):
        expected.append(fits_in(one, left[row]))
        left[row] -= one
    assert fit_together(tasks_of(request), machine, free).tolist() == expected
    assert _that_fit(free, machine.astype(np.int32), request).tolist() == expected


@settings(deadline=None)
@given(worlds(), st.integers(0, 99))
def test_tasks_placed_one_at_a_time_fit_and_none_that_would_fit_waits(
    world: tuple[np.ndarray, np.ndarray, np.ndarray], stream: int
) -> None:
    limit, used, request = world
    left, n = limit - used, len(request)
    chosen = place_singly(
        tasks_of(request), np.full(n, WAIT), left, CATALOG, np.zeros(len(left), np.int32), stream
    )
    for row, one in zip(chosen.tolist(), request, strict=True):
        assert any(fits_in(one, free) for free in left) == (row >= 0)
        if row >= 0:
            assert fits_in(one, left[row])
            left[row] -= one


@settings(deadline=None)
@given(worlds(), st.data())
def test_the_cell_and_its_views_decide_alike(
    world: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    """Of claims in order, on a cell that was loaded beyond its limits and has machines down."""
    limit, used, request = world
    machines, n = len(limit), len(request)
    spec = spec_of(limit)
    partitioning = Partitioning.by_topology(spec, 1)
    cell, audit = Cell(spec, partitioning), CellAudit(spec, partitioning)
    loaded, rows = np.arange(100, 100 + machines), np.arange(machines, dtype=np.int32)
    owner = np.zeros(machines, np.int32)
    audit.loaded(loaded, rows, used, owner, cell.load(loaded, rows, used, owner))
    down = np.array(data.draw(st.lists(st.booleans(), min_size=machines, max_size=machines)))
    lost = cell.set_machines(rows[down], np.zeros(down.sum(), np.bool_), 1)
    audit.machines(rows[down], np.zeros(down.sum(), np.bool_), lost, 1)
    left = limit - np.where(down[:, None], 0, used)

    view = ClusterView(spec, partitioning)
    rows16 = rows.astype(np.uint16)
    view.apply(PartitionDelta(0, 0, 1, 1, rows16, cell.used.copy(), ~down, None))
    assert view.open_rows == sum(
        not is_down and max(free) > 0 for is_down, free in zip(down, left.tolist(), strict=True)
    )
    drawn = data.draw(st.lists(st.integers(0, machines - 1), min_size=n, max_size=n))
    machine = np.array(drawn, np.int32)
    expected = []
    first_unfit = -1
    for place, (row, one) in enumerate(zip(drawn, request, strict=True)):
        if down[row]:
            expected.append(Reason.MACHINE_DOWN)
        elif fits_in(one, left[row]):
            expected.append(Reason.ACCEPTED)
            left[row] -= one
        else:
            expected.append(Reason.FULL)
        if expected[-1] != Reason.ACCEPTED and first_unfit < 0:
            first_unfit = place
    assert view.first_oversubscribed(machine, request) == first_unfit
    transaction = Transaction(1, 1, np.arange(n), machine, request, np.zeros(n, np.int64))
    audit.submitted(transaction.task)
    result = cell.commit(transaction, 2)
    assert result.reason.tolist() == expected
    audit.commit(transaction, result, 2)
    audit.matches(cell)
