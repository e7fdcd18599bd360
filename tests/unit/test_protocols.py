"""Protocols by name, those of other packages, and what the groups of an arm must agree on."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from parsync.protocols import registry
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.optimistic.protocol import check, sync_context
from parsync.protocols.spec import Member, ProtocolCapability
from parsync.spec.arm import GroupConfig, ProtocolChoice
from shared_state.errors import AgoraError
from tests.fixtures.installed import install
from tests.fixtures.live_runs import small_workload

BROKEN = """
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parsync.core.event import Event, Priority
from parsync.protocols.spec import ProtocolSpec


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tickets: int = Field(1, ge=1)

    @field_validator("tickets")
    @classmethod
    def lucky(cls, tickets):
        if tickets == 13:
            raise RuntimeError("of its own")
        return tickets


def event(name, kind="broken", number=1, priority=Priority.COMMIT):
    return type(name, (Event,), {"kind": kind, "number": number, "priority": priority})


def spec(**changes):
    return ProtocolSpec(**{"kind": "broken", "options": Options, "make_agent": print, **changes})


GOOD = spec(events=(event("A"), event("B", number=2)))
NUMBER = 3
OTHER_KIND = spec(kind="whole")
NO_OPTIONS = spec(options=dict)
NO_SHARED_OPTIONS = spec(shared_options=dict)
NO_TABLES = spec(tables=[])
NO_AGENT = spec(make_agent=None)
NO_CELL_SIDE = spec(cell_side=3)
NO_NODE_SIDE = spec(node_side=3)
NO_TUPLE = spec(events=[event("A")])
NO_CAPABILITIES = spec(capabilities="watches_cell")
UNKNOWN_CAPABILITY = spec(capabilities=frozenset({"flies"}))
SET_OF_CAPABILITIES = spec(capabilities={"wants_ends"})
FLIES = spec(capabilities=lambda options: frozenset({"flies"} if options.tickets > 1 else ()))
NO_SET = spec(capabilities=lambda options: None)
RAISES = spec(capabilities=lambda options: options.price)
NO_CHECK = spec(check=None)
NO_FOR_WORKLOAD = spec(for_workload=None)
NO_FILLED_IN = spec(for_workload=lambda options, workload: None)
ASKS_TOO_MUCH = spec(for_workload=lambda options, workload: workload.weather)
NO_EVENT = spec(events=(int,))
INSTANCE = spec(events=(3,))
EVENT_OF_ANOTHER = spec(events=(event("A"), event("B", kind="optimistic", number=2)))
EVENT_OF_THE_CORE = spec(events=(event("A", kind="core"),))
SAME_NUMBER = spec(events=(event("A"), event("B")))
NEGATIVE = spec(events=(event("A", number=-1),))
NO_INTEGER = spec(events=(event("A", number="1"),))
NO_PRIORITY = spec(events=(event("A", priority=2),))


class Bare(Event):
    kind = "broken"


BARE = spec(events=(Bare,))
"""


def install_protocol(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, value: str, source: str = BROKEN
) -> None:
    """A package with an entry point that leads to a protocol."""
    module = value.partition(":")[0]
    files = {f"{module}.py": textwrap.dedent(source)}
    install(folder, kind, value, files, "agora.protocols")
    # two packages are two only by their names
    (folder / f"{kind}-1.0.dist-info").rename(folder / f"{module}-1.0.dist-info")
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    install_protocol(tmp_path, monkeypatch, "broken", "whole_protocol:GOOD")
    return registry.get("broken")


def test_protocols_of_packages_stand_beside_ours_in_order(whole: Any) -> None:
    assert registry.kinds() == ("broken", "locking", "offers", "optimistic", "probing")
    assert registry.get("optimistic").kind == "optimistic"
    assert [event.__name__ for event in whole.events] == ["A", "B"]
    assert whole.parse_options({"tickets": 3}).tickets == 3


def test_an_unknown_protocol_is_named_and_the_known_ones_listed() -> None:
    with pytest.raises(
        AgoraError,
        match=r"^unknown protocol 'optimist' \(did you mean 'optimistic'\?\); "
        r"known: locking, offers, optimistic, probing$",
    ):
        registry.get("optimist")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"ticket": 1},
            "protocol 'broken' has no option 'ticket' (did you mean 'tickets'?); "
            "its options: tickets",
        ),
        (
            {"tickets": 0},
            "protocol 'broken', option 'tickets': Input should be greater than or equal to 1, "
            "got 0",
        ),
        ({"tickets": 13}, "protocol 'broken', options: RuntimeError: of its own"),
    ],
)
def test_a_wrong_option_is_named(whole: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AgoraError) as refused:
        whole.parse_options(options)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"gap": 1.0},
            r"protocol 'optimistic' has no option 'gap' \(did you mean 'gap_s'\?\); "
            r"its options: .*gap_s.*",
        ),
        (
            {"gap_s": 0.0},
            "protocol 'optimistic', option 'gap_s': Input should be greater than 0, got 0.0",
        ),
        ({"gap_s": "1"}, "protocol 'optimistic', option 'gap_s': .* valid number, got '1'"),
        (
            {"losers": "retry"},
            "protocol 'optimistic', option 'losers': .*'block' or 'requeue', got 'retry'",
        ),
        ({"sync": "gossip"}, ".*unknown sync policy 'gossip'; known: .*every_attempt.*"),
        (
            {"sync_options": {"extra": 1}},
            ".*sync policy 'diff_block' has no option 'extra'; its options: none",
        ),
    ],
)
def test_a_wrong_option_of_the_optimistic_protocol_is_named(
    options: dict[str, Any], message: str
) -> None:
    given = {"sync": "diff_block", "gap_s": 0.5, **options}
    if "gap" in options:  # a misspelt option hides that the right one is missing
        del given["gap_s"]
    with pytest.raises(AgoraError, match=f"^{message}$"):
        registry.get("optimistic").parse_options(given)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_protocol:SPEC", "cannot load no_such_protocol:SPEC: No module named"),
        ("broken_protocol:NO_SPEC", "cannot load broken_protocol:NO_SPEC: .*no attribute"),
        ("broken_protocol:NUMBER", "broken_protocol:NUMBER is not a ProtocolSpec of that kind"),
        ("broken_protocol:OTHER_KIND", "OTHER_KIND is not a ProtocolSpec of that kind"),
        ("broken_protocol:NO_OPTIONS", "field options: expected a BaseModel, got a type"),
        ("broken_protocol:NO_SHARED_OPTIONS", "shared_options: expected a BaseModel, got a type"),
        ("broken_protocol:NO_TABLES", r"tables: expected table schemas by name, got \[\]"),
        ("broken_protocol:NO_AGENT", "field make_agent: expected a callable, got a NoneType"),
        ("broken_protocol:NO_CELL_SIDE", "cell_side: expected a callable or None, got a int"),
        ("broken_protocol:NO_NODE_SIDE", "node_side: expected a callable or None, got a int"),
        ("broken_protocol:NO_TUPLE", "events: expected a tuple of event classes, got a list"),
        (
            "broken_protocol:NO_CAPABILITIES",
            "capabilities: expected a set of ProtocolCapability, got a str",
        ),
        (
            "broken_protocol:UNKNOWN_CAPABILITY",
            "unknown capability 'flies'; known: commits_gangs_whole, obeys_quotas, passes_demand, "
            "runs_schedulers, shows_running, synchronises, wants_ends",
        ),
        ("broken_protocol:NO_CHECK", "check: expected a callable, got a NoneType"),
        (
            "broken_protocol:NO_FOR_WORKLOAD",
            "for_workload: expected a callable, got a NoneType",
        ),
        ("broken_protocol:NO_EVENT", "events: expected classes of events, got <class 'int'>"),
        ("broken_protocol:INSTANCE", "events: expected classes of events, got 3"),
        ("broken_protocol:EVENT_OF_ANOTHER", "events: B.kind: expected 'broken'"),
        ("broken_protocol:EVENT_OF_THE_CORE", "events: A.kind: expected 'broken'"),
        ("broken_protocol:SAME_NUMBER", "events: A and B have the same number, 1"),
        ("broken_protocol:NEGATIVE", "A.number: expected an integer of 0 or more, got -1"),
        ("broken_protocol:NO_INTEGER", "A.number: expected an integer of 0 or more, got '1'"),
        ("broken_protocol:NO_PRIORITY", "events: A.priority: expected a Priority, got 2"),
        ("broken_protocol:BARE", "Bare.number: expected an integer of 0 or more, got None"),
    ],
)
def test_broken_protocols_are_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    module = value.partition(":")[0]
    source = (
        BROKEN if module == "broken_protocol" else "raise ModuleNotFoundError('No module named')"
    )
    install_protocol(tmp_path, monkeypatch, "broken", value, source)
    with pytest.raises(AgoraError, match=f"^protocol 'broken': .*{message}") as refused:
        registry.get("broken")
    assert "\n" not in str(refused.value)


def test_capabilities_may_be_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_protocol(tmp_path, monkeypatch, "broken", "set_protocol:SET_OF_CAPABILITIES")
    spec = registry.get("broken")
    assert spec.capabilities_of(spec.parse_options({})) == {ProtocolCapability.WANTS_ENDS}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "FLIES",
            "unknown capability 'flies'; known: commits_gangs_whole, obeys_quotas, passes_demand, "
            "runs_schedulers, shows_running, synchronises, wants_ends",
        ),
        ("NO_SET", "capabilities: expected a set of ProtocolCapability, got a NoneType"),
        (
            "RAISES",
            r"capabilities raised AttributeError: .* 'price' \(raises_protocol\.py, line \d+\)",
        ),
    ],
)
def test_wrong_capabilities_of_a_group_are_refused_where_it_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    install_protocol(tmp_path, monkeypatch, "broken", f"{name.lower()}_protocol:{name}")
    group = {"name": "g", "count": 1, "decision": {"clock": "modelled", "task_us": 1.0}}
    with pytest.raises(ValidationError, match=f"protocol 'broken': {message}"):
        GroupConfig.model_validate({**group, "protocol": {"kind": "broken", "tickets": 2}})
    if name == "FLIES":
        GroupConfig.model_validate({**group, "protocol": {"kind": "broken", "tickets": 1}})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NO_FILLED_IN", "for_workload: expected Options, got a NoneType"),
        ("ASKS_TOO_MUCH", r"for_workload raised AttributeError: .*'weather' \(asks\w+\.py, line"),
    ],
)
def test_options_that_a_protocol_cannot_fill_in_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    install_protocol(tmp_path, monkeypatch, "broken", f"{name.lower()}_protocol:{name}")
    chosen = ProtocolChoice(kind="broken", options=registry.get("broken").parse_options({}))
    with pytest.raises(AgoraError, match=f"^protocol 'broken': {message}"):
        chosen.for_workload(small_workload())


def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "x = 1\n\ny = 1 / 0\n"
    install_protocol(tmp_path, monkeypatch, "spoilt", "spoilt_protocol:SPEC", source)
    message = r"^protocol 'spoilt': cannot load spoilt_protocol:SPEC: .*spoilt_protocol\.py, line 3"
    with pytest.raises(AgoraError, match=message):
        registry.get("spoilt")


def test_two_packages_may_not_bring_one_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one_lottery", "other_lottery"):
        (tmp_path / name).mkdir()
        install_protocol(tmp_path / name, monkeypatch, "lottery", f"{name}:GOOD")
    registered = "'lottery' is registered twice: (one|other)_lottery:GOOD and (one|other)_lottery"
    for call in (registry.kinds, lambda: registry.get("lottery")):
        with pytest.raises(AgoraError, match=f"^protocol {registered}"):
            call()


def test_no_package_may_take_the_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_protocol(tmp_path, monkeypatch, "optimistic", "usurper_protocol:GOOD")
    with pytest.raises(AgoraError, match=r"^protocol 'optimistic' is registered twice: parsync"):
        registry.get("optimistic")


def members(*groups: tuple[str, int, str, str | None]) -> tuple[Member, ...]:
    """Groups of (name, count, sync policy, sync set)."""
    made: list[Member] = []
    for name, count, sync, sync_set in groups:
        options = OptimisticOptions(sync=sync, gap_s=0.5, sync_set=sync_set)
        first = sum(member.count for member in made)
        made.append(Member(name, first, count, options, frozenset()))
    return tuple(made)


def places(groups: tuple[Member, ...], partitions: int = 8) -> list[tuple[int, int]]:
    """(index, N) of every agent."""
    contexts = [
        sync_context(groups, member, member.first_agent + i, partitions)
        for member in groups
        for i in range(member.count)
    ]
    return [(context.index, context.agents) for context in contexts]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        # a group counts by itself
        ((("a", 2, None), ("b", 3, None)), [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]),
        # those that name one set count together, whatever their policies
        (
            (("a", 2, "x"), ("b", 1, None), ("c", 3, "x")),
            [(0, 5), (1, 5), (0, 1), (2, 5), (3, 5), (4, 5)],
        ),
        # those of different sets do not
        (
            (("a", 1, "x"), ("b", 2, "y"), ("c", 1, "x"), ("d", 1, "y")),
            [(0, 2), (0, 3), (1, 3), (1, 2), (2, 3)],
        ),
    ],
)
def test_agents_of_a_sync_set_count_together(
    groups: tuple[tuple[str, int, str | None], ...], expected: list[tuple[int, int]]
) -> None:
    policies = itertools.cycle(("diff_block", "same_block"))
    of = zip(groups, policies, strict=False)
    assert places(members(*((name, n, sync, one) for (name, n, one), sync in of))) == expected


def test_agents_get_the_gap_of_their_group_and_their_stream() -> None:
    (member,) = members(("a", 2, "diff_block", None))
    context = sync_context((member,), member, 1, 8, stream=7)
    assert (context.gap_us, context.partitions, context.stream) == (500_000, 8, 7)


@pytest.mark.parametrize(
    ("groups", "needed", "named"),
    [
        *(
            (tuple((name, 3, sync, one) for name in "ab"), needed, "a")
            for sync in ("diff_block", "diff_single", "same_block")
            for one, needed in ((None, 3), ("x", 6))
        ),
        # different sets need partitions by themselves
        (
            (
                ("a", 2, "diff_block", "x"),
                ("b", 4, "diff_block", "y"),
                ("c", 1, "diff_block", "x"),
            ),
            4,
            "b",
        ),
        # one that shares a set counts even if its own policy needs no partitions
        ((("a", 2, "diff_block", "x"), ("b", 4, "state_staggered", "x")), 6, "a"),
    ],
)
def test_a_set_needs_a_partition_for_each_of_its_agents(
    groups: tuple[tuple[str, int, str, str | None], ...], needed: int, named: str
) -> None:
    check(members(*groups), needed)
    says = rf"^group '{named}': partitions: expected at least {needed}, .* got {needed - 1}"
    with pytest.raises(AgoraError, match=says):
        check(members(*groups), needed - 1)


def test_policies_of_the_whole_state_need_no_partition_for_each_agent() -> None:
    whole = ("state_aligned", "state_staggered", "every_attempt")
    check(members(*((sync, 4, sync, None) for sync in whole)), 1)
    assert set(whole) < set(sync_policies.kinds())


def test_a_gap_without_time_for_each_agent_names_the_group() -> None:
    options = OptimisticOptions(sync="diff_block", gap_s=4e-6)
    member = Member("a", 0, 2, options, frozenset())
    check((member,), 4)
    with pytest.raises(AgoraError, match=r"^group 'a': gap_s: .* 0.000005, .* got 0.000004"):
        check((member,), 5)
