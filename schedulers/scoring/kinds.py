"""The table of the scoring kinds, a spec each, and their options.

Kubernetes, SwarmKit and Nomad are read from their public code; native/scoring_rules.hpp names the
files and functions. The formula of `stranded` is Agora's, after what Borg's paper says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from schedulers.entry_points import NoOptions
from schedulers.greedy.scheduler import DECISION
from schedulers.interface import Capability, SchedulerEnvironment
from schedulers.registry import SchedulerSpec
from schedulers.scoring.kubernetes import QueueingScheduler, QueueRules
from schedulers.scoring.scheduler import ScoringKind, ScoringRule, ScoringScheduler

_LONGEST_S = 1e6  # of any time: far beyond use, far within int64 microseconds


class KubernetesOptions(BaseModel):
    """Options of the kind `kubernetes`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    percentage_of_nodes_to_score: int = Field(
        0,
        ge=0,
        le=100,
        description="a task's search ends once so many percent of all machines, but at least 100,"
        " have passed the filters; 0: 50 less one per 125 machines, but at least 5",
    )
    scheduling_queue: bool = Field(
        False,
        description="tasks that find no room, and those whose claims are rejected, wait in"
        " Kubernetes' scheduling queue: each backs off after a failed attempt, and one without room"
        " is tried again only after the view has shown more room",
    )
    pod_initial_backoff_s: float = Field(
        1.0,
        ge=1e-6,
        le=_LONGEST_S,
        description="seconds that a task backs off after its first failed attempt; twice as long"
        " after each further one",
    )
    pod_max_backoff_s: float = Field(
        10.0,
        ge=1e-6,
        le=_LONGEST_S,
        description="the longest back-off in seconds",
    )
    pod_max_in_unschedulable_s: float = Field(
        300.0,
        ge=1e-6,
        le=_LONGEST_S,
        description="seconds after which a task without room is tried again in any case",
    )
    priority_preemption: bool = Field(
        False,
        description="a task that finds no room is nominated to a machine where it has room once"
        " tasks of lower priority, of any scheduler, have ended; needs scheduling_queue; the arm"
        ' has to allow it: evictions = "lower_priority"',
    )
    min_candidate_nodes_percentage: int = Field(
        10,
        ge=0,
        le=100,
        description="the percentage of the machines where ending tasks makes room that is compared",
    )
    min_candidate_nodes_absolute: int = Field(
        100,
        ge=1,
        le=1 << 31,
        description="the smallest number of these machines that is compared",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.pod_max_backoff_s < self.pod_initial_backoff_s:
            raise ValueError(
                f"pod_max_backoff_s: expected at least {self.pod_initial_backoff_s:g},"
                f" pod_initial_backoff_s, got {self.pod_max_backoff_s:g}"
            )
        if self.priority_preemption and not self.scheduling_queue:
            raise ValueError(
                "priority_preemption: needs scheduling_queue = true, where nominated tasks wait"
            )
        return self

    @property
    def queue_rules(self) -> QueueRules:
        return QueueRules(
            round(self.pod_initial_backoff_s * 1e6),
            round(self.pod_max_backoff_s * 1e6),
            round(self.pod_max_in_unschedulable_s * 1e6),
            self.priority_preemption,
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )


class NomadAlgorithm(StrEnum):
    """Which machines score highest (Nomad's SchedulerAlgorithm)."""

    BINPACK = "binpack"
    SPREAD = "spread"


def _algorithm(given: object) -> object:
    """An algorithm by its name."""
    names = [str(algorithm) for algorithm in NomadAlgorithm]
    if given not in names:
        raise ValueError(f"expected {' or '.join(names)}, got {given!r}")
    return NomadAlgorithm(str(given))


class NomadOptions(BaseModel):
    """Options of the kind `nomad`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    algorithm: Annotated[NomadAlgorithm, BeforeValidator(_algorithm)] = Field(
        NomadAlgorithm.BINPACK,
        description="which machines score highest: the fullest (binpack) or the emptiest (spread)",
    )

    @property
    def spreads(self) -> bool:
        return self.algorithm is NomadAlgorithm.SPREAD


class StrandedOptions(BaseModel):
    """Options of the kind `stranded`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    enough_machines: int = Field(
        100,
        ge=1,
        le=1 << 31,
        description="machines are looked at in random order until so many that pass the filters"
        " are scored",
    )


def _spec(
    kind: ScoringKind, options: type[BaseModel], settings: dict[str, str], remembers: bool = False
) -> SchedulerSpec:
    """The spec of a kind.

    Args:
        kind: Its rule.
        options: The model of its options.
        settings: Fields of ScoringRule by the option that gives them.
        remembers: Whether it reads what became of its own tasks.
    """

    def build(options: Any, environment: SchedulerEnvironment) -> ScoringScheduler:
        given = {field: getattr(options, option) for option, field in settings.items()}
        return ScoringScheduler(ScoringRule(kind, remembers=remembers, **given), environment)

    memory = Capability.WANTS_ENDS if remembers else Capability.IGNORES_CHANGES
    return SchedulerSpec(
        kind.name.lower(),
        options,
        build,
        default_decision=DECISION,
        capabilities=frozenset({memory}),
    )


def _kubernetes(options: KubernetesOptions, environment: SchedulerEnvironment) -> ScoringScheduler:
    """A scheduler of the kind `kubernetes`."""
    rule = ScoringRule(ScoringKind.KUBERNETES, options.percentage_of_nodes_to_score)
    if options.scheduling_queue:
        return QueueingScheduler(rule, options.queue_rules, environment)
    return ScoringScheduler(rule, environment)


def _of_queue(options: KubernetesOptions) -> frozenset[Capability]:
    """The capabilities of the kind `kubernetes` with these options."""
    if not options.scheduling_queue:
        return frozenset({Capability.IGNORES_CHANGES})
    preempts = {Capability.PREEMPTS} if options.priority_preemption else set()
    return frozenset({Capability.KEEPS_PENDING, *preempts})


KUBERNETES = SchedulerSpec(
    "kubernetes",
    KubernetesOptions,
    _kubernetes,
    default_decision=DECISION,
    further_capabilities=_of_queue,
)
SWARMKIT = _spec(ScoringKind.SWARMKIT, NoOptions, {}, remembers=True)
NOMAD = _spec(ScoringKind.NOMAD, NomadOptions, {"spreads": "spread"}, remembers=True)
STRANDED = _spec(ScoringKind.STRANDED, StrandedOptions, {"enough_machines": "enough"})
