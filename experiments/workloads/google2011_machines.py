"""Machines from machine events: which there are, which are up when the window opens, and when they
are added and removed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.google2011_tables import MachineEvent, MachineRows
from shared_state.tasks import Int64


@dataclass(frozen=True, slots=True)
class TraceMachines:
    """The machines that are up at some time in the window, ascending by id.

    Args:
        id: int64[M], as in the trace.
        up: bool[M], when the window opens.
        cpu, mem: float64[M], fractions of the largest machine, as first stated; 0 if never.
        changed_us, changed_row, changed_up: changes inside the window in order, in trace time.
        facts: what was ignored, for the report.
    """

    id: Int64
    up: NDArray[np.bool_]
    cpu: NDArray[np.float64]
    mem: NDArray[np.float64]
    changed_us: Int64
    changed_row: Int64
    changed_up: NDArray[np.bool_]
    facts: dict[str, int | float | str]


def trace_machines(rows: MachineRows, start_us: int, end_us: int) -> TraceMachines:
    """Reduce the machine events before the end of the window [start_us, end_us), in trace time, to
    machines.

    An ADD of a machine that is up and a REMOVE of one that is down change nothing. UPDATE rows are
    ignored, as in Firmament's simulator, except that they may state a capacity that ADD left empty.
    """
    ids, of = np.unique(rows.machine, return_inverse=True)
    cpu, mem = _first_stated(of, rows.cpu, len(ids)), _first_stated(of, rows.mem, len(ids))

    inside = np.flatnonzero((rows.time_us < end_us) & (rows.event != MachineEvent.UPDATE))
    by_machine = inside[np.argsort(of[inside], kind="stable")]
    adds = rows.event[by_machine] == MachineEvent.ADD
    was_up = np.zeros(len(by_machine), np.bool_)
    was_up[1:] = adds[:-1] & (of[by_machine[1:]] == of[by_machine[:-1]])
    effective = np.sort(by_machine[adds != was_up])  # file order is time order
    becomes_up = rows.event[effective] == MachineEvent.ADD

    before = rows.time_us[effective] < start_us
    up = np.zeros(len(ids), np.bool_)
    up[of[effective[before]]] = becomes_up[before]  # the last of a machine's changes stands
    changes = effective[~before]
    used = up.copy()
    used[of[changes]] = True
    row = np.cumsum(used) - 1
    facts: dict[str, int | float | str] = {
        "machine_updates_ignored": int(
            np.count_nonzero((rows.time_us < end_us) & (rows.event == MachineEvent.UPDATE))
        ),
        "machine_events_without_effect": len(inside) - len(effective),
        "machines_up_at_start": int(up.sum()),
        "machines_added_later": int(np.count_nonzero(used & ~up)),
        "machine_additions": int(np.count_nonzero(becomes_up[~before])),
        "machine_removals": int(np.count_nonzero(~becomes_up[~before])),
        "machines_without_capacity": int(np.count_nonzero(used & (np.isnan(cpu) | np.isnan(mem)))),
    }
    return TraceMachines(
        id=ids[used],
        up=up[used],
        cpu=np.nan_to_num(cpu[used]),
        mem=np.nan_to_num(mem[used]),
        changed_us=rows.time_us[changes],
        changed_row=row[of[changes]],
        changed_up=becomes_up[~before],
        facts=facts,
    )


def _first_stated(of: Int64, values: NDArray[np.float64], machines: int) -> NDArray[np.float64]:
    stated = np.flatnonzero(~np.isnan(values))[::-1]
    first = np.full(machines, np.nan)
    first[of[stated]] = values[stated]  # the last assignment, that of the earliest row, stands
    return first
