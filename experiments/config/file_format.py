"""The number of the format of configurations: the files of runs and sweeps.

Files without a number are read as they were meant: there, kinds of schedulers have former names
(parsync/spec/former_kinds.py). Every configuration that is written has the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from warnings import warn

from experiments.config.toml_file import read_toml
from parsync.spec.former_kinds import OF_NOW, group_of_now
from parsync.strict_model import RenamedOption
from shared_state.errors import AgoraError

FORMAT: Final = 2
NOTE = (
    "a configuration without a format number: its schedulers of the kinds quincy and firmament are"
    f" read as flow, the present name; write format = {FORMAT}, and the kind that you mean"
)


def read_configuration(path: Path) -> dict[str, Any]:
    """What the file of a run or a sweep says, in the format of now. AgoraError naming the file, and
    the line that is no TOML, or the field `format`."""
    return of_now(read_toml(path), str(path))


def has_former_kinds(path: Path) -> bool:
    """Whether kinds of schedulers have former names in a configuration that can be read."""
    return bool(read_toml(path).get("format", 1) < FORMAT)


def of_now(tree: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A configuration in the format of now, with its number.

    Args:
        tree: What a file says.
        source: The file, for errors.

    Warns:
        RenamedOption: A kind of scheduler has another name now.

    Raises:
        AgoraError: The number is none, or too new.
    """
    number = tree.get("format", 1)
    if type(number) is not int or number < 1:
        raise AgoraError(f"{source}: format: expected {FORMAT}, got {number!r}")
    if number > FORMAT:
        raise AgoraError(
            f"{source}: format: {number} is newer than this version of Agora, which reads up to "
            f"{FORMAT}"
        )
    now = {**tree, "format": FORMAT}
    if number < FORMAT:
        now |= {name: its(tree[name]) for name, its in _FORMER.items() if name in tree}
        if now != {**tree, "format": FORMAT}:
            warn(NOTE, RenamedOption, stacklevel=2)
    return now


def _arms_of_now(arms: Any) -> Any:
    return [_arm_of_now(arm) for arm in arms] if isinstance(arms, list) else arms


def _arm_of_now(arm: Any) -> Any:
    if not isinstance(arm, Mapping) or not isinstance(arm.get("groups"), list):
        return arm
    return {**arm, "groups": [group_of_now(group) for group in arm["groups"]]}


def _sweep_of_now(sweep: Any) -> Any:
    """Values that a sweep gives to kinds, `arms.NAME.groups.NAME.kind`."""
    if not isinstance(sweep, Mapping):
        return sweep
    now = dict(sweep)
    if "grid" in sweep:
        now["grid"] = _swept_of_now(sweep["grid"])
    if isinstance(sweep.get("zip"), list):
        now["zip"] = [_swept_of_now(table) for table in sweep["zip"]]
    return now


def _swept_of_now(table: Any) -> Any:
    if not isinstance(table, Mapping) or not isinstance(table.get("arms"), Mapping):
        return table
    arms = {name: _swept_arm_of_now(arm) for name, arm in table["arms"].items()}
    return {**table, "arms": arms}


def _swept_arm_of_now(arm: Any) -> Any:
    groups = arm.get("groups") if isinstance(arm, Mapping) else None
    if not isinstance(groups, Mapping):
        return arm
    now = {name: _swept_group_of_now(group) for name, group in groups.items()}
    return {**arm, "groups": now}


def _swept_group_of_now(group: Any) -> Any:
    kinds = group.get("kind") if isinstance(group, Mapping) else None
    if not isinstance(kinds, list):
        return group
    now = [OF_NOW.get(kind, kind) if isinstance(kind, str) else kind for kind in kinds]
    return {**group, "kind": now}


_FORMER: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"arms": _arms_of_now, "sweep": _sweep_of_now}
)
