"""The options of generated workloads; those of ParSync's cell (section 6), and of the demo's, which
has its ratios at a tenth of its size."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from experiments.workloads.groups import QuotaGroupJobs, check_quota_groups
from experiments.workloads.registry import Outline
from experiments.workloads.resources import MachineType, Resources, TaskShape
from parsync.strict_model import Strict

SLOTS_PER_MACHINE = 10
WARM_UP_LENGTHS = 5  # mean run times


class SyntheticOptions(Strict):
    """What to generate. The defaults are the demo's: ParSync's ratios at a tenth of its size."""

    machines: int = Field(2_000, ge=1, le=10_000_000, description="machines in the cell")
    slots_per_machine: int = Field(
        SLOTS_PER_MACHINE,
        ge=1,
        le=1_000_000,
        description="without machine_types: capacity of each machine; a task takes one slot",
    )
    machine_types: tuple[MachineType, ...] = Field(
        (),
        strict=False,
        max_length=100,
        description="capacities, e.g. {capacity = {cpu_milli = 8000, mem_mib = 32768}, weight = 2}",
    )
    task_shapes: tuple[TaskShape, ...] = Field(
        (),
        strict=False,
        max_length=1000,
        description="requests, e.g. {request = {cpu_milli = [100, 900], gpu = 0}}; tasks that "
        "request 0 of a resource use machines without it, too",
    )
    machines_per_rack: int = Field(40, ge=1, description="racks are this many consecutive machines")
    slot_score_variance: float = Field(
        0.0,
        ge=0,
        le=64,
        description="V of ParSync section 4.3: a machine's weight is exp(score - mean) with score "
        "~ N(mean, V); 0 = no scores",
    )
    mean_duration_s: float = Field(
        2.0, ge=0.001, le=1e6, description="mean run time away from preferred machines"
    )
    duration_sigma: float = Field(
        1.18,
        ge=0,
        le=4,
        description="sigma of the lognormal run time (1.18 at mean 5 s: 88 % under 10 s); 0 = "
        "every task runs exactly the mean",
    )
    batch_tasks: int = Field(
        100, ge=1, le=1_000_000, description="tasks of a batch; a batch is of one job"
    )
    job_batches_max: int = Field(8, ge=1, le=100_000, description="batches of the largest job")
    job_size_alpha: float = Field(
        1.14,
        gt=0,
        le=10,
        description="tail exponent of the bounded Pareto number of batches in a job (minimum 1)",
    )
    phase_s: float = Field(6.0, gt=0, le=1e6, description="length of each load phase")
    load_percent: tuple[Annotated[int, Field(ge=0, le=1000)], ...] = Field(
        (50, 80, 95, 80, 50),
        min_length=1,
        strict=False,
        description="offered load of each phase, in per cent of the tasks that the cell holds at "
        "once (of the tightest resource, with mean requests) / mean duration",
    )
    start: Literal["steady", "cold"] = Field(
        "steady",
        description="steady: each arm begins in a cell in equilibrium at the first phase's load, "
        "after a warm-up of its own in virtual time; cold: the cell is empty",
    )
    arrival_jitter_percent: int = Field(
        100,
        ge=0,
        le=100,
        description="batches are evenly spaced, each late by up to this share of the spacing",
    )
    poisson_arrivals: bool = Field(
        False, description="exponential gaps between batches instead of even spacing"
    )
    service_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs that are services, which never end and so add to the load for "
        "the rest of the run",
    )
    production_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs of production priority; in an arm with quotas a scheduler "
        "decides on them first within their quota group",
    )
    gang_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs whose batches are gangs: planned whole, and placed whole unless "
        "commit_mode is incremental",
    )
    quota_groups: tuple[QuotaGroupJobs, ...] = Field(
        (),
        strict=False,
        max_length=1000,
        description='quota groups that jobs belong to, e.g. {name = "ads", share = 0.3}; their '
        "shares sum to 1 in each phase",
    )
    preference_groups: int = Field(
        16,
        ge=0,
        le=100_000,
        description="groups of preferred machines; 0 = no job prefers any machine",
    )
    preference_zipf: float = Field(
        0.5,
        ge=0,
        le=8,
        description="popularity of group g is proportional to g ** -preference_zipf",
    )
    preferred_fraction: float = Field(
        0.0625, gt=0, le=1, description="share of the cell's machines in each group"
    )
    preference_overlap_percent: int | None = Field(
        None,
        ge=0,
        le=100,
        description="0: no machine is in two groups; p: so many per cent of each group's machines "
        "are drawn without regard to the other groups; unset: all are, as with 100",
    )
    preference_drift_s: float = Field(
        0,
        ge=0,
        le=1e6,
        description="how often the groups exchange their popularity at random; 0 = never",
    )
    no_preference_permille: int = Field(
        0, ge=0, le=1000, description="share of jobs that prefer no machine"
    )
    preferred_permille: int = Field(
        700,
        ge=1,
        le=1000,
        description="run time on a preferred machine, relative (alpha of ParSync section 6.4)",
    )
    rack_cost: int | None = Field(
        None,
        ge=0,
        le=1 << 30,
        description="cost of a place in a rack with preferred machines; unset = as elsewhere",
    )
    elsewhere_cost: int = Field(
        1_000, ge=0, le=1 << 30, description="cost of any other place (a preferred machine costs 0)"
    )
    unscheduled_cost: int = Field(
        2_000, ge=0, le=1 << 30, description="cost of waiting, before the waiting time"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rack_cost is not None and self.rack_cost > self.elsewhere_cost:
            raise ValueError(
                "rack_cost: a place near preferred machines cannot cost more than elsewhere_cost"
            )
        if bool(self.machine_types) != bool(self.task_shapes):
            raise ValueError("machine_types and task_shapes: expected both or none of them")
        if self.machine_types and self.slots_per_machine != SLOTS_PER_MACHINE:
            raise ValueError("slots_per_machine: has no effect with machine_types")
        chosen = self.machines_per_group
        if self.preference_overlap_percent is not None and (
            chosen * self.preference_groups > self.machines
        ):
            raise ValueError(
                f"preference_overlap_percent: {self.preference_groups} groups of {chosen} machines "
                f"cannot be disjoint in a cell of {self.machines}"
            )
        resources = self.resources()
        if self.gang_permille:
            resources.check_gang(self.batch_tasks)
        check_quota_groups(self.quota_groups, len(self.load_percent))
        if not any(self.load_percent):
            raise ValueError("load_percent: at least one phase must offer load")
        return self

    @property
    def tasks_per_s(self) -> float:
        """Arrivals at a load of 100 %."""
        return float(self.resources().tasks_at_once()[1]) / self.mean_duration_s

    @property
    def machines_per_group(self) -> int:
        """The size of each group of preferred machines."""
        return max(1, round(self.preferred_fraction * self.machines))

    def resources(self) -> Resources:
        """What machines have and tasks ask for. Raises ValueError if they do not fit together."""
        slots = MachineType(capacity={"slots": self.slots_per_machine})
        one = TaskShape(request={"slots": (1, 1)})
        return Resources.of(
            self.machines, self.machine_types or (slots,), self.task_shapes or (one,)
        )

    @property
    def warm_up_s(self) -> float:
        """How long each arm's warm-up before time 0 lasts; 0 where it begins in an empty cell:
        where it shall, no load is offered, or hardly any task would arrive."""
        length_s = WARM_UP_LENGTHS * self.mean_duration_s
        arriving = self.tasks_per_s * length_s * self.load_percent[0] / 100
        return 0.0 if self.start == "cold" or arriving < self.batch_tasks else length_s

    def outline(self) -> Outline:
        """What is known before any task is drawn."""
        return Outline(
            machines=self.machines,
            tasks=round(self.tasks_per_s * self.phase_s * sum(self.load_percent) / 100),
            phase_s=self.phase_s,
            tasks_per_s=self.tasks_per_s,
            batch_tasks=self.batch_tasks,
            service_share=self.service_permille / 1000,
            quota_groups=tuple(group.name for group in self.quota_groups),
        )

    def with_duration(self, duration_s: float) -> SyntheticOptions:
        """These options with the phases scaled so that together they take duration_s."""
        return SyntheticOptions.model_validate(
            {**self.model_dump(), **self.phase_length(duration_s)}
        )

    def phase_length(self, duration_s: float) -> dict[str, float]:
        """The option to change so that all phases together take duration_s."""
        return {"phase_s": duration_s / len(self.load_percent)}

    def cell_size(self, machines: int) -> dict[str, int]:
        """The option to change so that the cell has this many machines; loads are relative to it,
        so arrivals follow."""
        return {"machines": machines}


def demo_options(quick: bool = False) -> SyntheticOptions:
    """A tenth of ParSync's cell at its ratios: 2,000 machines x 10 slots in racks of 40, tasks of
    mean 2 s; phases of 6 s.

    Args:
        quick: Half of that cell and tasks of half the length, so as many tasks per second; a phase
            can be two task lengths then, of which one settles, in 2 s.
    """
    if not quick:
        return SyntheticOptions()
    return SyntheticOptions(
        machines=1_000, mean_duration_s=1.0, load_percent=(50, 95, 50), phase_s=2.0
    )


def paper_options() -> SyntheticOptions:
    """ParSync's cell (section 6): 200,000 machines of one slot, tasks of mean 5 s, 40,000 tasks/s
    at 100 %, phases of 60 s.

    104 groups that together prefer every machine once are calibrated on Table 1: in the five phases
    of 60 s, tau = 1 s, latency-first gets 33 % of tasks onto preferred machines, adaptive 72 % and
    quality-first 76 %. The paper's mean execution times imply 33, 64 and 74 % over all its alphas.
    The cell is empty when a run begins, as in the paper.
    """
    return SyntheticOptions(
        machines=200_000,
        slots_per_machine=1,
        mean_duration_s=5.0,
        phase_s=60.0,
        preference_groups=104,
        preferred_fraction=1 / 104,
        start="cold",
    )
