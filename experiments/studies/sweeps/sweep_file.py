"""The file of a sweep: a run's configuration with a section [sweep], which says what is varied.

[sweep]
base = "run.toml"        # or the configuration itself, below

[sweep.grid]             # every combination of these values
workload.load_percent = [[50], [80], [95]]

[[sweep.zip]]            # lists of one length: the first values together, the second ones, ...
workload.machines = [100, 200]
workload.machines_per_rack = [20, 40]

A parameter is written where it stands in a configuration, with a list of values. Arms and groups
are named (`arms."ParSync adaptive".groups.adaptive.protocol.gap_s`); `"*"` stands for all that have
the option. Entries of other lists are counted from 0.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from experiments.config.file_format import FORMAT, read_configuration
from experiments.config.run_config import RunConfig, validated
from experiments.studies.sweeps.looks import Target
from experiments.toml_text import toml_path, toml_value
from parsync.metrics.quantity import Quantity, counted
from parsync.strict_model import Name, Strict, first_error
from schedulers import registry
from schedulers.prices import registry as prices
from schedulers.prices.registry import PriceOptions
from shared_state.errors import AgoraError

SWEEP_FILE = "sweep.toml"  # in the directory of a sweep
MOST_COMBINATIONS = 10_000
METRIC = "delay_mean_us"
EVERY = "*"
NAMED = ("arms", "groups")  # lists whose entries are addressed by their names
# What a sweep sets itself, and what has no effect in virtual time.
_NOT_SWEPT = {
    "format": "it says how the file is read",
    "name": "it has no effect on figures",
    "seed": "[sweep] seeds sets how many seeds each combination runs",
    "seeds": "[sweep] seeds sets how many seeds each combination runs",
    "runtime": "a sweep runs in virtual time",
    "live": "a sweep runs in virtual time",
    "frontier": "it has no effect on a sweep",
    "sensitivity_seeds": "it has no effect on a sweep",
}

KeyPath = tuple[str, ...]
PlainValue = bool | int | float | str


def _as_tuple(given: Any) -> Any:
    """A name alone is a list of one."""
    if isinstance(given, list) and given:
        return tuple(given)
    if isinstance(given, str):
        return (given,)
    raise ValueError(f"expected a name or a list of names, got {toml_value(given)}")


def _as_written(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"{name} is given twice")
    return names


_LISTED = (BeforeValidator(_as_tuple), AfterValidator(_distinct), PlainSerializer(_as_written))
# A name, or a list of different ones.
MetricNames = Annotated[tuple[str, ...], *_LISTED]
ArmNames = Annotated[tuple[Name, ...], *_LISTED]


class SweepSection(Strict):
    """What is varied, and what is asked.

    Attributes:
        base: The file with the configuration, relative to this one; unset: it stands in this file.
        seeds: Of each combination: the configuration's seed and those after it; not with `until`.
        metric: The figures that the sweep is about, by their names in summary.json: each has a
            table on the terminal, and plots before all others. `until` is about the first.
        baseline: The arms that others are compared with; unset: the first one of each clock class.
        until: Run seeds until differences of the first metric are known well enough
            (experiments/studies/sweeps/looks.py).
        grid: Lists of values where the configuration has a value: every combination runs.
        zip: Lists of one length in each table, whose values go together.
    """

    name: Name = "sweep"
    base: str | None = None
    seeds: int = Field(10, ge=1, le=1000)
    metric: MetricNames = (METRIC,)
    baseline: ArmNames = ()
    until: str | None = None
    grid: dict[str, Any] = Field(default_factory=dict)
    zip: list[dict[str, Any]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.until is not None and "seeds" in self.model_fields_set:
            raise ValueError("seeds: has no effect with until, which runs 10, 20 or 40 seeds")
        return self


@dataclass(frozen=True, slots=True)
class Combination:
    """One choice of a value for each parameter.

    Attributes:
        number: Its place, from 0.
        values: In the order of the sweep's parameters.
        config: The configuration with these values.
    """

    number: int
    values: tuple[Any, ...]
    config: RunConfig


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep, checked.

    Attributes:
        section: What [sweep] says.
        base: The configuration as written, without [sweep].
        parameters: Those of the grid, then those that go together.
        axes: The number of each parameter's axis: values that go together are on one axis.
        combinations: At least one.
    """

    section: SweepSection
    base: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    axes: tuple[int, ...]
    combinations: tuple[Combination, ...]

    @property
    def target(self) -> Target | None:
        """What `until` asks for."""
        return None if self.section.until is None else Target.parse(self.section.until)

    def first_metric(self, quantities: Sequence[Quantity]) -> Quantity:
        """The quantity that `until` is about, among those of the sweep."""
        return next(one for one in quantities if one.key == self.section.metric[0])

    def tree(self) -> dict[str, Any]:
        """The file of this sweep, its configuration in it: it says the same wherever it lies."""
        without = {"base"} if self.section.until is None else {"base", "seeds"}
        section = self.section.model_dump(exclude=without)
        swept = {key: value for key, value in section.items() if value}
        return {**self.base, "format": FORMAT, "sweep": swept}


def read_sweep(path: Path, changes: Mapping[str, Any]) -> Sweep:
    """The sweep that a TOML file describes.

    Args:
        path: The file.
        changes: Fields of [sweep] that the command line sets.

    Raises:
        AgoraError: Names the file, and the key at fault.
    """
    tree = read_configuration(path)
    given = tree.pop("sweep", None)
    if not isinstance(given, dict):
        raise AgoraError(f"{path}: sweep: expected a section [sweep]")
    for one, other in (("until", "seeds"), ("seeds", "until")):
        if one in changes and other not in changes:  # the command line decides
            given.pop(other, None)
    try:
        section = SweepSection.model_validate({**given, **changes})
    except ValidationError as error:
        raise AgoraError(f"{path}: sweep.{first_error(error, SweepSection)}") from error
    base = _base(path, section, tree)
    try:
        return make_sweep(section, base)
    except AgoraError as error:
        raise AgoraError(f"{path}: {error}") from error


def _base(path: Path, section: SweepSection, tree: dict[str, Any]) -> dict[str, Any]:
    """The configuration as written, in this file or in the one that it names."""
    if section.base is None:
        return tree
    beside = [key for key in tree if key != "format"]
    if beside:
        raise AgoraError(
            f"{path}: {beside[0]}: expected nothing beside [sweep], as sweep.base names "
            "the file with the configuration"
        )
    base = read_configuration(path.parent / section.base)
    base.pop("sweep", None)  # a sweep may be the base of another one
    return base


def make_sweep(section: SweepSection, base: Mapping[str, Any]) -> Sweep:
    """A sweep over a configuration. Raises AgoraError naming the key at fault."""
    source = "the base configuration" if section.base is None else section.base
    config = validated(dict(base), source)
    if section.until is not None:
        Target.parse(section.until)
    names = [arm.name for arm in config.arms]
    for baseline in section.baseline:
        if baseline not in names:
            raise AgoraError(
                f"sweep.baseline: there is no arm {baseline!r}; arms: {', '.join(names)}"
            )
    grid = read_parameters(section.grid, "sweep.grid")
    together = [
        read_parameters(table, f"sweep.zip[{place}]") for place, table in enumerate(section.zip)
    ]
    for place, parameters in enumerate(together):
        _check_lengths(parameters, f"sweep.zip[{place}]")
    every = [*grid, *(parameter for group in together for parameter in group)]
    if not every:
        raise AgoraError("sweep: expected [sweep.grid] or [[sweep.zip]] with a list of values")
    resolved = _resolved(config)
    targets = [(one, path) for one in every for path in one.targets(resolved)]
    check_apart(targets)
    axes = [[(value,) for value in parameter.values] for parameter in grid]
    axes += [list(zip(*(one.values for one in group), strict=True)) for group in together]
    total = prod(map(len, axes))
    if total > MOST_COMBINATIONS:
        raise AgoraError(
            f"sweep: expected at most {counted(MOST_COMBINATIONS, 'combination')}, got {total:,}"
        )
    combinations = []
    for number, chosen in enumerate(product(*axes)):
        values = tuple(value for part in chosen for value in part)
        of = dict(zip(map(str, every), values, strict=True))
        tree = with_values(base, [(path, of[str(one)]) for one, path in targets])
        text = ", ".join(f"{name} = {_short(value)}" for name, value in of.items())
        combinations.append(Combination(number, values, validated(tree, f"with {text}")))
    axis_of = [*range(len(grid))]
    for place, group in enumerate(together, start=len(grid)):
        axis_of += [place] * len(group)
    return Sweep(section, base, tuple(every), tuple(axis_of), tuple(combinations))


def _resolved(config: RunConfig) -> dict[str, Any]:
    """The configuration with its defaults, those of protocols, schedulers and slot prices among
    them, also where they are None."""
    tree = config.model_dump(mode="json")
    for arm, its in zip(config.arms, tree["arms"], strict=True):
        for group, table in zip(arm.groups, its["groups"], strict=True):
            table["protocol"] = group.protocol.options.model_dump(mode="json")
            if group.kind is not None:
                options = registry.get(group.kind).parse_options(group.options)
                table["options"] = options.model_dump(mode="json")
                if isinstance(options, PriceOptions) and options.prices != prices.NONE:
                    its = prices.get(options.prices).parse_options(options.price_options)
                    table["options"]["price_options"] = its.model_dump(mode="json")
    return tree


def _check_lengths(parameters: list[Parameter], where: str) -> None:
    """Raise AgoraError unless lists that go together are of one length."""
    for one in parameters[1:]:
        first = parameters[0]
        if len(one.values) != len(first.values):
            raise AgoraError(
                f"{where}.{one}: expected {counted(len(first.values), 'value')}, as {first} has, "
                f"got {len(one.values)}"
            )


def _short(value: Any) -> str:
    text = toml_value(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of the configuration that differs between the combinations of a sweep.

    Attributes:
        path: Where it stands, arms and groups by name.
        values: What it is set to, at least one.
    """

    path: KeyPath
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return toml_path(self.path)

    def targets(self, resolved: Mapping[str, Any]) -> list[KeyPath]:
        """The paths that it sets, without `*`. Raises AgoraError if it names an arm or group that
        does not exist, or if no arm or group has its option.

        Args:
            resolved: The whole configuration with its defaults.
        """
        if EVERY not in self.path:
            _exists(self.path, resolved)  # raises; an option that is not there has a default
            return [self.path]
        found = [path for path in _expanded(self.path, resolved, ()) if _exists(path, resolved)]
        if not found:
            raise AgoraError(f"{self}: no arm has this option")
        return found


def read_parameters(table: Mapping[str, Any], where: str) -> list[Parameter]:
    """The parameters of a table of lists.

    Raises:
        AgoraError: Names a key that is not swept, or whose value is no list of values.
    """
    found = list(_leaves(table, (), where))
    for parameter in found:
        first = parameter.path[0]
        if first in _NOT_SWEPT:
            raise AgoraError(f"{where}.{parameter}: cannot be swept: {_NOT_SWEPT[first]}")
        if first == "arms" and len(parameter.path) < 3:
            raise AgoraError(f"{where}.{parameter}: expected an option of an arm, arms.NAME.OPTION")
        if first == "arms" and parameter.path[2:] in (("name",), ("groups",)):
            raise AgoraError(f"{where}.{parameter}: cannot be swept; it says which arm this is")
    return found


def _leaves(table: Mapping[str, Any], above: KeyPath, where: str) -> Iterable[Parameter]:
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, Mapping):
            yield from _leaves(value, path, where)
        elif not isinstance(value, list) or not value:
            got = toml_value(value)
            raise AgoraError(
                f"{where}.{toml_path(path)}: expected a list of values, "
                f"got {got if len(got) <= 60 else got[:59] + '…'}"
            )
        elif "." in key and key.replace(".", "").replace("_", "").isalnum() and not above:
            raise AgoraError(f"{where}.{toml_path(path)}: write {key} without quotes")
        else:
            yield Parameter(path, tuple(value))


def check_apart(targets: Sequence[tuple[Parameter, KeyPath]]) -> None:
    """Raise AgoraError if two parameters set the same value, or one a part of another's."""
    taken: dict[KeyPath, Parameter] = {}
    for parameter, path in targets:
        if path in taken:
            raise AgoraError(f"{parameter}: {toml_path(path)} is given twice")
        taken[path] = parameter
    for path, parameter in taken.items():
        for length in range(1, len(path)):
            if path[:length] in taken:
                raise AgoraError(f"{parameter}: {taken[path[:length]]} is given, too")


def with_values(tree: Mapping[str, Any], values: Iterable[tuple[KeyPath, Any]]) -> dict[str, Any]:
    """A copy of a configuration with some values set. Tables that are missing are made, since
    defaults need not be written.

    Raises:
        AgoraError: A path leads through something that is no table.
    """
    changed = copy.deepcopy(dict(tree))
    for path, value in values:
        inner: Any = changed
        for depth, part in enumerate(path[:-1]):
            inner = _entered(inner, part, path[: depth + 1])
        last = path[-1]
        if isinstance(inner, list):
            inner[_place(inner, last, path)] = copy.deepcopy(value)
        elif isinstance(inner, dict):
            inner[last] = copy.deepcopy(value)
        else:
            raise AgoraError(f"{toml_path(path)}: {toml_path(path[:-1])} is no table")
    return changed


def _entered(inner: Any, part: str, path: KeyPath) -> Any:
    if isinstance(inner, dict):
        return inner.setdefault(part, {})
    if isinstance(inner, list):
        return inner[_place(inner, part, path)]
    raise AgoraError(f"{toml_path(path)}: {toml_path(path[:-1])} is no table")


def _place(entries: Sequence[Any], part: str, path: KeyPath) -> int:
    """The place of an entry of a list, by its name or its number."""
    if path[-2] in NAMED:
        names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
        if part in names:
            return names.index(part)
        kind = path[-2].removesuffix("s")
        known = ", ".join(map(str, names))
        raise AgoraError(f"{toml_path(path)}: there is no {kind} {part!r}; expected one of {known}")
    if not part.isdecimal() or int(part) >= len(entries):
        raise AgoraError(
            f"{toml_path(path)}: expected a number from 0 to {len(entries) - 1} for an entry of "
            f"{toml_path(path[:-1])}"
        )
    return int(part)


def _expanded(path: KeyPath, inner: Any, done: KeyPath) -> Iterable[KeyPath]:
    """The path with each `*` replaced by the names of entries."""
    if not path:
        yield done
        return
    part, rest = path[0], path[1:]
    if part != EVERY:
        after: Any = None
        if isinstance(inner, dict):
            after = inner.get(part)
        elif isinstance(inner, list):
            after = inner[_place(inner, part, (*done, part))]
        yield from _expanded(rest, after, (*done, part))
        return
    if not done or done[-1] not in NAMED or not isinstance(inner, list):
        raise AgoraError(f'{toml_path((*done, part))}: "*" stands for arms or groups only')
    for entry in inner:
        yield from _expanded(rest, entry, (*done, entry["name"]))


def _exists(path: KeyPath, resolved: Any) -> bool:
    """Whether the configuration has a value there. Raises AgoraError if the path names an arm or a
    group that does not exist, or an entry beyond the end of a list."""
    inner = resolved
    for depth, part in enumerate(path):
        if isinstance(inner, list):
            inner = inner[_place(inner, part, path[: depth + 1])]
        elif isinstance(inner, dict) and part in inner:
            inner = inner[part]
        else:
            return False
    return True


def parameter_labels(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The shortest end of each path that is the end of no other one."""
    labels = []
    for path in paths:
        length = next(
            (
                size
                for size in range(1, len(path))
                if sum(other[-size:] == path[-size:] for other in paths) == 1
            ),
            len(path),
        )
        labels.append(toml_path(path[-length:]))
    return labels


def plain_value(value: Any) -> PlainValue:
    """A value that a column of a table can hold: a list of one number as the number, other lists
    and tables as TOML text."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else toml_value(value)


def value_text(value: PlainValue) -> str:
    """A plain value as people read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def assignments(labels: Sequence[str], values: Sequence[PlainValue]) -> str:
    """Parameters with their values, such as "machines = 100, gap_s = 0.5"."""
    pairs = zip(labels, values, strict=True)
    return ", ".join(f"{label} = {value_text(value)}" for label, value in pairs)
