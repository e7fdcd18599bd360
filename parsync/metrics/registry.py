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

import sys
import traceback
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType

from pydantic import BaseModel

from parsync.metrics.figures import Figures
from parsync.metrics.metric import Metric
from parsync.metrics.tables import TABLES
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.metrics"
KEPT_TABLES = ("cell", "agents", "rounds")

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "delay": "parsync.metrics.delay:DelayMetric",
        "conflicts": "parsync.metrics.conflicts:ConflictMetric",
        "preferences": "parsync.metrics.preferences:PreferenceMetric",
        "placement_values": "parsync.metrics.placement_values:PlacementValueMetric",
        "cost": "parsync.metrics.cost:CostMetric",
        "jobs": "parsync.metrics.jobs:JobMetric",
        "throughput": "parsync.metrics.throughput:ThroughputMetric",
        "unplaceable": "parsync.metrics.unplaceable:UnplaceableMetric",
        "utilisation": "parsync.metrics.utilisation:UtilisationMetric",
        "backlog": "parsync.metrics.backlog:BacklogMetric",
        "busyness": "parsync.metrics.busyness:BusynessMetric",
        "solver_rounds": "parsync.metrics.solver_rounds:SolverRoundMetric",
        "staleness": "parsync.metrics.staleness:StalenessMetric",
    }
)


def metrics() -> tuple[type[Metric], ...]:
    """All metrics, in the order of the report's tables. AgoraError naming the first that cannot be
    loaded or used, and for two metrics or two figures of one name."""
    loaded = tuple(get(name) for name in _locations())
    owner: dict[str, str] = {}
    for kind in loaded:
        for key in kind.figures_model.model_fields:
            if key in owner:
                raise AgoraError(
                    f"metric {kind.name!r}: its figure {key!r} is one of metric {owner[key]!r}"
                )
            owner[key] = kind.name
    return loaded


def get(name: str) -> type[Metric]:
    """The metric of a name. AgoraError if there is none, or if its entry point does not lead to a
    Metric of that name."""
    locations = _locations()
    if name not in locations:
        raise AgoraError(f"unknown metric {name!r}; known: {', '.join(sorted(locations))}")
    location = locations[name]
    module, _, attribute = location.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody else's module raises
        raise AgoraError(f"metric {name!r}: cannot load {location}: {_why(error)}") from error
    if not (isinstance(found, type) and issubclass(found, Metric)):
        raise AgoraError(f"metric {name!r}: {location} is not a Metric class")
    if getattr(found, "name", None) != name:
        raise AgoraError(
            f"metric {name!r}: {location}: name: expected {name!r}, "
            f"got {getattr(found, 'name', None)!r}"
        )
    check_declaration(found)
    return found


def check_declaration(kind: type[Metric]) -> None:
    """Check what a metric's class declares. AgoraError naming the attribute that is wrong."""
    where = f"metric {kind.name!r}"
    description: object = getattr(kind, "description", None)
    if not isinstance(description, str) or not description:
        raise AgoraError(f"{where}: description: expected a text, got {description!r}")
    model: object = getattr(kind, "figures_model", None)
    if not (isinstance(model, type) and issubclass(model, Figures)):
        raise AgoraError(
            f"{where}: figures_model: expected a subclass of parsync.metrics.figures.Figures"
        )
    for attribute, known in (("reads", tuple(TABLES)), ("keeps", KEPT_TABLES)):
        for table, columns in getattr(kind, attribute).items():
            if table not in known:
                raise AgoraError(
                    f"{where}: {attribute}: expected tables of {', '.join(known)}, got {table!r}"
                )
            for column in columns:
                if column not in TABLES[table]:
                    raise AgoraError(
                        f"{where}: {attribute}: table {table!r} has no column {column!r}; "
                        f"it has {', '.join(TABLES[table])}"
                    )
    try:
        kind.quantities()
    except ValueError as error:
        raise AgoraError(f"{where}: figures_model: {error}") from error


def declared_in(model: type[BaseModel], kind: type[Metric]) -> bool:
    """Whether a model has the figures of a metric among its own fields."""
    return issubclass(model, kind.figures_model)


def _why(error: BaseException) -> str:
    """An error of an import, with the file and line it comes from."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    if isinstance(error, ImportError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    of_module = [frame for frame in frames if frame.name == "<module>"]
    if isinstance(error, AttributeError) and not of_module:
        return str(error)
    place = (of_module or frames)[-1]
    return f"{place.filename}, line {place.lineno}: {type(error).__name__}: {error}"


def _locations() -> dict[str, str]:
    """Name -> "module:attribute". AgoraError if two packages claim one name."""
    locations = dict(BUILT_IN)
    for name, value in _installed(tuple(sys.path)):
        if locations.setdefault(name, value) != value:
            raise AgoraError(f"metric {name!r} is registered twice: {locations[name]} and {value}")
    return locations


@lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(name, value) of the entry points of the packages on sys.path, which is `path`, by name:
    reading all their metadata takes milliseconds."""
    found = ((point.name, point.value) for point in entry_points(group=ENTRY_POINTS))
    return tuple(sorted(found))
