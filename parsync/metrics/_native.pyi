# The compiled module (parsync/metrics/native). Its faces (measurements.py, agent_log.py) carry the
# types.
from typing import Any

def __getattr__(name: str) -> Any: ...
