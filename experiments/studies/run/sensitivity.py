"""How far the results depend on two choices about decision times: the arms that a choice concerns
run again with the other choice, under some of the paired seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.summary_model import ChangedArm, SeedFigures, SeedSummary, Sensitivity
from experiments.campaign.points import Point
from experiments.config.presets import PARSYNC_SCAN_COST
from experiments.config.run_config import RunConfig
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from schedulers import registry
from schedulers.interface import Capability


@dataclass(frozen=True, slots=True)
class Choice:
    """Another choice about the decision times of groups with a modelled time.

    Args:
        key: The option of the decision time that it changes.
        value: Of that option.
        title: The choice in words, as the beginning of a sentence.
        with_others: Whether arms with it may be compared with arms that it does not concern.
        concerns: Whether a group's kind, with these capabilities, is concerned.
    """

    key: str
    value: float | bool
    title: str
    with_others: bool
    concerns: Callable[[frozenset[Capability]], bool]

    def of(self, arm: ArmConfig) -> ArmConfig | None:
        """The arm with this choice; None if it does not concern the arm, or is made already."""
        groups = tuple(self._of_group(group) for group in arm.groups)
        return None if groups == arm.groups else arm.model_copy(update={"groups": groups})

    def _of_group(self, group: GroupConfig) -> GroupConfig:
        if group.kind is None or not isinstance(group.decision, ModelledTime):
            return group
        spec = registry.get(group.kind)
        spec = spec.with_options(spec.parse_options(group.options))
        if not self.concerns(spec.capabilities):
            return group
        if group.decision.service is not None and self.key == "charges_kept":
            return group  # not with other times for service tasks (ModelledTime)
        decision = group.decision.model_copy(update={self.key: self.value})
        return group.model_copy(update={"decision": decision})


def _ranks_partitions(capabilities: frozenset[Capability]) -> bool:
    """Greedy kinds look at partitions; flow schedulers, whose rounds need the outcome of the last
    one, at their graph."""
    return Capability.WAITS_FOR_OUTCOME not in capabilities


CHOICES = (
    Choice(
        "scan_cost",
        PARSYNC_SCAN_COST,
        f"If looking at all partitions made a decision {100 * PARSYNC_SCAN_COST:.0f} % longer "
        "(which fits ParSync's Figs. 5, 7b and 8)",
        with_others=False,
        concerns=_ranks_partitions,
    ),
    Choice(
        "charges_kept",
        True,
        "If every round also took time for the tasks that a scheduler keeps waiting",
        with_others=True,
        concerns=lambda capabilities: Capability.KEEPS_PENDING in capabilities,
    ),
)


def changed_points(config: RunConfig) -> list[tuple[Choice, Point]]:
    """What has to run: every choice, every arm that it concerns, `sensitivity_seeds` seeds."""
    seeds = range(config.seed, config.seed + min(config.seeds, config.sensitivity_seeds))
    return [
        (choice, Point(config, arm, seed))
        for seed in seeds
        for choice in CHOICES
        for arm in map(choice.of, config.arms)
        if arm is not None
    ]


def sensitivity(
    slugs: Mapping[str, str], figures: Sequence[tuple[Choice, Point, SeedFigures]]
) -> list[Sensitivity]:
    """What the other choices came to.

    Args:
        slugs: Of the arms, by name.
        figures: Of points that ran.
    """
    found = []
    for choice in CHOICES:
        seeds: dict[str, list[SeedSummary]] = {}
        for one, point, its in figures:
            if one is choice:
                seeds.setdefault(slugs[point.arm.name], []).append(its.in_summary(point.seed))
        arms = [
            ChangedArm(slug=slug, seeds=sorted(seeds[slug], key=lambda row: row.seed))
            for slug in slugs.values()
            if slug in seeds
        ]
        if arms:
            found.append(
                Sensitivity(
                    key=choice.key,
                    value=choice.value,
                    title=choice.title,
                    with_others=choice.with_others,
                    arms=arms,
                )
            )
    return found
