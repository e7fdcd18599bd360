"""Schedulers given on the command line by --with, and the arms that they add to a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from experiments.config.presets import MOST_DIGITS, MOST_SCHEDULERS, optimistic
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from schedulers.registry import registered
from shared_state.errors import AgoraError


@contextmanager
def given_schedulers(texts: Sequence[str] | None) -> Iterator[tuple[tuple[str, int], ...]]:
    """Make the kinds of --with known in the block.

    Args:
        texts: "SPEC" or "SPEC=N" (schedulers.registry.registered has the forms of SPEC).

    Yields:
        (kind, N) of each.

    Raises:
        AgoraError: Names what cannot be used.
    """
    parts = [_parsed(text) for text in texts or ()]
    with registered([location for location, _ in parts]) as kinds:
        yield tuple(zip(kinds, (count for _, count in parts), strict=True))


def arm_beside(kind: str, count: int, arms: Sequence[ArmConfig]) -> ArmConfig:
    """An arm of `count` schedulers of a kind that together can decide as many tasks per second as
    the first of these arms whose decision times are modelled, and synchronise as often.

    A single scheduler gets the state of all partitions at once, like the single ones of the main
    comparison; several get one block of partitions after the other, as in ParSync.

    Raises:
        AgoraError: No arm has modelled decision times, or the name is taken.
    """
    name = kind if count == 1 else f"{count} {kind}"
    if any(arm.name == name for arm in arms):
        raise AgoraError(f"--with: an arm is already named {name!r}")
    for arm in arms:
        rate = _tasks_per_us(arm)
        if rate is not None:
            gap_us = arm.groups[0].protocol.gap_us
            assert gap_us is not None, "an arm with a rate has gaps"
            sync = "state_aligned" if count == 1 else "diff_block"
            group = GroupConfig(
                name=kind,
                kind=kind,
                count=count,
                protocol=optimistic(sync, gap_us / 1e6),
                decision=ModelledTime(task_us=count / rate),
            )
            return ArmConfig(name=name, partitions=max(arm.partitions, count), groups=(group,))
    raise AgoraError(
        "--with: no arm has modelled decision times, so no capacity to match; write the arm into "
        "the file, with the kind that SPEC names and a `decision`"
    )


def _tasks_per_us(arm: ArmConfig) -> float | None:
    """How many tasks all schedulers of an arm can decide in a microsecond; None if that depends on
    more than their number, or if they synchronise otherwise."""
    total = 0.0
    for group in arm.groups:
        decision = group.decision
        if (
            not isinstance(decision, ModelledTime)
            or decision.scan_cost
            or decision.job_us
            or decision.service is not None
            or group.protocol.gap_us is None
        ):
            return None
        total += group.count / decision.task_us
    return total


def _parsed(text: str) -> tuple[str, int]:
    location, equals, number = text.rpartition("=")
    if not equals:
        return text, 1
    is_number = number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS
    if not is_number or not 1 <= int(number) <= MOST_SCHEDULERS:
        raise AgoraError(
            f"--with {location}: expected SPEC=N, with N from 1 to {MOST_SCHEDULERS:,}"
        )
    return location, int(number)
