"""A check of sync policies, check_sync_policy(SPEC, options): does a policy keep the contract of
sync.py?

The function makes policies for several gaps, numbers of partitions P and of agents N, and asks each
for its synchronisations as an agent does: with timers that are on time and late, and, if the policy
wants feedback, with conflicts everywhere, in one partition only, and nowhere. The rules:

- `make` raises AgoraError, and no other exception, for a gap or a number of partitions that does
  not suit the policy; it accepts at least one of the contexts tried;
- times are ints that ascend strictly with k, at most MOST_PER_GAP * max(N, P) of them in a gap;
- partitions are an int32 array of numbers in [0, P), each once, that does not change afterwards;
- every partition is refreshed at least once in any `refresh_gaps` gaps, unless the agent refreshes
  everything at every attempt;
- an agent without periodic synchronisations refreshes everything at every attempt and has a
  retry_us;
- the same question, asked twice, gets the same answer, and another policy with the same context and
  the same feedback gives the same answers, whatever other agents and other code do meanwhile;
- a policy without feedback gives the same answer for k to an agent that starts late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from parsync.protocols.optimistic.sync import (
    REFRESH_GAPS,
    CheckedSyncPolicy,
    SyncContext,
    SyncFeedback,
    SyncPolicy,
    SyncPolicyBroken,
    SyncPolicySpec,
)
from schedulers.conformance import NonConformance, move_global_draws
from schedulers.entry_points import raised
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int32, Int64

MOST_PER_GAP = 100
PERIODS = 3  # of `refresh_gaps` gaps each: for how long policies are asked
GAP_US = 500_000
# N, P: one of each, P a multiple of N, not a multiple, P = N, and fewer partitions than agents
SIZES = ((1, 1), (1, 7), (2, 8), (3, 8), (5, 5), (4, 3))
GAPS_US = (0, 1, 3, GAP_US, 10**12)  # none, too short for most, and the longest that is possible
HISTORIES = ("everywhere", "in one partition", "nowhere")  # where the conflicts are
LATE_GAPS = 2  # how late late timers are, at most

Answers = list[tuple[int, int, tuple[int, ...]]]  # k, due_us(k), partitions(k)


@dataclass(frozen=True, slots=True)
class _Case:
    """A context with what the agent sees and how late its timers are."""

    spec: SyncPolicySpec
    options: BaseModel
    context: SyncContext
    history: str
    late: bool

    def __str__(self) -> str:
        of = self.context
        return (
            f"{self.spec.kind}, gap_us={of.gap_us}, partitions={of.partitions}, "
            f"index={of.index}, agents={of.agents}, conflicts {self.history}"
            f"{', late timers' if self.late else ''}"
        )

    def require(self, condition: bool, rule: str) -> None:
        if not condition:
            raise NonConformance(f"{self}: {rule}")


def check_sync_policy(
    spec: SyncPolicySpec,
    options: Mapping[str, Any] | None = None,
    refresh_gaps: int = REFRESH_GAPS,
) -> None:
    """Check a kind of sync policy. Takes a second or two.

    Args:
        spec: The kind.
        options: As in `sync_options`.
        refresh_gaps: The most gaps G that any partition may go without a refresh.

    Raises:
        NonConformance: Naming the first rule that is broken.
        AgoraError: The options are wrong.
    """
    parsed = spec.parse_options(options or {})
    accepted = 0
    for context in _contexts():
        if not _suits(spec, parsed, context):
            continue
        accepted += 1
        for late in (False, True):
            for history in HISTORIES:
                case = _Case(spec, parsed, context, history, late)
                try:
                    _check(case, refresh_gaps)
                except SyncPolicyBroken as broken:
                    case.require(False, f"synchronisation {broken.round}: {broken.rule}")
                if not spec.make(parsed, context).wants_feedback:
                    break
    if not accepted:
        raise NonConformance(
            f"{spec.kind}: refuses every context that was tried, with P from 1 to 8, N from 1 to 5 "
            f"and gaps up to 10^12 us"
        )


def _contexts() -> Iterator[SyncContext]:
    for gap_us in GAPS_US:
        for agents, partitions in SIZES:
            for index in sorted({0, agents - 1}):
                stream = stream_key(1, "conformance", index)
                yield SyncContext(gap_us, partitions, index, agents, stream)


def _suits(spec: SyncPolicySpec, options: BaseModel, context: SyncContext) -> bool:
    """Whether `make` accepts a context. NonConformance if it raises what it must not."""
    case = _Case(spec, options, context, "", False)
    try:
        spec.make(options, context)
    except AgoraError as error:
        text = str(error)
        case.require(
            "\n" not in text and any(name in text for name in ("gap_s", "retry_s", "partitions")),
            "make: expected an AgoraError of one line that names gap_s, retry_s or partitions, "
            f"got {text!r}",
        )
        return False
    except Exception as error:
        case.require(False, f"make: expected an AgoraError, got {raised(error, spec.make)}")
    return True


def _check(case: _Case, refresh_gaps: int) -> None:
    periods_us = PERIODS * refresh_gaps * case.context.gap_us
    answers = _ask(case, periods_us, asks_twice=False)
    move_global_draws()
    for index in range(case.context.agents):  # what other agents do must not matter
        other = SyncContext(
            case.context.gap_us, case.context.partitions, index, case.context.agents, stream=index
        )
        _ask(_Case(case.spec, case.options, other, case.history, False), 2 * other.gap_us, False)
    again = _ask(case, periods_us, asks_twice=True)
    for one, two in zip(answers, again, strict=False):
        case.require(
            one == two, f"synchronisation {one[0]}: {one[1:]} in one run, {two[1:]} in another"
        )
    case.require(len(answers) == len(again), "as many synchronisations in every run")
    policy = _make(case)
    if not policy.at_every_attempt:
        _check_refreshed(case, answers, periods_us, refresh_gaps)
    if not policy.wants_feedback:
        _check_late_start(case, answers)


def _make(case: _Case) -> CheckedSyncPolicy:
    policy: SyncPolicy = case.spec.make(case.options, case.context)
    return CheckedSyncPolicy(policy, case.spec.kind, "checked", case.context.partitions)


def _ask(case: _Case, until_us: int, asks_twice: bool) -> Answers:
    """The synchronisations of one agent up to a time, asked for as SyncSchedule does."""
    policy, context = _make(case), case.context
    stream = Stream(stream_key(1, f"conformance/{case.history}", context.index))
    most = MOST_PER_GAP * max(context.agents, context.partitions)
    most *= max(1, until_us // max(1, context.gap_us)) + 1
    answers: Answers = []
    given: list[tuple[int, Int32, Int32]] = []  # arrays that must not change, with their copies
    k = 1
    due_us = policy.due_us(k)
    if due_us is None:
        case.require(
            policy.at_every_attempt and policy.retry_us is not None,
            "due_us(1): without periodic synchronisations, at_every_attempt must be true and "
            "retry_us a time",
        )
        return answers
    case.require(due_us >= 0, f"due_us(1): expected 0 or more, got {due_us}")
    while due_us is not None and due_us <= until_us:
        now_us = due_us
        if case.late and context.gap_us:
            now_us += int(stream.integers(1, LATE_GAPS * context.gap_us)[0])
        if policy.wants_feedback:
            policy.observe(_feedback(case, now_us, stream))
        while due_us is not None and due_us <= now_us:  # those that became due meanwhile, too
            partitions = policy.partitions(k)
            if asks_twice:
                same = np.array_equal(partitions, policy.partitions(k))
                case.require(same, f"partitions({k}): another answer when asked twice")
                same = due_us == policy.due_us(k) or policy.wants_feedback
                case.require(same, f"due_us({k}): another answer when asked twice")
            given.append((k, partitions, partitions.copy()))
            answers.append((k, due_us, tuple(partitions.tolist())))
            case.require(
                len(answers) <= most,
                f"time stands still: {len(answers)} synchronisations until {due_us} us, "
                f"expected at most {MOST_PER_GAP} max(N, P) in a gap",
            )
            k += 1
            due_us = policy.due_us(k)
            if asks_twice:
                case.require(
                    due_us == policy.due_us(k), f"due_us({k}): another answer when asked twice"
                )
    for number, array, copy in given:
        same = np.array_equal(array, copy)
        case.require(same, f"partitions({number}): the array was changed afterwards")
    return answers


def _feedback(case: _Case, now_us: int, stream: Stream) -> SyncFeedback:
    """What an agent might have seen: int64[P] of claims, conflicts and changed machines."""
    count = case.context.partitions
    claims: Int64 = stream.integers(count, 50) + 10
    conflicts = np.zeros(count, np.int64)
    if case.history == "everywhere":
        conflicts = stream.integers(count, 10)
    elif case.history == "in one partition":
        conflicts[0] = claims[0]
    changed, (delay_us, queued) = stream.integers(count, 100), stream.integers(2, 10_000).tolist()
    used_permille = stream.integers(count, 1001)
    return SyncFeedback(now_us, claims, conflicts, changed, delay_us, queued, used_permille)


def _check_refreshed(case: _Case, answers: Answers, until_us: int, refresh_gaps: int) -> None:
    """No partition goes without a refresh for longer than refresh_gaps gaps."""
    bound_us = refresh_gaps * case.context.gap_us
    last_us = [0] * case.context.partitions  # everything is refreshed at the start
    for _, due_us, partitions in (*answers, (0, until_us, tuple(range(len(last_us))))):
        for partition in partitions:
            waited_us = due_us - last_us[partition]
            case.require(
                waited_us <= bound_us,
                f"partition {partition} is not refreshed from {last_us[partition]} to {due_us} us: "
                f"expected once in {refresh_gaps} gaps, {bound_us} us",
            )
            last_us[partition] = due_us


def _check_late_start(case: _Case, answers: Answers) -> None:
    """Without feedback, answers follow from k: an agent that starts late leaves the first ones out,
    and gets the same for the others."""
    policy = _make(case)
    half = len(answers) // 2
    for k, due_us, partitions in answers:
        asked_us = policy.due_us(k)
        case.require(
            asked_us == due_us, f"due_us({k}): {asked_us} after a late start, not {due_us}"
        )
        if k > half:
            asked = tuple(policy.partitions(k).tolist())
            case.require(
                asked == partitions,
                f"partitions({k}): {asked} after a late start, not {partitions}",
            )
