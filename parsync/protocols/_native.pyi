# The compiled module (parsync/protocols/native). Its faces carry the types.
from typing import Any

def __getattr__(name: str) -> Any: ...
