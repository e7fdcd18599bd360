"""Every registered kind keeps the scheduler contract, and the check finds schedulers that do
not."""

import dataclasses
import itertools

import numpy as np
import pytest

from schedulers import registry
from schedulers.conformance import NonConformance, check_conformance
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import PendingReason
from schedulers.registry import SchedulerSpec


@pytest.mark.parametrize("kind", registry.kinds())
def test_registered_kinds_conform(kind):
    check_conformance(registry.get(kind))


@pytest.mark.parametrize(
    "kind",
    ["random", "best_fit", "load_spreading", "randomized_first_fit", "preferred_first", "quincy"],
)
@pytest.mark.parametrize("patience_s", [0.05, 0.25, 1000])
def test_patient_kinds_conform(kind, patience_s):
    check_conformance(registry.get(kind), {"patience_s": patience_s})


class Broken(GreedyScheduler):
    """Random placement with one promise broken, by the function given."""

    def __init__(self, environment, spoil):
        super().__init__(PlacementKind.RANDOM, environment)
        self.spoil = spoil

    def plan(self, tasks, view, context):
        return self.spoil(self, super().plan(tasks, view, context), tasks, view)


def replaced(plan, **columns):
    return dataclasses.replace(plan, **columns)


def keeps_a_ticket(self, plan, tasks, view):
    view.claim(plan.machine[:1], plan.request[:1])
    return plan


def overfills(self, plan, tasks, view):
    return (
        replaced(plan, machine=np.full_like(plan.machine, plan.machine[0]))
        if len(plan.machine)
        else plan
    )


def claims_twice(self, plan, tasks, view):
    task = plan.task.copy()
    task[1:2] = task[:1]
    return replaced(plan, task=task)


def forgets_pending(self, plan, tasks, view):
    return replaced(plan, pending=plan.pending[:-1], pending_reason=plan.pending_reason[:-1])


def gives_up_too_early(self, plan, tasks, view):
    return replaced(plan, pending_reason=np.full_like(plan.pending_reason, PendingReason.TOO_LARGE))


def splits_gangs(self, plan, tasks, view):
    keep = np.ones(len(plan.task), bool)
    keep[np.flatnonzero(plan.gang >= 0)[:1]] = False
    drop = ~keep
    return replaced(
        plan,
        task=plan.task[keep],
        machine=plan.machine[keep],
        request=plan.request[keep],
        gang=plan.gang[keep],
        pending=np.concatenate([plan.pending, plan.task[drop]]),
        pending_reason=np.concatenate([plan.pending_reason, np.zeros(drop.sum(), np.int8)]),
    )


def changes_requests(self, plan, tasks, view):
    return replaced(plan, request=np.maximum(plan.request - 1, 0))


def evicts_strangers(self, plan, tasks, view):
    return replaced(plan, evict=np.array([123456], np.int64))


def uses_a_wide_dtype(self, plan, tasks, view):
    return replaced(plan, machine=plan.machine.astype(np.int64))


MOODS = itertools.count(1)


def counts_no_work(self, plan, tasks, view):
    return replaced(plan, operations=0)


def counts_partitions_once_for_all_tasks(self, plan, tasks, view):
    return replaced(plan, partitions_scanned=len(view.versions))


def counts_one_partition_per_task(self, plan, tasks, view):
    return replaced(plan, partitions_scanned=len(tasks))


def counts_every_partition_for_every_task(self, plan, tasks, view):
    return replaced(plan, partitions_scanned=len(tasks) * len(view.versions))


def counts_one_too_few(self, plan, tasks, view):
    return replaced(plan, partitions_scanned=max(plan.partitions_scanned - 1, 0))


def places_backwards(self, plan, tasks, view):
    """As LastFit of the guide, but stating a number as if it followed the ranking."""
    fitting = np.flatnonzero((view.free >= tasks.request[:1]).all(axis=1))
    if len(plan.machine) != 1 or not len(fitting):
        return plan
    return replaced(plan, machine=fitting[-1:].astype(np.int32))


def is_impatient(self, plan, tasks, view):
    return replaced(plan, retry_at_us=10**9 + next(MOODS))


def is_moody(self, plan, tasks, view):
    return replaced(plan, operations=plan.operations + next(MOODS))


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (keeps_a_ticket, "expected an unchanged view"),
        (overfills, "its view shows"),
        (claims_twice, "appears twice"),
        (forgets_pending, "neither claimed nor pending"),
        (gives_up_too_early, "is said to be TOO_LARGE"),
        (splits_gangs, "others are left waiting"),
        (changes_requests, "its request is"),
        (evicts_strangers, "no Capability.EVICTS"),
        (uses_a_wide_dtype, "plan.machine: expected an array int32"),
        (is_moody, "counted work is a function"),
        (is_impatient, "plan.retry_at_us is a function"),
        (counts_no_work, "plan.operations: expected more than 0"),
        (counts_partitions_once_for_all_tasks, "plan.partitions_scanned: expected"),
        (counts_one_partition_per_task, "plan.partitions_scanned: expected"),
        (counts_every_partition_for_every_task, "plan.partitions_scanned: expected"),
        (counts_one_too_few, "plan.partitions_scanned: expected"),
        (
            places_backwards,
            "plan.partitions_scanned: expected None, as a fresher partition than the one chosen "
            "had room for a task under LATENCY_FIRST",
        ),
    ],
)
def test_broken_schedulers_are_found_out(spoil, promise):
    spec = SchedulerSpec(
        "broken",
        GreedyOptions,
        lambda options, environment: Broken(environment, spoil),
        registry.get("random").default_decision,
    )
    with pytest.raises(NonConformance, match=promise):
        check_conformance(spec)


def test_observing_the_unknown_must_not_fail():
    class Strict(GreedyScheduler):
        def observe(self, changes):
            raise KeyError(changes.task[0])

    spec = SchedulerSpec(
        "strict",
        GreedyOptions,
        lambda options, environment: Strict(PlacementKind.RANDOM, environment),
        registry.get("random").default_decision,
    )
    with pytest.raises(NonConformance, match=r"observe\(\) raised KeyError: .*round 0"):
        check_conformance(spec)
