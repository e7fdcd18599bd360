"""The description of an arm is what it was after TOML, JSON and another process, whatever its
options; and a change of any field of it changes what is written and the key of kept results."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from experiments.campaign.points import Point
from experiments.config.run_config import RunConfig, validated
from experiments.toml_text import toml_text
from experiments.workloads import registry as workloads
from parsync.protocols import registry as protocols
from parsync.spec.arm import ArmConfig, GroupConfig, SeededArm
from parsync.strict_model import NO_EFFECT
from schedulers import registry as schedulers
from schedulers.prices.registry import PriceOptions
from tests.fixtures.feature_runs import guests

WORKLOAD = {
    "kind": "synthetic",
    "machines": 20,
    "phase_s": 2.0,
    "mean_duration_s": 0.2,
}
MODELLED = {"clock": "modelled", "task_us": 100.0}
OPTIMISTIC = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.05}
PRICES = {"prices": "membership"}
PAID = {**PRICES, "price_mode": "paid"}
# What an option needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "quality": {"strategy": "adaptive"},
    "atomic_unit": {"commit_mode": "all_or_nothing"},
    "sync_options": {"sync": "conflicts_first"},
    "price_options": {"prices": "fluid"},
    "price_mode": PRICES,
    "price_scope": PRICES,
    "share_demand": PRICES,
    "price_weight_permille": PAID,
    "patience_by_price": {**PAID, "patience_s": 0.5},
    "target_utilization": {"policy": "global_cap"},
    "times_requested": {"policy": "relative_job_size"},
    "migration": {"preemption": True},
    "kubernetes: priority_preemption": {"scheduling_queue": True},
}
# Values that some option takes; those that an option refuses are left out.
VALUES: tuple[Any, ...] = (
    *(True, False, 0, 1, 2, 7, 40, 0.25, 0.5, 3.5, "x", "all", "inf", [0], [1]),
    *({"extra": 2}, {"update_s": 0.25}),
    *("block", "requeue", "mean_score", "sequence_number", "incremental", "all_or_nothing", "job"),
    *("latency_first", "adaptive", "tie", "paid", "elsewhere", "max_parallelism", "global_cap"),
    *("state_aligned", "membership", "potentials", "relaxation", "load_spreading", "quincy"),
    *("spread", "random", "least_queue", "per_task", "hoard"),
)
# Options of all kinds that can have prices, which this one refuses.
REFUSED = {
    f"weighted_sampling: {name}" for name in (*PriceOptions.model_fields, "patience_by_price")
}
# What virtual time refuses, and algorithms that do not race.
REFUSED |= {
    f"{kind}: deterministic" for kind in ("firmament", "quincy", "flow", "flow_load_spreading")
}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """What other packages bring is registered beside ours."""
    with guests():
        yield


def group(**fields: Any) -> dict[str, Any]:
    given = {"name": "g", "kind": "random", "count": 2, "protocol": OPTIMISTIC}
    return {**given, "decision": MODELLED, **fields}


def arm(*groups: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "a", "partitions": 4, "groups": list(groups) or [group()], **fields}


def config(arm: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"workload": WORKLOAD, "arms": [arm], "settle_s": 0.1, **fields}


def made(arm: dict[str, Any], **fields: Any) -> RunConfig | None:
    """The configuration; None if it is refused."""
    try:
        return RunConfig.model_validate(config(arm, **fields))
    except ValidationError:
        return None


def spec(config: RunConfig) -> SeededArm:
    return config.arms[0].seeded(seed=7, heartbeat_us=1000, sample_us=100_000, live=True)


def key(config: RunConfig) -> str:
    return Point(config, config.arms[0], 3).key()


def variants(model: type[BaseModel], base: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The options with other values of one of them, of which the model takes each."""
    found = []
    for value in VALUES:
        try:
            before = getattr(model.model_validate(base), name)
            after = getattr(model.model_validate({**base, name: value}), name)
        except (ValidationError, TypeError):
            continue
        if after != before:
            found.append({**base, name: value})
    return found


def options_of(kind: str) -> dict[str, type[BaseModel]]:
    """The options that a kind of scheduler has if no option is set, each with its model."""
    model = type(schedulers.get(kind).parse_options({}))
    return dict.fromkeys(model.model_fields, model)


def every_arm() -> dict[str, tuple[RunConfig, RunConfig]]:
    """For each option of each registered kind of protocol and scheduler: the configuration of an
    arm, and the same with another value of the option."""
    pairs: dict[str, tuple[RunConfig, RunConfig]] = {}
    for kind in protocols.kinds():
        model = protocols.get(kind).options
        required = {name: OPTIMISTIC[name] for name in OPTIMISTIC if name in model.model_fields}
        for name in model.model_fields:
            base = {**required, **BESIDE.get(name, {})}
            for varied in variants(model, base, name):
                two = [_with_protocol(kind, one) for one in (base, varied)]
                if two[0] is not None and two[1] is not None:
                    pairs[f"{kind}.{name}"] = two[0], two[1]
                    break
    for kind in schedulers.kinds():
        for name, model in options_of(kind).items():
            base = BESIDE.get(f"{kind}: {name}", BESIDE.get(name, {}))
            for varied in variants(model, base, name):
                preempts = kind == "preempting" or name == "priority_preemption"
                evictions = {"evictions": "lower_priority"} if preempts else {}
                decision = {"clock": "counted"} if kind == "firmament" else MODELLED
                two = [
                    made(arm(group(kind=kind, options=one, decision=decision), **evictions))
                    for one in (base, varied)
                ]
                if two[0] is not None and two[1] is not None:
                    pairs[f"{kind}: {name}"] = two[0], two[1]
                    break
    return pairs


def _with_protocol(kind: str, options: dict[str, Any]) -> RunConfig | None:
    """An arm of this protocol, with schedulers if it has any."""
    choice = {"kind": kind, **options}
    return made(arm(group(protocol=choice))) or made(arm(group(protocol=choice, kind=None)))


@pytest.fixture(scope="module")
def arms(registered: None) -> dict[str, tuple[RunConfig, RunConfig]]:
    return every_arm()


def test_every_registered_kind_and_option_is_tried(
    arms: dict[str, tuple[RunConfig, RunConfig]],
) -> None:
    options = {
        f"{kind}.{name}"
        for kind in protocols.kinds()
        for name in protocols.get(kind).options.model_fields
    } | {f"{kind}: {name}" for kind in schedulers.kinds() for name in options_of(kind)}
    assert options - set(arms) == REFUSED
    assert {"lottery", "machine_queues", "tally"} <= set(protocols.kinds())


def test_a_change_of_any_option_changes_dump_and_key(
    arms: dict[str, tuple[RunConfig, RunConfig]],
) -> None:
    for option, (one, other) in arms.items():
        assert one.model_dump(mode="json") != other.model_dump(mode="json"), option
        assert spec(one).model_dump(mode="json") != spec(other).model_dump(mode="json"), option
        assert key(one) != key(other), option


def test_every_arm_is_the_same_after_toml_json_and_pickle(
    arms: dict[str, tuple[RunConfig, RunConfig]],
) -> None:
    for option, pair in arms.items():
        for one in pair:
            text = toml_text(one.model_dump(mode="json"))
            assert validated(tomllib.loads(text), "test") == one, option
            run = spec(one)
            assert (
                SeededArm.model_validate(json.loads(json.dumps(run.model_dump(mode="json")))) == run
            )
            assert pickle.loads(pickle.dumps(run)) == run, option
            assert run.for_workload is not None and key(one) == key(pickle.loads(pickle.dumps(one)))


def test_every_arm_is_the_same_in_a_process_that_was_spawned(
    arms: dict[str, tuple[RunConfig, RunConfig]],
) -> None:
    ours = {
        option: spec(other)
        for option, (_, other) in arms.items()
        if {one.protocol.kind for one in other.arms[0].groups} <= set(protocols.BUILT_IN)
        and {one.kind for one in other.arms[0].groups} <= {*schedulers.BUILT_IN}
        and "conflicts_first" not in str(other.arms[0])
    }
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(json_of, ours.values()) == [json_of(one) for one in ours.values()]


def json_of(one: SeededArm) -> str:
    return json.dumps(one.model_dump(mode="json"))


FIELDS: dict[str, dict[str, Any]] = {
    "partitions": arm(partitions=5),
    "groups": arm(group(name="first"), group(name="second")),
    "evictions": arm(evictions="lower_priority"),
    "groups.name": arm(group(name="other")),
    "groups.kind": arm(group(kind="first_fit")),
    "groups.count": arm(group(count=3)),
    "groups.options": arm(group(options={"patience_s": 0.5})),
    "groups.protocol": arm(group(protocol={**OPTIMISTIC, "gap_s": 0.06})),
    "groups.share": arm(group(share=1.0)),
    "groups.task_class": arm(group(task_class="batch"), group(name="s", task_class="service")),
    "groups.decision": arm(group(decision={**MODELLED, "task_us": 101.0})),
    "decision.clock": arm(group(decision={"clock": "counted"})),
    "decision.job_us": arm(group(decision={**MODELLED, "job_us": 1})),
    "decision.scan_cost": arm(group(decision={**MODELLED, "scan_cost": 0.1})),
    "decision.charges_kept": arm(group(decision={**MODELLED, "charges_kept": True})),
    "decision.price_machine_ns": arm(group(decision={**MODELLED, "price_machine_ns": 7})),
    "decision.service": arm(group(decision={**MODELLED, "service": {"task_us": 5.0}})),
}


def test_a_change_of_any_field_changes_dump_and_key() -> None:
    plain = made(arm())
    assert plain is not None
    tried = {name for name in FIELDS if "." not in name}
    # test_protocol_options.py has options of a protocol as a whole
    assert tried | {"name", "quotas", "protocols"} == set(ArmConfig.model_fields)
    assert {f"groups.{name}" for name in GroupConfig.model_fields} <= set(FIELDS)
    for name, tree in FIELDS.items():
        other = made(tree)
        assert other is not None, name
        assert other.model_dump(mode="json") != plain.model_dump(mode="json"), name
        assert key(other) != key(plain), name
        assert validated(tomllib.loads(toml_text(other.model_dump(mode="json"))), name) == other


QUOTAS = ({"interval_s": 0.2}, {"reclaim_after_s": 1.0}, {"groups": [{"name": "b"}, {"name": "a"}]})
GROUP = ({"minimum": 0.1}, {"maximum": 0.9}, {"weight": 2})


def test_a_change_of_any_quota_changes_dump_and_key() -> None:
    owners = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]
    workload = {**WORKLOAD, "quota_groups": owners}
    plain = {"groups": [{"name": "a"}, {"name": "b"}]}
    of_group = [{"groups": [{"name": "a", **one}, {"name": "b"}]} for one in GROUP]
    found = [
        made(arm(**given), workload=workload)
        for given in ({}, *({"quotas": {**plain, **one}} for one in ({}, *QUOTAS, *of_group)))
    ]
    assert len({key(one) for one in found if one is not None}) == len(found) == 8
    for one in filter(None, found):
        assert validated(tomllib.loads(toml_text(one.model_dump(mode="json"))), "test") == one
        assert SeededArm.model_validate(json.loads(json_of(spec(one)))) == spec(one)


OTHER_SETTINGS: dict[str, Any] = {
    "name": "other",
    "runtime": "ray",
    "live": {"hosts": 3},
    "virtual": {"message_us": 7},
    "seed": 9,
    "seeds": 3,
    "sensitivity_seeds": 1,
    "drain_s": 3.0,
    "settle_s": 0.2,
    "heartbeat_us": 7,
    "sample_s": 0.05,
    "plan_limit_s": 3.0,
    "workload": {**WORKLOAD, "machines": 21},
    "arms": [arm(), arm(name="b")],
    "frontier": {"seeds": 2},
}


@pytest.mark.parametrize("name", [one for one in RunConfig.model_fields if one != "format"])
def test_a_kept_result_is_keyed_by_all_settings_but_those_without_effect(name: str) -> None:
    plain = RunConfig.model_validate(config(arm()))
    other = RunConfig.model_validate({**config(arm()), name: OTHER_SETTINGS[name]})
    assert plain.model_dump(mode="json") != other.model_dump(mode="json")
    without_effect = NO_EFFECT in RunConfig.model_fields[name].metadata
    assert (key(plain) == Point(other, plain.arms[0], 3).key()) is without_effect


def test_the_name_of_an_arm_does_not_decide_its_figures() -> None:
    plain, other = made(arm()), made(arm(name="b"))
    assert plain is not None and other is not None and key(plain) == key(other)


class Options(BaseModel):
    amount: int = 1


class More(Options):
    more: int | None = 2


def test_options_are_written_by_the_type_that_they_have() -> None:
    """A subclass of a model has fields that the model has not."""
    group_ = GroupConfig.model_validate(group())
    choice = group_.protocol.model_copy(update={"options": More(amount=3, more=None)})
    changed = group_.model_copy(update={"protocol": choice})
    expected = {"kind": "optimistic", "amount": 3, "more": None}
    assert changed.model_dump()["protocol"] == expected
    assert json.loads(changed.model_dump_json())["protocol"] == expected


def test_every_workload_kind_comes_back() -> None:
    assert {"synthetic", "service_batch", "google2011"} <= set(workloads.kinds())
    for kind in ("synthetic", "service_batch"):
        one = RunConfig.model_validate({**config(arm()), "workload": {"kind": kind}, "settle_s": 0})
        assert validated(tomllib.loads(toml_text(one.model_dump(mode="json"))), kind) == one
        assert pickle.loads(pickle.dumps(one)) == one
