"""Every metric by name: ours, and those of packages with an entry point in the group
`agora.metrics`.

A new metric is one file with a Metric class and one line: in BUILT_IN below, or in another
package's metadata,

    [project.entry-points."agora.metrics"]
    my_metric = "my_package.my_module:MyMetric"

The order of BUILT_IN is that of the report's tables; metrics of other packages come after them, by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from pydantic import BaseModel, ValidationError

from parsync.metrics.metric import Metric, MetricClass, OverTime
from parsync.metrics.quantity import Figures
from parsync.metrics.tables import SCHEMAS, Tables, wrong_tables
from schedulers.entry_points import EntryPointGroup
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.metrics"
KEPT_TABLES = ("cell", "agents", "rounds")

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "delay": "parsync.metrics.kinds.delay:DelayMetric",
        "conflicts": "parsync.metrics.kinds.conflicts:ConflictMetric",
        "preferences": "parsync.metrics.kinds.quality:PreferenceMetric",
        "preference_sets": "parsync.metrics.kinds.quality:PreferenceSetMetric",
        "placement_values": "parsync.metrics.kinds.quality:PlacementValueMetric",
        "cost": "parsync.metrics.kinds.quality:CostMetric",
        "jobs": "parsync.metrics.kinds.jobs:JobMetric",
        "job_waits": "parsync.metrics.kinds.jobs:JobWaitMetric",
        "job_classes": "parsync.metrics.kinds.jobs:JobClassMetric",
        "daily_conflicts": "parsync.metrics.kinds.conflicts:DailyConflictMetric",
        "throughput": "parsync.metrics.kinds.load:ThroughputMetric",
        "unplaceable": "parsync.metrics.kinds.delay:UnplaceableMetric",
        "queue_holds": "parsync.metrics.kinds.delay:QueueHoldMetric",
        "gangs": "parsync.metrics.kinds.jobs:GangMetric",
        "preemption": "parsync.metrics.kinds.preemption:PreemptionMetric",
        "urgent": "parsync.metrics.kinds.preemption:UrgentMetric",
        "utilisation": "parsync.metrics.kinds.load:UtilisationMetric",
        "backlog": "parsync.metrics.kinds.load:BacklogMetric",
        "stationarity": "parsync.metrics.kinds.load:StationarityMetric",
        "busyness": "parsync.metrics.kinds.busyness:BusynessMetric",
        "daily_busyness": "parsync.metrics.kinds.busyness:DailyBusynessMetric",
        "solver_rounds": "parsync.metrics.kinds.busyness:SolverRoundMetric",
        "flow_misfits": "parsync.metrics.kinds.flow_misfits:FlowMisfitMetric",
        "offers": "parsync.metrics.kinds.offers:OffersMetric",
        "probing": "parsync.metrics.kinds.probing:ProbingMetric",
        "staleness": "parsync.metrics.kinds.staleness:StalenessMetric",
    }
)


def metrics() -> tuple[type[Metric], ...]:
    """All metrics, in the order of the report's tables. AgoraError naming the first that cannot be
    loaded or used, and for two metrics or two figures of one name."""
    others = (kind for kind in _GROUP.kinds() if kind not in BUILT_IN)
    loaded = tuple(get(kind) for kind in (*BUILT_IN, *others))
    owner: dict[str, str] = {}
    for metric in loaded:
        for key in metric.figures_model.model_fields:
            if key in owner:
                raise AgoraError(
                    f"metric {metric.kind!r}: its figure {key!r} is one of metric {owner[key]!r}"
                )
            owner[key] = metric.kind
    return loaded


def get(kind: str) -> type[Metric]:
    """The metric of a name. AgoraError if there is none, or if its entry point does not lead to a
    Metric class of that kind."""
    metric = _GROUP.get(kind)
    assert issubclass(metric, Metric)
    return metric


def plots_of_others() -> list[tuple[str, OverTime]]:
    """The figures over time of metrics of other packages, with the kind of each. One that cannot be
    loaded has none: the report of a run of before does not need it."""
    found: list[tuple[str, OverTime]] = []
    for kind in _GROUP.kinds():
        if kind not in BUILT_IN:
            with suppress(AgoraError):
                found += [(kind, plot) for plot in get(kind).plots]
    return found


def declared_in(model: type[BaseModel], metric: type[Metric]) -> bool:
    """Whether a model has the figures of a metric among its own fields."""
    return issubclass(model, metric.figures_model)


def wrong_declaration(metric: type) -> str:
    """What is wrong with the declarations of a metric's class, "" if nothing."""
    if not issubclass(metric, Metric):
        return "expected a subclass of parsync.metrics.metric.Metric"
    description: object = getattr(metric, "description", None)
    if not isinstance(description, str) or not description:
        return f"description: expected a text, got {description!r}"
    model: object = getattr(metric, "figures_model", None)
    if not (isinstance(model, type) and issubclass(model, Figures)):
        return "figures_model: expected a subclass of parsync.metrics.quantity.Figures"
    wrong = wrong_tables(metric.tables)
    if wrong:
        return f"tables: {wrong}"
    known: Tables = {**SCHEMAS, **metric.tables}
    with_time = [name for name, schema in metric.tables.items() if "at_us" in schema.columns]
    kept = {name: known[name] for name in (*KEPT_TABLES, *with_time)}
    for attribute, tables in (("reads", known), ("keeps", kept)):
        wrong = _wrong_columns(getattr(metric, attribute), tables)
        if wrong:
            return f"{attribute}: {wrong}"
    plots: object = metric.plots
    if not (isinstance(plots, Sequence) and all(isinstance(plot, OverTime) for plot in plots)):
        return f"plots: expected a list of OverTime, got {plots!r}"
    try:
        metric.quantities()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"figures_model: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    return ""


def check_tables(metric: type[Metric], tables: Tables) -> None:
    """Raise AgoraError if a table of a run lacks a column that a metric reads: it is another table
    of the name that the metric declares."""
    for declared in (metric.reads, metric.keeps):
        of_run = {name: columns for name, columns in declared.items() if name in tables}
        wrong = _wrong_columns(of_run, tables)
        if wrong:
            raise AgoraError(f"metric {metric.kind!r}: {wrong} in this run")


def _wrong_columns(declared: object, known: Tables) -> str:
    """What is wrong with columns that a metric says it reads."""
    if not isinstance(declared, Mapping):
        return f"expected columns by table, got {declared!r}"
    for table, columns in declared.items():
        if table not in known:
            return f"expected tables of {', '.join(known)}, got {table!r}"
        for column in columns:
            if column not in known[table].columns:
                has = ", ".join(known[table].columns)
                return f"table {table!r} has no column {column!r}; it has {has}"
    return ""


_GROUP = EntryPointGroup("metric", ENTRY_POINTS, BUILT_IN, MetricClass, wrong_declaration)
