"""Kinds of workload: ours, those of other packages, and the reader of docs/add_a_workload.md keep
their contract; every broken promise is found, and what is wrong is told in a line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, field_serializer

from experiments.config.flags import changed_workload, settled, trace_workload
from experiments.config.run_config import validated
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry
from experiments.workloads.building import arriving_tasks, equal_machines, machines_of_types
from experiments.workloads.conformance import check_workload
from experiments.workloads.groups import group_catalog
from experiments.workloads.input_data import InputLocality
from experiments.workloads.registry import Outline, WorkloadSpec
from experiments.workloads.synthetic import SyntheticOptions
from parsync.workload.checks import validate
from parsync.workload.workload import InitialPlacement, Workload
from schedulers.conformance import NonConformance
from shared_state.errors import AgoraError
from tests.fixtures.installed import install
from tests.unit.test_workload_golden import trace

SMALL = {"machines": 20, "phase_s": 0.5, "batch_tasks": 10, "load_percent": [50]}

THEIRS = """
import dataclasses
from pathlib import Path
import numpy as np
from pydantic import BaseModel, ConfigDict
from experiments.workloads.registry import WorkloadSpec
from experiments.workloads.synthetic import generate
from experiments.workloads.synthetic import SyntheticOptions


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    file: Path | None = None
    seconds: float = 1.0


class Named(BaseModel):
    kind: str = "x"


def load(options, seed):
    made = generate(SyntheticOptions(machines=20, phase_s=options.seconds, batch_tasks=10), seed)
    return dataclasses.replace(made, name="theirs")


def careless(options, seed):
    return np.zeros(3) + np.zeros(4)


def lossy(options, seed):
    made = load(options, seed)
    return dataclasses.replace(made, arrival_rows=made.arrival_rows[:-1])


def nothing(options, seed):
    return None


def guess(options):
    return 1 / (options.seconds - options.seconds)


NUMBER = 3
GUESS = WorkloadSpec("theirs", Options, load, outline=guess)
SPEC = WorkloadSpec("theirs", Options, load, attribution="Measured by them, CC0.")
CARELESS = WorkloadSpec("theirs", Options, careless)
LOSSY = WorkloadSpec("theirs", Options, lossy)
NOTHING = WorkloadSpec("theirs", Options, nothing)
OTHER = WorkloadSpec("another", Options, load)
NO_OPTIONS = WorkloadSpec("theirs", dict, load)
NO_LOAD = WorkloadSpec("theirs", Options, None)
NO_TEXT = WorkloadSpec("theirs", Options, load, attribution=3)
NAMED = WorkloadSpec("theirs", Named, load)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install_theirs(site: Path, attribute: str = "SPEC", module: str = "their_workloads") -> None:
    files = {f"{module}.py": THEIRS}
    install(site, "theirs", f"{module}:{attribute}", files, registry.ENTRY_POINTS)


def test_ours_are_three_and_load() -> None:
    ours = ("google2011", "service_batch", "synthetic")
    assert registry.kinds() == ours
    assert tuple(registry.get(kind).kind for kind in ours) == ours
    assert registry.get("google2011").path_options() == ("directory",)
    assert registry.get("synthetic").path_options() == ()


def test_a_workload_of_another_package_is_configured_like_ours(site: Path) -> None:
    install_theirs(site)
    assert "theirs" in registry.kinds()
    config = WorkloadConfig.model_validate({"kind": "theirs", "seconds": 0.5})
    assert config.model_dump(mode="json") == {"kind": "theirs", "file": None, "seconds": 0.5}
    assert WorkloadConfig.model_validate(config.model_dump(mode="json")) == config
    assert config.outline() is None
    workload = config.make(seed=3)
    assert workload.name == "theirs" and workload.facts["attribution"] == "Measured by them, CC0."


def test_flags_know_the_options_of_every_kind(site: Path) -> None:
    install_theirs(site)
    assert trace_workload("theirs:some/file") == {"kind": "theirs", "file": "some/file"}
    with pytest.raises(AgoraError, match="expected google2011:PATH or theirs:PATH"):
        trace_workload("synthetic:x")
    theirs = {"kind": "theirs"}
    assert changed_workload(theirs, {"seconds": 2.0, "file": None}, None)["seconds"] == 2.0
    with pytest.raises(AgoraError, match="--speedup: a workload of kind 'theirs' has no option"):
        changed_workload(theirs, {"speedup": 3}, None)
    with pytest.raises(AgoraError, match="--duration: a workload of kind 'theirs' has a length of"):
        changed_workload(theirs, {}, 3.0)
    ours = changed_workload({"kind": "synthetic", **SMALL}, {}, 3.0)
    assert ours["phase_s"] == 3.0 and settled(2.0, ours, 3.0) == 1.0


@pytest.mark.parametrize(
    ("attribute", "says"),
    [
        ("MISSING", "cannot load their_workloads:MISSING"),
        ("NUMBER", "their_workloads:NUMBER is not a WorkloadSpec of that kind"),
        ("OTHER", "their_workloads:OTHER is not a WorkloadSpec of that kind"),
        ("NO_OPTIONS", "field options: expected a BaseModel, got a type"),
        ("NO_LOAD", "field load: expected a callable, got a NoneType"),
        ("NO_TEXT", "field attribution: expected a text, got a int"),
        ("NAMED", "field options: no option can be called kind"),
    ],
)
def test_a_spec_that_cannot_be_used_is_refused(site: Path, attribute: str, says: str) -> None:
    install_theirs(site, attribute)
    with pytest.raises(AgoraError, match=f"workload kind 'theirs': .*{says}"):
        registry.get("theirs")
    with pytest.raises(AgoraError, match=r"a\.toml: workload: workload kind 'theirs': "):
        validated({"workload": {"kind": "theirs"}}, "a.toml")


def test_an_unknown_kind_is_named_and_the_known_ones_listed() -> None:
    with pytest.raises(
        AgoraError, match="unknown workload kind 'azure'; known: google2011, service_batch, "
    ):
        registry.get("azure")


def test_two_packages_may_not_register_one_kind(site: Path) -> None:
    install(site, "synthetic", "other:SPEC", {}, registry.ENTRY_POINTS)
    with pytest.raises(AgoraError, match="workload kind 'synthetic' is registered twice: "):
        registry.kinds()


@pytest.mark.parametrize(
    ("attribute", "says"),
    [
        ("CARELESS", r"their_workloads\.py, line 27: ValueError: operands could not be broadcast"),
        ("LOSSY", "not a valid workload: arrival_offsets: an empty batch or rows left over"),
        ("NOTHING", "load: expected a Workload, got a NoneType"),
    ],
)
def test_a_loader_that_fails_is_named_with_its_line(site: Path, attribute: str, says: str) -> None:
    install_theirs(site, attribute)
    with pytest.raises(AgoraError, match=f"^workload kind 'theirs': .*{says}"):
        WorkloadConfig.model_validate({"kind": "theirs"}).make(seed=1)


def test_an_outline_that_fails_is_named_with_its_line(site: Path) -> None:
    install_theirs(site, "GUESS")
    protocol = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.1}
    group = {"name": "g", "kind": "random", "count": 1, "protocol": protocol}
    arm = {"name": "A", "partitions": 1, "groups": [group]}
    with pytest.raises(AgoraError, match=r"their_workloads\.py, line \d+: ZeroDivisionError"):
        validated({"workload": {"kind": "theirs"}, "arms": [arm]}, "a.toml")


def test_options_are_validated_by_the_kind() -> None:
    spec = registry.get("synthetic")
    assert spec.parse_options({"machines": 3}) == SyntheticOptions(machines=3)
    with pytest.raises(
        AgoraError, match=r"has no option 'mashines' .did you mean 'machines'.*its options: arr"
    ):
        spec.parse_options({"mashines": 3})
    with pytest.raises(AgoraError, match="'synthetic', option 'machines': Input should be greater"):
        spec.parse_options({"machines": 0})


CELL = equal_machines(10, {"cpu_milli": 1000, "mem_mib": 512}, machines_per_rack=3)


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tasks: int = 20


def made(options: Options, seed: int) -> Workload:
    n = np.arange(options.tasks)
    request = {"mem_mib": n + 1, "cpu_milli": n * 2 + 1}
    return arriving_tasks("made", CELL, n // 3 * 1000, n * 500, request, job=n // 3)


SPEC = WorkloadSpec("made", Options, made)


def test_ours_keep_the_contract(tmp_path: Path) -> None:
    small = {"machines": 50, "phase_s": 0.5, "batch_tasks": 10, "slot_score_variance": 1.0}
    synthetic = registry.get("synthetic")
    assert check_workload(synthetic, small).name == "synthetic"
    check_workload(synthetic, small | {"gang_permille": 500, "service_permille": 100}, seed=5)
    trace(tmp_path)
    google = registry.get("google2011")
    for resources in ("slots=2", "requests"):
        read = check_workload(google, {"directory": str(tmp_path), "resources": resources})
        assert {type(value) for value in google.values(read)} == {InputLocality}


def test_arriving_tasks_are_a_workload() -> None:
    workload = check_workload(SPEC)
    assert workload.cell.dimensions == ("cpu_milli", "mem_mib")
    assert workload.tasks.request[3].tolist() == [7, 4]
    assert workload.arrival_us.tolist() == [0, 1000, 2000, 3000, 4000, 5000, 6000]
    assert workload.duration_us[:2].tolist() == [1, 500], "no task runs for 0 us"
    assert workload.cell.rack.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert workload.facts["tasks_larger_than_every_machine"] == 0


def test_tasks_in_any_order_arrive_in_time_and_services_never_end() -> None:
    cell = equal_machines(2, {"slots": 2})
    workload = arriving_tasks(
        "x", cell, [30, 10, 20, 10, 40], [5, 6, 7, 8, -1], {"slots": [1, 2, 3, 0, 1]}, end_us=40
    )
    assert workload.tasks.submit_us.tolist() == [10, 10, 20, 30]
    assert workload.duration_us.tolist() == [6, 8, 7, 5]
    assert workload.tasks.request[:, 0].tolist() == [2, 1, 3, 1]
    assert len(workload.arrival_us) == 4, "each task is a job of its own"
    facts = workload.facts
    assert (facts["tasks_after_the_end_dropped"], facts["tasks_larger_than_every_machine"]) == (
        1,
        1,
    )
    whole = arriving_tasks("x", cell, [30], [-1], {"slots": [1]})
    assert whole.tasks.task_class.tolist() == [1] and whole.end_us == 31


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"request": {"slots": [1]}}, "duration_us: expected 1 values, got shape \\(2,\\)"),
        ({"request": {"cpu": [1]}, "duration_us": [1]}, "request: expected slots, got cpu"),
        ({"submit_us": [0.5], "duration_us": [1]}, "submit_us: expected integers, got float64"),
        ({"end_us": 0, "duration_us": [1]}, "x: no task arrives"),
        ({"submit_us": np.zeros(0, int), "duration_us": [1]}, "x: no task arrives"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change: dict[str, object], says: str) -> None:
    columns = {"submit_us": [0], "duration_us": [1, 2], "request": {"slots": [1]}, **change}
    with pytest.raises(AgoraError, match=says):
        arriving_tasks("x", equal_machines(2, {"slots": 2}), **columns)  # type: ignore[arg-type]


def test_gangs_priorities_machine_types_and_preferences_follow_their_tasks() -> None:
    cell = machines_of_types(
        [(2, {"cpu_milli": 8, "gpu": 0}), (1, {"gpu": 4, "cpu_milli": 4})], machines_per_rack=2
    )
    assert cell.dimensions == ("cpu_milli", "gpu")
    assert cell.capacity.tolist() == [[8, 0], [8, 0], [4, 4]] and cell.rack.tolist() == [0, 0, 1]
    sets = group_catalog([np.array([0], np.int32), np.array([2], np.int32)], cell.rack, None, 9, 99)
    workload = arriving_tasks(
        "x",
        cell,
        submit_us=[20, 10, 10, 10, 10],
        duration_us=[1, 2, 3, 4, 5],
        request={"cpu_milli": [1, 2, 3, 4, 1], "gpu": [0, 0, 1, 0, 0]},
        job=[7, 5, 5, 5, 5],
        gang=[-1, 40, 12, 40, -1],
        priority=[1, 2, 3, 4, 2**31 - 1],
        preference=[0, 1, 2, 0, 0],
        catalog=sets,
        preferred_permille=700,
    )
    validate(workload)
    tasks = workload.tasks
    assert workload.duration_us.tolist() == [5, 3, 2, 4, 1], "gangs stand together in a batch"
    assert tasks.gang.tolist() == [-1, 0, 1, 1, -1]
    assert tasks.priority.tolist() == [2**31 - 1, 3, 2, 4, 1]
    assert tasks.preference.tolist() == [0, 2, 1, 0, 0]
    assert tasks.request.tolist() == [[1, 0], [3, 1], [2, 0], [4, 0], [1, 0]]
    assert workload.catalog is sets and workload.preferred_permille == 700


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ({"gang": [3, 3, 3]}, "the tasks of gang 3 are not all of one job and submitted together"),
        ({"gang": [-2, 0, 0]}, "gang: expected -1 or numbers from 0 on, got -2"),
        ({"gang": [1, 1]}, "gang: expected 3 values"),
        ({"priority": [0, 2**31, 0]}, "priority: expected -2147483648 to .*, got 2147483648"),
        ({"preference": [0, 0, 1]}, "preference: expected 0 to 0, got 1"),
    ],
)
def test_columns_with_values_that_cannot_be_are_refused(
    column: dict[str, list[int]], says: str
) -> None:
    with pytest.raises(AgoraError, match=says):
        arriving_tasks(
            "x",
            equal_machines(2, {"slots": 2}),
            [0, 0, 5],
            [1, 1, 1],
            {"slots": [1, 1, 1]},
            job=[1, 1, 1],
            **column,  # type: ignore[arg-type]
        )


def test_types_of_machines_have_the_same_resources() -> None:
    with pytest.raises(AgoraError, match="machine types: expected cpu, got gpu"):
        machines_of_types([(1, {"cpu": 1}), (1, {"gpu": 1})])


class Unwritable(Options):
    @field_serializer("tasks")
    def _rounded(self, tasks: int) -> int:
        return tasks // 7


def by_luck(options: Options, seed: int) -> Workload:
    workload = made(options, seed)
    duration = workload.duration_us + np.random.randint(1, 1000, 20)  # noqa: NPY002
    return replace(workload, duration_us=duration)


def change(**columns: object) -> Callable[[Options, int], Workload]:
    return lambda options, seed: replace(made(options, seed), **columns)  # type: ignore[arg-type]


def outline(**fields: object) -> Callable[[Options], Outline]:
    right = {"machines": 10, "tasks": 20, "phase_s": 0.006001, "tasks_per_s": 3000.0}
    right |= {"batch_tasks": 3, "service_share": 0.0}
    return lambda _: Outline(**{**right, **fields})  # type: ignore[arg-type]


BASE = made(Options(), 1)
BROKEN = {
    "options: not the same after": WorkloadSpec("made", Unwritable, made),
    "the same options and seed gave another duration_us": WorkloadSpec("made", Options, by_luck),
    "facts.rows: expected a number or a text, got a list": WorkloadSpec(
        "made", Options, change(facts={**BASE.facts, "rows": [1]})
    ),
    "outline: 9 machines, not 10": WorkloadSpec("made", Options, made, outline=outline(machines=9)),
    "outline: 90 tasks, not about 20": WorkloadSpec(
        "made", Options, made, outline=outline(tasks=90)
    ),
    "outline: a shortest phase of 1.0 s": WorkloadSpec(
        "made", Options, made, outline=outline(phase_s=1.0)
    ),
    "warm_up: not the workload's capacity": WorkloadSpec(
        "made",
        Options,
        made,
        warm_up=lambda options, seed: change(cell=replace(CELL, capacity=CELL.capacity * 2))(
            options, seed
        ),
    ),
    "warm_up: the same options and seed gave another duration_us": WorkloadSpec(
        "made",
        Options,
        made,
        warm_up=lambda options, seed: change(
            duration_us=BASE.duration_us + np.random.randint(1, 1 << 30)  # noqa: NPY002
        )(options, seed),
    ),
    "warm_up: the workload says itself what runs at 0": WorkloadSpec(
        "made",
        Options,
        change(
            initial=InitialPlacement(np.arange(3), np.zeros(3, np.int32)),
            arrival_us=BASE.arrival_us[1:],
            arrival_offsets=BASE.arrival_offsets[1:] - 3,
            arrival_rows=BASE.arrival_rows[3:],
        ),
        warm_up=made,
    ),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_named(promise: str) -> None:
    check_workload(WorkloadSpec("made", Options, made, outline=outline()))
    with pytest.raises(NonConformance, match=f"^{promise}"):
        check_workload(BROKEN[promise])


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"duration_us": BASE.duration_us.astype(np.int32)}, "duration_us: int64"),
        ({"arrival_us": BASE.arrival_us.astype(np.float64)}, "arrival_us: int64"),
        ({"arrival_us": BASE.arrival_us[::-1]}, "arrival_us: not ascending"),
        ({"arrival_rows": BASE.arrival_rows + 1}, "arrival_rows: no such task"),
        ({"initial": InitialPlacement(np.zeros(0), np.zeros(0, np.int32))}, "initial.task: int64"),
        ({"cell": replace(BASE.cell, dimensions=("cpu", "cpu"))}, "cell.dimensions: 1 to 8 diff"),
        ({"cell": replace(BASE.cell, capacity=BASE.cell.capacity[0])}, "cell.capacity: int64.M, R"),
        ({"cell": replace(BASE.cell, capacity=BASE.cell.capacity << 40)}, "cell.capacity: above"),
        ({"cell": replace(BASE.cell, slot_score=np.zeros(10))}, "cell.slot_score: int64"),
        (
            {"catalog": replace(BASE.catalog, elsewhere_cost=np.zeros(1))},
            "catalog: elsewhere_cost and unscheduled_cost: int64",
        ),
    ],
)
def test_columns_of_another_type_or_beyond_their_range_are_refused(
    columns: dict[str, object], says: str
) -> None:
    with pytest.raises(AgoraError, match=f"workload kind 'made': not a valid workload: {says}"):
        check_workload(WorkloadSpec("made", Options, change(**columns)))


ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "workloads"
PAGE = ROOT / "docs" / "add_a_workload.md"


@pytest.fixture
def spec(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> registry.WorkloadSpec:
    monkeypatch.syspath_prepend(example_site("workloads"))
    monkeypatch.delitem(sys.modules, "csv_trace", raising=False)
    return registry.get("csv_trace")


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in ("csv_trace/__init__.py", "pyproject.toml"):
        assert (EXAMPLE / name).read_text(encoding="utf-8") in page
    assert len((EXAMPLE / "csv_trace" / "__init__.py").read_text().splitlines()) < 60


def test_the_example_keeps_the_contract(spec: registry.WorkloadSpec) -> None:
    workload = check_workload(spec, {"file": EXAMPLE / "tasks.csv", "machines": 25})
    text = (EXAMPLE / "tasks.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split(",") for line in text]
    assert len(workload.tasks) == len(rows) == 499
    assert workload.cell.dimensions == ("cpu_milli", "mem_mib")
    assert workload.tasks.submit_us.tolist() == [round(float(row[1]) * 1e6) for row in rows]
    assert workload.tasks.request.tolist() == [[int(row[3]), int(row[4])] for row in rows]
    # the tasks of a job came together, so there is one batch for each
    assert len(workload.arrival_us) == len({row[0] for row in rows})


HEADER = "job,submit_s,run_s,cpu_milli,mem_mib"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": expected a line with the names of the columns, got nothing"),
        (f"{HEADER}\n", ": holds no rows"),
        ("job,submit_s\n1,2\n", ", line 1: no column named run_s; its columns: job, submit_s"),
        (f"{HEADER},job\n1,2,3,4,5,6\n", ", line 1: more than one column named job; its columns"),
        (f"{HEADER}\n1,0,1,1,1\n1,-2,1,1,1\n", ", line 3, submit_s: '-2', expected a number in"),
        (f"{HEADER}\n1,0,x,1,1\n", ", line 2, run_s: 'x', expected a number in [0, 1e+09]"),
        (f"{HEADER}\n1,0,nan,1,1\n", ", line 2, run_s: 'nan', expected a number in"),
        (f"{HEADER}\n1,0,inf,1,1\n", ", line 2, run_s: 'inf', expected a number in"),
        (f"{HEADER}\n1,0,1,,1\n", ", line 2, cpu_milli: nothing, expected an integer in"),
        (f"{HEADER}\n1,0,1,-1,1\n", ", line 2, cpu_milli: '-1', expected an integer in [0, 10000"),
        (f"{HEADER}\n1,0,1,1.5,1\n", ", line 2, cpu_milli: '1.5', expected an integer"),
        (f"{HEADER}\n1,0,1,1,1\n1,0,1,1\n", ", line 3: expected 5 fields, got 4"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(
    spec: registry.WorkloadSpec, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "tasks.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AgoraError) as refused:
        spec.make(spec.parse_options({"file": file}), seed=1)
    assert str(refused.value).startswith(f"{file}{says}") and "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_not_compressed(
    spec: registry.WorkloadSpec, tmp_path: Path
) -> None:
    (tmp_path / "tasks.csv.gz").write_text(HEADER)
    for name, says in (("gone.csv", "No such file"), (".", "Is a dir"), ("tasks.csv.gz", "gzip")):
        with pytest.raises(AgoraError, match=says):
            spec.make(spec.parse_options({"file": tmp_path / name}), seed=1)


def test_columns_may_stand_in_any_order_among_others(
    spec: registry.WorkloadSpec, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.csv"
    file.write_bytes(
        b"\xef\xbb\xbfnote,mem_mib,cpu_milli,run_s, submit_s,job\r\n"
        b"late,2,1,0,7.5,4\r\nearly,20,10,1e-3,0.25,4\r\n"
    )
    workload = spec.make(spec.parse_options({"file": file, "speedup": 2}), seed=1)
    assert workload.tasks.submit_us.tolist() == [125_000, 3_750_000]
    assert workload.tasks.request.tolist() == [[10, 20], [1, 2]]
    assert workload.duration_us.tolist() == [500, 1] and workload.end_us == 3_750_001
    assert np.array_equal(workload.tasks.job, [0, 0])
