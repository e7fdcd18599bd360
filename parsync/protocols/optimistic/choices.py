"""Modelling choices that the papers leave open. Each changes results, and a run names its own."""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from typing import Any

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError


class AtomicUnit(IntEnum):
    """Which claims of a transaction CommitMode.ALL_OR_NOTHING accepts together or not at all: those
    of a gang, or those of a job (Omega's simulator, whose transactions are of one job each)."""

    GANG = 0
    JOB = 1


class StrategyKind(StrEnum):
    """How an agent ranks partitions: those of ParSync section 5.2, and two of Agora's."""

    OPTIMISTIC = "optimistic"  # not at all: the whole view is one pool
    QUALITY_FIRST = "quality_first"
    LATENCY_FIRST = "latency_first"
    ADAPTIVE = "adaptive"
    FRESHEST_PREFERRED = "freshest_preferred"  # preferred machines, the freshest of them first
    PROMPT = "prompt"  # as quality-first, in rounds of a fraction of G/N

    @property
    def ranks_by_quality(self) -> bool:
        """Whether some of its batches look for the best partition."""
        return self in (StrategyKind.QUALITY_FIRST, StrategyKind.ADAPTIVE, StrategyKind.PROMPT)


class SyncMode(StrEnum):
    """The sync policies of the papers, by their names in the registry of sync policies. A
    configuration may name others."""

    STATE_ALIGNED = "state_aligned"
    STATE_STAGGERED = "state_staggered"
    DIFF_BLOCK = "diff_block"
    DIFF_SINGLE = "diff_single"
    SAME_BLOCK = "same_block"


class SlotWeighting(IntEnum):
    """How likely weighted sampling picks a slot: in proportion to its score (at variance 2 the
    weights hardly differ), or to e**score, which is what slot scores of a cell mean."""

    SCORE = 0
    EXP_SCORE = 1


class FinishRule(IntEnum):
    """When a simulation has finished: with the last commit, or with the end of the last task."""

    LAST_COMMIT = 0
    LAST_TASK_END = 1


def named(enum: type[Enum]) -> tuple[BeforeValidator, PlainSerializer]:
    """The annotations of a field that a configuration fills with the name of a member of `enum`,
    in lower case. The field itself holds the member."""
    members = {member.name.lower(): member for member in enum}
    *first, last = (repr(name) for name in members)
    expected = f"{', '.join(first)} or {last}"

    def member(value: Any) -> Any:
        if isinstance(value, enum):
            return value
        if not isinstance(value, str) or value not in members:
            raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
        return members[value]

    return (
        BeforeValidator(member),
        PlainSerializer(lambda value: value.name.lower(), return_type=str),
    )
