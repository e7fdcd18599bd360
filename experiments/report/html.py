"""Every page of Agora: a template that extends templates/skeleton.html.j2, filled and written."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from experiments.figures import style
from experiments.files import whole_file
from parsync.metrics.quantity import counted

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    """It compiles each template once, which takes longer than to fill it."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def filled(template: str, **values: Any) -> str:
    """The text of a page.

    Args:
        template: The name of a file in templates/.
        values: What it shows. Every page has the style sheet, `counted` and `colour` besides.
    """
    css = (_TEMPLATES / "style.css").read_text("utf-8")
    page = _environment().get_template(template)
    return page.render(css=css, counted=counted, colour=style.colour, **values)


def save_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all. Raises OSError."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, "utf-8")
