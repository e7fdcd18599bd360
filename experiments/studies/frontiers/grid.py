"""The points of a frontier: every value of every knob, at each load and gap, under each seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from experiments.campaign.points import Point
from experiments.config.decision_basis import DecisionBasis, comparable, decision_basis
from experiments.config.frontier_config import (
    Architecture,
    FrontierConfig,
    Setting,
    with_gap,
)
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from parsync.spec.arm import ArmConfig
from parsync.strict_model import first_error
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class Condition:
    """What all architectures meet alike.

    Attributes:
        load_percent: The constant load; None: the workload as it is.
        gap_s: The synchronisation gap of every group that has one; None: the arms' own.
        config: The run's configuration with that load.
    """

    load_percent: int | None
    gap_s: float | None
    config: RunConfig


@dataclass(frozen=True, slots=True)
class Spot:
    """One architecture with one value of its knob under one condition.

    Attributes:
        architecture, condition: Their places in the grid.
        value: Of the knob; None if there is none.
        arm: The arm that runs.
    """

    architecture: int
    condition: int
    value: Setting | None
    arm: ArmConfig


@dataclass(frozen=True, slots=True)
class Grid:
    """Everything that a frontier runs.

    Attributes:
        bases: What the delays of each architecture rest on.
        spots: By condition, architecture and value.
    """

    config: RunConfig
    architectures: tuple[Architecture, ...]
    conditions: tuple[Condition, ...]
    bases: tuple[DecisionBasis, ...]
    spots: tuple[Spot, ...]
    seeds: tuple[int, ...]

    def points(self) -> list[tuple[int, Point]]:
        """Every spot, by its place, under every seed; seed by seed and load by load, so that what
        shares a workload is side by side, and a grid that is stopped early has whole seeds."""
        return [
            (place, Point(self.conditions[spot.condition].config, spot.arm, seed))
            for seed in self.seeds
            for place, spot in enumerate(self.spots)
        ]

    def arm(self, name: str) -> ArmConfig:
        """The arm of this name, as configured."""
        return next(arm for arm in self.config.arms if arm.name == name)

    @property
    def runs(self) -> int:
        return len(self.spots) * len(self.seeds)


def make_grid(config: RunConfig) -> Grid:
    """The grid of a configuration's [frontier].

    Raises:
        AgoraError: There are no architectures, the workload has no load to set, or an architecture
            cannot have a gap or is not comparable to itself over its knob.
    """
    frontier = config.frontier
    if not frontier.architectures:
        raise AgoraError("frontier.architectures: expected at least one [[frontier.architectures]]")
    arms = {arm.name: arm for arm in config.arms}
    conditions = tuple(_conditions(config, frontier))
    outline = config.workload.outline()
    messages = config.virtual.message_us, config.virtual.measured_times
    bases = tuple(
        decision_basis(one.arm_at(arms[one.arm], one.settings()[0]), outline, *messages)
        for one in frontier.architectures
    )
    spots = []
    for place, condition in enumerate(conditions):
        for number, one in enumerate(frontier.architectures):
            for value in one.settings():
                arm = one.arm_at(arms[one.arm], value)
                # An arm with mixed clocks is comparable to none, also not to itself.
                basis = decision_basis(arm, outline, *messages)
                if basis != bases[number] and not comparable(basis, bases[number]):
                    raise AgoraError(
                        f"frontier.architectures.{number}.knob: {one.knob} changes the clock class "
                        "or the capacity of the arm, so its points cannot be compared"
                    )
                spots.append(Spot(number, place, value, _with_gap(arm, condition, one, value)))
    seeds = tuple(config.seed + place for place in range(frontier.seeds))
    return Grid(config, frontier.architectures, conditions, bases, tuple(spots), seeds)


def _conditions(config: RunConfig, frontier: FrontierConfig) -> Iterator[Condition]:
    """The loads and gaps; the gaps of a load side by side."""
    for load_percent in frontier.load_percent or (None,):
        base = _with_load(config, load_percent)
        for gap_s in frontier.gap_s or (None,):
            yield Condition(load_percent, gap_s, base)


def _with_load(config: RunConfig, load_percent: int | None) -> RunConfig:
    """The configuration with its workload at one constant load, or as it is."""
    if load_percent is None:
        return config
    workload = config.workload
    if "load_percent" not in type(workload.options).model_fields:
        raise AgoraError(
            f"frontier.load_percent: workload kind {workload.kind!r} has no option load_percent"
        )
    tree = {**workload.options.model_dump(mode="python"), "load_percent": (load_percent,)}
    try:
        options = type(workload.options).model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"frontier.load_percent {load_percent}: {first_error(error)}") from error
    return config.model_copy(update={"workload": WorkloadConfig.of(workload.kind, options)})


def _with_gap(
    arm: ArmConfig, condition: Condition, architecture: Architecture, value: Setting | None
) -> ArmConfig:
    """The arm with the condition's gap in every group that has one."""
    if condition.gap_s is None:
        return arm
    try:
        changed = with_gap(arm, condition.gap_s)
        undone = architecture.arm_at(changed, value)
    except (ValueError, AgoraError) as error:
        raise AgoraError(f"frontier.gap_s {condition.gap_s:g}: {error}") from error
    if [group.protocol.gap_us for group in undone.groups] != [
        group.protocol.gap_us for group in changed.groups
    ]:
        raise AgoraError(
            f"frontier.gap_s: has no effect on {architecture.title!r}, whose knob is the gap"
        )
    return changed


def with_options(
    config: RunConfig,
    seeds: int | None,
    load_percent: tuple[int, ...] | None,
    gap_s: tuple[float, ...] | None,
) -> RunConfig:
    """A configuration with parts of its [frontier] replaced; None: as it is. Raises AgoraError
    naming the option that is wrong."""
    tree = config.frontier.model_dump(mode="python")
    for option, name, value in (
        ("--seeds", "seeds", seeds),
        ("--load", "load_percent", load_percent),
        ("--gap", "gap_s", gap_s),
    ):
        if value is None:
            continue
        try:
            FrontierConfig.model_validate({**tree, name: value})
        except ValidationError as error:
            raise AgoraError(f"{option}: {first_error(error)}") from error
        tree[name] = value
    return config.model_copy(update={"frontier": FrontierConfig.model_validate(tree)})
