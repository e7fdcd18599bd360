"""The models of summary.json, and of the files that it is made from when a run was killed; names of
arms and restarts in sentences.

FORMAT is the one version number of all of them. It grows when a field is added, renamed or
removed; a file of another version is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from experiments.analysis.statistics import Difference, Interval
from experiments.config.decision_basis import Capacity, DecisionBasis, by_basis
from experiments.config.price_settings import prices_of_groups
from parsync.metrics.kinds.regret import Regret
from parsync.metrics.kinds.validity import Validity
from parsync.metrics.quantity import Count, Figures, Number, Quantity, counted, duration
from parsync.metrics.summary import (
    ArmFigures,
    GroupFigures,
    PhaseFigures,
    ScopeFigures,
    TotalFigures,
)

Share = Annotated[float, Field(ge=0, le=1)]


class PhaseBound(Figures):
    """What schedulers could reach at most if the load of a phase went on.

    Attributes:
        rates: Whether arrivals per second are those that the options say or those that came true.
        is_estimate: Machines have several resources, so that this is no strict bound.
        random_share: The preferred share if each task took a free slot at random.
        preferred_share: The highest preferred share. Like the next two None if there is no steady
            state, or the bound could not be computed.
        cost_mean: The lowest mean placement cost.
        occupancy: The part of the slots that is busy at the highest preferred share.
        highest_load: Where there is no steady state, the factor by which all rates would have to be
            multiplied for one; else None.
    """

    rates: Literal["expected", "realised"]
    is_estimate: bool
    random_share: Share
    preferred_share: Share | None
    cost_mean: Number | None
    occupancy: Number | None
    highest_load: Share | None

    @property
    def is_steady(self) -> bool:
        """Whether there is a bound: it is known, and there is a steady state."""
        return self.preferred_share is not None

    def way(self, preferred_share: float | None) -> float | None:
        """Which part of the way from random placement to the bound a preferred share has come;
        below 0 for less than random. None where there is no way to go, or it is not known."""
        if preferred_share is None or self.preferred_share is None:
            return None
        gap = self.preferred_share - self.random_share
        return (preferred_share - self.random_share) / gap if gap > 1e-9 else None


def bound_over(bounds: Sequence[PhaseBound | None], weight: Sequence[float]) -> PhaseBound | None:
    """The mean of several bounds by weight. None unless each bound of some weight is known and has
    a steady state."""
    weighed = [(one, part) for one, part in zip(bounds, weight, strict=True) if part > 0]
    known = [(one, part) for one, part in weighed if one is not None and one.is_steady]
    if not known or len(known) < len(weighed):
        return None
    total = sum(part for _, part in known)

    def mean(key: str) -> float | None:
        values = [(getattr(one, key), part) for one, part in known]
        if any(value is None for value, _ in values):
            return None
        return float(sum(value * part for value, part in values) / total)

    keys = ("random_share", "preferred_share", "cost_mean", "occupancy")
    return known[0][0].model_copy(update={key: mean(key) for key in keys})


class Restart(Figures):
    """An actor that was restarted or lost.

    Attributes:
        at_us: When it was lost.
        away_us: The time until it was back; None: it was not back by the end.
    """

    actor: str
    at_us: Count
    away_us: Count | None

    @property
    def sentence(self) -> str:
        """The restart, with its time in the run and how long the actor was away."""
        away_us = self.away_us
        end = "did not come back" if away_us is None else f"was back {duration(away_us)} later"
        return f"{self.actor} was lost {duration(self.at_us)} into the run and {end}"


Version = Literal[12]
FORMAT: Version = 12

Settings = dict[str, JsonValue]  # of a configuration, by name
MACHINES = "machines"  # the clock note of a live run on another cell than the arms are compared on


def machines_of_live_run(clock_notes: Mapping[str, object]) -> int | None:
    """The machines of a live run's cell, if that is not the one that the arms are compared on."""
    machines = clock_notes.get(MACHINES)
    return machines if isinstance(machines, int) else None


class Phase(Figures):
    """A stretch of offered load.

    Attributes:
        bound: What schedulers could reach at most; None where no arriving task prefers any
            machine, or it is not known.
    """

    start_us: Count
    end_us: Count
    load_percent: Count | None
    bound: PhaseBound | None = None


class WorkloadFacts(Figures):
    """What the arms had to do, for the report and to tell whether two runs can be compared.

    Attributes:
        capacity: The cell's capacity in each dimension.
        mean_duration_us: The mean over the arriving tasks that end.
        offered_permille: The load that arriving tasks offer, in permille of the cell.
        facts: What the workload's reader tells of it.
    """

    name: str
    digest: str
    machines: Count
    dimensions: list[str]
    capacity: list[Count]
    tasks: Count
    arrivals: Count
    initial_tasks: Count
    preferred_permille: Number
    end_us: Annotated[int, Field(ge=1)]
    mean_duration_us: Number | None
    phases: list[Phase]
    offered_permille: Count
    facts: Settings

    @property
    def warm_up_us(self) -> int:
        """How long each arm ran before time 0, in virtual time."""
        warm_up_s = self.facts.get("warm_up_s", 0)
        return round(warm_up_s * 1e6) if isinstance(warm_up_s, int | float) else 0

    @property
    def pending_at_start(self) -> int:
        """Tasks of a trace that wait as it begins."""
        pending = self.facts.get("tasks_pending_at_start", 0)
        return pending if isinstance(pending, int) else 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.dimensions) != len(self.capacity):
            raise ValueError("capacity: expected one number per dimension")
        pending = self.facts.get("tasks_pending_at_start", 0)
        if type(pending) is not int or pending < 0:
            raise ValueError("facts.tasks_pending_at_start: expected a whole number of at least 0")
        return self


class SeedFigures(Figures):
    """An arm under one of the paired seeds.

    Attributes:
        digest: The digest of its event log.
        workload: The digest of the seed's workload.
        offered_permille: The load that its arriving tasks offer, in permille of the cell.
    """

    digest: str
    workload: str
    offered_permille: Count
    overall: ScopeFigures
    phases: list[PhaseFigures]
    groups: list[GroupFigures]
    totals: TotalFigures

    def in_summary(self, seed: int) -> SeedSummary:
        """These figures as the summary has them."""
        return SeedSummary(
            seed=seed,
            digest=self.digest,
            workload=self.workload,
            offered_permille=self.offered_permille,
            overall=self.overall,
        )


class SeedSummary(Figures):
    """An arm under one of the paired seeds, as the summary has it."""

    seed: int
    digest: str
    workload: str
    offered_permille: Count
    overall: ScopeFigures


class Prediction(Figures):
    """A live arm in virtual time, calibrated on live runs.

    Attributes:
        digest: The digest of its event log.
        calibrated_on: The names of the live arms whose times were used.
    """

    digest: str
    overall: ScopeFigures
    calibrated_on: list[str]


Runtime = Literal["ray", "virtual"]  # in real time on Ray, or in virtual time


class ArmSummary(ArmFigures):
    """One run of an arm. An arm that ran in virtual time and live has two.

    Args:
        runtime: Where this run was.
        slug: The name of its folder.
        mix: The configuration of each scheduler group, e.g. name, kind, count, strategy.
        basis: What its delays rest on, and so which arms it is ranked beside.
        decision_capacity: Of the groups whose decision times are modelled.
        clock_notes: What its times include, e.g. tick_us, step_wait_share; and MACHINES, where it
            is a live run on another cell than the arms are compared on.
        partial: It did not get to its end.
        restarts: Of a live run's actors.
        validity: Whether a live run was disturbed; None in virtual time.
        prediction: Of a live run; None if there is none.
        digest: Of its event log; "" if that is not known.
        tears_gangs: Why gangs of the workload may be torn, such as an option of its protocol; ""
            if they may not, or the workload has none.
    """

    name: str
    runtime: Runtime
    slug: str = Field(pattern=r"^[a-z0-9-]+$")
    mix: list[Settings]
    sync: str
    strategy: str
    decision_clock: str
    basis: DecisionBasis
    decision_capacity: list[Capacity]
    clock_notes: Settings
    partial: bool
    restarts: list[Restart]
    validity: Validity | None
    prediction: Prediction | None
    digest: str
    regret: Regret
    seeds: list[SeedSummary]
    tears_gangs: str = ""

    @property
    def prices(self) -> str:
        """The slot prices of its schedulers, in words; "" if none uses any."""
        return prices_of_groups(self.mix)

    @property
    def machines(self) -> int | None:
        """The machines of its cell, if it is a live run on another cell than the arms are compared
        on."""
        return machines_of_live_run(self.clock_notes)

    @property
    def is_disturbed(self) -> bool:
        """Whether it is a live run that was disturbed: then it is not ranked."""
        return self.validity is not None and self.validity.is_disturbed

    @property
    def has_sound_run(self) -> bool:
        """Whether its own run got to its end and was not disturbed."""
        return not (self.partial or self.is_disturbed)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, group in enumerate(self.groups):
            if any(agent >= len(self.agents) for agent in group.agents):
                raise ValueError(f"groups[{number}].agents: expected indices into agents")
        if len({len(row) for row in self.rivals}) > 1 or [] in self.rivals:
            raise ValueError("rivals: expected rows of equal length")
        for name, value in self.clock_notes.items():
            if name.endswith(("_us", "_share", "_s")) and not _is_number(value):
                raise ValueError(f"clock_notes.{name}: expected a number")
        return self


class ChangedArm(Figures):
    """An arm that ran with another choice about its decision times.

    Args:
        seeds: Those of the paired seeds under which it did.
    """

    slug: str
    seeds: list[SeedSummary]


class Sensitivity(Figures):
    """The arms that a choice about decision times concerns, with the other choice.

    Args:
        key, value: The option of their decision times, and what it was set to.
        title: The choice in words.
        with_others: Whether these arms may be compared with arms that the choice does not concern.
    """

    key: str
    value: bool | Number
    title: str
    with_others: bool
    arms: list[ChangedArm]


class Paired(Figures):
    """Arms compared over the seeds that all of them ran; `seeds` is empty if there are none.

    Figures that leave out too much are replaced by their lower bounds, and say so: at_least of an
    arm, at_least and at_most of a difference.

    Attributes:
        level: How often an interval of so many seeds covers the median; None for too few.
        arms: The median over the seeds, by slug and quantity.
        differences: The difference to the baseline arm, by slug and quantity.
    """

    seeds: list[int]
    level: Number | None
    baseline: str | None
    arms: dict[str, dict[str, Interval]]
    differences: dict[str, dict[str, Difference]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for slug, intervals in self.arms.items():
            for key, interval in intervals.items():
                self._check_limits(f"arms.{slug}.{key}", interval)
        for slug, differences in self.differences.items():
            for key, difference in differences.items():
                self._check_limits(f"differences.{slug}.{key}", difference.absolute)
        return self

    @staticmethod
    def _check_limits(name: str, interval: Interval) -> None:
        limits = (interval.estimate, interval.low, interval.high, interval.level)
        if interval.low is not None and None in limits:
            raise ValueError(f"{name}: expected an estimate, both limits and their level")


# What happens in few runs: tasks mostly ask for the same, and most runs have no offers.
_ONLY_IF_ANY = ("flow_misfits", "held_rate")


class ComparedArms(Figures):
    """Arms side by side, of one run or of several; what tables and verdicts are made from.

    Attributes:
        seed: The root seed, or those of several runs.
        runtime: Of all `arms`.
        arms: One run of each arm, all under one runtime.
        live_runs: The live runs of arms that are compared in virtual time. They are not among
            `arms`: live() compares them with each other.
        quantities: What the figures are called, in the order of the tables.
        partial_reason: Why a run did not get to its end, "" if it did.
    """

    seed: int | str
    runtime: Runtime
    partial: bool
    partial_reason: str
    workload: WorkloadFacts
    quantities: list[Quantity]
    arms: list[ArmSummary]
    live_runs: list[ArmSummary] = Field(default_factory=list)
    paired: Paired

    def sets(self) -> list[Self]:
        """One for each set of arms that may be ranked beside each other."""
        return [
            self.model_copy(update={"arms": members})
            for members in by_basis([(arm, arm.basis) for arm in self.arms])
        ]

    @property
    def ran_live(self) -> list[ArmSummary]:
        """All runs on Ray, whether the arms are compared by them or not."""
        return self.arms if self.runtime == "ray" else self.live_runs

    def live(self) -> Self | None:
        """The same with the live runs as its arms, which have no paired seeds; None if there are
        no live runs besides the arms."""
        if not self.live_runs:
            return None
        paired = Paired(
            seeds=[], level=None, baseline=self.live_runs[0].slug, arms={}, differences={}
        )
        return self.model_copy(
            update={
                "arms": self.live_runs,
                "live_runs": [],
                "runtime": "ray",
                "partial": False,
                "partial_reason": "",
                "paired": paired,
            }
        )

    def quantity(self, key: str) -> Quantity | None:
        """The quantity of a key; None if no arm has it."""
        return next((one for one in self.quantities if one.key == key), None)

    def happened(self, key: str) -> bool:
        """Whether this quantity is above 0 in any arm, under any seed."""
        return any(
            figures.value(key)
            for arm in self.arms
            for figures in (arm.overall, *(row.overall for row in arm.seeds))
        )

    @property
    def headline(self) -> list[Quantity]:
        """The quantities of the first table. Those of _ONLY_IF_ANY are among the details where
        they are 0 in all arms."""
        return [
            one
            for one in self.quantities
            if one.headline and (one.key not in _ONLY_IF_ANY or self.happened(one.key))
        ]

    @property
    def details(self) -> list[Quantity]:
        """The other quantities."""
        first = {one.key for one in self.headline}
        return [one for one in self.quantities if one.key not in first]


class RunSummary(ComparedArms):
    """The summary of a run, summary.json.

    Attributes:
        format: FORMAT.
        digest: The digest of the digests of the arms and of their paired seeds, in order. Live
            runs besides them do not change it.
        version: The version of Agora.
        settle_us: The time left out at the start of each phase.
        config: The resolved configuration.
        sensitivity: How far the results depend on choices about decision times.
    """

    format: Version = FORMAT
    digest: str
    seed: int
    version: str
    settle_us: Count
    config: Settings
    sensitivity: list[Sensitivity] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> Self:
        slugs = [arm.slug for arm in self.arms]
        every = [*slugs, *(arm.slug for arm in self.live_runs)]
        runtimes = {"arms": self.runtime, "live_runs": "ray"}
        for name, runtime in runtimes.items():
            for number, arm in enumerate(getattr(self, name)):
                place = f"{name}[{number}]"
                if every.count(arm.slug) > 1:
                    raise ValueError(f"{place}.slug: {arm.slug!r} appears twice")
                if len(arm.phases) != len(self.workload.phases):
                    raise ValueError(f"{place}.phases: expected as many entries as workload.phases")
                if arm.runtime != runtime:
                    raise ValueError(f"{place}.runtime: expected {runtime!r}, got {arm.runtime!r}")
        for number, arm in enumerate(self.arms):
            place = f"arms[{number}]"
            missing = set(self.paired.seeds) - {row.seed for row in arm.seeds}
            if missing:
                raise ValueError(f"paired.seeds: {place}.seeds has no seed {min(missing)}")
            if self.paired.seeds and arm.slug not in self.paired.arms:
                raise ValueError(f"paired.arms: {arm.slug!r} is missing")
        for number, one in enumerate(self.sensitivity):
            unknown = [arm.slug for arm in one.arms if arm.slug not in slugs]
            if unknown:
                raise ValueError(f"sensitivity[{number}].arms: there is no arm {unknown[0]!r}")
        return self


class KeptArm(Figures):
    """An arm that has ended, in figures.json.

    Attributes:
        version: The version of Agora.
        stopped: Why it did not get to its end, "" if it did.
        arm: The arm without its paired seeds.
    """

    format: Version = FORMAT
    version: str
    stopped: str
    workload: WorkloadFacts
    quantities: list[Quantity]
    arm: ArmSummary

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.arm.phases) != len(self.workload.phases):
            raise ValueError("arm.phases: expected as many entries as workload.phases")
        return self


class KeptSeed(Figures):
    """The arms that have run under a paired seed, by slug, in seeds/<seed>.json."""

    format: Version = FORMAT
    seed: int
    arms: dict[str, SeedFigures]


def _is_number(value: JsonValue) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def in_sentence(name: str) -> str:
    """The name; in quotation marks if it has a comma, which would look like one of the
    sentence."""
    return f"“{name}”" if "," in name else name


def names_by_slug(arms: Iterable[ArmSummary]) -> dict[str, str]:
    """The names of arms as they stand in sentences."""
    return {arm.slug: in_sentence(arm.name) for arm in arms}


def and_list(names: Sequence[str]) -> str:
    """Names one after another, such as "A, B and C"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def restart_count(restarts: Sequence[Restart]) -> str:
    """How many, for a narrow place; "" if there are none."""
    if not restarts:
        return ""
    if any(restart.away_us is None for restart in restarts):
        return f"{counted(len(restarts), 'actor')} lost"
    return counted(len(restarts), "restart")
