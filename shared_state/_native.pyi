# The compiled module (shared_state/native). Its faces (cell.py, view.py, random.py) carry the
# types.
from typing import Any

def __getattr__(name: str) -> Any: ...
