"""A check of workloads, check_workload(SPEC, options): does a kind of workload keep its promises?

A workload may be made, written and read by anybody, so what is checked is what a run relies on:

- options can be written to config.toml and read back;
- the same options and seed give the same workload;
- every array has its documented dtype and shape, amounts and costs are within range, arrivals are
  in order, and every task arrives once or runs at the start (parsync.workload.checks);
- the outline of the options, where there is one, tells the size of what is made;
- the workload survives being written to a run directory and read from it.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from experiments.toml_text import toml_text
from experiments.workloads.registry import WorkloadSpec
from parsync.runtime.workload_files import read_workload, write_workload
from parsync.workload.workload import Workload
from schedulers.conformance import move_global_draws, require

FACTS = (bool, int, float, str)
OUTLINE_FACTOR = 2  # an outline tells the number of tasks up to this factor


def check_workload(
    spec: WorkloadSpec, options: Mapping[str, Any] | None = None, seed: int = 1
) -> Workload:
    """The workload of these options and this seed, which keeps the contract.

    Args:
        spec: the kind.
        options: as in [workload], without `kind`.
        seed: the root seed. Draws from numpy's global state are moved between calls.

    Raises:
        NonConformance: naming the promise that was broken.
        AgoraError: the options are wrong, the input cannot be read, or the workload is not valid.
    """
    parsed = spec.parse_options(options or {})
    _check_options(spec, parsed)
    workload = spec.make(parsed, seed)
    move_global_draws()
    again = spec.make(parsed, seed)
    changed = _difference(workload, again)
    require(not changed, f"the same options and seed gave another {changed}")
    for name, value in workload.facts.items():
        kind = type(value).__name__
        require(
            isinstance(value, FACTS), f"facts.{name}: expected a number or a text, got a {kind}"
        )
    _check_outline(spec, parsed, workload)
    _check_values(spec, workload)
    _check_warm_up(spec, parsed, seed, workload)
    _check_files(workload)
    return workload


def _check_options(spec: WorkloadSpec, options: BaseModel) -> None:
    text = toml_text({"workload": options.model_dump(mode="json")})
    read = spec.parse_options(tomllib.loads(text).get("workload", {}))
    require(read == options, "options: not the same after being written as TOML and read back")


def _check_outline(spec: WorkloadSpec, options: BaseModel, workload: Workload) -> None:
    outline = spec.outline(options)
    if outline is None:
        return
    machines, tasks = workload.cell.machines, len(workload.tasks)
    require(outline.machines == machines, f"outline: {outline.machines} machines, not {machines}")
    near = outline.tasks <= OUTLINE_FACTOR * tasks and tasks <= OUTLINE_FACTOR * outline.tasks
    require(near, f"outline: {outline.tasks} tasks, not about {tasks}")
    shortest_us = min(phase.end_us - phase.start_us for phase in workload.phases)
    require(
        abs(outline.phase_s * 1e6 - shortest_us) <= 1,
        f"outline: a shortest phase of {outline.phase_s} s, not {shortest_us / 1e6} s",
    )


def _check_values(spec: WorkloadSpec, workload: Workload) -> None:
    names = []
    for value in spec.values(workload):
        task = workload.tasks.task[:1]
        got, whole = value.of(task, np.zeros(len(task), np.int32))
        for column in (got, whole):
            require(
                column.dtype == np.int64 and column.shape == task.shape,
                f"value {value.quantity.key}: expected int64[n] twice",
            )
        names.append(value.quantity.key)
    require(len(set(names)) == len(names), "values: two have one name")


def _check_warm_up(spec: WorkloadSpec, options: BaseModel, seed: int, workload: Workload) -> None:
    before = spec.make_warm_up(options, seed)
    if before is None:
        return
    require(not len(workload.initial.task), "warm_up: the workload says itself what runs at 0")
    other = _difference(before.cell, workload.cell) or _difference(before.catalog, workload.catalog)
    require(not other, f"warm_up: not the workload's {other}")
    changed = _difference(before, spec.make_warm_up(options, seed))
    require(not changed, f"warm_up: the same options and seed gave another {changed}")


def _check_files(workload: Workload) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "workload"
        write_workload(directory, workload, [1])
        changed = _difference(workload, read_workload(directory))
        require(not changed, f"{changed}: not the same after being written to a run and read back")


def _difference(one: object, other: object, place: str = "workload") -> str:
    """The first column or value in which two workloads differ, "" if they are equal."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return "" if one.dtype == other.dtype and np.array_equal(one, other) else place
    if is_dataclass(one):
        pairs = ((field.name, getattr(one, field.name)) for field in fields(one))
        found = (_difference(value, getattr(other, name), name) for name, value in pairs)
        return next(filter(None, found), "")
    return "" if one == other else place
