"""Where the figures that a page states come from.

    python -m tests.figures_in_documents            # what is not known of them
    python -m tests.figures_in_documents --all      # every figure

A figure is a number with a unit in a sentence, or a number in a table. Its section says where it
comes from, for itself and the sections in it, in one of three ways:

    > Made with: `agora sweep examples/questions/prices_loads.toml`; commit: f4317c8; seeds: 101 to
    > 110; conditions: virtual time, the demo's cell; intervals: t over seeds; before the change of
    > 2026-11-25.

    > Figures from: [runs](docs/run.md#two-clocks), where they are made.

    <!-- figures: settings -->

The last is for numbers that nobody measured; KINDS has the words. "Code changed since" says that
the code has changed since, in a way that may concern the figures, and that they were not made
again. What nobody wrote down is "not recorded": this script lists it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.documents import PAGES

FIELDS = ("Made with", "commit", "seeds", "conditions", "intervals")
BEFORE = "before the change of"
UNKNOWN = "not recorded"
KINDS = {
    "settings": "what is chosen, or how something works: nothing was measured",
    "arithmetic": "what formulas of the page give; tests compute them",
    "papers": "quoted from the papers that the page names",
    "examples": "output that shows what output looks like",
    "history": "as they were at the date of their entry, and never made again",
}

_HEADING = re.compile(r"(#+) (.+)")
_KIND = re.compile(r"<!-- figures: (.+) -->")
_LINKED = re.compile(r"\[[^\]]*\]\(([^)]*)\)")
_UNITS = r"%|ms|us|µs|ns|s|minutes?|hours?|points?|times as|bytes|[KMG]B|tasks/s|claims"
_FIGURE = re.compile(rf"(?<![\w.])\d[\d,.]*\s?(?:{_UNITS})(?![\w/])")
_NUMBER = re.compile(r"(?<![\w.])[-−±≥]?\d[\d,.]*")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and the line it stands in."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """A line "Made with".

    Attributes:
        line: Its number.
        values: What it says, by field.
        before: Whether the code has changed since.
    """

    line: int
    values: dict[str, str]
    before: bool

    @property
    def unknown(self) -> list[str]:
        """The fields that nobody wrote down."""
        return [name for name in FIELDS if UNKNOWN in self.values.get(name, UNKNOWN)]

    @property
    def commands(self) -> list[str]:
        """The commands that it names, without variables of the environment."""
        named = re.findall(r"`([^`]+)`", self.values.get("Made with", ""))
        return [command for command in named if " " in command]


@dataclass(slots=True)
class Section:
    """A part of a page, from its heading to the next.

    Attributes:
        page: The page.
        line: The number of the heading's line.
        title: The heading.
        parent: The section it is in; None for a page's first.
        figures: Those that stand in it.
        made: Its lines "Made with".
        sources: The addresses of its line "Figures from".
        kind: What its comment says, "" without one.
    """

    page: Path
    line: int
    title: str
    level: int
    parent: Section | None
    figures: list[Figure] = field(default_factory=list)
    made: list[Provenance] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line} {self.title}"

    @property
    def anchor(self) -> str:
        """The part of an address behind #."""
        kept = re.sub(r"[^\w\- ]", "", self.title.lower())
        return kept.replace(" ", "-")

    @property
    def explained(self) -> Section | None:
        """The section that says where the figures come from: this one, or one that it is in."""
        if self.made or self.sources or self.kind:
            return self
        return None if self.parent is None else self.parent.explained


def sections_of(page: Path) -> list[Section]:
    """Return the sections of a page, in order."""
    found: list[Section] = []
    quote: list[str] = []
    fenced = False
    for number, line in enumerate([*page.read_text(encoding="utf-8").splitlines(), ""], 1):
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if line.startswith("> "):
            quote.append(line.removeprefix("> "))
            continue
        if quote:
            _note(found[-1], number - len(quote), " ".join(quote))
            quote = []
        if heading := _HEADING.fullmatch(line):
            level = len(heading[1])
            parent = next((one for one in reversed(found) if one.level < level), None)
            found.append(Section(page, number, heading[2], level, parent))
        elif kind := _KIND.fullmatch(line):
            found[-1].kind = kind[1]
        elif found:
            found[-1].figures += [Figure(number, text) for text in _figures(line)]
    return found


def _note(section: Section, line: int, text: str) -> None:
    """Keep what a quoted paragraph says about figures."""
    if text.startswith("Figures from: "):
        section.sources += _LINKED.findall(text)
    elif text.startswith("Made with: "):
        parts = text.rstrip(".").split("; ")
        before = parts[-1].startswith(BEFORE)
        pairs = [part.partition(": ") for part in (parts[:-1] if before else parts)]
        values = {name: value for name, _, value in pairs}
        section.made.append(Provenance(line, values, before))


def _figures(line: str) -> Iterator[str]:
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*-->", " ", line)
    pattern = _NUMBER if line.startswith("|") else _FIGURE
    yield from pattern.findall(plain)


def unexplained() -> list[Section]:
    """Return the sections that state figures and do not say where they come from."""
    sections = [section for page in PAGES for section in sections_of(page)]
    return [section for section in sections if section.figures and section.explained is None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="list every figure, with its origin")
    every = parser.parse_args().all
    counts = {"made again": 0, BEFORE: 0, UNKNOWN: 0, "from other sections": 0, "no origin": 0}
    for page in PAGES:
        for section in sections_of(page):
            if not section.figures:
                continue
            origin, count = _origin(section)
            counts[count] = counts.get(count, 0) + len(section.figures)
            if every or count in (UNKNOWN, "no origin"):
                print(f"{section}: {len(section.figures)} figures; {origin}")
            if every:
                for figure in section.figures:
                    print(f"    {figure.line}: {figure.text}")
    for count, figures in counts.items():
        print(f"{figures:6,} {count}")
    return 1 if counts["no origin"] else 0


def _origin(section: Section) -> tuple[str, str]:
    """What is known of the figures of a section, and what they count as."""
    source = section.explained
    if source is None:
        return "no origin", "no origin"
    if source.kind:
        return source.kind, source.kind
    if not source.made:
        return f"from {', '.join(source.sources)}", "from other sections"
    unknown = [f"line {one.line}: {', '.join(one.unknown)}" for one in source.made if one.unknown]
    if unknown:
        return f"{UNKNOWN}: {'; '.join(unknown)}", UNKNOWN
    commits = ", ".join(one.values["commit"] for one in source.made)
    before = any(one.before for one in source.made)
    return f"commit {commits}", BEFORE if before else "made again"


if __name__ == "__main__":
    sys.exit(main())
