"""Kinds of workload by name: ours, and those that other packages bring; what is wrong with one is
told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.config.flags import changed_workload, settled, trace_workload
from experiments.config.run_config import validated
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry
from experiments.workloads.synthetic import SyntheticOptions
from shared_state.errors import AgoraError
from tests.fixtures.installed import install

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
        AgoraError,
        match=r"has no option 'mashines' .did you mean 'machines'.*its options: arr",
    ):
        spec.parse_options({"mashines": 3})
    with pytest.raises(AgoraError, match="'synthetic', option 'machines': Input should be greater"):
        spec.parse_options({"machines": 0})
