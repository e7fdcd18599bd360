"""Every kind of workload by name: ours, and those of packages with an entry point in the group
`agora.workloads`.

A new kind, a reader of one's own traces for example, is one file with a SPEC and one line: in
BUILT_IN below, or in another package's metadata,

    [project.entry-points."agora.workloads"]
    my_trace = "my_package.my_module:SPEC"

docs/add_a_workload.md is the guide, conformance.py the check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from parsync.metrics.run_frame import PlacementValue
from parsync.workload.checks import validate
from parsync.workload.workload import Workload
from schedulers.entry_points import EntryPointGroup, cause, is_model, parse_options, wrong_field
from shared_state.errors import AgoraError

Result = TypeVar("Result")

ENTRY_POINTS = "agora.workloads"
WARM_UP_S = "warm_up_s"  # the fact that says how long each arm runs before time 0
ATTRIBUTION = "attribution"  # the fact of a workload that says whose data it is
SEEDS_VARY = "seeds_vary"  # the fact that says what seeds vary of the workload

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "google2011": "experiments.workloads.google2011:SPEC",
        "service_batch": "experiments.workloads.service_batch:SPEC",
        "synthetic": "experiments.workloads.synthetic:SPEC",
    }
)


@dataclass(frozen=True, slots=True)
class Outline:
    """What the options of a workload tell before it is made.

    Args:
        machines: in the cell.
        tasks: about how many will arrive.
        phase_s: length of the shortest phase, in seconds.
        tasks_per_s: arrivals at a load of 100 %.
        batch_tasks: tasks of a batch, on average.
        service_share: share of the jobs that are services, in [0, 1].
        quota_groups: the names of the quota groups that jobs belong to, () if to none; None if only
            reading the workload tells.
        mapreduce_share: share of the jobs that are MapReduce jobs, in [0, 1].
    """

    machines: int
    tasks: int
    phase_s: float
    tasks_per_s: float
    batch_tasks: float
    service_share: float
    quota_groups: tuple[str, ...] | None = None
    mapreduce_share: float = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedRates:
    """What the options of a workload say about its arrivals, for P phases and K preference sets.

    Args:
        per_s: float64[P, K], tasks per second on average.
        mean_us: the mean run time away from preferred machines, the same for all sets.
    """

    per_s: NDArray[np.float64]
    mean_us: float


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A kind of workload.

    Args:
        kind: its name in configurations.
        options: a pydantic model. The fields of [workload] beside `kind` are its fields.
        load: makes the workload of validated options and a seed. The same options and seed must
            give the same workload on any machine: draw only from shared_state.random. Bad input is
            an AgoraError that names file and line.
        attribution: whose data it is and under which licence, for the report; "" for none.
        values: what placements are worth beyond their cost, each a figure of the report.
        outline: what is known before the workload is made; None if only reading it tells.
        with_duration: options to change so that arrivals last this many seconds (`--duration`);
            None if that cannot be chosen.
        with_machines: options to change so that the cell has this many machines and arrivals offer
            the same load to it; None if its size cannot be chosen, as with a trace.
        warm_up: what each arm runs in virtual time before time 0 of the workload, of the same
            options and seed: a workload on the same cell, with tasks, jobs and times of its own.
            What runs or waits at its end, does so at time 0 (parsync.workload.workload). None where
            the run begins as the workload says.
        expected_rates: how often tasks of each set arrive on average; None if only reading the
            workload tells. The report's bound rests on it (docs/prices.md).
    """

    kind: str
    options: type[BaseModel]
    load: Callable[[Any, int], Workload]
    attribution: str = ""
    values: Callable[[Workload], Sequence[PlacementValue]] = lambda workload: ()
    outline: Callable[[Any], Outline | None] = lambda options: None
    with_duration: Callable[[Any, float], Mapping[str, Any]] | None = None
    with_machines: Callable[[Any, int], Mapping[str, Any]] | None = None
    warm_up: Callable[[Any, int], Workload | None] = lambda options, seed: None
    expected_rates: Callable[[Any], ExpectedRates | None] = lambda options: None
    seeds_vary: Callable[[Any], str] = lambda options: ""

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("workload kind", self.kind, self.options, options)

    def path_options(self) -> tuple[str, ...]:
        """The names of the options that are files or folders, in order."""
        fields = self.options.model_fields.items()
        return tuple(name for name, field in fields if _is_path(field.annotation))

    def make(self, options: BaseModel, seed: int) -> Workload:
        """The workload of validated options and a seed, checked, with its attribution and what
        seeds vary among its facts. AgoraError naming what cannot be read, or what is wrong with the
        loader."""
        workload = self._checked(self.call(self.load, options, seed), "")
        said = {ATTRIBUTION: self.attribution, SEEDS_VARY: self.call(self.seeds_vary, options)}
        facts = {name: text for name, text in said.items() if text}
        return replace(workload, facts={**workload.facts, **facts})

    def make_warm_up(self, options: BaseModel, seed: int) -> Workload | None:
        """The warm-up before the workload of validated options and a seed, checked; None if there
        is none. Errors as make."""
        workload = self.call(self.warm_up, options, seed)
        return None if workload is None else self._checked(workload, "warm-up: ")

    def _checked(self, workload: Workload, what: str) -> Workload:
        if not isinstance(workload, Workload):
            got = type(workload).__name__
            raise AgoraError(
                f"workload kind {self.kind!r}: {what or 'load: '}expected a Workload, got a {got}"
            )
        try:
            validate(workload)
        except ValueError as error:
            raise AgoraError(
                f"workload kind {self.kind!r}: {what}not a valid workload: {error}"
            ) from error
        return workload

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call a function of this spec. What it raises becomes an AgoraError that names the line of
        the function's own file that led to it."""
        try:
            return function(*arguments)
        except AgoraError:
            raise
        except Exception as error:  # of a function that is somebody else's
            raise AgoraError(f"workload kind {self.kind!r}: {cause(error, function)}") from error


def kinds() -> tuple[str, ...]:
    """The names of all kinds, ascending."""
    return _GROUP.kinds()


def get(kind: str) -> WorkloadSpec:
    """The spec of a kind. AgoraError if there is none, or if its entry point does not lead to a
    WorkloadSpec of that name."""
    return _GROUP.get(kind)


def _is_path(annotation: Any) -> bool:
    return annotation is Path or Path in get_args(annotation)


def _wrong(spec: WorkloadSpec) -> str:
    """What is wrong with the fields of a spec, "" if nothing."""
    required = ("load", "values", "outline", "warm_up", "expected_rates", "seeds_vary")
    optional = ("with_duration", "with_machines")
    found = {name: getattr(spec, name) for name in (*required, *optional)}
    wrong = wrong_field(
        spec,
        (
            ("options", is_model(spec.options), "a BaseModel"),
            ("attribution", isinstance(spec.attribution, str), "a text"),
            *(
                (name, callable(value) or (value is None and name in optional), "a callable")
                for name, value in found.items()
            ),
        ),
    )
    if not wrong and "kind" in spec.options.model_fields:
        return "field options: no option can be called kind, which names the workload"
    return wrong


_GROUP = EntryPointGroup("workload kind", ENTRY_POINTS, BUILT_IN, WorkloadSpec, _wrong)
