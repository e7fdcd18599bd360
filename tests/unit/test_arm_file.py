"""What an arm was made of, in a file: it comes back as it was, and faults are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from experiments.config.presets import default_arms, demo_scale, mix_arm, paper_scale
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.runtime.arm_directory import ARM_FILE, ArmFile, InVirtualTime, read_arm, write_arm
from parsync.spec.arm import ArmConfig
from parsync.strict_model import RenamedOption
from schedulers import registry
from schedulers.decision_clock import Counted, Measured, Modelled, ModelledByClass
from schedulers.registry import SchedulerSpec
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import EvictionPolicy
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import mixed_arm, small_arm

DEMO = demo_scale(quick=False)
ARMS = [*default_arms(DEMO), mix_arm("latency_first=8,flow=1", paper_scale())]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize("live", [False, True])
def test_every_arm_comes_back(arm: ArmConfig, live: bool, tmp_path: Path) -> None:
    spec = arm.seeded(7, 1000, 100_000, live)
    virtual = None if live else InVirtualTime(drain_us=10_000_000, message_us=250)
    written = ArmFile(arm=spec, workload="0" * 32, virtual=virtual)
    write_arm(tmp_path, written)
    assert read_arm(tmp_path) == written


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
    built_in = {"foreign": f"{__name__}:FOREIGN", **registry.BUILT_IN}
    monkeypatch.setattr(registry, "get", replace(registry._GROUP, built_in=built_in).get)
    group = changed(small_arm().groups[0], kind="foreign", decision=None)
    spec = changed(small_arm(), groups=(group,))
    write_arm(tmp_path, ArmFile(arm=spec, workload=""))
    found = read_arm(tmp_path).arm
    assert found == spec and found.clock(found.groups[0]) is FOREIGN.default_decision


def test_an_arm_of_the_former_format_is_read(tmp_path: Path) -> None:
    """Shares, times and amounts were in the units of the runtimes, and each group had its clock."""
    modelled = {"job_us": 1, "task_ns": 2_000, "partition_ns": 500, "charges_kept": False}
    modelled["price_machine_ns"] = 100
    service = {**modelled, "job_us": 4, "task_ns": 8_000, "partition_ns": 2_000}
    protocol = {"kind": "optimistic", "sync": "every_attempt", "gap_s": 0.5}
    group = {"count": 1, "kind": "random", "options": {}, "protocol": protocol, "task_class": None}
    clocks = {
        "modelled": {"clock": "modelled", **modelled},
        "by class": {"clock": "modelled_by_class", "batch": modelled, "service": service},
        "counted": {"clock": "counted", "ns_per_operation": 7},
        "measured": {"clock": "measured"},
        "own": {"clock": "default", "kind": "random"},
    }
    groups = [
        {**group, "name": name, "clock": clock, "share_permille": 200}
        for name, clock in clocks.items()
    ]
    groups[0]["task_class"] = groups[1]["task_class"] = "BATCH"
    groups[0]["share_permille"] = groups[1]["share_permille"] = 500
    groups[2]["share_permille"] = 600
    arm = {
        "name": "a",
        "groups": groups,
        "partitions": 4,
        "heartbeat_us": 1000,
        "sample_us": 100_000,
        "seed": 7,
        "quotas": {
            "groups": [
                {"name": "b", "minimum_permille": 300, "maximum_permille": 1000, "weight": 2}
            ],
            "interval_us": 100_000,
            "reclaim_after_us": 2_000_000,
        },
        "evictions": "LOWER_PRIORITY",
    }
    content = {"format": 2, "arm": arm, "workload": "w", "virtual": None}
    (tmp_path / ARM_FILE).write_text(json.dumps(content))
    with pytest.warns(RenamedOption, match="retry_s"):
        found = read_arm(tmp_path)
    read = found.arm
    assert (found.workload, found.virtual, read.seed, read.live) == ("w", None, 7, True)
    assert [read.clock(one) for one in read.groups] == [
        Modelled(1, 2_000, 500),
        ModelledByClass(Modelled(1, 2_000, 500), Modelled(4, 8_000, 2_000)),
        Counted(7),
        Measured(),
        registry.get("random").default_decision,
    ]
    assert read.shares_permille() == (500, 500, 600, 200, 200)
    assert [one.takes for one in read.groups] == [TaskClass.BATCH] * 2 + [None] * 3
    assert {one.protocol.gap_us for one in read.groups} == {500_000}
    assert read.may_evict is EvictionPolicy.LOWER_PRIORITY
    assert read.quotas == QuotaSpec(
        groups=(QuotaGroup(name="b", minimum=0.3, weight=2),), reclaim_after_s=2.0
    )
    (tmp_path / ARM_FILE).write_text(json.dumps({**content, "arm": {**arm, "groups": [1]}}))
    with pytest.raises(AgoraError, match=r"arm\.json: damaged: TypeError"):
        read_arm(tmp_path)


def test_kinds_of_format_3_have_their_names_of_now(tmp_path: Path) -> None:
    """`quincy` and `firmament` were one kind, which is `flow` now; the number says so."""
    seeded = default_arms(DEMO)[0].seeded(1, 1000, 100_000, live=False)
    content = ArmFile(arm=seeded, workload="w").model_dump(mode="json")
    (group,) = content["arm"]["groups"]
    kinds = {"random": "random", "quincy": "flow", "firmament": "flow"}
    content["arm"]["groups"] = [
        {**group, "name": kind, "kind": kind, "count": 1, "decision": {"clock": "counted"}}
        for kind in kinds
    ]
    for number, expected in ((3, kinds), (4, {kind: kind for kind in kinds})):
        (tmp_path / ARM_FILE).write_text(json.dumps({**content, "format": number}))
        read = read_arm(tmp_path).arm
        assert {one.name: one.kind for one in read.groups} == expected


VIRTUAL = InVirtualTime(drain_us=1, message_us=0)


def group(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda content: change(content["arm"]["groups"][0])


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "format": (lambda c: c.update(format=99), "field format: expected 4"),
    "arm": (lambda c: c.update(arm=[]), "arm: Input should be a valid dictionary"),
    "workload": (lambda c: c.update(workload=3), "workload: Input should be a valid string"),
    "virtual": (lambda c: c.update(virtual={"drain_us": 1}), "virtual.message_us: Field required"),
    "drain": (
        lambda c: c.update(virtual={"drain_us": -1, "message_us": 0}),
        "virtual.drain_us: Input should be greater than or equal to 0, got -1",
    ),
    "unknown field": (lambda c: c["arm"].update(more=1), "arm.more: unknown option"),
    "missing field": (lambda c: c["arm"].pop("seed"), "arm.seed: Field required"),
    "another type": (
        lambda c: c["arm"].update(seed="7"),
        "arm.seed: Input should be a valid integer",
    ),
    "a fraction": (
        lambda c: c["arm"].update(partitions=0.5),
        "arm.partitions: Input should be a valid integer",
    ),
    "too large": (lambda c: c["arm"].update(seed=1 << 70), "arm.seed: Input should be less than"),
    "below 0": (
        lambda c: c["arm"].update(seed=-1),
        "arm.seed: Input should be greater than or equal to 0",
    ),
    "no interval": (
        lambda c: c["arm"].update(sample_us=0),
        "arm.sample_us: Input should be greater than or equal to 1",
    ),
    "sync": (
        group(lambda g: g["protocol"].update(sync="often")),
        "arm.groups.0.protocol: protocol 'optimistic': unknown sync policy",
    ),
    "protocol": (
        group(lambda g: g["protocol"].update(kind="telepathy")),
        "arm.groups.0.protocol: unknown protocol 'telepathy'; known: locking, offers, optimistic",
    ),
    "no kind": (group(lambda g: g.update(kind=None)), "arm.groups.0: kind: missing"),
    "gap": (
        group(lambda g: g["protocol"].update(gap_s=1e-6)),
        "arm: group 'random': gap_s: expected at least",
    ),
    "no groups": (
        lambda c: c["arm"].update(groups=[]),
        "arm.groups: Tuple should have at least 1 item",
    ),
    "groups": (lambda c: c["arm"].update(groups={}), "arm.groups: Input should be a valid tuple"),
    "a group": (
        lambda c: c["arm"].update(groups=[1]),
        "arm.groups.0: Input should be a valid dictionary",
    ),
    "no schedulers": (
        group(lambda g: g.update(count=0)),
        "arm.groups.0.count: Input should be greater than or equal to 1",
    ),
    "too many": (group(lambda g: g.update(count=1 << 40)), "schedulers"),
    "kind": (
        group(lambda g: g.update(kind="evil")),
        "arm.groups.0: unknown scheduler kind 'evil'",
    ),
    "options": (
        group(lambda g: g.update(options=[1])),
        "options: Input should be a valid dictionary",
    ),
    "an option": (group(lambda g: g.update(options={"evil": 1})), "has no option 'evil'"),
    "strategy": (
        group(lambda g: g["protocol"].update(strategy="")),
        "arm.groups.0.protocol: protocol 'optimistic', option 'strategy': Input should be",
    ),
    "class": (
        group(lambda g: g.update(task_class="BOTH")),
        "arm.groups.0.task_class: Input should be 'batch', 'service' or",
    ),
    "clock": (group(lambda g: g.update(decision="now")), "arm.groups.0.decision: "),
    "no clock": (
        group(lambda g: g.update(decision={})),
        "arm.groups.0.decision: Unable to extract tag",
    ),
    "time": (
        group(lambda g: g["decision"].update(task_us=-1)),
        "arm.groups.0.decision.modelled.task_us: Input should be greater than 0",
    ),
    "attempts": (
        group(lambda g: g["protocol"].update(attempts_max=0)),
        "option 'attempts_max': Input should be greater than or equal to 1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    write_arm(
        tmp_path,
        ArmFile(arm=mixed_arm(), workload="", virtual=InVirtualTime(drain_us=1, message_us=0)),
    )
    path = tmp_path / ARM_FILE
    content = json.loads(path.read_text())
    change, says = FAULTS[fault]
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(AgoraError) as caught:
        read_arm(tmp_path)
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
