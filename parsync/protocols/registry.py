"""Every protocol by name: ours, and those of packages with an entry point in the group
`agora.protocols`.

A new protocol is a folder (or a file) with a SPEC and one line: in BUILT_IN below, or in another
package's metadata,

    [project.entry-points."agora.protocols"]
    my_protocol = "my_package.my_module:SPEC"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from parsync.core.event import Event, Priority
from parsync.metrics.tables import SCHEMAS, Tables, wrong_tables
from parsync.protocols.spec import ProtocolSpec, wrong_capabilities
from parsync.schema import TableSchema
from schedulers.entry_points import EntryPointGroup, is_model, wrong_field
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.protocols"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "locking": "parsync.protocols.locking:SPEC",
        "offers": "parsync.protocols.offers.protocol:SPEC",
        "optimistic": "parsync.protocols.optimistic.protocol:SPEC",
        "probing": "parsync.protocols.probing.protocol:SPEC",
    }
)


def kinds() -> tuple[str, ...]:
    """The names of all protocols, ascending."""
    return _GROUP.kinds()


def get(kind: str) -> ProtocolSpec:
    """The spec of a protocol. AgoraError if there is none, or if its entry point does not lead to a
    ProtocolSpec of that name."""
    return _GROUP.get(kind)


def tables_of(kinds: Iterable[str]) -> Tables:
    """All tables of a run with these protocols, by name.

    Raises:
        AgoraError: There is no such protocol, or two of them have a table of one name.
    """
    tables: dict[str, TableSchema] = dict(SCHEMAS)
    owner: dict[str, str] = {}
    for kind in dict.fromkeys(kinds):
        for name, schema in get(kind).tables.items():
            if name in owner:
                raise AgoraError(
                    f"protocols {owner[name]!r} and {kind!r} both have a table {name!r}; they"
                    " cannot be used together"
                )
            owner[name] = kind
            tables[name] = schema
    return tables


_MODELS = ("options", "shared_options")
_CALLABLES = ("make_agent", "uses_cell_side", "check", "for_workload", "describe", "gap_us")


def _wrong(spec: ProtocolSpec) -> str:
    """What is wrong with the fields of a spec, "" if nothing."""
    fields = [
        *((name, is_model(getattr(spec, name)), "a BaseModel") for name in _MODELS),
        *((name, callable(getattr(spec, name)), "a callable") for name in _CALLABLES),
        *(
            (name, (part := getattr(spec, name)) is None or callable(part), "a callable or None")
            for name in ("cell_side", "node_side", "gap_options")
        ),
        ("events", isinstance(spec.events, tuple), "a tuple of event classes"),
    ]
    wrong = wrong_field(spec, fields)
    wrong = wrong or next(filter(None, (_wrong_event(spec, cls) for cls in spec.events)), "")
    if not wrong and not callable(spec.capabilities):
        wrong = wrong_capabilities(spec.capabilities)
    if not wrong and (of_tables := wrong_tables(spec.tables)):
        wrong = f"tables: {of_tables}"
    return wrong


def _wrong_event(spec: ProtocolSpec, cls: object) -> str:
    if not (isinstance(cls, type) and issubclass(cls, Event)):
        return f"events: expected classes of events, got {cls!r}"
    if getattr(cls, "kind", None) != spec.kind:
        return f"events: {cls.__name__}.kind: expected {spec.kind!r}"
    number, priority = getattr(cls, "number", None), getattr(cls, "priority", None)
    if not (isinstance(number, int) and number >= 0):
        return f"events: {cls.__name__}.number: expected an integer of 0 or more, got {number!r}"
    if not isinstance(priority, Priority):
        return f"events: {cls.__name__}.priority: expected a Priority, got {priority!r}"
    same = [other for other in spec.events if other is not cls and other.number == number]
    if same:
        return f"events: {cls.__name__} and {same[0].__name__} have the same number, {number}"
    return ""


_GROUP = EntryPointGroup("protocol", ENTRY_POINTS, BUILT_IN, ProtocolSpec, _wrong)
