"""The pages of the documentation as tests read them: fenced blocks, and what each of them is for.

Every block names its language: `python`, `toml`, `bash`, `promql`, or `text` for what nobody runs.
The Python blocks of a page go on from one to the next, like the cells of a notebook. A TOML block
is a whole file, or it begins with a line that says where the rest is:

    # the rest as in examples/mixed_cell.toml
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from experiments.commands.registry import COMMANDS
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions

ROOT = Path(__file__).parents[1]
FIRST = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = [ROOT / name for name in FIRST] + sorted((ROOT / "docs").glob("*.md"))
LANGUAGES = {"python", "toml", "bash", "promql", "text"}
LOADS_A_RUN = ("results.md", "sweep.md")  # their Python reads what a command of theirs has left
# in examples/, by kind
PACKAGE_OF = {"csv_trace": "workloads", "lottery": "protocols", "retry_at_sync": "protocols"}

_FENCE = re.compile(r"```(\S*)")
_REST = re.compile(r"# the rest as in (.+)")
_OF_THE_SHELL = re.compile(r"\||&&|\d*>|;")  # a pipe, another command, a redirection
_OF_A_RUN = "the config.toml of `agora run`"
_PLACEHOLDERS = {"FAMILY": "quincy", "ID": "1491"}  # those for which not every word will do


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page it is on.
        line: The number of the line with its opening fence, from 1.
        language: What stands behind the fence.
        text: Its lines.
    """

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    opened: tuple[int, str] | None = None
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if opened is None:
            opened = number, fence[1]
        else:
            text = "\n".join(lines[opened[0] : number - 1])
            found.append(Block(page, *opened, text))
            opened = None
    assert opened is None, f"{page.name}:{opened}: this fence is never closed"
    return found


def blocks(language: str) -> list[Block]:
    """Return the blocks in a language, of all pages."""
    return [block for page in PAGES for block in blocks_of(page) if block.language == language]


def run_python(page: Path) -> dict[str, Any]:
    """Run the Python blocks of a page one after the other, and return their names. A traceback has
    the line of the page."""
    module = ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    for block in blocks_of(page):
        if block.language == "python":
            code = "\n" * block.line + block.text
            exec(compile(code, str(page.relative_to(ROOT)), "exec"), vars(module))
    return vars(module)


def rest_of(block: Block) -> str | None:
    """Return the file that has the rest of a TOML block, or None if the block is a whole file."""
    found = _REST.fullmatch(block.text.partition("\n")[0])
    return None if found is None else found[1]


def whole_toml(block: Block) -> dict[str, Any]:
    """Return what a TOML block says, laid over the file with the rest."""
    tree = tomllib.loads(block.text)
    rest = rest_of(block)
    if rest is None:
        return tree
    if rest == _OF_A_RUN:
        base = main_comparison()
    else:
        base = tomllib.loads((ROOT / rest).read_text(encoding="utf-8"))
    whole: dict[str, Any] = laid_over(base, tree)
    return whole


def main_comparison() -> dict[str, Any]:
    """Return what the `config.toml` of `agora run --quick` says."""
    config = resolve(RunOptions(quick=True))
    return config.model_dump(mode="json", exclude_none=True)


def laid_over(base: Any, part: Any) -> Any:
    """Return `base` with what `part` says otherwise.

    A table in place of a list of tables changes the first of them. Named tables change those of the
    same name, or replace all of them if none has it. A table of another `kind` replaces the whole.
    """
    if isinstance(part, list):
        names = {entry.get("name"): entry for entry in part if isinstance(entry, dict)}
        if isinstance(base, list) and any(_name(entry) in names for entry in base):
            new = [laid_over(entry, names.pop(_name(entry), {})) for entry in base]
            return [*new, *names.values()]
        return part
    if not isinstance(part, dict):
        return part
    if isinstance(base, list):
        return [laid_over(base[0], part), *base[1:]]
    if not isinstance(base, dict) or part.get("kind", base.get("kind")) != base.get("kind"):
        return part
    return {**base, **{key: laid_over(base.get(key), value) for key, value in part.items()}}


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None


def commands_in(block: Block) -> Iterator[list[str]]:
    """Yield the words of each command of a `bash` block."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def inline_commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the words of each `agora ...` that a page has in its sentences."""
    text = re.sub(r"^```.*?^```", _blank, page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for found in re.finditer(r"`(agora [^`]+)`", text):
        line = text.count("\n", 0, found.start()) + 1
        yield line, shlex.split(found[1].replace("\n> ", " "))  # in a quotation, too


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def check_command(words: list[str]) -> None:
    """Check a command as the program that it names reads it, without running it. Raises what that
    program raises, or AssertionError."""
    first, rest = words[0].rpartition("/")[2], words[1:]
    its = [index for index, word in enumerate(rest) if _OF_THE_SHELL.match(word)]
    _CHECKS[first](rest[: its[0]] if its else rest)


def _check_agora(words: list[str]) -> None:
    name, *arguments = words
    if name.startswith("--"):
        assert name in ("--version", "--help", "--install-completion", "--show-completion"), name
        return
    command = typer.main.get_command(import_module(COMMANDS[name][0]).app)
    arguments = [_PLACEHOLDERS.get(word, word) for word in arguments]
    if arguments and arguments != ["--help"]:  # without any it is a mention of the command
        parsed: Any = command.make_context(name, arguments)
        group: Any = command
        while hasattr(group, "resolve_command"):  # `agora solve bench ...`
            _, group, left = group.resolve_command(parsed, [*parsed._protected_args, *parsed.args])
            parsed = group.make_context(group.name, left, parent=parsed)


def _check_python(words: list[str]) -> None:
    """A module or a file exists, and names the options that it is given."""
    if words[0] == "-c":
        compile(words[1], "-c", "exec")
        return
    if words[0] == "-m":
        if words[1] in ("experiments", "pytest"):
            return
        found = find_spec(words[1])
        assert found is not None and found.origin is not None, words
        source, given = Path(found.origin), words[2:]
    else:
        source, given = ROOT / words[0], words[1:]
    text = source.read_text(encoding="utf-8")
    for word in given:
        if word.startswith("--"):
            assert f'"{word.partition("=")[0]}"' in text, f"{source}: {word}"


def _check_make(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in words:
        assert re.search(rf"^{target}:", makefile, re.M), target


def _check_ray(words: list[str]) -> None:
    from ray.scripts.scripts import cli

    command = cli.commands[words[0]]
    command.make_context(words[0], words[1:])


def _check_shell(words: list[str]) -> None:
    assert words, "these have no options of ours"


_CHECKS: Mapping[str, Callable[[list[str]], None]] = {
    "agora": _check_agora,
    "python": _check_python,
    "make": _check_make,
    "ray": _check_ray,
    "export": _check_shell,
    "mkdir": _check_shell,
    "(umask": _check_shell,
}
