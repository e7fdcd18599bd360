"""A trace of tasks as a CSV file: job, submit_s, run_s, cpu_milli and mem_mib of each."""

from pathlib import Path

from pydantic import ConfigDict, Field

from experiments.workloads.building import arriving_tasks, equal_machines, microseconds
from experiments.workloads.csv_columns import integer_column, number_column, read_named_columns
from experiments.workloads.registry import WorkloadSpec
from experiments.workloads.resampling import ResampleOptions, resampled, seeds_of_trace

COLUMNS = (
    integer_column("job"),
    number_column("submit_s"),
    number_column("run_s"),
    integer_column("cpu_milli", largest=10**6),
    integer_column("mem_mib", largest=10**9),
)


class Options(ResampleOptions):
    model_config = ConfigDict(extra="forbid")
    file: Path
    machines: int = Field(100, ge=1, le=10**6)
    cpu_milli: int = Field(8_000, ge=1, le=10**6)  # of each machine
    mem_mib: int = Field(32_768, ge=1, le=10**9)
    speedup: int = Field(1, ge=1, le=10**6)


def load(options: Options, seed: int):
    rows = read_named_columns(options.file, COLUMNS)
    workload = arriving_tasks(
        name="csv_trace",
        cell=equal_machines(
            options.machines, {"cpu_milli": options.cpu_milli, "mem_mib": options.mem_mib}
        ),
        job=rows["job"],
        submit_us=microseconds(rows["submit_s"], options.speedup),
        duration_us=microseconds(rows["run_s"], options.speedup),
        request={"cpu_milli": rows["cpu_milli"], "mem_mib": rows["mem_mib"]},
    )
    return resampled(workload, options, seed)


SPEC = WorkloadSpec(
    "csv_trace",
    Options,
    load,
    attribution="Trace: made up for this example.",
    seeds_vary=seeds_of_trace,
)
