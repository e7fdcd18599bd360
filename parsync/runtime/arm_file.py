"""What an arm was made of, in a file beside its logs: its schedulers and how they synchronise, as
the runtimes take them (ArmSpec), and what a run in virtual time needs besides.

With the workload's files (workload_files.py) that is all a replay needs. Schedulers are named by
their registered kind; no code is read from a run directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parsync.protocols import registry as protocols
from parsync.protocols.capability import ProtocolCapability
from parsync.runtime.arm_spec import ArmSpec, GroupSpec, ProtocolChoice
from parsync.runtime.calibration import Calibration
from parsync.runtime.json_files import field_of, read_json, write_json
from parsync.runtime.plain import from_plain, to_plain
from parsync.spec.protocol_checks import check_protocols
from schedulers import registry
from schedulers.decision_time import Counted, DecisionClock, Measured, Modelled, ModelledByClass
from shared_state.errors import AgoraError
from shared_state.transaction import EvictionPolicy

ARM_FILE = "arm.json"
FORMAT = 2
OLD_FILE = "assembly.pickle"  # what older versions wrote, which is never read

_CLOCKS: dict[str, type[Modelled | ModelledByClass | Counted | Measured]] = {
    "modelled": Modelled,
    "modelled_by_class": ModelledByClass,
    "counted": Counted,
    "measured": Measured,
}
_OF_KIND = "default"
_MOST_AGENTS = 1 << 20


@dataclass(frozen=True, slots=True)
class InVirtualTime:
    """How long a run in virtual time goes on past its workload's end, and how long each message is
    under way; or, instead of that, the live runtime's times."""

    drain_us: int
    message_us: int
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True)
class ArmFile:
    """spec: the arm. workload: the digest of its workload's files. virtual: None for a live run."""

    spec: ArmSpec
    workload: str
    virtual: InVirtualTime | None


def write_arm(directory: Path, arm: ArmFile) -> str:
    """Into an existing directory; the digest of the file. AgoraError if it cannot be written, or a
    scheduler's decision clock is none that another process could make again."""
    groups = [
        {
            **to_plain(group),
            "clock": _plain_clock(group.kind, group.clock),
            "protocol": {
                "kind": group.protocol.kind,
                **group.protocol.options.model_dump(mode="json"),
            },
        }
        for group in arm.spec.groups
    ]
    spec = {**to_plain(arm.spec), "groups": groups}
    shared = spec.pop("shared_options")
    if shared:  # without, the file is as before there were any
        spec["shared_options"] = {
            kind: options.model_dump(mode="json") for kind, options in shared.items()
        }
    if spec["quotas"] is None:  # likewise
        del spec["quotas"]
    if arm.spec.evictions is EvictionPolicy.OWN:
        del spec["evictions"]
    content = {
        "format": FORMAT,
        "arm": spec,
        "workload": arm.workload,
        "virtual": to_plain(arm.virtual),
    }
    return write_json(directory / ARM_FILE, content)


def read_arm(directory: Path) -> ArmFile:
    """The arm of a directory. AgoraError naming the file and field at fault, or the older version's
    file that stands in its place."""
    path = directory / ARM_FILE
    if not path.exists() and (directory / OLD_FILE).exists():
        raise AgoraError(
            f"{directory / OLD_FILE}: this run was made by an older version of Agora; replaying it"
            " needs the version that made it (summary.json names it)"
        )
    content = read_json(path, FORMAT)
    readers = {
        DecisionClock: _read_clock,
        Mapping[str, Any]: _read_options,
        Mapping[str, BaseModel]: _read_shared_options,
        ProtocolChoice: _read_protocol,
    }
    arm = content.get("arm")
    if isinstance(arm, dict):
        arm = {"shared_options": {}, **arm}
    spec = from_plain(ArmSpec, arm, f"{path}: arm", readers)
    _check(path, spec)
    virtual = content.get("virtual")
    if virtual is not None:
        virtual = from_plain(InVirtualTime, virtual, f"{path}: virtual", {})
        if virtual.drain_us < 0 or virtual.message_us < 0:
            raise AgoraError(f"{path}: virtual: expected times of 0 or more")
        if virtual.calibration is not None and (wrong := virtual.calibration.wrong()):
            raise AgoraError(f"{path}: virtual.calibration.{wrong}")
    return ArmFile(spec, field_of(path, content, "workload", str), virtual)


def _check(path: Path, spec: ArmSpec) -> None:
    """What the configuration of a run checks before it begins."""
    _require(path, len(spec.groups) > 0, "groups: expected at least one")
    for name in ("partitions", "heartbeat_us", "sample_us"):
        _require(path, getattr(spec, name) > 0, f"{name}: expected 1 or more")
    _require(path, spec.seed >= 0, "seed: expected 0 or more")
    for place, group in enumerate(spec.groups):
        _check_group(path, f"groups[{place}]", group)
    _require(path, spec.agents <= _MOST_AGENTS, f"groups: more than {_MOST_AGENTS} schedulers")
    try:
        check_protocols(spec)
    except AgoraError as error:
        raise AgoraError(f"{path}: arm: {error}") from error


def _check_group(path: Path, where: str, group: GroupSpec) -> None:
    _require(path, group.count > 0, f"{where}.count: expected 1 or more")
    try:
        capabilities = protocols.get(group.protocol.kind).capabilities_of(group.protocol.options)
    except AgoraError as error:
        raise AgoraError(f"{path}: arm.{where}: {error}") from error
    runs_schedulers = ProtocolCapability.RUNS_SCHEDULERS in capabilities
    _require(
        path,
        runs_schedulers == (group.kind is not None),
        f"{where}.kind: expected {'a kind of scheduler' if runs_schedulers else 'none'}",
    )
    if group.kind is None:
        return
    try:
        registry.get(group.kind).parse_options(group.options)
    except AgoraError as error:
        raise AgoraError(f"{path}: arm.{where}: {error}") from error


def _require(path: Path, holds: bool, message: str) -> None:
    if not holds:
        raise AgoraError(f"{path}: arm.{message}")


def _read_options(plain: Any, where: str) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise AgoraError(f"{where}: expected an object")
    return plain


def _read_shared_options(plain: Any, where: str) -> dict[str, BaseModel]:
    shared: dict[str, BaseModel] = {}
    for kind, options in _read_options(plain, where).items():
        values = _read_options(options, f"{where}.{kind}")
        try:
            shared[kind] = protocols.get(kind).parse_shared_options(values)
        except AgoraError as error:
            raise AgoraError(f"{where}: {error}") from error
    return shared


def _plain_clock(kind: str | None, clock: DecisionClock) -> dict[str, Any]:
    for name, known in _CLOCKS.items():
        if type(clock) is known:
            return {"clock": name, **to_plain(clock)}
    if kind is not None and clock is registry.get(kind).default_decision:
        return {"clock": _OF_KIND, "kind": kind}
    raise AgoraError(f"scheduler kind {kind!r}: its decision clock cannot be written to a file")


def _read_clock(plain: Any, where: str) -> DecisionClock:
    values = dict(_read_options(plain, where))
    name = values.pop("clock", None)
    if name == _OF_KIND:
        return registry.get(str(values.get("kind"))).default_decision
    if not isinstance(name, str) or name not in _CLOCKS:
        raise AgoraError(f"{where}.clock: expected one of {', '.join((*_CLOCKS, _OF_KIND))}")
    try:
        return from_plain(_CLOCKS[name], values, where, {})
    except ValueError as error:
        raise AgoraError(f"{where}: {error}") from error


def _read_protocol(plain: Any, where: str) -> ProtocolChoice:
    values = dict(_read_options(plain, where))
    kind = values.pop("kind", None)
    if not isinstance(kind, str):
        raise AgoraError(f"{where}.kind: expected the name of a protocol")
    try:
        return ProtocolChoice(kind, protocols.get(kind).parse_options(values))
    except AgoraError as error:
        raise AgoraError(f"{where}: {error}") from error
