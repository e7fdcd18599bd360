"""Where CI is set, properties are tried on the same examples every time, and none is remembered
from earlier runs."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
