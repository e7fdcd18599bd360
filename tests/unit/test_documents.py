"""What the documents show works as shown."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from experiments.arm_config import ArmConfig
from experiments.workload_config import WorkloadConfig
from schedulers.conformance import check_conformance
from tests import option_reference

ROOT = Path(__file__).parents[2]
FIRST = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
CITATION = ("https://doi.org/", "https://arxiv.org/")  # of papers; no other links lead outside
PAGES = [ROOT / name for name in FIRST] + sorted((ROOT / "docs").glob("*.md"))

FOLDERS = ("experiments", "parsync", "schedulers", "shared_state", "flowsolver")
SHORT_LINES = [
    ROOT / name
    for name in ("Makefile", "CMakeLists.txt", "pyproject.toml", ".pre-commit-config.yaml")
]
for folder in FOLDERS:
    for pattern in ("CMakeLists.txt", "*.cmake", "*.j2", "*.css"):
        SHORT_LINES += sorted((ROOT / folder).rglob(pattern))


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def block(page: str, language: str) -> str:
    return blocks(page, language)[0]


def run(page: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(block(page, "python"), page, "exec"), names)
    return names


def test_the_example_of_a_scheduler_keeps_the_contract() -> None:
    check_conformance(run("add_a_scheduler.md")["SPEC"])  # type: ignore[arg-type]


def test_the_example_of_the_solver_runs() -> None:
    assert run("solver.md")["solution"].cost == 11  # type: ignore[attr-defined]


def test_the_example_of_the_conflict_model_has_the_rates_that_it_states() -> None:
    rate = run("conflict_model.md")["conflict_rate"]
    assert rate == pytest.approx([0.349, 0.197, 0.072], abs=0.0005)


def test_the_example_of_the_slot_simulator_has_the_results_that_it_states() -> None:
    names = run("slot_simulator.md")
    assert names["conflict_rate"] == pytest.approx(0.518, abs=0.0005)
    assert names["delay_s"] == pytest.approx(0.69, abs=0.005)


def test_the_example_of_a_mix_is_valid() -> None:
    [arm] = tomllib.loads(block("run.md", "toml"))["arms"]
    assert ArmConfig.model_validate(arm).shares_permille() == (750, 250)


def test_the_examples_of_workloads_are_valid() -> None:
    trees = [tomllib.loads(text) for text in blocks("run.md", "toml")]
    workloads = [tree["workload"] for tree in trees if "workload" in tree]
    kinds = [WorkloadConfig.model_validate(workload).kind for workload in workloads]
    assert kinds == ["google2011", "synthetic", "service_batch", "google2011"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_lines_are_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith(CITATION) or (page.parent / target).exists(), target
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    prose = [line for line in prose if not line.startswith("|")]
    assert [line for line in prose if len(line) > 100] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_pages_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it also names what is no more
    text = page.read_text(encoding="utf-8")
    tops = "|".join((*FOLDERS, "tests", "docs", "examples"))
    paths = re.findall(rf"`((?:{tops})/[\w./*-]*)`", text)
    assert [path for path in paths if not [*ROOT.glob(path.rstrip("/"))]] == []


def test_the_files_to_start_reading_at_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+/)` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    files = [ROOT / folder / name for folder, names in rows for name in names.split("`")[1::2]]
    assert len(files) > 10
    assert [file for file in files if not file.exists()] == []


@pytest.mark.parametrize("file", SHORT_LINES, ids=lambda file: str(file.relative_to(ROOT)))
def test_lines_of_build_files_and_templates_are_short(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100] == []


def test_lines_of_code_are_short() -> None:
    """Ruff lets a line be longer that ends with a comment for a tool."""
    folders = [ROOT / name for name in (*FOLDERS, "tests", "examples")]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 100
    ]
    assert len(files) > 300 and long == []


def test_the_citation_has_the_package_s_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]["text"]
    assert [paper["year"] for paper in citation["references"]] == [2013, 2021, 2016]


def test_the_folders_that_contributors_are_sent_to_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("\n## Checks")[0]
    paths = re.findall(r"`([a-z_]+/[\w/.]*)`", table)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_hooks_before_a_commit_run_what_make_lint_and_make_types_run() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for hook in hooks["repos"][0]["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = makefile.partition("\nlint:\n")[2].partition("\n\n")[0]
    types = makefile.partition("\ntypes:\n")[2].partition("\n\n")[0]
    tools = set(re.findall(r"\$\(VENV\)/bin/([\w-]+)", lint + types))
    assert {entry.split()[0].removeprefix(".venv/bin/") for entry in entries} == tools


def test_first_pages_are_short() -> None:
    """One screen of README, two of ARCHITECTURE: what is longer is a page of docs/."""
    for page, screens in (("README.md", 1), ("ARCHITECTURE.md", 2)):
        assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 50 * screens


def test_the_page_of_options_has_the_defaults_and_meanings_of_the_code() -> None:
    assert option_reference.PAGE.read_text(encoding="utf-8") == option_reference.page()


def test_the_glossary_is_in_order_names_its_sources_and_code_that_exists() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    shorts = re.findall(r"^\| (\w+) \| [A-Z]", text, re.MULTILINE)
    entries = re.findall(r"^\*\*(.+?)\*\* — (.+?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    terms = [term for term, _ in entries]
    assert terms == sorted(set(terms), key=str.lower) and len(terms) > 60
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    used: set[str] = set()
    for term, meaning in entries:
        see = re.fullmatch(r"See \*(.+)\*\.", meaning)
        sources = re.findall(r"\[([^\]]+)\]", meaning)
        assert sources or (see is not None and see[1] in terms), term
        used |= {short for short in shorts for source in sources if short in source}
        for name in re.findall(r"`([^`]+)`", meaning):
            known = name in code if "/" not in name else (ROOT / name).is_file()
            assert known or name.rpartition(".")[2] in code, f"{term}: {name}"
    assert used == set(shorts)
