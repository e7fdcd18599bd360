# The compiled module (schedulers/native). objective.py, greedy/scheduler.py and others carry the
# types.
from typing import Any

def __getattr__(name: str) -> Any: ...
