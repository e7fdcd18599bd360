"""Kinds by name, their options, and kinds that other packages bring: a whole scheduler in a file
and one line of metadata; and what somebody else's code raised, as messages say it."""

from __future__ import annotations

import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.entry_points import LONGEST, cause, raised
from schedulers.interface import Capability
from shared_state.errors import AgoraError

# The guide's example: what a third party writes, whole.
OWN_SCHEDULER = '''
"""Places each task on the machine with the highest row that fits it."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.decision_clock import Counted
from schedulers.interface import Plan
from schedulers.registry import SchedulerSpec


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    spare: int = Field(0, ge=0)  # machines at the end of the cell that are left alone


class LastFit:
    def __init__(self, options, environment):
        self.last = environment.cell.machines - options.spare

    def plan(self, tasks, view, context):
        free = view.free[: self.last].copy()
        machine = np.full(len(tasks), -1, np.int32)
        for i in np.flatnonzero(tasks.gang < 0):  # gangs wait: this scheduler does not know them
            fitting = np.flatnonzero((free >= tasks.request[i]).all(axis=1))
            if len(fitting):
                machine[i] = fitting[-1]
                free[fitting[-1]] -= tasks.request[i]
        return Plan.from_machines(tasks, machine, operations=len(tasks) * len(free))

    def observe(self, changes):
        pass


SPEC = SchedulerSpec("last_fit", Options, LastFit, default_decision=Counted(100))
'''


BROKEN = """
from pydantic import BaseModel
from schedulers.decision_clock import Counted
from schedulers.registry import SchedulerSpec

NUMBER = 3
NO_OPTIONS = SchedulerSpec("broken", dict, print, Counted(100))
NO_BUILD = SchedulerSpec("broken", BaseModel, None, Counted(100))
NO_CLOCK = SchedulerSpec("broken", BaseModel, print, 100)
NO_SET = SchedulerSpec("broken", BaseModel, print, Counted(100), "evicts")
UNKNOWN = SchedulerSpec("broken", BaseModel, print, Counted(100), {"evicts", "flies"})
"""


def install(folder, monkeypatch, module, source, kind, value):
    """A package as pip leaves it: its module, and the metadata with its entry point."""
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agora.schedulers]\n{kind} = {value}\n")
    monkeypatch.syspath_prepend(folder)


def test_a_third_party_kind_is_found_and_conforms(tmp_path, monkeypatch):
    install(
        tmp_path,
        monkeypatch,
        "third_party_last_fit",
        OWN_SCHEDULER,
        "last_fit",
        "third_party_last_fit:SPEC",
    )
    assert "last_fit" in registry.kinds()
    spec = registry.get("last_fit")
    check_conformance(spec)
    check_conformance(spec, {"spare": 3})
    with pytest.raises(AgoraError, match="'last_fit', option 'spare'"):
        spec.parse_options({"spare": -1})


def test_an_unknown_kind_is_named_and_the_known_ones_listed():
    with pytest.raises(
        AgoraError,
        match=r"kind 'frist_fit' .did you mean 'first_fit'.*known: best_fit, .*random",
    ):
        registry.get("frist_fit")


def test_the_kinds_of_flow_scheduler_are_those_of_their_papers():
    assert {"flow", "firmament", "quincy", "flow_load_spreading"} <= set(registry.kinds())
    assert "best_fit, firmament, first_fit, flow, " in registry.listing()
    flow, firmament, quincy = (
        registry.get(kind).parse_options({}) for kind in ("flow", "firmament", "quincy")
    )
    assert (flow.preemption, firmament.preemption, quincy.preemption) == (False, True, True)
    assert (flow.may_wait, firmament.may_wait, quincy.may_wait) == (False, True, True)
    margins = [(one.place_margin, one.stay_margin) for one in (flow, firmament, quincy)]
    assert margins == [(1, 1), (0, 1), (0, 1)]  # without the second, ties move tasks
    spreading = registry.get("firmament").parse_options({"policy": "load_spreading"})
    assert not hasattr(spreading, "may_wait")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("random", "'random' is registered twice"),
        ("firmament", "'firmament' is registered twice: .* and usurper:SPEC"),
    ],
)
def test_no_package_may_take_a_name_that_is_taken(tmp_path, monkeypatch, kind, message):
    install(tmp_path, monkeypatch, "usurper", "NUMBER = 3\n", kind, "usurper:SPEC")
    with pytest.raises(AgoraError, match=message):
        registry.kinds()


def test_an_unknown_option_is_named_and_the_known_ones_listed():
    with pytest.raises(
        AgoraError, match=r"'random' has no option 'pickiness'; its options: .*patience_s"
    ):
        registry.get("random").parse_options({"pickiness": 0.5})
    with pytest.raises(
        AgoraError,
        match=r"has no option 'wiat_cost' .did you mean 'wait_cost'.*options: .*wait_cost",
    ):
        registry.get("quincy").parse_options({"wiat_cost": 1})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module_anywhere:SPEC", "cannot load no_such_module_anywhere:SPEC"),
        ("broken_package:NO_SPEC", "cannot load broken_package:NO_SPEC"),
        ("broken_package:NUMBER", "not a SchedulerSpec of that kind"),
        ("schedulers.greedy.kinds:RANDOM", "not a SchedulerSpec of that kind"),
        ("broken_package:NO_OPTIONS", "field options: expected a BaseModel, got a type"),
        ("broken_package:NO_BUILD", "field build: expected a callable, got a NoneType"),
        ("broken_package:NO_CLOCK", "field default_decision: expected a DecisionClock, got a int"),
        (
            "broken_package:NO_SET",
            "field capabilities: expected a set of Capability, got a str",
        ),
        (
            "broken_package:UNKNOWN",
            r"^scheduler kind 'broken': broken_package:UNKNOWN: unknown capability 'flies'; "
            "known: depends_on_timing, evicts, ignores_changes, keeps_pending, measured_when_live, "
            "orders_mapreduce, own_process, plans_whole_queue, preempts, races, "
            "shares_demand, unmodelled, waits_for_outcome, wants_ends$",
        ),
    ],
)
def test_broken_entry_points_are_refused(tmp_path, monkeypatch, value, message):
    install(tmp_path, monkeypatch, "broken_package", BROKEN, "broken", value)
    with pytest.raises(AgoraError, match=message):
        registry.get("broken")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef plan(:\n", r"spoilt_1\.py, line 2: invalid syntax"),
        ("x = 1\n\ny = 1 / 0\n", r"spoilt_2\.py, line 3: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", r"spoilt_3\.py, line 2: SystemExit: 3"),
        ("import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        (
            "raise AttributeError('of its own')\n",
            r"spoilt_5\.py, line 1: AttributeError: of its own",
        ),
        ("def f():\n    g()\ndef g():\n    h\nf()\n", r"spoilt_6\.py, line 5: NameError: name 'h'"),
    ],
    ids=range(1, 7),
)
def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    tmp_path, monkeypatch, request, source, message
):
    module = f"spoilt_{request.node.callspec.id}"
    install(tmp_path, monkeypatch, module, source, "spoilt", f"{module}:SPEC")
    with pytest.raises(AgoraError, match=rf"kind 'spoilt': cannot load {module}:SPEC: .*{message}"):
        registry.get("spoilt")


def test_options_whose_validator_fails_are_refused(tmp_path, monkeypatch):
    source = OWN_SCHEDULER.replace(
        "class LastFit:",
        "class Odd(Options):\n"
        "    def model_post_init(self, context):\n"
        "        raise RuntimeError('of its own')\n\n\n"
        "class LastFit:",
    ).replace('"last_fit", Options', '"last_fit", Odd')
    install(tmp_path, monkeypatch, "odd_options", source, "last_fit", "odd_options:SPEC")
    with pytest.raises(AgoraError, match="kind 'last_fit', options: RuntimeError: of its own"):
        registry.get("last_fit").parse_options({})


def test_options_may_bring_capabilities():
    spec = registry.get("preferred_first")
    for patience_s, more in ((0, Capability.IGNORES_CHANGES), (0.5, Capability.KEEPS_PENDING)):
        options = spec.parse_options({"patience_s": patience_s})
        found = spec.with_options(options).capabilities
        assert found == {Capability.PLANS_WHOLE_QUEUE, more}


OUTER = "from {helper} import fail\n\n\ndef call(error):\n    fail(error)\n"
HELPER = "def fail(error):\n    raise error\n"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """A package, and a module that is in none; both call a helper beside them."""
    folder = tmp_path / "raised_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(OUTER.format(helper="raised_package.helper"))
    (folder / "helper.py").write_text(HELPER)
    (tmp_path / "raised_module.py").write_text(OUTER.format(helper="raised_helper"))
    (tmp_path / "raised_helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("raised_package", "raised_package.helper", "raised_module", "raised_helper")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("raised_package"), import_module("raised_module")


def caught(module: ModuleType, error: Exception) -> Exception:
    try:
        module.call(error)
    except Exception as found:
        return found
    raise AssertionError("it did not raise")


def test_the_line_is_the_innermost_of_the_owners_package_or_file(modules) -> None:
    package, module = modules
    of_package = caught(package, KeyError(7))
    assert raised(of_package, package.call) == "KeyError: 7 (helper.py, line 2)"
    of_module = caught(module, KeyError(7))
    assert raised(of_module, module.call) == "KeyError: 7 (raised_module.py, line 5)"
    assert cause(of_module, module.call) == f"{module.__file__}, line 5: KeyError: 7"


def test_without_a_line_of_the_owners_it_is_the_innermost_and_never_ours(modules) -> None:
    _, module = modules
    assert raised(caught(module, KeyError(7)), object()) == "KeyError: 7 (raised_helper.py, line 2)"
    try:
        raise KeyError(7)
    except KeyError as ours:
        assert raised(ours, object()) == "KeyError: 7"


def test_a_message_is_one_line_of_limited_length() -> None:
    class Secret(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert raised(ValueError("a\n  b")) == "ValueError: a b"
    assert raised(ValueError()) == "ValueError"
    assert raised(Secret()) == "Secret: (its message cannot be shown)"
    long = raised(ValueError("x" * 1000))
    assert len(long) == LONGEST and long.endswith("x…")
