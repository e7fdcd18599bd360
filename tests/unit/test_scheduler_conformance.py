"""Every registered kind keeps the scheduler contract, and the check finds schedulers that do
not."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from schedulers import registry
from schedulers.conformance import NonConformance, check_conformance
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.registry import SchedulerSpec


@pytest.mark.parametrize("kind", registry.kinds())
def test_registered_kinds_conform(kind):
    check_conformance(registry.get(kind))


@pytest.mark.parametrize(
    "kind",
    ["random", "best_fit", "load_spreading", "randomized_first_fit", "preferred_first", "flow"],
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


def keeps_a_ticket(self, plan, tasks, view):
    view.claim(plan.machine[:1], plan.request[:1])
    return plan


def claims_twice(self, plan, tasks, view):
    task = plan.task.copy()
    task[1:2] = task[:1]
    return replace(plan, task=task)


def splits_gangs(self, plan, tasks, view):
    keep = np.ones(len(plan.task), bool)
    keep[np.flatnonzero(plan.gang >= 0)[:1]] = False
    left = {name: getattr(plan, name)[keep] for name in ("task", "machine", "request", "gang")}
    pending = np.concatenate([plan.pending, plan.task[~keep]])
    reason = np.concatenate([plan.pending_reason, np.zeros((~keep).sum(), np.int8)])
    return replace(plan, **left, pending=pending, pending_reason=reason)


def places_backwards(self, plan, tasks, view):
    """As LastFit of the guide, but stating a number as if it followed the ranking."""
    fitting = np.flatnonzero((view.free >= tasks.request[:1]).all(axis=1))
    if len(plan.machine) != 1 or not len(fitting):
        return plan
    return replace(plan, machine=fitting[-1:].astype(np.int32))


def with_columns(columns):
    """Plans of which columns are others: columns(plan, tasks, view)."""
    return lambda self, plan, tasks, view: replace(plan, **columns(plan, tasks, view))


def with_scans(scans):
    return with_columns(lambda *given: {"partitions_scanned": scans(*given)})


MOODS = itertools.count(1)
SCANS = "plan.partitions_scanned: expected"


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (keeps_a_ticket, "expected an unchanged view"),
        (with_columns(lambda p, *_: {"machine": p.machine * 0 + p.machine[:1]}), "its view shows"),
        (claims_twice, "appears twice"),
        (
            with_columns(
                lambda p, *_: {"pending": p.pending[:-1], "pending_reason": p.pending_reason[:-1]}
            ),
            "neither claimed nor pending",
        ),
        (
            with_columns(lambda p, *_: {"pending_reason": p.pending_reason * 0 + 1}),
            "is said to be TOO_LARGE",
        ),
        (splits_gangs, "others are left waiting"),
        (with_columns(lambda p, *_: {"request": np.maximum(p.request - 1, 0)}), "its request is"),
        (with_columns(lambda *_: {"evict": np.array([123456])}), "no Capability.EVICTS"),
        (
            with_columns(lambda p, *_: {"machine": p.machine.astype(np.int64)}),
            "plan.machine: expected an array int32",
        ),
        (
            with_columns(lambda p, *_: {"operations": p.operations + next(MOODS)}),
            "counted work is a function",
        ),
        (
            with_columns(lambda *_: {"retry_at_us": 10**9 + next(MOODS)}),
            "plan.retry_at_us is a function",
        ),
        (with_columns(lambda *_: {"operations": 0}), "plan.operations: expected more than 0"),
        (with_scans(lambda plan, tasks, view: len(view.versions)), SCANS),
        (with_scans(lambda plan, tasks, view: len(tasks)), SCANS),
        (with_scans(lambda plan, tasks, view: len(tasks) * len(view.versions)), SCANS),
        (with_scans(lambda plan, *_: max(plan.partitions_scanned - 1, 0)), SCANS),
        (
            places_backwards,
            f"{SCANS} None, as a fresher partition than the one chosen had room for a task under "
            "LATENCY_FIRST",
        ),
    ],
)
def test_broken_schedulers_are_found_out(spoil, promise):
    with pytest.raises(NonConformance, match=promise):
        check_conformance(spec_of(lambda options, environment: Broken(environment, spoil)))


def spec_of(build):
    return SchedulerSpec("broken", GreedyOptions, build, registry.get("random").default_decision)


def test_observing_the_unknown_must_not_fail():
    class Strict(GreedyScheduler):
        def observe(self, changes):
            raise KeyError(changes.task[0])

    spec = spec_of(lambda options, environment: Strict(PlacementKind.RANDOM, environment))
    with pytest.raises(NonConformance, match=r"observe\(\) raised KeyError: .*round 0"):
        check_conformance(spec)
