"""`validate` finds every breach of the workload's contract, `describe` says what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments.workloads.inspection import describe, digest
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.workload.checks import larger_than_every_machine, validate
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.tasks import CellSpec, TaskClass

BASE = generate(SyntheticOptions(machines=50, batch_tasks=10, phase_s=0.5, rack_cost=5), seed=1)
SOUND = replace(
    BASE,
    machine_events=MachineEvents(
        np.array([0, 5, 5]), np.array([4, 4, 7], np.int32), np.array([False, True, False])
    ),
)


def changed(values: np.ndarray, at: int, value: object) -> np.ndarray:
    copy = np.array(values)
    copy[at] = value
    return copy


def tasks(**columns: np.ndarray) -> Workload:
    return replace(SOUND, tasks=replace(SOUND.tasks, **columns))


def catalog(**columns: np.ndarray) -> Workload:
    return replace(SOUND, catalog=replace(SOUND.catalog, **columns))


def cell(**columns: np.ndarray) -> Workload:
    return replace(SOUND, cell=replace(SOUND.cell, **columns))


def test_a_sound_workload_passes() -> None:
    validate(SOUND)


BREACHES: dict[str, Callable[[], Workload]] = {
    "cell.capacity": lambda: cell(capacity=changed(SOUND.cell.capacity, 3, -1)),
    "cell.rack": lambda: cell(rack=SOUND.cell.rack[::-1]),
    "cell.overcommit": lambda: cell(overcommit_permille=np.array([0])),
    "cell.slot_score": lambda: cell(slot_score=SOUND.cell.slot_score[1:]),
    "catalog.machine_offsets": lambda: catalog(
        machine_offsets=changed(SOUND.catalog.machine_offsets, 3, 0)
    ),
    "catalog.machine: not strictly": lambda: catalog(
        machine=changed(SOUND.catalog.machine, 1, SOUND.catalog.machine[0])
    ),
    "catalog.machine: int32 in": lambda: catalog(machine=changed(SOUND.catalog.machine, -1, 50)),
    "catalog.rack": lambda: catalog(rack=changed(SOUND.catalog.rack, 0, 2)),
    "catalog.machine_cost": lambda: catalog(
        machine_cost=changed(SOUND.catalog.machine_cost, 0, -1)
    ),
    "catalog: set 0": lambda: catalog(elsewhere_cost=changed(SOUND.catalog.elsewhere_cost, 0, 1)),
    "catalog.unscheduled_cost[0], of tasks without preferences": lambda: catalog(
        unscheduled_cost=changed(SOUND.catalog.unscheduled_cost, 0, 0)
    ),
    "catalog: negative": lambda: catalog(
        elsewhere_cost=changed(SOUND.catalog.elsewhere_cost, 1, -1)
    ),
    "tasks.task": lambda: tasks(task=SOUND.tasks.task[::-1]),
    "tasks.priority": lambda: tasks(priority=np.array(SOUND.tasks.priority, np.int64)),
    "tasks.request": lambda: tasks(request=changed(SOUND.tasks.request, 2, 0)),
    "tasks.preference": lambda: tasks(preference=changed(SOUND.tasks.preference, 2, 17)),
    "tasks.task_class": lambda: tasks(
        task_class=changed(SOUND.tasks.task_class, 2, len(TaskClass))
    ),
    "tasks.submit_us": lambda: tasks(submit_us=changed(SOUND.tasks.submit_us, 2, 1)),
    "duration_us": lambda: replace(SOUND, duration_us=changed(SOUND.duration_us, 0, 0)),
    "preferred_permille": lambda: replace(SOUND, preferred_permille=0),
    "arrival_us: not ascending": lambda: replace(SOUND, arrival_us=changed(SOUND.arrival_us, 1, 0)),
    "arrival_us: not in": lambda: replace(
        SOUND, arrival_us=changed(SOUND.arrival_us, -1, SOUND.end_us)
    ),
    "arrival_offsets": lambda: replace(SOUND, arrival_offsets=changed(SOUND.arrival_offsets, 1, 0)),
    "arrival_rows: rows not covered": lambda: replace(
        SOUND, arrival_rows=changed(SOUND.arrival_rows, 0, 1)
    ),
    "arrival_rows: a batch of": lambda: tasks(job=changed(SOUND.tasks.job, 0, 10**6)),
    "arrival_rows: not ascending": lambda: replace(
        SOUND, arrival_rows=np.concatenate([SOUND.arrival_rows[9::-1], SOUND.arrival_rows[10:]])
    ),
    "initial.task: not ascending": lambda: replace(
        with_initial(3),
        initial=InitialPlacement(SOUND.arrival_rows[9::-1], np.full(10, 3, np.int32)),
    ),
    "initial.machine: no such": lambda: with_initial(50),
    "initial.machine: a machine that is down": lambda: with_initial(4),
    "machine_events.at_us": lambda: with_events(changed(SOUND.machine_events.at_us, 0, 9)),
    "machine_events: two events": lambda: with_events(np.array([0, 0, 5])),
    "phases: must begin": lambda: replace(SOUND, phases=(Phase(1, SOUND.end_us, 50),)),
    "phases: must end": lambda: replace(SOUND, phases=SOUND.phases[:-1]),
    "phases: an empty": lambda: replace(SOUND, phases=(Phase(0, 0, 5), Phase(0, SOUND.end_us, 5))),
    "phases: a gap": lambda: replace(SOUND, phases=(Phase(0, 5, 5), Phase(6, SOUND.end_us, 5))),
    "facts.tasks_larger": lambda: tasks(request=changed(SOUND.tasks.request, 2, 11)),
}


def with_initial(machine: int) -> Workload:
    """The first batch runs at 0 instead of arriving."""
    first = int(SOUND.arrival_offsets[1])
    return replace(
        SOUND,
        initial=InitialPlacement(SOUND.arrival_rows[:first], np.full(first, machine, np.int32)),
        arrival_us=SOUND.arrival_us[1:],
        arrival_offsets=SOUND.arrival_offsets[1:] - first,
        arrival_rows=SOUND.arrival_rows[first:],
    )


def with_events(at_us: np.ndarray) -> Workload:
    return replace(SOUND, machine_events=replace(SOUND.machine_events, at_us=at_us))


@pytest.mark.parametrize("field", BREACHES)
def test_a_breach_is_named(field: str) -> None:
    with pytest.raises(ValueError) as caught:
        validate(BREACHES[field]())
    assert field in str(caught.value)


def test_initial_tasks_are_covered() -> None:
    validate(with_initial(3))


def test_larger_than_every_machine_is_judged_machine_by_machine() -> None:
    """No single machine has both the most CPU and the most memory."""
    spec = CellSpec(
        ("cpu", "mem"),
        np.array([[10, 2], [2, 10]]),
        np.zeros(2, np.int32),
        np.zeros(2, np.int64),
        np.array([1500, 1000]),
    )
    request = np.array([[15, 2], [3, 10], [4, 10], [10, 10], [16, 1], [1, 11]])
    assert larger_than_every_machine(spec, request).tolist() == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    broadcast = np.broadcast_to(np.array([10, 10]), (4, 2))
    assert larger_than_every_machine(spec, broadcast).tolist() == [True] * 4


def test_describe_is_json_and_counts() -> None:
    described = json.loads(json.dumps(describe(SOUND)))
    assert described["tasks"] == len(SOUND.tasks) and described["batches"] == len(SOUND.arrival_us)
    assert sum(phase["tasks"] for phase in described["phases"]) == described["tasks_arriving"]
    ordered = np.sort(SOUND.duration_us)
    assert described["duration_s"]["p90"] == ordered[int(0.9 * (len(ordered) - 1))] / 1e6
    assert described["machine_events"] == 3 and described["capacity"] == {"slots": 500}


def test_describe_counts_endless_tasks_until_the_end() -> None:
    endless = replace(
        SOUND, duration_us=np.full(len(SOUND.tasks), -1), phases=(Phase(0, SOUND.end_us, 0),)
    )
    held = int((SOUND.end_us - SOUND.tasks.submit_us).sum())
    described = describe(endless)
    assert described["duration_s"] == {} and described["tasks_without_end"] == len(SOUND.tasks)
    phases = described["phases"]
    assert isinstance(phases, list)
    assert phases[0]["offered_percent"]["slots"] == pytest.approx(
        100 * held / (500 * SOUND.end_us), abs=1e-3
    )


def test_the_digest_tells_every_change_of_a_workload_and_nothing_else() -> None:
    again = generate(
        SyntheticOptions(machines=50, batch_tasks=10, phase_s=0.5, rack_cost=5),
        seed=1,
        name="other",
    )
    assert digest(again) == digest(BASE)
    others = [digest(breach()) for name, breach in BREACHES.items() if not name.startswith("facts")]
    others.append(
        digest(
            generate(
                SyntheticOptions(machines=50, batch_tasks=10, phase_s=0.5, rack_cost=5), seed=2
            )
        )
    )
    others.append(digest(replace(SOUND, duration_us=SOUND.duration_us + 1)))
    others.append(digest(replace(SOUND, preferred_permille=701)))
    assert len({digest(SOUND), *others}) == 1 + len(others)
