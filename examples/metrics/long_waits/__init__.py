"""How many placed tasks waited for longer than a tenth of a second."""

from parsync.metrics.metric import Counters, Metric, OverTime, TimeSeries, ratio
from parsync.metrics.quantity import Better, Figures, Number, Unit, quantity

LIMIT_US = 100_000
COUNTED = ("placed", "waited_long")


class LongWaitFigures(Figures):
    long_wait_share: Number | None = quantity(
        "Long waits",
        Unit.SHARE,
        Better.LOWER,
        "Placed tasks that waited for longer than 0.1 s.",
        headline=True,  # in the report's first table
        column_label="Waits",  # and in the terminal's
    )


class LongWaits(Metric):
    kind = "long_waits"
    description = "How many placed tasks waited for longer than a tenth of a second."
    figures_model = LongWaitFigures
    reads = {"tasks": ("agent", "submit_us", "commit_us", "first")}
    plots = [  # figures of the report
        OverTime("Long waits over time", "waited_long", "placed", Unit.SHARE, "Waited long",
                 "Tasks submitted at each moment that waited for longer than 0.1 s."),
    ]  # fmt: skip

    def __init__(self, run):
        super().__init__(run)
        self.count = Counters(COUNTED, run)
        self.timeline = TimeSeries(COUNTED, run.agents, run.bucket_us)

    def fold(self, batch):
        firsts = batch.first_commits
        for name, rows in (
            ("placed", firsts),
            ("waited_long", firsts.where(firsts["commit_us"] - firsts["submit_us"] > LIMIT_US)),
        ):
            self.count.add(name, rows["agent"], rows.slot("submit_us"))
            self.timeline.add(name, rows["agent"], rows["submit_us"])

    def live(self):  # a column of the terminal's table while a run lasts
        counts = (self.count["waited_long"], self.count["placed"])
        return {"long_wait_share": tuple(count.sum(axis=1) for count in counts)}

    def figures(self, scope):
        placed = scope.sum(self.count["placed"])
        share = ratio(scope.sum(self.count["waited_long"]), placed)
        return LongWaitFigures(long_wait_share=share)
