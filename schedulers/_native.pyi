# The compiled module (schedulers/native). Its faces (objective.py, greedy/base.py) carry the types.
from typing import Any

def __getattr__(name: str) -> Any: ...
