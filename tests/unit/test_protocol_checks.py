"""Which groups of schedulers an arm refuses, and the reason it gives: those that cannot obey
quotas, and those that cannot preempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.protocols import registry as protocols
from parsync.protocols.spec import ProtocolCapability, ProtocolSpec
from parsync.spec.arm import ProtocolChoice, SeededArm, check_protocols
from schedulers import registry as schedulers
from shared_state.errors import AgoraError
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import small_arm

QUOTAS = QuotaSpec(groups=(QuotaGroup(name="a"),))
OBEYING_PROTOCOLS = {"optimistic"}
DISOBEYING_SCHEDULERS = {"firmament", "flow", "quincy", "flow_load_spreading", "mapreduce"}


def arm_of(kind: str, options: dict[str, Any]) -> SeededArm:
    arm = small_arm(kind)
    groups = (changed(arm.groups[0], options=options),)
    return changed(arm, groups=groups, evictions="lower_priority")


def without(monkeypatch: pytest.MonkeyPatch, capability: ProtocolCapability) -> None:
    """Take a capability from every protocol."""
    of = ProtocolSpec.capabilities_of
    monkeypatch.setattr(
        ProtocolSpec,
        "capabilities_of",
        lambda self, options: of(self, options) - {capability},
    )


@pytest.fixture
def with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocols of examples/ and of the fixtures are registered beside ours."""
    built_in = {
        **protocols.BUILT_IN,
        "lottery": "examples.protocols.lottery:SPEC",
        "machine_queues": "tests.fixtures.protocols.machine_queues:SPEC",
    }
    monkeypatch.setattr(protocols, "_GROUP", replace(protocols._GROUP, built_in=built_in))


@pytest.mark.usefixtures("with_examples")
def test_every_protocol_that_cannot_obey_quotas_is_refused() -> None:
    assert {"optimistic", "lottery", "machine_queues"} <= set(protocols.kinds())
    for kind in protocols.kinds():
        arm = small_arm()
        if kind not in OBEYING_PROTOCOLS:
            choice = ProtocolChoice(kind=kind, options=protocols.get(kind).parse_options({}))
            arm = changed(arm, groups=(changed(arm.groups[0], kind=None, protocol=choice),))
        check_protocols(arm)
        obeying = changed(arm, quotas=QUOTAS)
        if kind in OBEYING_PROTOCOLS:
            check_protocols(obeying)
            continue
        with pytest.raises(AgoraError) as refusal:
            check_protocols(obeying)
        assert str(refusal.value) == (
            f"group 'random': quotas: protocol '{kind}' with these options does not obey them"
        )


@pytest.mark.parametrize("options", [{}, {"patience_s": 1.0}], ids=["as it is", "patient"])
@pytest.mark.parametrize("kind", schedulers.kinds())
def test_every_scheduler_that_keeps_waiting_tasks_is_refused_under_quotas(
    kind: str, options: dict[str, Any]
) -> None:
    try:
        schedulers.get(kind).parse_options(options)
    except (AgoraError, ValidationError):
        pytest.skip("it has no patience")
    arm = arm_of(kind, options)
    check_protocols(arm)
    if not options and kind not in DISOBEYING_SCHEDULERS:
        check_protocols(changed(arm, quotas=QUOTAS))
        return
    with pytest.raises(AgoraError, match=f"group '{kind}': quotas: .* '{kind}' .* keeps the tasks"):
        check_protocols(changed(arm, quotas=QUOTAS))


def test_preempting_schedulers_need_a_protocol_that_shows_them_who_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_protocols(arm_of("preempting", {}))
    without(monkeypatch, ProtocolCapability.SHOWS_RUNNING)
    check_protocols(arm_of("random", {}))  # others have no use for it
    with pytest.raises(AgoraError) as refusal:
        check_protocols(arm_of("preempting", {}))
    assert str(refusal.value) == (
        "group 'preempting': a scheduler of kind 'preempting' preempts, and protocol 'optimistic' "
        "does not show it the running tasks"
    )
