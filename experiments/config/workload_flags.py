"""The workload that command-line flags choose or change: --trace, the flags named after options,
and --duration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry
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
