"""`agora solve FILE`: the solver's command line, `python -m flowsolver`."""

from __future__ import annotations

from flowsolver.__main__ import app

__all__ = ["app"]
