"""What an arm was made of, in a file: it comes back as it was, and faults are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from parsync.spec.arm import ArmConfig, GroupConfig
from experiments.presets import default_arms, demo_scale, mix_arm, optimistic, paper_scale
from parsync.runtime.arm_file import ARM_FILE, ArmFile, InVirtualTime, read_arm, write_arm
from schedulers import registry
from schedulers.decision_time import Counted, Measured, Modelled, ModelledByClass
from schedulers.registry import SchedulerSpec
from shared_state.errors import AgoraError
from tests.fixtures.live_runs import mixed_arm

DEMO = demo_scale(quick=False)
ARMS = [*default_arms(DEMO), mix_arm("latency_first=8,firmament=1", paper_scale())]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize("live", [False, True])
def test_every_arm_comes_back(arm: ArmConfig, live: bool, tmp_path: Path) -> None:
    spec = arm.spec(7, 1000, 100_000, live)
    virtual = None if live else InVirtualTime(10_000_000, 250)
    written = ArmFile(spec, "0" * 32, virtual)
    write_arm(tmp_path, written)
    assert read_arm(tmp_path) == written


def test_every_setting_of_a_group_comes_back(tmp_path: Path) -> None:
    group = GroupConfig(
        name="“fast” ✓",
        kind="quincy",
        count=2,
        options={"preemption": True, "certify_every": 3},
        task_class="service",
        protocol=optimistic(
            "every_attempt",
            0.1,
            sync_set="both",
            strategy="adaptive",
            tau_s=0.5,
            freed_at_once=True,
            commit_pipelining=False,
            conflict_check="sequence_number",
            commit_mode="all_or_nothing",
            cut_at_sync=False,
        ),
    )
    protocol = optimistic("diff_block", 0.1, sync_set="both", losers="requeue")
    other = GroupConfig(name="other", kind="random", count=1, task_class="batch", protocol=protocol)
    arm = ArmConfig(name="a", partitions=3, groups=(group, other))
    spec = arm.spec(7, 1000, 100_000, live=False)
    write_arm(tmp_path, ArmFile(spec, "", None))
    assert read_arm(tmp_path).spec == spec


class Slow:
    """Another package's clock."""

    def duration_us(self, *_: int) -> int:
        return 5

    def tasks_within(self, *_: int) -> None:
        return None


class Options(BaseModel):
    pass


FOREIGN = SchedulerSpec(
    "foreign",
    Options,
    lambda *_: None,  # type: ignore[arg-type,return-value]
    Slow(),  # type: ignore[arg-type]
)


def test_the_clock_of_another_packages_kind_is_found_by_the_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        registry,
        "_GROUP",
        replace(registry._GROUP, built_in={"foreign": f"{__name__}:FOREIGN", **registry.BUILT_IN}),
    )
    arm = mixed_arm()
    group = replace(arm.groups[0], kind="foreign", clock=FOREIGN.default_decision)
    spec = replace(arm, groups=(group,))
    write_arm(tmp_path, ArmFile(spec, "", None))
    assert read_arm(tmp_path).spec == spec
    nameless = replace(arm, groups=(replace(arm.groups[0], clock=Slow()),))
    with pytest.raises(AgoraError, match="decision clock cannot be written"):
        write_arm(tmp_path, ArmFile(nameless, "", None))


def test_clocks_come_back(tmp_path: Path) -> None:
    arm = mixed_arm()
    for clock in (Counted(7), Measured(), ModelledByClass(Modelled(1, 2, 3), Modelled(4, 5, 6))):
        spec = replace(arm, groups=(replace(arm.groups[0], clock=clock),))
        write_arm(tmp_path, ArmFile(spec, "", None))
        assert read_arm(tmp_path).spec == spec


def group(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda content: change(content["arm"]["groups"][0])


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "format": (lambda c: c.update(format=99), "field format: expected 2"),
    "arm": (lambda c: c.update(arm=[]), "arm: expected an object"),
    "workload": (lambda c: c.update(workload=3), "field workload: expected a text"),
    "virtual": (lambda c: c.update(virtual={"drain_us": 1}), "virtual.message_us: missing"),
    "drain": (
        lambda c: c.update(virtual={"drain_us": -1, "message_us": 0}),
        "virtual: expected times of 0 or more",
    ),
    "unknown field": (lambda c: c["arm"].update(more=1), "arm.more: unknown field"),
    "missing field": (lambda c: c["arm"].pop("seed"), "arm.seed: missing"),
    "another type": (lambda c: c["arm"].update(seed="7"), "arm.seed: expected a whole number"),
    "a fraction": (
        lambda c: c["arm"].update(partitions=0.5),
        "arm.partitions: expected a whole number",
    ),
    "too large": (lambda c: c["arm"].update(seed=1 << 70), "arm.seed: expected a whole number"),
    "below 0": (lambda c: c["arm"].update(seed=-1), "arm.seed: expected 0 or more"),
    "no interval": (lambda c: c["arm"].update(sample_us=0), "arm.sample_us: expected 1 or more"),
    "sync": (
        group(lambda g: g["protocol"].update(sync="often")),
        "arm.groups[0].protocol: protocol 'optimistic': unknown sync policy",
    ),
    "protocol": (
        group(lambda g: g["protocol"].update(kind="telepathy")),
        "arm.groups[0].protocol: unknown protocol 'telepathy'; known: locking, optimistic",
    ),
    "no kind": (group(lambda g: g.update(kind=None)), "groups[0].kind: expected a kind of"),
    "gap": (
        group(lambda g: g["protocol"].update(gap_s=1e-6)),
        "arm: group 'random': gap_s: expected at least",
    ),
    "no groups": (lambda c: c["arm"].update(groups=[]), "arm.groups: expected at least one"),
    "groups": (lambda c: c["arm"].update(groups={}), "arm.groups: expected a list"),
    "a group": (lambda c: c["arm"].update(groups=[1]), "arm.groups[0]: expected an object"),
    "no schedulers": (group(lambda g: g.update(count=0)), "arm.groups[0].count: expected 1"),
    "too many": (group(lambda g: g.update(count=1 << 40)), "schedulers"),
    "kind": (
        group(lambda g: g.update(kind="evil")),
        "arm.groups[0]: unknown scheduler kind 'evil'",
    ),
    "options": (group(lambda g: g.update(options=[1])), "options: expected an object"),
    "an option": (group(lambda g: g.update(options={"evil": 1})), "has no option 'evil'"),
    "strategy": (
        group(lambda g: g["protocol"].update(strategy="")),
        "arm.groups[0].protocol: protocol 'optimistic', option 'strategy': Input should be",
    ),
    "class": (
        group(lambda g: g.update(task_class="BOTH")),
        "arm.groups[0].task_class: expected one of BATCH, SERVICE",
    ),
    "clock": (group(lambda g: g.update(clock="now")), "clock: expected an object"),
    "no clock": (group(lambda g: g.update(clock={})), "clock.clock: expected one of modelled"),
    "time": (
        group(lambda g: g["clock"].update(task_ns=-1)),
        "arm.groups[0].clock: task_ns: expected 0 or more",
    ),
    "attempts": (
        group(lambda g: g["protocol"].update(attempts_max=0)),
        "option 'attempts_max': Input should be greater than or equal to 1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    write_arm(tmp_path, ArmFile(mixed_arm(), "", InVirtualTime(1, 0)))
    path = tmp_path / ARM_FILE
    content = json.loads(path.read_text())
    change, says = FAULTS[fault]
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(AgoraError) as caught:
        read_arm(tmp_path)
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
