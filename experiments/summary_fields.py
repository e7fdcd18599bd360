"""Checks of every field of a summary.json, and of the files it is made from after a kill, before it
is used: a file may be of another version, truncated, or changed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from experiments.quantities import QUANTITIES
from shared_state.errors import AgoraError

LARGEST = 1e30  # of a figure: it can be added, drawn and shown
LARGEST_INTEGER = (1 << 63) - 1
DEEPEST = 40  # of nested values

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0)]
_MaybeNumber = Number | None


class _Fields(BaseModel):
    """Others may be there, too."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Figures(_Fields):
    """Figures of a set of schedulers over some windows; more of them by name (QUANTITIES)."""

    submitted: _MaybeNumber
    censored: _MaybeNumber
    incomplete: bool = False
    at_least: dict[str, _MaybeNumber] = {}


_Scope: Any = create_model(
    "_Scope",
    __base__=_Figures,
    **{key: (_MaybeNumber, None) for key in QUANTITIES if key != "censored"},  # type: ignore[call-overload]
)


class _Overall(_Scope):
    claims: Count
    delay_mean_us: _MaybeNumber
    preferred_share: _MaybeNumber


class _Phase(_Fields):
    start_us: Number
    end_us: Number
    load_percent: _MaybeNumber


class _Facts(_Fields):
    tasks_pending_at_start: Count = 0


class _Workload(_Fields):
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
    mean_duration_us: _MaybeNumber = None
    phases: list[_Phase]
    facts: _Facts


class _Interval(_Fields):
    mean: _MaybeNumber
    low: _MaybeNumber
    high: _MaybeNumber
    missing: Count = 0
    at_least: bool = False


class _Difference(_Interval):
    relative: _MaybeNumber
    relative_low: _MaybeNumber
    relative_high: _MaybeNumber
    lower_in: Count
    higher_in: Count
    certain: bool
    at_most: bool = False


class _Paired(_Fields):
    seeds: list[int]
    baseline: str | None
    arms: dict[str, dict[str, _Interval]]
    differences: dict[str, dict[str, _Difference]]


class _Seed(_Fields):
    seed: int
    overall: _Scope
    workload: str = ""


class _Totals(_Fields):
    submitted: _MaybeNumber


class _Group(_Fields):
    name: str
    agents: list[Count]
    overall: _Scope


class _Staleness(_Fields):
    mean_us: list[_MaybeNumber]


class _Decision(_Fields):
    at_us: Number
    regret: Number
    tasks: Annotated[int, Field(ge=1)]
    exact: bool


class _Instant(_Fields):
    at_us: Number
    without_migration: Number
    with_migration: Number
    exact: bool


class _Regret(_Fields):
    decision: list[_Decision] = []
    system: list[_Instant] = []


class _Capacity(_Fields):
    group: str
    low: Number
    high: Number


class _Restart(_Fields):
    actor: str
    at_us: Number
    away_us: _MaybeNumber


class _Arm(_Fields):
    name: str
    slug: str = Field(pattern=r"^[a-z0-9-]+$")
    mix: list[dict[str, Any]]
    sync: str
    decision_clock: str
    decision_capacity: list[_Capacity] = []
    clock_notes: dict[str, Any]
    partial: bool
    restarts: list[_Restart] = []
    digest: str
    overall: _Overall
    phases: list[_Scope]
    groups: list[_Group]
    agents: list[_Scope]
    totals: _Totals
    start: _Scope | None = None
    rivals: list[list[Number]]
    staleness: _Staleness
    regret: _Regret
    seeds: list[_Seed]


class _Summary(_Fields):
    digest: str
    seed: int
    workload: _Workload
    arms: list[_Arm]
    paired: _Paired
    runtime: str
    version: str
    partial: bool
    partial_reason: str
    settle_us: Count
    config: dict[str, Any]


class _KeptArm(_Fields):
    version: str
    stopped: str
    workload: _Workload
    arm: _Arm


class _ArmOfSeed(_Fields):
    digest: str
    workload: str
    overall: _Scope


class _KeptSeed(_Fields):
    seed: int
    arms: dict[str, _ArmOfSeed]


_EXPECTED = {
    "bool": "true or false",
    "dict": "an object",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "an object",
    "string": "a text",
}


def check_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Raises AgoraError naming the file and the first field that cannot be used."""
    _check(path, _Summary, summary)
    for field, wrong in _inconsistent(summary):
        raise AgoraError(f"{path}: field {field}: {wrong}")


def check_kept_arm(path: Path, content: Mapping[str, Any]) -> None:
    """The same of an arm's figures.json."""
    _check(path, _KeptArm, content)
    no_seeds: dict[str, Any] = {"seeds": [], "arms": {}, "differences": {}}
    alone = {"workload": content["workload"], "arms": [content["arm"]], "paired": no_seeds}
    for field, wrong in _inconsistent(alone):
        raise AgoraError(f"{path}: field {field.replace('arms[0]', 'arm')}: {wrong}")


def check_seed(path: Path, content: Mapping[str, Any]) -> None:
    """The same of the file of a paired seed."""
    _check(path, _KeptSeed, content)


def _check(path: Path, fields: type[_Fields], content: Mapping[str, Any]) -> None:
    _check_plain(path, "", content, 0)
    try:
        fields.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise AgoraError(f"{path}: field {_named(first['loc'])}{_wrong(first)}") from error


def _wrong(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong with a field."""
    kind, got = error["type"], error["input"]
    if kind == "missing":
        return " is missing"
    expected = _EXPECTED.get(kind.removesuffix("_type"))
    if expected is None:
        return f": {error['msg'][0].lower()}{error['msg'][1:]}, got {_shown(got)}"
    return f": expected {expected}, got {_shown(got)}"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:39]}…"


def _named(place: tuple[int | str, ...]) -> str:
    """arms[0].overall.delay_mean_us"""
    name = ""
    for before, part in pairwise(("", *place)):
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if before != "" else part
    return name


def _check_plain(path: Path, place: str, value: Any, depth: int) -> None:
    """No value, named or not, is beyond what can be shown and written again."""
    if depth > DEEPEST:
        raise AgoraError(f"{path}: field {place}: nested too deeply")
    if isinstance(value, dict):
        for name, part in value.items():
            _check_plain(path, place, name, depth)
            _check_plain(path, f"{place}.{name}" if place else name, part, depth + 1)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _check_plain(path, f"{place}[{number}]", part, depth + 1)
    elif isinstance(value, str):
        if not value.isprintable() and not _is_text(value):
            raise AgoraError(f"{path}: field {_written(place)}: expected Unicode text")
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise AgoraError(f"{path}: field {place}: expected a number of at most 63 bits")
    elif isinstance(value, float) and not abs(value) <= LARGEST:
        raise AgoraError(f"{path}: field {place}: expected a number, got {value:g}")


def _is_text(value: str) -> bool:
    """Lone surrogates can be read from JSON, but not written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _written(place: str) -> str:
    return place.encode("utf-8", "backslashreplace").decode()


def _inconsistent(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Fields that do not go together with others, and why."""
    found: list[tuple[str, str]] = []
    workload, paired = summary["workload"], summary["paired"]
    if len(workload["dimensions"]) != len(workload["capacity"]):
        found.append(("workload.capacity", "expected one number per dimension"))
    slugs = [arm["slug"] for arm in summary["arms"]]
    for number, arm in enumerate(summary["arms"]):
        place = f"arms[{number}]"
        if slugs.count(arm["slug"]) > 1:
            found.append((f"{place}.slug", f"{arm['slug']!r} appears twice"))
        if len(arm["phases"]) != len(workload["phases"]):
            found.append((f"{place}.phases", "expected as many entries as workload.phases"))
        for k, group in enumerate(arm["groups"]):
            if any(agent >= len(arm["agents"]) for agent in group["agents"]):
                found.append(
                    (f"{place}.groups[{k}].agents", f"expected indices into {place}.agents")
                )
        if len({len(row) for row in arm["rivals"]}) > 1 or [] in arm["rivals"]:
            found.append((f"{place}.rivals", "expected rows of equal length"))
        for name, value in arm["clock_notes"].items():
            if name.endswith(("_us", "_share", "_s")) and not _is_number(value):
                found.append((f"{place}.clock_notes.{name}", "expected a number"))
        missing = set(paired["seeds"]) - {row["seed"] for row in arm["seeds"]}
        if missing:
            found.append(("paired.seeds", f"{place}.seeds has no seed {min(missing)}"))
        if paired["seeds"] and arm["slug"] not in paired["arms"]:
            found.append(("paired.arms", f"{arm['slug']!r} is missing"))
    for of, intervals in (("arms", paired["arms"]), ("differences", paired["differences"])):
        for slug, by_key in intervals.items():
            for key, interval in by_key.items():
                limits = (interval["mean"], interval["low"], interval["high"])
                if limits[1] is not None and None in limits:
                    found.append((f"paired.{of}.{slug}.{key}", "expected mean and both limits"))
    return found


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
