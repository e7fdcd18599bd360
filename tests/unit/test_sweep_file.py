"""A sweep's file: how parameters are addressed, which combinations they make, and bad input."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from experiments.config.price_settings import prices_of_arm
from experiments.config.run_config import load_config
from experiments.studies.sweeps.execution import SweepOptions
from experiments.studies.sweeps.sweep_file import (
    MOST_COMBINATIONS,
    Sweep,
    assignments,
    parameter_labels,
    plain_value,
    read_sweep,
)
from experiments.toml_text import toml_path, toml_text, toml_value
from parsync.spec.arm import GroupConfig
from shared_state.errors import AgoraError
from tests.fixtures.run_toml import arm_toml, workload_toml

TOP = "settle_s = 0.1\n"
BASE = workload_toml(40, 0.5, "start = 'cold'\nload_percent = [60]")
BASE += arm_toml("ParSync adaptive", more="decision = {clock = 'modelled', task_us = 400.0}")
BASE += arm_toml("Omega", group="many", sync="every_attempt", gap_s=0.05)


def read(folder: Path, text: str, **changes: Any) -> Sweep:
    path = folder / "sweep.toml"
    path.write_text(TOP + text + BASE)
    return read_sweep(path, changes)


def problem(folder: Path, text: str, **changes: Any) -> str:
    with pytest.raises(AgoraError) as refused:
        read(folder, text, **changes)
    said = str(refused.value)
    assert said.startswith(f"{folder / 'sweep.toml'}: ") and "\n" not in said
    return said.removeprefix(f"{folder / 'sweep.toml'}: ")


def test_a_grid_makes_every_combination(tmp_path: Path) -> None:
    sweep = read(
        tmp_path,
        """
[sweep.grid]
workload.machines = [40, 80]
arms."ParSync adaptive".groups.greedy.protocol.gap_s = [0.1, 0.2, 0.4]
""",
    )
    assert [one.values for one in sweep.combinations] == [
        (machines, gap_s) for machines in (40, 80) for gap_s in (0.1, 0.2, 0.4)
    ]
    for one in sweep.combinations:
        machines, gap_s = one.values
        assert one.config.workload.options.machines == machines  # type: ignore[attr-defined]
        assert [arm.gap_s for arm in one.config.arms] == [gap_s, 0.05]
    assert [str(one) for one in sweep.parameters] == [
        "workload.machines",
        'arms."ParSync adaptive".groups.greedy.protocol.gap_s',
    ]


def test_zipped_lists_go_together_and_with_the_grid(tmp_path: Path) -> None:
    sweep = read(
        tmp_path,
        """
[sweep.grid]
virtual.message_us = [0, 500]
[[sweep.zip]]
workload.machines = [40, 80]
workload.machines_per_rack = [20, 40]
[[sweep.zip]]
heartbeat_us = [1000, 2000, 4000]
""",
    )
    assert len(sweep.combinations) == 2 * 2 * 3 and sweep.axes == (0, 1, 1, 2)
    assert {one.values[1:3] for one in sweep.combinations} == {(40, 20), (80, 40)}
    last = sweep.combinations[-1].config
    assert last.virtual.message_us == 500 and last.heartbeat_us == 4000


def test_a_star_is_every_arm_or_group_that_has_the_option(tmp_path: Path) -> None:
    sweep = read(tmp_path, '[sweep.grid]\narms."*".groups."*".protocol.gap_s = [0.1, 0.3]\n')
    assert [[arm.gap_s for arm in one.config.arms] for one in sweep.combinations] == [
        [0.1, 0.1],
        [0.3, 0.3],
    ]
    modelled = read(tmp_path, '[sweep.grid]\narms."*".groups."*".decision.task_us = [100.0]\n')
    first, second = modelled.combinations[0].config.arms
    assert first.groups[0].decision.task_us == 100  # type: ignore[union-attr]
    assert second.groups[0].decision is None


def with_arms(folder: Path, text: str, *arms: str) -> list[list[GroupConfig]]:
    """The first groups of the arms of each combination of a sweep with some further arms."""
    path = folder / "more.toml"
    path.write_text(TOP + text + BASE + "".join(arms))
    found = read_sweep(path, {}).combinations
    return [[arm.groups[0] for arm in one.config.arms] for one in found]


def test_a_star_is_every_group_whose_kind_or_prices_have_the_option(tmp_path: Path) -> None:
    """Also where the configuration leaves it to its default; other kinds are left alone."""
    flow = arm_toml("Flow", kind="flow")
    all_groups = '[sweep.grid]\narms."*".groups."*".options.'
    found = with_arms(tmp_path, all_groups + 'prices = ["none", "implied"]\n', flow)
    assert [[one.options for one in groups] for groups in found] == [
        [{"prices": prices}] * 3 for prices in ("none", "implied")
    ]
    text = all_groups + "preemption = [true]\n"
    (groups,) = with_arms(tmp_path, text, flow)
    assert [one.options for one in groups] == [{}, {}, {"preemption": True}]
    assert problem(tmp_path, text).endswith("options.preemption: no arm has this option")
    text = all_groups + "price_options.forget_s = [5.0]\n"
    priced = arm_toml("Priced", more='options = { prices = "implied" }')
    (groups,) = with_arms(tmp_path, text, priced)
    assert [one.options.get("price_options") for one in groups] == [None, None, {"forget_s": 5.0}]
    said = problem(tmp_path, text)
    assert said.endswith("options.price_options.forget_s: no arm has this option")


def test_the_example_compares_prices_with_two_controls_by_several_metrics() -> None:
    sweep = read_sweep(Path("examples/prices.toml"), {})
    assert sweep.section.baseline == ("No prices", "Occupancy")
    assert {"preferred_share", "set_preferred_share_worst"} <= set(sweep.section.metric)
    prices = [prices_of_arm(arm) for arm in sweep.combinations[0].config.arms]
    assert prices == [
        "",
        "occupancy prices: tie, all",
        "implied prices: tie, all",
        "implied prices: paid at weight 0.3, all",
    ]


def test_prices_in_a_grid(tmp_path: Path) -> None:
    """As docs/comparing_prices.md has them: whole tables of options where kinds have options of
    their own, since an option without effect is refused."""
    text = """
[sweep.grid]
arms.Omega.groups.many.options = [
    { prices = "none" },
    { prices = "implied", price_mode = "paid", price_weight_permille = 300 },
]
"""
    arms = [one.config.arms[1] for one in read(tmp_path, text).combinations]
    assert [prices_of_arm(arm) for arm in arms] == ["", "implied prices: paid at weight 0.3, all"]
    grid = '[sweep.grid.arms."*".groups."*".options]\n'
    said = problem(tmp_path, f'{grid}prices = ["none"]\nprice_mode = ["paid"]\n')
    assert (
        "'price_mode' has no effect" in said or "price_mode: has no effect without prices" in said
    )


def test_whole_tables_and_entries_of_lists_are_values_too(tmp_path: Path) -> None:
    sweep = read(
        tmp_path,
        """
[sweep.grid]
arms.Omega.groups.many.decision = [{ clock = "counted" }, { clock = "modelled", task_us = 9.0 }]
workload.load_percent.0 = [40, 50]
""",
    )
    clocks = [one.config.arms[1].groups[0].decision for one in sweep.combinations[::2]]
    assert [clock and clock.clock for clock in clocks] == ["counted", "modelled"]
    options = [one.config.workload.options.model_dump() for one in sweep.combinations]
    assert [one["load_percent"] for one in options] == [(40,), (50,)] * 2


def test_the_configuration_may_stand_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run.toml").write_text(TOP + BASE)
    path = tmp_path / "sweep.toml"
    path.write_text('[sweep]\nbase = "runs/run.toml"\n[sweep.grid]\nseed_ = [1]\n')
    with pytest.raises(AgoraError, match=r"with seed_ = 1: seed_: unknown option"):
        read_sweep(path, {})
    path.write_text('[sweep]\nbase = "runs/run.toml"\n[sweep.grid]\nheartbeat_us = [1, 2]\n')
    sweep = read_sweep(path, {})
    assert [one.config.heartbeat_us for one in sweep.combinations] == [1, 2]
    path.write_text('[sweep]\nbase = "runs/no.toml"\n[sweep.grid]\nheartbeat_us = [1, 2]\n')
    with pytest.raises(AgoraError, match=r"runs/no.toml: No such file"):
        read_sweep(path, {})
    path.write_text('drain_s = 1.0\n[sweep]\nbase = "runs/run.toml"\n')
    with pytest.raises(AgoraError, match="drain_s: expected nothing beside"):
        read_sweep(path, {})


def test_a_sweep_as_resolved_is_the_same_sweep(tmp_path: Path) -> None:
    text = '[sweep]\nseeds = 3\nuntil = "5%"\n[[sweep.zip]]\nworkload.machines = [40, 80]\n'
    with pytest.raises(AgoraError, match="seeds"):
        read(tmp_path, text)
    sweep = read(tmp_path, text.replace("seeds = 3\n", ""))
    again = tmp_path / "again.toml"
    again.write_text(toml_text(sweep.tree()))
    assert read_sweep(again, {}).tree() == sweep.tree()
    assert [one.config for one in read_sweep(again, {}).combinations] == [
        one.config for one in sweep.combinations
    ]


def test_one_name_or_several_are_written_as_they_were_given(tmp_path: Path) -> None:
    grid = "[sweep.grid]\nheartbeat_us = [1, 2]\n"
    for names in ('"Omega"', '["Omega", "ParSync adaptive"]'):
        for key in ("metric", "baseline"):
            sweep = read(tmp_path, f"[sweep]\n{key} = {names}\n{grid}")
            section = sweep.tree()["sweep"]
            assert section[key] == tomllib.loads(f"x = {names}")["x"]
            again = tmp_path / "again.toml"
            again.write_text(toml_text(sweep.tree()))
            assert read_sweep(again, {}).section == sweep.section
    assert "baseline" not in read(tmp_path, grid).tree()["sweep"]


def test_the_command_line_chooses_between_seeds_and_until(tmp_path: Path) -> None:
    grid = "[sweep.grid]\nheartbeat_us = [1, 2]\n"
    assert read(tmp_path, f"[sweep]\nseeds = 3\n{grid}", until="1%").target is not None
    by_seeds = read(tmp_path, f'[sweep]\nuntil = "1%"\n{grid}', seeds=7)
    assert by_seeds.target is None and by_seeds.section.seeds == 7
    # an empty option is refused, and one that is not given is left
    assert not SweepOptions(metric=[], baseline=[]).changes
    said = problem(tmp_path, grid, **SweepOptions(until="").changes)
    assert "until: expected a percentage such as 2%, got ''" in said


def test_any_run_s_configuration_can_be_swept(tmp_path: Path) -> None:
    """A dumped configuration has all defaults; its parameters are as good as written ones."""
    (tmp_path / "run.toml").write_text(TOP + BASE)
    dumped = toml_text(load_config(tmp_path / "run.toml").model_dump(mode="json"))
    path = tmp_path / "sweep.toml"
    path.write_text(f'{dumped}\n[sweep.grid]\narms."*".groups."*".protocol.gap_s = [0.1]\n')
    assert len(read_sweep(path, {}).combinations) == 1


GRID = "[sweep.grid]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sweep: expected a section [sweep]"),
        ("[sweep]", "sweep: expected [sweep.grid] or [[sweep.zip]] with a list of values"),
        ("[sweep]\ngird = 1", "sweep.gird: unknown option"),
        ("[sweep]\nseeds = 0", "sweep.seeds: Input should be greater than or equal to 1, got 0"),
        *(
            (f'[sweep]\nuntil = "{until}"',
             f"sweep.until: expected a percentage such as 2%, got {until!r}")
            for until in ("2", "0%", "101%")
        ),
        *(
            (f"[sweep]\n{key} = {given}",
             f"sweep.{key}: expected a name or a list of names, got {given}")
            for key, given in (("metric", "3"), ("metric", "[]"), ("baseline", "[]"))
        ),
        ('[sweep]\nmetric = ["a", 3]', "sweep.metric.1: Input should be a valid string, got 3"),
        ('[sweep]\nmetric = ["a", "a"]', "sweep.metric: a is given twice"),
        ('[sweep]\nbaseline = ["Omega", "Omega"]', "sweep.baseline: Omega is given twice"),
        *(
            (f"[sweep]\nbaseline = {given}\n{GRID}heartbeat_us = [1]",
             "sweep.baseline: there is no arm 'X'; arms: ParSync adaptive, Omega")
            for given in ('["Omega", "X"]', '"X"')
        ),
        *(
            (f"{GRID}workload.machines = {given}",
             f"sweep.grid.workload.machines: expected a list of values, got {given}")
            for given in ("40", "[]")
        ),
        (GRID + "workload.machine = [40]", "with workload.machine = 40: workload: "),
        (GRID + "workload.machines = [40, 0]",
         "with workload.machines = 0: workload.machines: Input should be greater"),
        (GRID + "workload.phase_s = [0.5, 0.01]", "with workload.phase_s = 0.01: "),
        (GRID + '"workload.machines" = [40]',
         'sweep.grid."workload.machines": write workload.machines without quotes'),
        (GRID + "seed = [1]", "sweep.grid.seed: cannot be swept: [sweep] seeds sets"),
        (GRID + 'runtime = ["ray"]', "sweep.grid.runtime: cannot be swept: a sweep runs in"),
        (GRID + "live.hosts = [1]", "sweep.grid.live.hosts: cannot be swept: a sweep runs in"),
        (GRID + "arms.Omega = [{}]",
         "sweep.grid.arms.Omega: expected an option of an arm, arms.NAME.OPTION"),
        (GRID + 'arms.Omega.name = ["x"]',
         "sweep.grid.arms.Omega.name: cannot be swept; it says which arm this is"),
        (GRID + "arms.ParSync.partitions = [6]",
         "arms.ParSync: there is no arm 'ParSync'; expected one of ParSync adaptive, Omega"),
        (GRID + "arms.Omega.groups.0.count = [6]",
         "arms.Omega.groups.0: there is no group '0'; expected one of many"),
        (GRID + "workload.load_percent.3 = [6]",
         "workload.load_percent.3: expected a number from 0 to 0 for an entry of "
         "workload.load_percent"),
        (GRID + "workload.machines.x = [6]",
         "workload.machines.x: workload.machines is no table"),
        (GRID + 'arms."*".groups."*".protocol.gap = [6]',
         'arms."*".groups."*".protocol.gap: no arm has this option'),
        (GRID + 'workload."*" = [6]', 'workload."*": "*" stands for arms or groups only'),
        (GRID + "workload.machines = [40]\n[[sweep.zip]]\nworkload.machines = [40]",
         "workload.machines: workload.machines is given twice"),
        (GRID + 'arms."*".partitions = [6]\narms.Omega.partitions = [6]',
         "arms.Omega.partitions: arms.Omega.partitions is given twice"),
        (GRID + "workload.load_percent = [[6]]\n[[sweep.zip]]\nworkload.load_percent.0 = [40]",
         "workload.load_percent.0: workload.load_percent is given, too"),
        ("[[sweep.zip]]\nworkload.machines = [40, 80]\nheartbeat_us = [1]",
         "sweep.zip[0].heartbeat_us: expected 2 values, as workload.machines has, got 1"),
        (GRID + f"heartbeat_us = [{', '.join('1' * 101)}]\nsample_s = [{', '.join('1' * 100)}]",
         f"sweep: expected at most {MOST_COMBINATIONS:,} combinations, got 10,100"),
        ("drain_s = -1\n" + GRID + "heartbeat_us = [1]",
         "the base configuration: drain_s: Input should be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line_that_names_the_key(
    tmp_path: Path, text: str, said: str
) -> None:
    assert problem(tmp_path, text + "\n").startswith(said)


def test_labels_are_as_short_as_they_tell_parameters_apart() -> None:
    paths = [("workload", "machines"), ("arms", "a", "gap_s"), ("arms", "b c", "gap_s")]
    assert parameter_labels(paths) == ["machines", "a.gap_s", '"b c".gap_s']
    assert parameter_labels([("seed",)]) == ["seed"]


def test_values_as_columns_and_texts() -> None:
    given = [5, 0.5, True, "x", [50], [50, 80], {"clock": "counted"}, float("inf")]
    assert list(map(plain_value, given)) == [
        *(5, 0.5, True, "x", 50, "[50, 80]", '{clock = "counted"}', "inf")
    ]
    assert assignments(["a", "b"], [1000, True]) == "a = 1,000, b = true"


def test_toml_values_are_read_back() -> None:
    value = {"a b": [1, {"c": "d", "none": None}], "e": True}
    text = f"x = {toml_value(value)}"
    assert tomllib.loads(text)["x"] == {"a b": [1, {"c": "d"}], "e": True}
    assert toml_path(["arms", "*", "a.b", "c"]) == 'arms."*"."a.b".c'
