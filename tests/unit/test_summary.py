"""summary.json and the run directory: complete, readable again, and clear about what is wrong with
a directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.cell_watch import Watched
from experiments.analysis.model_files import read_model
from experiments.analysis.run_directory import read_run, read_summary, write_run
from experiments.analysis.summary import BASELINE, ArmResult, RunFacts, build_summary, paired, slugs
from experiments.analysis.summary_model import KeptSeed, RunSummary
from parsync.metrics.kinds.regret import DecisionRegret, Regret
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import quantities, series, summarise
from shared_state.errors import AgoraError
from tests.unit.record_factory import PHASES
from tests.unit.run_factory import EQUAL, seed_figures, workload

FACTS = RunFacts(3, "0.1.0", "virtual", 0, {"seed": 3})


def bare_arm(name: str, digest: str = "d", seeds: dict[int, float] | None = None) -> ArmResult:
    """An arm in which nothing happened, except that its seeds had given mean delays."""
    metrics = RunMetrics(RunFrame(PHASES, 2, partitions=2))
    figures = summarise(metrics)
    return ArmResult(
        name=name,
        runtime="virtual",
        mix=[{"name": "greedy", "kind": "random", "count": 2}],
        sync="statesync aligned",
        strategy="quality_first",
        decision_clock="modelled",
        basis=EQUAL,
        clock_notes={},
        figures=figures,
        quantities=quantities(metrics),
        series=series(metrics),
        digest=digest,
        seeds={
            seed: seed_figures(
                f"s{seed}",
                figures.model_copy(
                    update={"overall": figures.overall.model_copy(update={"delay_mean_us": delay})}
                ),
            )
            for seed, delay in (seeds or {}).items()
        },
    )


def test_an_arm_in_which_nothing_happened_has_a_summary() -> None:
    summary = build_summary(FACTS, workload(), [bare_arm("A")])
    assert summary.arms[0].overall.conflict_rate is None
    assert summary.paired.seeds == []
    plain = json.loads(json.dumps(summary.model_dump(mode="json"), allow_nan=False))
    assert RunSummary.model_validate(plain) == summary


def test_no_arms_at_all_still_make_a_summary() -> None:
    summary = build_summary(
        RunFacts(3, "0.1.0", "ray", 0, {}, partial="stopped by Ctrl-C"), workload(), []
    )
    assert summary.partial and summary.arms == []


def test_the_digest_tells_runs_apart_and_ignores_the_figures() -> None:
    def digest(*digests: str) -> str:
        arms = [bare_arm(f"arm {i}", d) for i, d in enumerate(digests)]
        return str(build_summary(FACTS, workload(), arms).digest)

    assert digest("a", "b") == digest("a", "b")
    assert digest("a", "b") != digest("b", "a")
    assert digest("a", "b") != digest("a", "c")


def test_differences_are_paired_by_seed_whatever_their_order() -> None:
    one = bare_arm("other", seeds={1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0, 5: 50.0, 9: 1e9})
    other = bare_arm(BASELINE, seeds={3: 29.0, 1: 9.0, 2: 19.0, 5: 48.0, 4: 39.0})
    result = build_summary(FACTS, workload(), [one, other]).paired
    assert result.seeds == [1, 2, 3, 4, 5]  # 9 is not of both arms
    assert result.baseline == "parsync-adaptive"  # by its name, though it is not the first
    difference = result.differences["other"]["delay_mean_us"]
    absolute = difference.absolute
    assert (absolute.estimate, absolute.low, absolute.high) == (1.0, 1.0, 2.0)
    assert result.arms["other"]["delay_mean_us"].estimate == 30.0
    assert result.level == 0.9375
    assert "parsync-adaptive" not in result.differences


def test_without_the_named_baseline_it_is_the_first_arm() -> None:
    arms = [bare_arm(name, seeds={1: 1.0}) for name in ("first", "second")]
    assert build_summary(FACTS, workload(), arms).paired.baseline == "first"
    assert paired([], []).baseline is None


def test_a_run_directory_reads_back_as_it_was_written(tmp_path: Path) -> None:
    arms = [bare_arm("A b", seeds={5: 1.0}), bare_arm("a-B")]
    summary = build_summary(FACTS, workload(), arms)
    write_run(tmp_path, summary, arms)
    run = read_run(tmp_path)
    assert run.summary == summary
    assert sorted(run.series) == ["a-b", "a-b-2"]
    for name, array in arms[0].series.items():
        assert np.array_equal(run.series["a-b"][name], array)
    kept = read_model(tmp_path / "seeds" / "5.json", KeptSeed)
    assert kept.arms["a-b"].overall.delay_mean_us == 1.0
    assert not list(tmp_path.rglob("*.partial"))


def test_regret_enters_the_figures_as_its_mean() -> None:
    """Of all sampled transactions together: the large ones weigh more."""
    arm = bare_arm("A")
    common = {"agent": 0, "sequence": 1, "losers": 0, "exact": True}
    decisions = [
        DecisionRegret(at_us=1, tasks=1, regret=5, **common),
        DecisionRegret(at_us=2, tasks=9, regret=15, **common),
    ]
    arm = replace(arm, watched=Watched(Regret(decision=decisions)))
    overall = build_summary(FACTS, workload(), [arm]).arms[0].overall
    assert overall.decision_regret == 2.0
    assert overall.system_regret is None


def test_slugs_are_file_names_and_never_alike() -> None:
    names = ["ParSync adaptive", "parsync  Adaptive!", "Überlast/../x", "—"]
    made = slugs(names)
    assert len(set(made)) == len(names)
    assert all(slug.replace("-", "").isalnum() and slug.isascii() for slug in made)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "not a run directory"),
        ("{", "not readable as JSON"),
        ("[]", "expected an object"),
        ('{"format": 2}', "summary.json: field format: expected 12, .* got 2"),
        ('{"format": 12, "digest": "", "seed": 1}', "field runtime is missing"),
    ],
)
def test_what_is_wrong_with_a_directory_is_said(
    tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    with pytest.raises(AgoraError, match=says) as error:
        read_summary(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_a_directory_that_is_not_there_and_a_lost_series_are_named(tmp_path: Path) -> None:
    with pytest.raises(AgoraError, match="no such directory"):
        read_summary(tmp_path / "gone")
    arms = [bare_arm("A")]
    write_run(tmp_path, build_summary(FACTS, workload(), arms), arms)
    (tmp_path / "arms" / "a" / "series.npz").unlink()
    with pytest.raises(AgoraError, match=r"series\.npz"):
        read_run(tmp_path)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "arms").write_text("in the way")
    arms = [bare_arm("A")]
    with pytest.raises(AgoraError, match="cannot write the results"):
        write_run(tmp_path, build_summary(FACTS, workload(), arms), arms)
    assert not (tmp_path / "summary.json").exists()
