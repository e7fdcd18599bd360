"""`agora draw`: the flow graph of a small cell, round by round, as a page to look at."""
