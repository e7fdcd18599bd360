"""Arms are ranked only beside those whose delays rest on the same: the class of their clocks, the
capacity and scan cost that they are given, the cores that they use, and the time of messages.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.analysis.summary import ArmResult, build_summary
from experiments.config.decision_basis import (
    BasisKind,
    DecisionBasis,
    basis_titles,
    comparable,
    decision_basis,
    decision_capacity,
)
from experiments.config.presets import (
    PARSYNC_SCAN_COST,
    Scale,
    default_arms,
    demo_scale,
    greedy_group,
    mix_arm,
    optimistic,
    paper_scale,
)
from experiments.config.run_config import VirtualConfig
from experiments.report.verdict import NOT_RANKED, Row, verdict
from experiments.workloads.synthetic import SyntheticOptions
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import CountedTime, DecisionTime, ModelledTime
from tests.unit.known_quantities import QUANTITIES
from tests.unit.run_factory import EQUAL, with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

SCALE = demo_scale(False)
OUTLINE = SCALE.synthetic.outline()


def basis(*groups: tuple[int, DecisionTime, float | None]) -> DecisionBasis:
    """Of an arm with these groups: count, decision time and share of the jobs."""
    arm = ArmConfig(
        name="arm",
        partitions=64,
        groups=tuple(
            greedy_group(SCALE, "adaptive", count, decision=decision, sync_set="all").model_copy(
                update={"name": f"group {number}", "share": share}
            )
            for number, (count, decision, share) in enumerate(groups)
        ),
    )
    return decision_basis(arm, OUTLINE, 500)


def modelled(task_us: float, **others: float) -> ModelledTime:
    return ModelledTime(task_us=task_us, **others)  # type: ignore[arg-type]


def delay_row(arms: list[ArmResult]) -> Row:
    """The verdict on the mean delay."""
    summary = build_summary(FACTS, workload(), arms)
    shown = with_overall(summary, delay_mean_us={arm.name: 1.0 for arm in arms})
    (row,) = verdict(shown, [QUANTITIES["delay_mean_us"]])
    return row


def test_the_main_comparison_has_one_capacity_and_one_class_of_own_speed() -> None:
    bases = {arm.name: decision_basis(arm, OUTLINE, 500) for arm in default_arms(SCALE)}
    equal = [one for one in bases.values() if one.kind is BasisKind.EQUAL_CAPACITY]
    own = [one for one in bases.values() if one.kind is BasisKind.OWN_SPEED]
    assert len(equal) + len(own) == len(bases) and len(own) == 4
    assert all(one.capacity == pytest.approx(2) and one.scan_cost == 0 for one in equal)
    assert all(comparable(equal[0], one) for one in equal)
    one, eight = bases["Greedy at own speed"], bases["8 greedy at own speed"]
    assert comparable(one, bases["Flow at own speed"]) and not comparable(equal[0], one)
    assert eight.cores == 8 and not comparable(one, eight), "more cores are another class"
    # one scheduler is as fast as eight together
    for control in ("Greedy, one scheduler", "Greedy, patient", "Preferred first"):
        assert bases[control].decisions_per_s == pytest.approx(
            bases["ParSync adaptive"].decisions_per_s
        )


def test_a_mix_is_given_capacity_in_proportion_to_its_jobs() -> None:
    for text in ("latency_first=4", "latency_first=2,flow=1", "random=3,adaptive=7"):
        found = decision_basis(mix_arm(text, SCALE), OUTLINE, 500)
        assert found.kind is BasisKind.EQUAL_CAPACITY, text
        assert found.capacity == pytest.approx(2, rel=0.002), text


@pytest.mark.parametrize(
    "other",
    [
        basis((8, modelled(200), None)),
        basis((8, modelled(400, scan_cost=0.75), None)),
        basis((8, CountedTime(), None)),
        basis((8, modelled(400), None)).model_copy(update={"message_us": 0}),
        basis((8, modelled(400), None)).model_copy(update={"measured_times": "of a calibration"}),
        basis((4, modelled(400), 0.5), (4, CountedTime(), 0.5)),
        # all of them together decide as much, but one group gets more jobs than it can
        basis((4, modelled(400), 0.75), (4, modelled(400), 0.25)),
    ],
    ids=["capacity", "scan cost", "clock", "messages", "calibrated", "mixed", "unequally dealt"],
)
def test_arms_on_different_bases_are_not_ranked(other: DecisionBasis) -> None:
    """Whatever their figures are: each is alone in its class, and nothing is best."""
    one = basis((8, modelled(400), None))
    assert comparable(one, one) and not comparable(one, other)
    assert not comparable(other, other) or other.kind is not BasisKind.MIXED
    seeds = {seed: 100.0 + seed for seed in range(10)}
    arms = [
        replace(bare_arm("slow", "a", {k: 10 * v for k, v in seeds.items()}), basis=one),
        replace(bare_arm("fast", "b", seeds), basis=other),
    ]
    alike = [replace(arm, basis=EQUAL) for arm in arms]
    row = delay_row(alike)
    assert [cell.best for cell in row.cells] == [False, True] and "fast is lowest" in row.sentence
    row = delay_row(arms)
    assert not any(cell.best or cell.tied for cell in row.cells) and row.sentence == NOT_RANKED
    assert not row.cells[1].change, "nor is there a difference to a baseline of another class"


def flow_group(**options: object) -> GroupConfig:
    """A flow scheduler with these options."""
    group = greedy_group(SCALE, "optimistic", 1, decision=CountedTime())
    return GroupConfig(
        name="flow", kind="quincy", count=1, options=dict(options), protocol=group.protocol
    )


@pytest.mark.parametrize("policy", ["coco", "whare_map", "energy_aware"])
def test_policies_whose_consequences_are_not_modelled_are_not_ranked(policy: str) -> None:
    """Even beside an arm of the same policy, and the report says why."""
    arms = {
        name: ArmConfig(name=name, partitions=64, groups=(flow_group(policy=one),))
        for name, one in {"one": "quincy", "two": "octopus", "three": policy}.items()
    }
    one, two, three = (decision_basis(arm, OUTLINE, 500) for arm in arms.values())
    assert comparable(one, two) and not comparable(one, three) and not comparable(three, three)
    seeds = {seed: 100.0 + seed for seed in range(10)}
    results = [
        replace(bare_arm(name, name, {k: times * v for k, v in seeds.items()}), basis=of)
        for name, times, of in (("one", 1.0, one), ("two", 10.0, two), ("best", 0.1, three))
    ]
    row = delay_row(results)
    assert [cell.best for cell in row.cells] == [True, False, False]
    says = "best is not ranked: its consequences are not modelled yet."
    assert "one is lowest" in row.sentence and row.sentence.endswith(says)
    row = delay_row([results[0], results[2]])
    assert row.sentence == says and not any(cell.best or cell.tied for cell in row.cells)


def test_own_speed_is_compared_at_equal_cores() -> None:
    one, eight = (basis((count, CountedTime(), None)) for count in (1, 8))
    assert comparable(one, one) and not comparable(one, eight)


def test_several_classes_are_ranked_each_by_itself() -> None:
    own = DecisionBasis(kind=BasisKind.OWN_SPEED, cores=1, message_us=500)
    delays = {"A": 10.0, "B": 20.0, "C": 1.0, "D": 2.0}
    arms = [
        replace(
            bare_arm(name, name, {seed: delay + seed / 100 for seed in range(10)}),
            basis=EQUAL if name in "AB" else own,
        )
        for name, delay in delays.items()
    ]
    row = delay_row(arms)
    assert [cell.best for cell in row.cells] == [True, False, True, False]
    assert "Equal capacity" in row.sentence and "Own speed, 1 core: C is lowest" in row.sentence


def test_live_figures_are_not_ranked_beside_those_of_virtual_time() -> None:
    """Live, messages take the time that they take."""
    arms = [replace(bare_arm(name, name), basis=EQUAL) for name in ("a", "b")]
    live = replace(arms[0], runtime="ray")
    summary = build_summary(FACTS, workload(), arms, [live])
    assert [arm.slug for arm in summary.live_runs] == ["a-live"]
    (one,) = summary.sets()
    assert [arm.slug for arm in one.arms] == ["a", "b"]
    apart = summary.live()
    assert apart is not None and [arm.slug for arm in apart.arms] == ["a-live"]
    assert not comparable(one.arms[0].basis, apart.arms[0].basis)
    titles = basis_titles([one.arms[0].basis, apart.arms[0].basis])
    assert [title.rpartition(", ")[2] for title in titles] == ["messages take 500 µs", "live"]


def test_a_summary_of_two_runtimes_is_refused() -> None:
    arms = [replace(bare_arm(name, name), basis=EQUAL) for name in ("a", "b")]
    with pytest.raises(ValueError, match="runtime: expected 'virtual', got 'ray'"):
        build_summary(FACTS, workload(), [arms[0], replace(arms[1], runtime="ray")])


def test_a_calibration_is_part_of_the_basis() -> None:
    times = {"hosts": 2, "tick_us": 25_000, "step_us": [900], "other_step_us": [500]}
    one = VirtualConfig.model_validate(
        {"calibration": {**times, "push_us": [400], "lag_us": [60]}}, strict=False
    )
    other = VirtualConfig.model_validate(
        {"calibration": {**times, "push_us": [401], "lag_us": [60]}}, strict=False
    )
    arm = default_arms(SCALE)[0]
    plain, first, second = (
        decision_basis(arm, OUTLINE, config.message_us, config.measured_times)
        for config in (VirtualConfig(), one, other)
    )
    assert comparable(first, first)
    assert not comparable(first, second) and not comparable(plain, first)
    assert basis_titles([first, plain])[0].endswith(", messages take calibrated times")


@pytest.mark.parametrize("scale", [demo_scale(False), paper_scale()])
@pytest.mark.parametrize("scan_cost", [0.0, PARSYNC_SCAN_COST])
def test_whoever_looks_at_all_partitions_decides_less_by_the_scan_cost(
    scale: Scale, scan_cost: float
) -> None:
    n, partitions = scale.schedulers, scale.partitions

    def bounds(strategy: str) -> tuple[float, float]:
        decision = scale.equal_capacity(n, scan_cost=scan_cost)
        group = greedy_group(scale, strategy, n, decision=decision)
        arm = ArmConfig(name="arm", partitions=partitions, groups=(group,))
        (capacity,) = decision_capacity(arm, scale.synthetic.outline())
        return capacity.low, capacity.high

    least, most = 2 / (1 + scan_cost), 2 / (1 + scan_cost / partitions)
    for strategy in ("optimistic", "quality_first"):
        assert bounds(strategy) == pytest.approx((least, least))
    for strategy in ("latency_first", "adaptive"):
        assert bounds(strategy) == pytest.approx((least, most))


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
    # A service's task takes longer here: 1900 us and its tenth of 1000.
    slow = {**clock.model_dump(), "service": {"job_us": 1000, "task_us": 1900.0}}
    slower = groups[2].model_copy(update={"decision": ModelledTime.model_validate(slow)})
    both = arm.model_copy(update={"groups": (*groups[:2], slower)})
    assert decision_capacity(both, options.outline())[2].low == pytest.approx(2.0)
    # A task takes 900 us and its tenth of the batch's 1000: 1000 per second, against 1000 arriving.
    assert capacities == pytest.approx({"half": 2.0, "rest": 2.0, "services": 4.0})


def test_a_mix_on_the_command_line_decides_twice_what_comes_however_many_share_it() -> None:
    scale = demo_scale(False)
    for text in ("latency_first=4", "latency_first=1,random=1"):
        capacities = decision_capacity(mix_arm(text, scale), scale.synthetic.outline())
        assert [capacity.low for capacity in capacities] == pytest.approx([2.0] * len(capacities))


def test_own_speed_has_no_capacity_of_its_own() -> None:
    scale = demo_scale(False)
    (arm,) = (arm for arm in default_arms(scale) if arm.name == "Flow at own speed")
    assert decision_capacity(arm, scale.synthetic.outline()) == []
