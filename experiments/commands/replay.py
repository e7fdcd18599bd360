"""`agora replay RUN...`: check that runs are complete and can be repeated."""

from __future__ import annotations

from parsync.runtime.replay import app

__all__ = ["app"]
