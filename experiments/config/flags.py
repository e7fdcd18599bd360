"""What flags of the command line say: the workload (--trace, --duration, those named after
options), schedulers given by --with, and numbers joined by commas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from experiments.config.presets import MOST_DIGITS, MOST_SCHEDULERS, optimistic
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from schedulers.registry import registered
from shared_state.errors import AgoraError

TRACES = "AGORA_TRACES"  # environment: the folder that holds one folder for each kind of trace
SETTLE_PART = 3  # --duration settles for at most this part of a phase


def trace_workload(trace: str) -> dict[str, Any]:
    """The [workload] of --trace KIND:PATH, or of --trace KIND for the folder KIND below
    $AGORA_TRACES. Raises AgoraError."""
    kind, separator, path = trace.partition(":")
    readers = {name: registry.get(name).path_options() for name in _readable(kind)}
    if not readers.get(kind) or (separator and not path):
        known = " or ".join(f"{name}:PATH" for name, options in readers.items() if options)
        raise AgoraError(f"--trace {trace}: expected {known}")
    if not separator:
        root = os.environ.get(TRACES)
        if not root:
            raise AgoraError(f"--trace {trace}: name the path ({kind}:PATH) or set {TRACES}")
        path = str(Path(root) / kind)
    return {"kind": kind, readers[kind][0]: path}


def _readable(kind: str) -> list[str]:
    """The kinds that can be loaded. A broken one counts only if it is the one asked for."""
    names = []
    for name in registry.kinds():
        try:
            registry.get(name)
        except AgoraError:
            if name == kind:
                raise
        else:
            names.append(name)
    return names


def changed_workload(
    workload: Mapping[str, Any], flags: Mapping[str, object], duration_s: float | None
) -> dict[str, Any]:
    """The [workload] after the changes that command-line flags make.

    Args:
        flags: Values by the names of options, None where not given.

    Raises:
        AgoraError: Names a flag that this kind of workload has no option for.
    """
    kind = workload["kind"]
    spec = registry.get(kind)
    changed = dict(workload)
    for name, value in flags.items():
        if value is None:
            continue
        if name not in spec.options.model_fields:
            raise AgoraError(f"--{name}: a workload of kind {kind!r} has no option {name!r}")
        changed[name] = value
    if duration_s is None:
        return changed
    if spec.with_duration is None:
        raise AgoraError(f"--duration: a workload of kind {kind!r} has a length of its own")
    config = _parsed(changed)
    if config is None:
        return changed
    return {**changed, **spec.call(spec.with_duration, config.options, duration_s)}


def settled(settle_s: float, workload: Mapping[str, Any], duration_s: float) -> float:
    """The time to leave out at the start of each phase of a workload that lasts duration_s."""
    config = _parsed(workload)
    outline = None if config is None else config.outline()
    phase_s = duration_s if outline is None else outline.phase_s
    return min(settle_s, phase_s / SETTLE_PART)


def _parsed(workload: Mapping[str, Any]) -> WorkloadConfig | None:
    """The options, validated; None if something is wrong with them, because the whole configuration
    is then refused."""
    try:
        return WorkloadConfig.model_validate(workload)
    except ValidationError:
        return None


@contextmanager
def given_schedulers(texts: Sequence[str] | None) -> Iterator[tuple[tuple[str, int | None], ...]]:
    """Make the kinds of --with known in the block.

    Args:
        texts: "SPEC" or "SPEC=N" (schedulers.registry.registered has the forms of SPEC).

    Yields:
        (kind, N) of each; N is None if it was not given.

    Raises:
        AgoraError: Names what cannot be used.
    """
    parts = [_kind_and_count(text) for text in texts or ()]
    with registered([location for location, _ in parts]) as kinds:
        yield tuple(zip(kinds, (count for _, count in parts), strict=True))


def is_used(kind: str, arms: Sequence[ArmConfig]) -> bool:
    """Whether a group of one of these arms is of this kind, or has the flow policy of this name."""
    return any(
        kind in (group.kind, group.options.get("policy")) for arm in arms for group in arm.groups
    )


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
        f"--with: cannot add an arm of {kind!r}: no arm has modelled decision times, whose "
        f'capacity it would have; write an arm with `kind = "{kind}"` and a `decision` into the '
        "file, and --with makes the kind known"
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


def _kind_and_count(text: str) -> tuple[str, int | None]:
    location, equals, number = text.rpartition("=")
    if not equals:
        return text, None
    is_number = number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS
    if not is_number or not 1 <= int(number) <= MOST_SCHEDULERS:
        raise AgoraError(
            f"--with {location}: expected SPEC=N, with N from 1 to {MOST_SCHEDULERS:,}"
        )
    return location, int(number)


Number = TypeVar("Number", int, float)


def numbers_of(option: str, text: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Return the numbers of "50,80,95".

    Raises:
        AgoraError: A part is no number, or one appears twice; the error names the option.
    """
    try:
        found = tuple(kind(part.strip()) for part in text.split(","))
    except ValueError as error:
        raise AgoraError(f"{option} {text}: expected numbers joined by commas") from error
    if len(set(found)) < len(found):
        raise AgoraError(f"{option} {text}: a value appears twice")
    return found
