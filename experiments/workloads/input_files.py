"""Input data that tasks share: a pool of files, some more popular than others.

Where their replicas lie, and what it costs to run elsewhere, is as of input of one task
(input_data.py).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from experiments.workloads.draws import draw, zipf_table
from experiments.workloads.input_data import BLOCKS_MAX
from parsync.strict_model import Strict
from shared_state.random import Stream
from shared_state.tasks import Int64


class InputFiles(Strict):
    """A pool of files that tasks read, each task one of them."""

    count: int = Field(ge=1, le=1_000_000, description="files in the pool")
    zipf: float = Field(
        0.5, ge=0, le=8, description="popularity of file k is proportional to k ** -zipf"
    )
    gb: tuple[Annotated[int, Field(ge=1, le=BLOCKS_MAX)], ...] = Field(
        (1,),
        min_length=1,
        strict=False,
        description="sizes of files, each equally frequent, in blocks of 1 GB",
    )

    def draw(self, readers: int, stream: Stream) -> tuple[Int64, Int64]:
        """Draw the size of each file in blocks, int64[count], and the file that each of the tasks
        reads, int64[readers]."""
        gb = np.array(self.gb, np.int64)[stream.integers(self.count, len(self.gb))]
        return gb, draw(stream, zipf_table(self.count, self.zipf), readers)
