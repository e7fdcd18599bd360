"""How long decisions of a group take: the field `decision` of a configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from parsync.strict_model import LONGEST_S, Strict
from schedulers.decision_clock import (
    PRICE_MACHINE_NS,
    Counted,
    DecisionClock,
    Measured,
    Modelled,
    ModelledByClass,
)

MOST_PRICE_NS = 1_000_000  # per machine


class ServiceTime(Strict):
    """A time for each round and each task where the tasks are service tasks."""

    job_us: int = Field(
        0, ge=0, le=LONGEST_S * 1e6, description="time of a round, whatever its tasks"
    )
    task_us: float = Field(gt=0, le=LONGEST_S * 1e6, description="time of each task in the round")


class ModelledTime(Strict):
    """A time for each round and each task that is decided on, placed or not (Omega section 4).

    Schedulers of every kind can be given the same capacity with it.
    """

    clock: Literal["modelled"] = "modelled"
    job_us: int = Field(
        0, ge=0, le=LONGEST_S * 1e6, description="time of a round, whatever its tasks"
    )
    task_us: float = Field(gt=0, le=LONGEST_S * 1e6, description="time of each task in the round")
    scan_cost: float = Field(
        0,
        ge=0,
        le=1000,
        description="extra time of a decision that looks at every partition, as a fraction of"
        " task_us; one that looks at fewer takes proportionally less (0.75 fits Figs. 5, 7b and 8"
        " of ParSync, which states no number)",
    )
    charges_kept: bool = Field(
        False,
        description="tasks that a flow scheduler keeps waiting take their time in every round",
    )

    price_machine_ns: int = Field(
        PRICE_MACHINE_NS,
        ge=0,
        le=MOST_PRICE_NS,
        description="per machine of the cell, whenever slot prices are computed anew",
    )

    service: ServiceTime | None = Field(
        None,
        description="other times for rounds about service tasks: the slow path of a scheduler with"
        " several (Omega); unset: the same",
    )

    @model_serializer(mode="wrap")
    def _plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without times of service tasks where there are none."""
        plain: dict[str, Any] = handler(self)
        return {name: value for name, value in plain.items() if value is not None}

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.service is not None and self.charges_kept:
            raise ValueError("charges_kept: not with other times for service tasks")
        return self

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, given: Any) -> Any:
        if isinstance(given, dict) and "partition_us" in given:
            raise ValueError("partition_us is now scan_cost: partition_us * partitions / task_us")
        return given

    def slowed(self, factor: float) -> ModelledTime:
        """The times with which schedulers decide on the same share of the arrivals as before, on a
        cell that is so many times smaller and gets so many times fewer tasks."""
        changed: dict[str, Any] = {
            "job_us": round(self.job_us * factor),
            "task_us": self.task_us * factor,
            # of each machine, of which there are fewer by the factor
            "price_machine_ns": min(MOST_PRICE_NS, round(self.price_machine_ns * factor * factor)),
        }
        if self.service is not None:
            changed["service"] = ServiceTime(
                job_us=round(self.service.job_us * factor), task_us=self.service.task_us * factor
            )
        return ModelledTime.model_validate({**dict(self), **changed})

    def make(self, partitions: int) -> DecisionClock:
        batch = self._modelled(self.job_us, self.task_us, partitions)
        if self.service is None:
            return batch
        slow = self._modelled(self.service.job_us, self.service.task_us, partitions)
        return ModelledByClass(batch, slow)

    def _modelled(self, job_us: int, task_us: float, partitions: int) -> Modelled:
        task_ns = task_us * 1000
        partition_ns = round(task_ns * self.scan_cost / partitions)
        return Modelled(
            job_us, round(task_ns), partition_ns, self.charges_kept, self.price_machine_ns
        )


class CountedTime(Strict):
    """Work the scheduler counts, weighted so that an operation takes about 100 ns on the machine it
    was calibrated on: deterministic."""

    clock: Literal["counted"] = "counted"
    ns_per_operation: int = Field(100, gt=0)

    def make(self, partitions: int) -> DecisionClock:
        return Counted(self.ns_per_operation)


class MeasuredTime(Strict):
    """Wall time of the computation: under the virtual runtime such a run is not repeatable."""

    clock: Literal["measured"] = "measured"

    def make(self, partitions: int) -> DecisionClock:
        return Measured()


DecisionTime = Annotated[ModelledTime | CountedTime | MeasuredTime, Field(discriminator="clock")]
