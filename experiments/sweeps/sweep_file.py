"""The file of a sweep: a run's configuration with a section [sweep], which says what is varied.

[sweep]
base = "run.toml"        # or the configuration itself, below

[sweep.grid]             # every combination of these values
workload.load_percent = [[50], [80], [95]]

[[sweep.zip]]            # lists of one length: the first values together, the second ones, ...
workload.machines = [100, 200]
workload.machines_per_rack = [20, 40]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from experiments.config import RunConfig, read_toml, validated
from experiments.sweeps.looks import Target
from experiments.sweeps.parameters import (
    Parameter,
    check_apart,
    read_parameters,
    with_values,
)
from experiments.toml_text import toml_value
from parsync.metrics.quantity import Quantity, counted
from parsync.strict_model import Name, Strict, first_error
from schedulers import registry
from schedulers.prices import registry as prices
from schedulers.prices.options import PriceOptions
from shared_state.errors import AgoraError

MOST_COMBINATIONS = 10_000
METRIC = "delay_mean_us"


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
            (experiments/sweeps/looks.py).
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
        return {"sweep": {key: value for key, value in section.items() if value}, **self.base}


def read_sweep(path: Path, changes: Mapping[str, Any]) -> Sweep:
    """The sweep that a TOML file describes.

    Args:
        path: The file.
        changes: Fields of [sweep] that the command line sets.

    Raises:
        AgoraError: Names the file, and the key at fault.
    """
    tree = read_toml(path)
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
    if tree:
        raise AgoraError(
            f"{path}: {next(iter(tree))}: expected nothing beside [sweep], as sweep.base names "
            "the file with the configuration"
        )
    base = read_toml(path.parent / section.base)
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
