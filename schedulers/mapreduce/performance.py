"""How long a MapReduce job takes with so many workers: the model of Omega's case study.

The run time falls linearly with the number of workers up to the point where all map activities, and
all reduce activities, run in parallel (Schwarzkopf et al., EuroSys 2013, section 6.1). The model
knows no set-up time of workers and no stragglers, so large speed-ups are optimistic (section 6.2).
It ignores that activities are whole, too: 4 maps on 3 workers take 4/3 of a map there, and 2 in a
run. `whole_activities_us` counts those.
"""

from __future__ import annotations

import numpy as np

from shared_state.tasks import Int64


def predicted_us(
    maps: Int64, reduces: Int64, map_us: Int64, reduce_us: Int64, workers: Int64
) -> Int64:
    """The predicted time from the first map to the last reduce, rounded up to microseconds.

    Args:
        maps: int64[j], activities still to run, those that run included.
        reduces: int64[j].
        map_us: int64[j], the average run time of a map.
        reduce_us: int64[j].
        workers: int64[j], at least 1.

    Returns:
        int64[j].
    """
    return _phase_us(maps, map_us, workers) + _phase_us(reduces, reduce_us, workers)


def whole_activities_us(
    maps: Int64, reduces: Int64, map_us: Int64, reduce_us: Int64, workers: Int64
) -> Int64:
    """The same for activities that cannot be divided: int64[j]. Exact where a job's activities of
    each kind take equally long, and its workers are never without room."""
    return -(-maps // workers) * map_us + -(-reduces // workers) * reduce_us


def useful_workers(maps: Int64, reduces: Int64) -> Int64:
    """The least number of workers with the earliest predicted finish: more of them find no activity
    to run. int64[j]; arguments as in predicted_us."""
    return np.maximum(maps, reduces)


def _phase_us(activities: Int64, each_us: Int64, workers: Int64) -> Int64:
    """The predicted time of all maps, or of all reduces."""
    busy = np.maximum(1, np.minimum(workers, activities))
    return -(-activities * each_us // busy)
