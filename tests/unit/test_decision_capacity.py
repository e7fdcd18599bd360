"""How much an arm can decide is what its modelled times allow, and the default arms have ParSync's
A only where they do not look at everything."""

from __future__ import annotations

import pytest

from experiments.arm_config import ArmConfig, GroupConfig, ModelledTime
from experiments.decision_capacity import decision_capacity
from experiments.presets import default_arms, demo_scale, mix_arm, optimistic, paper_scale
from experiments.workloads.synthetic import SyntheticOptions


@pytest.mark.parametrize("scale", [demo_scale(False), paper_scale()])
def test_quality_first_decides_2_over_1_75_of_what_comes_and_adaptive_up_to_almost_2(scale):
    arms = {
        arm.name: decision_capacity(arm, scale.synthetic.outline()) for arm in default_arms(scale)
    }
    (quality,) = arms["ParSync quality-first"]
    assert quality.low == quality.high == pytest.approx(2 / 1.75)
    (adaptive,) = arms["ParSync adaptive"]
    assert (adaptive.low, adaptive.high) == pytest.approx(
        (2 / 1.75, 2 / (1 + 0.75 / scale.partitions))
    )
    assert arms["Flow"] == []  # its time is counted


def test_a_group_is_held_against_its_own_share_of_the_jobs() -> None:
    options = SyntheticOptions(
        machines=100,
        slots_per_machine=10,
        mean_duration_s=1.0,
        batch_tasks=10,
        service_permille=250,
    )
    clock = ModelledTime(job_us=1000, task_us=900.0)

    def group(name: str, **fields: object) -> GroupConfig:
        return GroupConfig(
            name=name,
            kind="random",
            count=1,
            decision=clock,
            protocol=optimistic("diff_block", 0.1),
            **fields,
        )  # type: ignore[arg-type]

    groups = (group("half", share=0.5), group("rest"), group("services", task_class="service"))
    arm = ArmConfig(name="A", partitions=8, groups=groups)
    capacities = {
        capacity.group: capacity.low for capacity in decision_capacity(arm, options.outline())
    }
    # A task takes 900 us and its tenth of the batch's 1000: 1000 per second, against 1000 arriving.
    assert capacities == pytest.approx({"half": 2.0, "rest": 2.0, "services": 4.0})


def test_mixes_on_the_command_line_keep_the_decision_time_of_the_scale() -> None:
    """So fewer schedulers decide less: the report says how much."""
    scale = demo_scale(False)
    (capacity,) = decision_capacity(mix_arm("latency_first=4", scale), scale.synthetic.outline())
    assert capacity.low == pytest.approx(1 / (1 + 0.75 / 8))
