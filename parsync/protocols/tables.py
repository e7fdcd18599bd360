"""The tables of measurements of a run: those that every run has, and those of its protocols."""

from __future__ import annotations

from collections.abc import Iterable

from parsync.metrics.tables import SCHEMAS, Tables
from parsync.protocols import registry
from parsync.schema import TableSchema
from shared_state.errors import AgoraError


def tables_of(kinds: Iterable[str]) -> Tables:
    """All tables of a run with these protocols, by name.

    Raises:
        AgoraError: There is no such protocol, or two of them have a table of one name.
    """
    tables: dict[str, TableSchema] = dict(SCHEMAS)
    owner: dict[str, str] = {}
    for kind in dict.fromkeys(kinds):
        for name, schema in registry.get(kind).tables.items():
            if name in owner:
                raise AgoraError(
                    f"protocols {owner[name]!r} and {kind!r} both have a table {name!r}; they"
                    " cannot be used together"
                )
            owner[name] = kind
            tables[name] = schema
    return tables
