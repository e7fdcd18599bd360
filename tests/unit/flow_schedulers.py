"""Flow schedulers as tests make them: every round is certified."""

from __future__ import annotations

from schedulers.flow.scheduler import (
    FlowScheduler,
    LoadSpreadingOptions,
    QuincyOptions,
    build_load_spreading,
    build_quincy,
)
from schedulers.interface import Plan, SchedulerEnvironment
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, PreferenceCatalog

EVERY_ROUND = {"certify_every": 1}
LOCAL = {"machine": {0: 1}, "rack": {0: 5}, "elsewhere": 10, "unscheduled": 50}


def environment(spec: CellSpec, catalog: PreferenceCatalog | None = None) -> SchedulerEnvironment:
    offsets = Partitioning.by_topology(spec, 1).offsets
    return SchedulerEnvironment("flow", spec, offsets, catalog or PreferenceCatalog.empty())


def quincy(
    spec: CellSpec, catalog: PreferenceCatalog | None = None, **options: object
) -> FlowScheduler:
    return build_quincy(QuincyOptions(**{**EVERY_ROUND, **options}), environment(spec, catalog))


def spreading(spec: CellSpec, **options: object) -> FlowScheduler:
    return build_load_spreading(
        LoadSpreadingOptions(**{**EVERY_ROUND, **options}), environment(spec)
    )


def placed(plan: Plan) -> dict[int, int]:
    return dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))
