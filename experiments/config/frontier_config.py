"""What a frontier runs: the [frontier] section of a configuration.

An architecture is an arm of the run and the one setting of it, its knob, that trades delay for
quality. A knob is a place in the arm's description, so a protocol or a scheduler of another package
brings its own without any code here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from parsync.metrics.quantity import duration
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.strict_model import LONGEST_S, Name, Strict
from schedulers import registry
from schedulers.entry_points import first_problem

Setting = bool | int | float | str

MOST_VALUES = 100


class Architecture(Strict):
    """One architecture of a frontier: an arm, and the values of its knob."""

    arm: Name = Field(description="an arm of this configuration")
    name: Name | None = Field(None, description="unset: the arm's name")
    knob: str | None = Field(
        None,
        min_length=1,
        description="the setting that trades delay for quality, as a path within each group of the"
        ' arm: "options.patience_s", "protocol.tau_s", "protocol.gap_s"; or an option of a protocol'
        ' as a whole: "protocols.offers.interval_s". Unset: the arm has none and is a single point',
    )
    values: tuple[Setting, ...] = Field(
        (), max_length=MOST_VALUES, strict=False, description="of the knob, one point for each"
    )
    groups: tuple[Name, ...] | None = Field(
        None, min_length=1, strict=False, description="the groups that have the knob; unset: all"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.knob is None and (self.values or self.groups):
            raise ValueError("knob: missing; values and groups are the knob's")
        if self.knob is not None and not self.values:
            raise ValueError("values: expected at least one value of the knob")
        if len(set(map(repr, self.values))) < len(self.values):
            raise ValueError("values: a value appears twice")
        return self

    @property
    def title(self) -> str:
        """Its name in tables."""
        return self.arm if self.name is None else self.name

    def settings(self) -> tuple[Setting | None, ...]:
        """The values of the knob; None for an arm without one."""
        return self.values or (None,)

    def arm_at(self, arm: ArmConfig, value: Setting | None) -> ArmConfig:
        """The arm with this value of the knob. Raises ValueError naming what is wrong."""
        if self.knob is None or value is None:
            return arm
        unknown = set(self.groups or ()) - {group.name for group in arm.groups}
        if unknown:
            raise ValueError(f"groups: arm '{arm.name}' has no group {min(unknown)!r}")
        if self.groups and _is_of_arm(self.knob):
            raise ValueError(f"groups: no effect, because {self.knob} is one of the whole arm")
        chosen = [self.groups is None or group.name in self.groups for group in arm.groups]
        return changed_arm(arm, self.knob, value, chosen)


class FrontierConfig(Strict):
    """The architectures that are compared by their frontiers, and over what.

    `agora run` runs them on the workload as it is, after its arms. `agora frontier` also runs them
    at several loads and gaps.
    """

    architectures: tuple[Architecture, ...] = Field((), strict=False)
    seeds: int = Field(3, ge=1, le=1000, description="paired seeds: seed, seed + 1, ...")
    load_percent: tuple[int, ...] = Field(
        (),
        max_length=MOST_VALUES,
        strict=False,
        description="constant loads to run at, each a phase of phase_s; none: the workload as it"
        " is. Only for workloads with an option load_percent",
    )
    gap_s: tuple[float, ...] = Field(
        (),
        max_length=MOST_VALUES,
        strict=False,
        description="synchronisation gaps G to run at, set in every group that has one; none: the"
        " arms' own",
    )
    fastest_s: float = Field(
        1e-4,
        gt=0,
        le=LONGEST_S,
        description="the box of the dominated area: shorter delays count as this",
    )
    slowest_s: float = Field(
        10.0,
        gt=0,
        le=LONGEST_S,
        description="the box of the dominated area: points at this delay dominate nothing",
    )
    dearest_cost: float | None = Field(
        None,
        gt=0,
        le=1e15,
        description="the box of the dominated area: points at this mean placement cost dominate"
        " nothing; unset: what the first seed's tasks cost away from their preferred machines",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.fastest_s >= self.slowest_s:
            raise ValueError("fastest_s: expected less than slowest_s")
        names = [one.title for one in self.architectures]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"architectures: two are named {name!r}; set their name")
        for name, values in (("load_percent", self.load_percent), ("gap_s", self.gap_s)):
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: a value appears twice")
        return self

    def check(self, arms: Mapping[str, ArmConfig]) -> None:
        """Raise ValueError for an architecture that the arms, by name, do not allow."""
        for number, one in enumerate(self.architectures):
            place = f"frontier.architectures.{number}"
            if one.arm not in arms:
                known = ", ".join(arms)
                raise ValueError(f"{place}.arm: there is no arm {one.arm!r}; arms: {known}")
            for value in one.settings():
                try:
                    one.arm_at(arms[one.arm], value)
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from error


def changed_arm(
    arm: ArmConfig, path: str, value: Setting, chosen: list[bool] | None = None
) -> ArmConfig:
    """The arm with a setting changed: one of its groups, or one of a protocol as a whole.

    Args:
        arm: The arm.
        path: Of the setting within a group, or within the arm if it begins with "protocols."; names
            joined by dots.
        value: What to set it to.
        chosen: Whether each group is changed; None: all.

    Raises:
        ValueError: There is no such setting, or it cannot have this value.
    """
    tree = arm.model_dump(mode="python", exclude_none=True)
    if _is_of_arm(path):
        tree.setdefault("protocols", {})
        _set(tree, f"arm '{arm.name}'", path, value)
    else:
        for index, group in enumerate(tree["groups"]):
            if chosen is None or chosen[index]:
                _set(group, f"group '{group['name']}'", path, value)
    try:
        return _without_defaults(ArmConfig.model_validate(tree))
    except ValidationError as error:
        problem = first_problem(error)
        message = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{path} = {value!r}: {message}") from error


def with_gap(arm: ArmConfig, gap_s: float) -> ArmConfig:
    """The arm with another synchronisation gap in every group that has one. Raises AgoraError or
    ValueError if one cannot have it."""
    gap_us = round(gap_s * 1e6)
    groups = tuple(
        group
        if group.protocol.gap_us is None
        else group.model_copy(update={"protocol": group.protocol.with_gap(gap_us)})
        for group in arm.groups
    )
    try:
        changed = ArmConfig.model_validate({**dict(arm), "groups": groups})
    except ValidationError as error:
        raise ValueError(first_problem(error)["msg"].removeprefix("Value error, ")) from error
    return _without_defaults(changed)


def _without_defaults(arm: ArmConfig) -> ArmConfig:
    """The arm without those options of its schedulers that have their default: so that an arm with
    a knob at its default is the same as one that does not name it, and is run once."""

    def plain(group: GroupConfig) -> GroupConfig:
        if group.kind is None:
            return group
        options = registry.get(group.kind).parse_options(group.options)
        return group.model_copy(update={"options": options.model_dump(exclude_defaults=True)})

    return arm.model_copy(update={"groups": tuple(plain(group) for group in arm.groups)})


def _is_of_arm(path: str) -> bool:
    return path.startswith("protocols.")


def _set(tree: dict[str, Any], whose: str, path: str, value: Setting) -> None:
    *above, last = path.split(".")
    table: Any = tree
    for depth, name in enumerate(above):
        if depth > 0 and isinstance(table, dict):
            table.setdefault(name, {})  # an option that is not written, as it has a default
        table = table.get(name) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise ValueError(f"{path}: {whose} has no table {name!r}")
    table[last] = value


def setting_text(name: str | None, value: Setting | None) -> str:
    """A value of a knob as people read it; "" where there is none."""
    if name is None or value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not name.endswith("_s"):
        return f"{value:g}"
    # the ends of a time's range stand for never and at once
    return "∞" if value >= LONGEST_S else "0" if value <= 1e-6 else duration(value * 1e6)
