"""The size of live runs: chosen by a measurement or by hand, with the same load and the same part
of the arrivals that schedulers can decide; and never ranked beside another size."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from experiments.campaign import live_size
from experiments.campaign.live_size import Need, fitted, live_need, machines_for, spare_processors
from experiments.campaign.points import Point
from experiments.campaign.running import make_workload
from experiments.config.decision_basis import (
    basis_titles,
    comparable,
    decision_basis,
    decision_capacity,
)
from experiments.config.run_config import RunConfig, validated
from experiments.studies.run.finishing import slugs_of_arms
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions, RuntimeName
from experiments.toml_text import toml_text
from experiments.workloads.inspection import offered_permille
from parsync.spec.decision_times import ModelledTime, ServiceTime
from shared_state.errors import AgoraError


def main(**live: Any) -> RunConfig:
    """The main comparison with --quick and these settings of live runs."""
    tree = resolve(RunOptions(quick=True)).model_dump(mode="json")
    return validated({**tree, "live": {**tree["live"], "fit": False, **live}}, "test")


def test_one_arm_of_the_main_comparison_runs_live_and_a_flag_chooses_others() -> None:
    def live(**options: Any) -> list[str]:
        config = resolve(RunOptions(quick=True, **options))
        return [arm.name for arm in config.arms if config.is_live(arm)]

    every = [arm.name for arm in main().arms]
    assert live() == ["ParSync adaptive"]
    assert live(live=("Omega", "Flow", "Omega")) == ["Omega", "Flow"]
    assert live(live=("all",)) == every
    assert live(mix="adaptive=2") == ["Mix: adaptive=2"]
    with pytest.raises(AgoraError, match=r"live.arms: there is no arm 'Omaga'; arms: StateSync"):
        live(live=("Omaga",))
    with pytest.raises(AgoraError, match="--live: has no effect in virtual time"):
        live(live=("Omega",), runtime=RuntimeName.VIRTUAL)


def test_a_smaller_live_run_has_the_same_load_and_capacity() -> None:
    config = main(machines=250)  # of 1,000
    live = config.of_live_runs()
    whole, part = config.workload.outline(), live.workload.outline()
    assert whole is not None and part is not None
    assert part.machines == 250 and part.tasks_per_s == whole.tasks_per_s / 4
    loads = [offered_permille(make_workload(one, 1)) for one in (config, live)]
    assert loads[0] == pytest.approx(loads[1], rel=0.05)
    phases = [make_workload(one, 1).phases for one in (config, live)]
    assert phases[0] == phases[1]
    for before, after in zip(config.arms, live.arms, strict=True):
        for one, other in zip(
            decision_capacity(before, whole), decision_capacity(after, part), strict=True
        ):
            assert (other.low, other.high) == pytest.approx((one.low, one.high))
    assert config.of_live_runs().of_live_runs().arms == live.arms  # not slowed twice


def test_all_modelled_times_grow_as_the_cell_shrinks() -> None:
    time = ModelledTime(
        job_us=10, task_us=2.5, price_machine_ns=30, service=ServiceTime(job_us=7, task_us=4.0)
    )
    slowed = time.slowed(2.0)
    assert (slowed.job_us, slowed.task_us) == (20, 5.0)
    assert slowed.service == ServiceTime(job_us=14, task_us=8.0)
    # half the machines, and twice the time for all of them
    assert slowed.price_machine_ns == 4 * time.price_machine_ns
    assert ModelledTime(task_us=1, price_machine_ns=900_000).slowed(2).price_machine_ns == 1_000_000


def test_live_runs_of_other_sizes_are_never_ranked_together() -> None:
    config = main(machines=500)
    live = config.of_live_runs()
    for before, after in zip(config.arms, live.arms, strict=True):
        one, other = (
            decision_basis(arm, of.workload.outline(), 500).live
            for arm, of in ((before, config), (after, live))
        )
        assert not comparable(one, other), before.name
        titles = basis_titles([one, other])
        assert "10,000 tasks/s" in titles[0] and "5,000 tasks/s" in titles[1]
        assert "tasks/s at" not in basis_titles([one, one])[0]


def test_files_and_kept_results_of_other_sizes_have_other_names() -> None:
    def names(**live: Any) -> dict[str, str]:
        return slugs_of_arms(main(**live))[1]

    assert names() == {"ParSync adaptive": "parsync-adaptive-live"}
    assert names(machines=1_000) == names()  # the cell of the others
    assert names(machines=250) == {"ParSync adaptive": "parsync-adaptive-250-machines-live"}
    keys = {
        Point(config, arm, 1).key()
        for size in (250, 500, None)
        for config in (main(machines=size).of_live_runs(),)
        for arm in config.arms[3:4]
    }
    assert len(keys) == 3
    long = "x" * 80
    config = main(machines=250)
    arms = (config.arms[0].model_copy(update={"name": long}),)
    renamed = config.model_copy(
        update={"arms": arms, "live": config.live.model_copy(update={"arms": (long,)})}
    )
    assert slugs_of_arms(renamed)[1][long].endswith("-250-machines-live")


def test_a_size_given_by_hand_is_kept_exactly() -> None:
    config = main(machines=123)
    text = toml_text(config.model_dump(mode="json"))
    assert validated(tomllib.loads(text), "test").live == config.live
    assert config.of_live_runs().workload.outline().machines == 123  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"live": {"machines": 100, "fit": True}}, "live.fit: has no effect with live.machines"),
        ({"live": {"machines": 100}, "seeds": 1}, "live.machines: all arms run live"),
        ({"live": {"machines": 0}}, "live.machines: Input should be greater"),
        ({"live": {"machines": 100, "arms": ["Omega"]}, "seeds": 1}, ""),
    ],
)
def test_sizes_that_would_have_no_effect_are_refused(changes: Any, problem: str) -> None:
    tree = {**main().model_dump(mode="json"), **changes}
    if not problem:
        assert validated(tree, "test").live_cell == 100
        return
    with pytest.raises(AgoraError, match=problem):
        validated(tree, "test")


def test_the_cell_of_a_trace_has_its_own_size() -> None:
    config = resolve(RunOptions(trace="google2011:somewhere", mix="adaptive=2"))
    assert config.live.fit
    assert fitted(config).live.model_dump() == {**config.live.model_dump(), "fit": False}
    tree = {**config.model_dump(mode="json"), "live": {"machines": 2}}
    with pytest.raises(AgoraError, match=r"live.machines: .*'google2011' has a cell of its own"):
        validated(tree, "test")


def fit_with(monkeypatch: pytest.MonkeyPatch, spare: float, **options: Any) -> RunConfig:
    monkeypatch.setattr(live_size, "spare_processors", lambda: spare)
    return fitted(resolve(RunOptions(quick=True, **options)))


def test_the_busier_the_computer_the_smaller_the_live_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def need(config: RunConfig, arm: Any, outline: Any) -> Need:
        return Need(actors=5, hosts=2, tasks=0.5)

    monkeypatch.setattr(live_size, "live_need", need)
    machines = [fit_with(monkeypatch, spare).live.machines for spare in (8.0, 2.0, 1.2, 1.0, 0.1)]
    assert machines == [None, None, 500, 300, 250]
    for spare in (2.0, 0.1):
        settled = fit_with(monkeypatch, spare)
        assert not settled.live.fit and settled.live.arms == ("ParSync adaptive",)
        assert settled.arms == resolve(RunOptions(quick=True)).arms  # the others keep their cell


def test_what_would_not_run_live_beside_others_has_no_size_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fit_with(monkeypatch, 0.1, mix="adaptive=2", seeds=1).live.machines is None
    assert fit_with(monkeypatch, 0.1, mix="adaptive=2", seeds=2).live.machines == 250


def test_a_need_grows_with_the_tasks_and_no_process_is_overloaded() -> None:
    assert Need(5, 2, 0.0).size(0.0) == 1.0  # nothing arrives
    sizes = [Need(5, 2, tasks).size(2.0) for tasks in (0.5, 1.0, 2.0, 4.0)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 1.0
    # with processors to spare, one process of schedulers is the limit
    assert Need(4, 1, 2.0).size(64.0) < Need(7, 4, 2.0).size(64.0) < 1.0


def test_sizes_are_whole_steps_and_never_nothing() -> None:
    assert [machines_for(size, 1_000) for size in (1.5, 1.0, 0.99, 0.5, 0.12, 0.01, -3.0)] == [
        None,
        None,
        950,
        500,
        250,
        250,
        250,
    ]
    assert machines_for(0.2, 3) == 1


def test_the_measurement_is_of_the_arm_s_own_participants() -> None:
    config = resolve(RunOptions(quick=True))
    outline = config.workload.outline()
    assert outline is not None
    arms = {arm.name: arm for arm in config.arms}
    found = {name: live_need(config, arms[name], outline) for name in ("Flow", "ParSync adaptive")}
    greedy, flow = found["ParSync adaptive"], found["Flow"]
    assert greedy is not None and flow is not None
    assert (greedy.hosts, greedy.actors) == (2, 5) and (flow.hosts, flow.actors) == (1, 4)
    floor = 0.95 * outline.tasks_per_s * live_size.LIVE_TASK_S
    assert floor < greedy.tasks < flow.tasks  # a flow scheduler computes more


def test_spare_processors_are_at_most_those_of_this_computer() -> None:
    assert 0.0 < spare_processors(0.05) <= live_size.processors() * 1.05
