"""What a group, and an arm as a whole, may choose of the protocol of offers. The defaults are
Mesos's own constants, where it has one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from parsync.strict_model import LONGEST_S, Name, Strict

INTERVAL_S = 1.0  # Mesos: --allocation_interval
REFUSE_S = 5.0  # Mesos: Filters.refuse_seconds
ALL_ROLES = "*"  # Mesos: the role of a framework that names none
RIVALS = "rivals"  # the role that stands for schedulers of other protocols, if there is one


def _role_path(role: str) -> str:
    """Roles form a tree, as in Mesos: "service/web" is below "service"."""
    if any(part in ("", ".", "..") for part in role.split("/")):
        raise ValueError(f"expected names with '/' between them, got {role!r}")
    return role


RolePath = Annotated[Name, AfterValidator(_role_path)]


class OffersOptions(Strict):
    """The options of a group, as they stand in a configuration."""

    role: RolePath = Field(
        ALL_ROLES,
        description="the role of the group's schedulers, by which the allocator shares the cell:"
        " first between roles, then between the roles below them (`service/web`), and the"
        " schedulers of each",
    )
    refuse_s: float = Field(
        REFUSE_S,
        ge=0,
        le=LONGEST_S,
        description="for how many seconds a scheduler is not offered again what it declined, or"
        " left of an offer; at least the allocator's interval; 0: no filter",
    )
    suppress: bool = Field(
        True,
        description="a scheduler without waiting tasks gets no offers until its next task comes;"
        " then its filters end; off: it gets offers and declines them",
    )
    gangs: Literal["wait", "hoard"] = Field(
        "wait",
        description="what a scheduler does with offers that are too small for a waiting gang: wait:"
        " it declines them, and the gang waits for offers that hold all of it; hoard: it keeps them"
        " until they do, so that two schedulers may deadlock",
    )
    node_wait_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="delay scheduling: for how many seconds a job declines machines that its tasks"
        " do not prefer, counted from its first decline, or from its last task on a preferred"
        " machine; 0: it takes any (not for kinds that keep waiting tasks themselves)",
    )
    rack_wait_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="for how many seconds after node_wait_s a job takes only machines in the racks"
        " of its preferred machines",
    )
    attempts_max: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="a job is given up after this many attempts that did not place all of its tasks"
        " (Omega's simulator of Mesos: 1000); an attempt is a decision in which the offers still"
        " had some of every resource that its tasks request; unset: never (not for kinds that keep"
        " waiting tasks themselves)",
    )
    attempts_max_unplaced: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="the same for jobs of which no task has been placed (Omega's simulator: 100);"
        " the smaller of both limits counts",
    )

    @property
    def gives_up(self) -> bool:
        """Whether jobs are given up."""
        return self.attempts_max is not None or self.attempts_max_unplaced is not None


class RoleOptions(Strict):
    """The options of a role."""

    weight: float = Field(
        1.0,
        ge=0.001,
        le=1000,
        description="how many times the share of a role of weight 1 this one gets, in thousandths",
    )
    guarantee: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the cell, in each resource, up to which the role is served before"
        " any other",
    )
    limit: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the cell, in each resource, above which the role is offered nothing",
    )

    @model_validator(mode="after")
    def _limit_holds_guarantee(self) -> Self:
        if self.limit < self.guarantee:
            raise ValueError(
                f"limit: expected at least {self.guarantee:g}, the guarantee, got {self.limit:g}"
            )
        return self


class OffersSharedOptions(Strict):
    """The options of the protocol as a whole, in an arm."""

    interval_s: float = Field(
        INTERVAL_S,
        ge=1e-6,
        le=LONGEST_S,
        description="seconds from one run of the allocator over all machines to the next",
    )
    allocation_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="seconds that a run of the allocator takes that something asked for; requests"
        " that come meanwhile are part of the same run, and runs of the interval take no time"
        " (Omega's simulator of Mesos: 0.001)",
    )
    granularity: Literal["machine", "cell", "machines", "task"] = Field(
        "machine",
        description="what one scheduler is offered at a time: machine: what is free on a machine,"
        " in turn (Mesos); cell: all that is free (Omega's simulator of Mesos); machines: what is"
        " free on `machines_per_offer` machines; task: room for one task",
    )
    machines_per_offer: int | None = Field(
        None, ge=1, description="how many machines, with granularity = machines"
    )
    freed_room_triggers: bool = Field(
        False,
        description="room that tasks free or agents decline is offered at once (then refuse_s or"
        " allocation_s is more than 0); off: in the next run over its machine, as in Mesos",
    )
    lock: bool = Field(
        True,
        description="the cell holds what is offered, so that nobody else can take it; off: offers"
        " are only announced, and a claim on one may fail",
    )
    offer_timeout_s: float | None = Field(
        None,
        ge=1e-6,
        le=LONGEST_S,
        description="after how many seconds without an answer offers end; unset: never",
    )
    sorter: Literal["drf", "random"] = Field(
        "drf",
        description="who is served first: drf: who has the least dominant share for its weight;"
        " random: drawn by weight",
    )
    rivals: Literal["subtract", "role"] = Field(
        "subtract",
        description="how the use of schedulers of other protocols counts: subtract: it is"
        " subtracted from the total of which shares are computed; role: it is the use of the role"
        " `rivals`",
    )
    roles: dict[RolePath, RoleOptions] = Field(
        default_factory=dict,
        description="by name, the `weight` of a role (default 1), and for roles of the first level"
        " `guarantee` (default 0) and `limit` (default 1), shares of the cell in each resource",
    )

    @model_validator(mode="after")
    def _says_how_many_machines(self) -> Self:
        several = self.granularity == "machines"
        if several and self.machines_per_offer is None:
            raise ValueError("machines_per_offer: missing; granularity = 'machines' requires it")
        if not several and self.machines_per_offer is not None:
            raise ValueError(
                "machines_per_offer: has no effect unless granularity is 'machines', got "
                f"{self.granularity!r}"
            )
        return self

    @model_validator(mode="after")
    def _can_keep_guarantees(self) -> Self:
        total = sum(role.guarantee for role in self.roles.values())
        if total > 1:
            raise ValueError(f"roles: guarantees: expected at most 1 together, got {total:g}")
        for name, role in self.roles.items():
            if "/" in name and (role.guarantee > 0 or role.limit < 1):
                raise ValueError(
                    f"roles: {name}: a role below another has a weight only, not a guarantee or a"
                    " limit"
                )
        return self
