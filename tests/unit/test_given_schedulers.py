"""Schedulers of one's own on the command line: --with."""

import sys
from pathlib import Path

import pytest

from experiments.config.flags import arm_beside, given_schedulers
from experiments.config.presets import default_arms, demo_scale, greedy_group
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions
from parsync.spec.decision_times import CountedTime, ModelledTime
from schedulers import registry
from schedulers.registry import registered
from shared_state.errors import AgoraError

SOURCE = """
from pydantic import BaseModel
from schedulers.decision_clock import Counted
from schedulers.registry import SchedulerSpec

class Options(BaseModel):
    pass

def build(options, environment):
    raise NotImplementedError

SPEC = SchedulerSpec({kind!r}, Options, build, Counted(1))
"""


@pytest.fixture(autouse=True)
def forgotten_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("given_"):
            del sys.modules[name]


def write(folder: Path, name: str, kind: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(SOURCE.format(kind=kind))
    return file


@pytest.mark.parametrize("form", ["{file}", "{file}:SPEC"])
def test_a_file_is_known_in_the_block_only(tmp_path, form):
    file = write(tmp_path, "given_file.py")
    path = list(sys.path)
    with registered([form.format(file=file)]) as kinds:
        assert kinds == ("mine",)
        assert registry.get("mine").kind == "mine"
        assert "first_fit" in registry.names()
        assert sys.path[: len(path)] == path  # it hides no other module
    assert sys.path == path
    assert "mine" not in registry.names()


def test_a_package_in_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path / "given_package", "module.py")
    monkeypatch.chdir(tmp_path)
    with registered(["given_package.module:SPEC"]) as kinds:
        assert kinds == ("mine",)
        assert registry.location("mine") == "given_package.module:SPEC"


def test_a_kind_that_is_known_already():
    with registered(["schedulers.greedy.kinds:FIRST_FIT"]) as kinds:
        assert kinds == ("first_fit",)


@pytest.mark.parametrize(
    ("name", "source", "location", "says"),
    [
        ("given_a.py", None, "{file}", "no such file"),
        ("given-b.py", SOURCE, "{file}", "'given-b' is not a name for a Python module"),
        ("given_c.py", "SPEC = 1", "{file}", "expected a SchedulerSpec, got a int"),
        ("given_d.py", "1 / 0", "{file}", "given_d.py, line 1: ZeroDivisionError"),
        ("given_e.py", SOURCE, "{file}:OTHER", "has no attribute 'OTHER'"),
        ("schedulers.py", SOURCE, "{file}", "is imported as 'schedulers' instead"),
        ("given_f.py", SOURCE.replace("{kind!r}", "'quincy'"), "{file}", "is registered twice"),
        ("given_h.py", SOURCE, "", "expected package.module:SPEC or FILE.py"),
        ("given_h.py", SOURCE, "..given_h:SPEC", "expected package.module:SPEC or FILE.py"),
        ("given_h.py", SOURCE, "a:b:c", "expected package.module:SPEC or FILE.py"),
        ("given_g.py", SOURCE, "given_nowhere:SPEC", "No module named 'given_nowhere'"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, name, source, location, says):
    file = tmp_path / name
    if source is not None:
        file.write_text(source.replace("{kind!r}", "'mine'"))
    path = list(sys.path)
    with pytest.raises(AgoraError) as raised, registered([location.format(file=file)]):
        pass
    assert says in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert sys.path == path


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "1000001", "", "²", "9" * 5000])
def test_a_number_that_is_none(tmp_path, number):
    file = write(tmp_path, "given_number.py")
    with (
        pytest.raises(AgoraError, match="expected SPEC=N, with N from 1 to"),
        given_schedulers([f"{file}={number}"]),
    ):
        pass


@pytest.mark.parametrize("count", [1, 8, 20])
def test_an_arm_can_decide_as_much_as_the_others(count):
    scale = demo_scale(quick=False)
    arms = default_arms(scale)
    arm = arm_beside("first_fit", count, arms)
    (group,) = arm.groups
    assert isinstance(group.decision, ModelledTime)
    assert group.count == count and arm.partitions >= count
    assert group.decision.task_us == pytest.approx(scale.equal_capacity(count).task_us)
    assert group.protocol.options.gap_s == scale.gap_s


def test_without_modelled_decision_times_there_is_nothing_to_equal():
    scale = demo_scale(quick=False)
    arms = [
        arm.model_copy(
            update={"groups": (greedy_group(scale, "optimistic", 1, decision=CountedTime()),)}
        )
        for arm in default_arms(scale)[:1]
    ]
    with pytest.raises(AgoraError, match="no arm has modelled decision times"):
        arm_beside("first_fit", 1, arms)


def test_the_main_comparison_has_the_arms_besides(tmp_path):
    file = write(tmp_path, "given_compared.py")
    with given_schedulers([str(file), f"{file}=8"]) as added:
        config = resolve(RunOptions(quick=True, added=added))
        assert [arm.name for arm in config.arms[-2:]] == ["mine", "8 mine"]
        assert len(config.arms) == len(resolve(RunOptions(quick=True)).arms) + 2
        with pytest.raises(AgoraError, match="an arm is already named 'mine'"):
            resolve(RunOptions(quick=True, added=(*added, *added)))
