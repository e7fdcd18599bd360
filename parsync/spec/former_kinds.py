"""Kinds of schedulers by the names that they had, in files that earlier versions wrote.

`quincy` was the name of the flow scheduler that re-optimises from round to round, `firmament`
another name of it. Both are kinds of their own now, and that one is `flow`. The number of a file's
format says which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

OF_NOW: Mapping[str, str] = MappingProxyType({"quincy": "flow", "firmament": "flow"})
# By what results are keyed, where it is not the name of the kind: those of `flow` that were kept
# under its former name are found, and those of the kinds that have the name now are others. Load
# spreading follows tasks of several sizes otherwise than before. Results of `preempting` that are
# older than the figures of preemption have none, and a table has none for the others then either.
KEYED_AS: Mapping[str, str] = MappingProxyType(
    {
        "flow": "quincy",
        "quincy": "quincy, format 2",
        "firmament": "firmament, format 2",
        "flow_load_spreading": "flow_load_spreading, format 2",
        "preempting": "preempting, format 2",
    }
)


def group_of_now(group: Any) -> Any:
    """The table of a group as a file of a former format has it, with the name of now."""
    return _with_kind(group, OF_NOW)


def group_as_keyed(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table of a group as the keys of results have it. Under preemption `flow` breaks ties
    otherwise than it did under its former name, so those results are not found."""
    if group["kind"] == "flow" and group["options"].get("preemption"):
        return group
    keyed: Mapping[str, Any] = _with_kind(group, KEYED_AS)
    return keyed


def _with_kind(group: Any, names: Mapping[str, str]) -> Any:
    kind = group.get("kind") if isinstance(group, Mapping) else None
    return {**group, "kind": names[kind]} if isinstance(kind, str) and kind in names else group
