"""What the documents show works as shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.config.run_config import load_config
from experiments.papers.registry import PAPERS
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.sweeps.sweep_file import read_sweep
from experiments.toml_text import toml_text
from schedulers.conformance import check_conformance
from tests import option_reference
from tests.documents import (
    LANGUAGES,
    LOADS_A_RUN,
    PACKAGE_OF,
    PAGES,
    ROOT,
    Block,
    blocks,
    blocks_of,
    check_command,
    commands_in,
    inline_commands,
    main_comparison,
    rest_of,
    run_python,
    whole_toml,
)
from tests.figures_in_documents import FIELDS, KINDS, UNKNOWN, sections_of, unexplained

CITATION = ("https://doi.org/", "https://arxiv.org/")  # of papers; no other links lead outside

FOLDERS = ("experiments", "parsync", "schedulers", "shared_state", "flowsolver")
SHORT_LINES = [
    ROOT / name
    for name in ("Makefile", "CMakeLists.txt", "pyproject.toml", ".pre-commit-config.yaml")
]
for folder in FOLDERS:
    for pattern in ("CMakeLists.txt", "*.cmake", "*.j2", "*.css"):
        SHORT_LINES += sorted((ROOT / folder).rglob(pattern))


def of_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


PYTHON_PAGES = sorted({block.page for block in blocks("python")})
HERE = [page for page in PYTHON_PAGES if page.name not in LOADS_A_RUN]  # others: tests/replay


def test_blocks_name_their_language() -> None:
    found = [block for page in PAGES for block in blocks_of(page)]
    assert len(found) > 80
    assert [str(block) for block in found if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_no_block_is_indented(page: Path) -> None:
    """An indented block names no language, so no test would run it."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"\n\n {4}\S.*", prose) == []


@pytest.mark.parametrize("page", HERE, ids=of_page)
def test_the_python_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (ROOT / "examples").glob("*/pyproject.toml"):
        monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(ROOT)
    names = run_python(page)
    if "schedulers.registry" in page.read_text(encoding="utf-8"):
        check_conformance(names["SPEC"])
    if page.name in _FURTHER:
        _FURTHER[page.name](names)


def _of_the_solver(names: dict[str, Any]) -> None:
    assert names["solution"].cost == 11


def _of_the_conflict_model(names: dict[str, Any]) -> None:
    assert names["conflict_rate"] == pytest.approx([0.349, 0.197, 0.072], abs=0.0005)


def _of_the_slot_simulator(names: dict[str, Any]) -> None:
    assert names["conflict_rate"] == pytest.approx(0.518, abs=0.0005)
    assert names["delay_s"] == pytest.approx(0.69, abs=0.005)


# what a page says that its names are in the end
_FURTHER: dict[str, Callable[[dict[str, Any]], None]] = {
    "solver.md": _of_the_solver,
    "conflict_model.md": _of_the_conflict_model,
    "slot_simulator.md": _of_the_slot_simulator,
}


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_the_toml_of_a_page_is_a_valid_file(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    example_site: Callable[[str], Path],
) -> None:
    for kind, package in PACKAGE_OF.items():
        if f'kind = "{kind}"' in block.text:
            monkeypatch.syspath_prepend(example_site(package))
    tree = whole_toml(block)
    if "project" in tree:
        [(group, _)] = tree["project"]["entry-points"].items()
        package = ROOT / "examples" / group.removeprefix("agora.") / "pyproject.toml"
        assert tree == tomllib.loads(package.read_text(encoding="utf-8"))
        return
    (tmp_path / "config.toml").write_text(toml_text(main_comparison()))
    file = tmp_path / "file.toml"
    file.write_text(toml_text(tree))
    if "sweep" in tree:
        assert read_sweep(file, {}).combinations
    else:
        config = load_config(file)
        assert "frontier" not in tomllib.loads(block.text) or make_grid(config).points()


def test_a_part_of_a_file_says_where_the_rest_is() -> None:
    """A run needs arms and a workload, a package a name."""
    for block in blocks("toml"):
        tree = tomllib.loads(block.text)
        whole = {"arms", "workload"} <= tree.keys() or "base" in tree.get("sweep", {})
        assert whole or "name" in tree.get("project", {}) or rest_of(block), block


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_commands_of_pages_are_those_of_the_program(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "bash":
            subprocess.run(["bash", "-n", "-c", block.text], check=True)
            for words in commands_in(block):
                with named(f"{block}: {' '.join(words)}"):
                    check_command(words)
    if page.name != "CHANGELOG.md":  # it also names what is no more
        for line, words in inline_commands(page):
            with named(f"{page.name}:{line}: {' '.join(words)}"):
                check_command(words)


@contextmanager
def named(what: str) -> Iterator[None]:
    """A failure says which command it is about."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{what}: {type(error).__name__}: {getattr(error, 'message', error)}")


def test_every_section_with_figures_says_where_they_come_from() -> None:
    assert [str(section) for section in unexplained()] == []


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_origins_of_figures_are_complete_and_exist(page: Path) -> None:
    for section in sections_of(page):
        assert section.kind in ("", *KINDS), section
        for one in section.made:
            assert tuple(one.values) == FIELDS, f"{page.name}:{one.line}"
            commit = one.values["commit"]
            assert UNKNOWN in commit or re.search(r"\b[0-9a-f]{7,8}\b", commit), commit
            assert one.commands or UNKNOWN in one.values["Made with"], f"{page.name}:{one.line}"
            for command in one.commands:
                with named(f"{page.name}:{one.line}: {command}"):
                    check_command(shlex.split(command))
                    files = re.findall(r"[\w/]+\.toml", command)
                    assert all((ROOT / file).is_file() for file in files)
        for target in section.sources:
            name, _, anchor = target.partition("#")
            there = sections_of(page.parent / name)
            assert any(one.anchor == anchor for one in there), f"{section}: {target}"


def test_a_figure_without_an_origin_is_found(tmp_path: Path) -> None:
    """Numbers in tables, and with units in sentences; the numbers of code and of links do not
    count."""
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\nIt takes 7 ms, `9 ms` in [4](b.md#5).\n\n## One\n\n| 3 | 4.5 % |\n"
        "\n```text\n8 ms\n```\n\n## Two\n\n> Made with: `agora run`; commit: abcdef12;\n"
        "> seeds: 1; conditions: live; intervals: none; before the change of\n> 2026-11-25.\n"
        "\nIt takes 6 s.\n"
        "\n### Three\n\n2 points.\n"
    )
    first, one, two, three = sections_of(page)
    texts = [[figure.text for figure in section.figures] for section in (first, one, two, three)]
    assert texts == [["7 ms"], ["3", "4.5"], ["6 s"], ["2 points"]]
    assert first.explained is None and one.explained is None
    assert three.explained is two and two.made[0].before and two.made[0].unknown == []
    assert two.made[0].values["seeds"] == "1" and two.made[0].line == 15


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_links_lead_to_files_and_lines_are_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith(CITATION) or (page.parent / target).exists(), target
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    prose = [line for line in prose if not line.startswith("|")]
    assert [line for line in prose if len(line) > 100] == []


@pytest.mark.parametrize("page", PAGES, ids=of_page)
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


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = set(re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8")))
    assert {page.name for page in index.parent.glob("*.md")} - linked == {index.name}


def test_the_page_on_reproductions_names_the_strategies_of_the_code() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    outcome = text.partition("## What came out at paper scale")[2]
    figures = {figure.id: figure for figure in PAPERS["parsync"].figures}
    strategies = {"quality-first", "latency-first", "adaptive"}
    for name in ("fig13", "fig14", "fig15", "fig16"):
        strategy = figures[name].title.partition(" with ")[0].lower()
        [row] = [line for line in outcome.splitlines() if f"`{name}`" in line]
        assert {one for one in strategies if one in row} == {strategy}
    assert f"**Fig. 16.** With {strategy} and 80 partitions" in outcome


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
