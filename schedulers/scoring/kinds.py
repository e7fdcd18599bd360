"""The table of the scoring kinds, a spec each, and their options.

Kubernetes, SwarmKit and Nomad are read from their public code; native/scoring_rules.hpp names the
files and functions. The formula of `stranded` is Agora's, after what Borg's paper says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from schedulers.entry_points import NoOptions
from schedulers.greedy.scheduler import DECISION
from schedulers.interface import Capability, SchedulerEnvironment
from schedulers.registry import SchedulerSpec
from schedulers.scoring.scheduler import ScoringKind, ScoringRule, ScoringScheduler


class KubernetesOptions(BaseModel):
    """Options of the kind `kubernetes`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    percentage_of_nodes_to_score: int = Field(
        0,
        ge=0,
        le=100,
        description="a task's search ends once so many percent of all machines, but at least 100,"
        " have passed the filters; 0: 50 less one per 125 machines, but at least 5",
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


KUBERNETES = _spec(
    ScoringKind.KUBERNETES, KubernetesOptions, {"percentage_of_nodes_to_score": "percentage"}
)
SWARMKIT = _spec(ScoringKind.SWARMKIT, NoOptions, {}, remembers=True)
NOMAD = _spec(ScoringKind.NOMAD, NomadOptions, {"spreads": "spread"}, remembers=True)
STRANDED = _spec(ScoringKind.STRANDED, StrandedOptions, {"enough_machines": "enough"})
