"""What a protocol says of its options is what checks, estimates, frontiers and `--with` go by,
whatever the options are called."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments.commands.run import app
from experiments.config.flags import arm_beside
from experiments.config.presets import default_arms, demo_scale
from experiments.config.run_config import RunConfig
from experiments.studies.frontiers.grid import make_grid
from experiments.toml_text import toml_text
from experiments.verification import with_names_of_now
from parsync.protocols import registry
from parsync.protocols.optimistic.protocol import SPEC as OPTIMISTIC
from parsync.protocols.spec import ProtocolSpec
from parsync.spec.arm import ArmConfig, ProtocolChoice
from parsync.strict_model import RenamedOption
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status

PERIOD_MS = 250


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    period_ms: int = Field(PERIOD_MS, ge=1, description="how often views are refreshed")
    gap_s: str = Field("none", description="no time at all")


SPEC = ProtocolSpec(
    "polling",
    Options,
    OPTIMISTIC.make_agent,
    capabilities=frozenset(),
    describe=lambda options: {"sync": f"polls every {options.period_ms} ms"},
    gap_us=lambda options: options.period_ms * 1000,
    gap_options=lambda options, gap_us: {"period_ms": gap_us // 1000},
)


@pytest.fixture(autouse=True)
def polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol is registered beside ours."""
    built_in = {**registry.BUILT_IN, "polling": f"{__name__}:SPEC"}
    monkeypatch.setattr(registry, "_GROUP", replace(registry._GROUP, built_in=built_in))


def group(**fields: Any) -> dict[str, Any]:
    given = {"name": "pollers", "count": 2, "protocol": {"kind": "polling"}}
    return {**given, "decision": {"clock": "modelled", "task_us": 100.0}, **fields}


def config(**fields: Any) -> dict[str, Any]:
    synthetic = {"kind": "synthetic", "machines": 20, "phase_s": 1.0, "mean_duration_s": 0.2}
    arm = {"name": "polling", "partitions": 2, "groups": [group()]}
    return {"settle_s": 0.1, "workload": synthetic, "arms": [arm], **fields}


def test_an_arm_has_the_gap_and_the_words_of_its_protocol() -> None:
    arm = ArmConfig.model_validate({"name": "a", "partitions": 2, "groups": [group()]})
    assert (arm.gap_s, arm.sync, arm.strategies) == (0.25, "polls every 250 ms", ())


def test_phases_are_not_shorter_than_a_gap_of_another_name() -> None:
    RunConfig.model_validate(config())
    tree = config()
    tree["arms"][0]["groups"][0]["protocol"]["period_ms"] = 3000
    with pytest.raises(ValidationError, match="shorter than the gap G of 3 s of arm 'polling'"):
        RunConfig.model_validate(tree)


def test_a_frontier_sets_a_gap_of_another_name() -> None:
    frontier = {"seeds": 1, "gap_s": [0.1, 0.2], "architectures": [{"arm": "polling"}]}
    grid = make_grid(RunConfig.model_validate(config(frontier=frontier)))
    assert [spot.arm.groups[0].protocol.gap_us for spot in grid.spots] == [100_000, 200_000]
    frontier["architectures"] = [
        {"arm": "polling", "knob": "protocol.period_ms", "values": [50, 300]}
    ]
    with pytest.raises(AgoraError, match="has no effect on 'polling', whose knob is the gap"):
        make_grid(RunConfig.model_validate(config(frontier=frontier)))


def test_an_arm_beside_it_synchronises_as_often() -> None:
    arm = ArmConfig.model_validate({"name": "a", "partitions": 2, "groups": [group()]})
    assert arm_beside("first_fit", 2, [arm]).gap_s == 0.25


def test_a_protocol_whose_gap_cannot_be_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = ProtocolChoice.model_validate({"kind": "polling"})
    with pytest.raises(AgoraError, match="'period_ms': Input should be greater than or equal to 1"):
        choice.with_gap(5)
    monkeypatch.setattr(f"{__name__}.SPEC", replace(SPEC, gap_options=None))
    with pytest.raises(AgoraError, match="protocol 'polling': its gap cannot be set"):
        choice.with_gap(1000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap_us": lambda options: 1 / 0}, "protocol 'polling': gap_us raised ZeroDivisionError"),
        ({"gap_us": lambda options: 0.5}, "gap_us: expected a whole number of us or None, got a f"),
        ({"gap_us": lambda options: -1}, "gap_us: expected 0 or more, got -1"),
        ({"describe": lambda options: 3}, "describe: expected a dict of strings, got a int"),
        ({"describe": lambda options: {"sync": 3}}, "describe: expected a dict of strings, got {"),
    ],
)
def test_a_wrong_answer_names_the_protocol(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.SPEC", replace(SPEC, **changes))
    choice = ProtocolChoice(kind="polling", options=Options())
    with pytest.raises(AgoraError, match=message):
        _ = choice.gap_us, choice.described


def test_a_scheduler_without_a_gap_has_a_time_of_its_own_after_which_it_looks_again() -> None:
    every = {"kind": "optimistic", "sync": "every_attempt"}
    now = ProtocolChoice.model_validate({**every, "retry_s": 0.5})
    with pytest.warns(
        RenamedOption, match='^gap_s under sync = "every_attempt" is now called retry_s'
    ):
        former = ProtocolChoice.model_validate({**every, "gap_s": 0.5})
    assert former == now and "gap_s" not in now.model_dump() and now.gap_us == 500_000
    assert now.with_gap(700_000).model_dump()["retry_s"] == 0.7
    with pytest.warns(RenamedOption, match="has no effect; retry_s is used"):
        both = ProtocolChoice.model_validate({**every, "gap_s": 0.1, "retry_s": 0.5})
    assert both.gap_us == 500_000
    with pytest.raises(ValidationError, match="retry_s: missing; sync = 'every_attempt' requires"):
        ProtocolChoice.model_validate(every)
    with pytest.raises(ValidationError, match="gap_s: missing; sync = 'diff_block' requires it"):
        ProtocolChoice.model_validate({**every, "sync": "diff_block", "retry_s": 0.5})


def test_a_command_says_in_one_line_that_a_file_has_the_former_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {"kind": "optimistic", "sync": "every_attempt", "gap_s": 0.5}
    tree = config(runtime="virtual")
    for name in ("a", "b"):
        groups = [group(kind="random", protocol=every)]
        tree["arms"].append({"name": name, "partitions": 2, "groups": groups})
    path = tmp_path / "run.toml"
    path.write_text(toml_text(tree), "utf-8")
    assert exit_status(app, "--config", path, "--hold") == 2
    note, error = capsys.readouterr().err.splitlines()
    assert note == (
        'note: gap_s under sync = "every_attempt" is now called retry_s; please rename it'
    )
    assert error.startswith("error: --hold: ")


def test_a_former_name_is_said_once_though_others_catch_warnings_between(
    capsys: pytest.CaptureFixture[str],
) -> None:
    renamed = typer.Typer()

    @renamed.command()
    def read_twice() -> None:
        for _ in range(2):
            ProtocolChoice.model_validate(
                {"kind": "optimistic", "sync": "every_attempt", "gap_s": 0.5}
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")

    assert exit_status(renamed) == 0
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_demo_has_both_names() -> None:
    scale = demo_scale(quick=True)
    arms = {arm.name: arm for arm in default_arms(scale)}
    assert "retry_s" in arms["Omega"].groups[0].protocol.model_dump()
    assert "gap_s" in arms["ParSync adaptive"].groups[0].protocol.model_dump()


def test_a_summary_of_an_earlier_version_is_compared_under_the_names_of_now() -> None:
    every = {"kind": "optimistic", "sync": "every_attempt", "retry_s": 0.5}
    arm = {"name": "a", "partitions": 2, "groups": [group(kind="random", protocol=every)]}
    now = RunConfig.model_validate(config(arms=[arm])).model_dump(mode="json")
    assert with_names_of_now(now) == now
    former = json.loads(json.dumps(now))
    options = former["arms"][0]["groups"][0]["protocol"]
    options["gap_s"] = options.pop("retry_s")
    assert with_names_of_now(former) == now
    del options["gap_s"]
    assert with_names_of_now(former) == former, "a field that is missing is not made up"
