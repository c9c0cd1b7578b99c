"""What a study of the predictive head computes of its records, worked out by hand on made-up ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.planner_head.config import Training
from benchmarks.planner_head.errors import auc, auc_over_trainings, profile
from benchmarks.planner_head.figures import (
    ACCURACY,
    AT_CHANGES,
    CSR,
    F1,
    NEIGHBOURS,
    PRECISION,
    RECALL,
    TSR,
    neighbour_counts,
    paired,
    played_counts,
    pooled,
    replay_counts,
    spread,
)
from benchmarks.planner_head.table import Found, as_markdown, percent, points, signal
from tests.planner.test_head_study import study_of


def test_figures_of_a_planner_are_sums_over_episodes() -> None:
    scores = {"inside": 0.75, "boundary": 0.5, "keyframe_precision": 0.6667, "keyframe_recall": None}
    counts = replay_counts(scores | {"counts": {"inside": 8, "boundary": 2, "keyframe_precision": 3}})
    assert counts == {ACCURACY: (7.0, 10.0), AT_CHANGES: (1.0, 2.0), PRECISION: (2.0, 3.0), RECALL: (0.0, 0.0)}
    other = {PRECISION: (0.0, 1.0), RECALL: (1.0, 4.0), ACCURACY: (10.0, 10.0)}
    figures = pooled({"a": counts, "b": other})
    assert figures[ACCURACY] == 0.85 and figures[PRECISION] == 0.5 and figures[RECALL] == 0.25
    assert figures[F1] == pytest.approx(1 / 3) and figures[TSR] is None
    assert pooled({"a": {PRECISION: (0.0, 1.0), RECALL: (0.0, 1.0)}})[F1] == 0.0
    assert set(pooled({}).values()) == {None}


def test_spread_over_trainings_leaves_out_what_is_missing() -> None:
    mean, deviation, n = spread([0.5, None, 0.7]) or (0, 0, 0)
    assert (mean, deviation, n) == (pytest.approx(0.6), pytest.approx(0.1 * 2**0.5), 2)
    assert spread([0.5]) == (0.5, None, 1) and spread([None]) is None
    assert percent(spread([0.5, None, 0.7])) == "60.0 ± 14.1 (2)" and percent(spread([0.5])) == "50.0 (1)"


def success(*values: float) -> dict[int, dict[str, tuple[float, float]]]:
    return {seed: {TSR: (value, 1.0)} for seed, value in enumerate(values)}


def test_differences_are_of_the_seeds_and_episodes_of_both() -> None:
    ours = {0: success(1, 1, 1, 1), 1: success(1, 1), 2: success(1), 4: success(1)}
    theirs = {0: success(1, 0, 1, 0), 1: success(1, 1, 0, 0), 3: success(0), 4: {}}
    found = paired(ours, theirs, TSR)
    # Seed 0: 1 - 0.5; seed 1 on its two common episodes: 0. Student's t with one degree of freedom: 12.7062.
    assert found is not None and found.trainings == 2 and found.mean == 0.25
    half = 12.7062 * 0.5 / 2**0.5 / 2**0.5
    assert found.low == pytest.approx(0.25 - half, abs=1e-4) and found.high == pytest.approx(0.25 + half, abs=1e-4)
    assert points(found) == "+25.0 [-292.7, +342.7] (2)"
    assert paired({0: ours[0]}, theirs, TSR) == (0.5, None, None, 1)
    assert paired({2: ours[2]}, theirs, TSR) is None and points(None) == "–"


def test_the_last_record_of_a_played_episode_counts_and_errors_do_not() -> None:
    record = {"agent": "a", "task": "t", "seed": 1, "status": "error", "stages_passed": 1, "stages_total": 4}
    success = record | {"status": "success", "stages_passed": 4}
    records = [record, success, record | {"seed": 2, "status": "failure"}, record | {"seed": 3}]
    failed = {("t", 2): {TSR: (0.0, 1.0), CSR: (0.25, 1.0)}}
    assert played_counts(records) == {"a": {("t", 1): {TSR: (1.0, 1.0), CSR: (1.0, 1.0)}, **failed}}
    assert played_counts([*records, record]) == {"a": failed}


def test_neighbours_are_of_other_episodes() -> None:
    one = {"episode": "1", "keyframes": [[0, "look", [0.0, 0.0]], [5, "shut", [0.1, 0.0]]]}
    two = {"episode": "2", "keyframes": [[0, "look", [0.0, 1.0]], [5, "lift", [5.0, 0.0]]]}
    assert neighbour_counts([one, two]) == {"1": {NEIGHBOURS: (1.0, 2.0)}, "2": {NEIGHBOURS: (1.0, 2.0)}}
    assert neighbour_counts([one]) == {}


def test_auc_by_hand() -> None:
    positive = np.array([True, False, True, False])
    assert auc(positive, np.array([4.0, 1.0, 3.0, 2.0])) == 1.0
    assert auc(positive, np.array([1.0, 1.0, 3.0, 2.0])) == 0.625  # 0.5 + 0 + 1 + 1 of four pairs
    assert auc(np.array([True, True]), np.array([1.0, 2.0])) is None


def test_auc_over_trainings_and_its_interval() -> None:
    rng = np.random.default_rng(0)
    peaked = {str(e): [(float(i == 3), float(i == 3) + 0.1 * i) for i in range(6)] for e in range(5)}
    noise = {str(e): [(float(i == 3), rng.random()) for i in range(6)] for e in range(5)}
    found = auc_over_trainings([peaked, peaked], rng, resamples=50)
    assert found == (1.0, 1.0, 1.0, 10, 60)
    mixed = auc_over_trainings([peaked, noise], rng, resamples=200)
    assert mixed is not None and mixed.low < mixed.value < mixed.high == 1.0
    assert auc_over_trainings([], rng) is None and auc_over_trainings([{"0": [(0.0, 1.0)]}], rng) is None


def test_the_profile_is_relative_to_frames_far_away() -> None:
    frames = [(0.0, 2.0), (0.0, 2.0), (0.0, 3.0), (0.0, 3.0), (1.0, 8.0), (0.0, 4.0)]
    assert profile([{"e": frames}]) == {-2: 1.5, -1: 1.5, 0: 4.0, 1: 2.0, None: 1.0}
    assert profile([{"e": frames[3:]}]) == {}


def test_planners_without_a_head_have_no_error_of_it() -> None:
    with_head, without = {"e": [[10, True, 0.5, 0.9]]}, {"e": [[10, True, None, 0.9]]}
    assert signal([with_head, without, {}], 2) == [{"e": [(True, 0.5)]}]
    assert signal([without], 3) == [{"e": [(True, 0.9)]}]


def test_the_table_of_a_study_that_is_half_done(tmp_path: Path) -> None:
    study = study_of(tmp_path, training_seeds=[0, 1], training_shares=[1.0], predictive_weights=[0.0, 0.1, 0.5])
    counts: dict[Training, dict[Any, Any]] = {training: {} for training in study.trainings}
    for training in study.trainings:
        if training.weight < 0.5 and (training.weight, training.seed) != (0.1, 1):
            played = {("play", "t", s): {TSR: (float(training.weight > 0), 1.0)} for s in range(2)}
            counts[training] = {("replay", "e"): {ACCURACY: (9.0, 10.0)}, **played}
    frames: dict[Training, dict[str, Any]] = {training: {} for training in study.trainings}
    frames[Training(1.0, 0.1, 0)] = {"e": [[s, s == 10, 1.0 + (s == 10), 0.5] for s in (10, 20, 30, 40)]}
    made = {"replay": [("abc1234", "a CPU")], "states": [], "play": [("abc1234 with changes", "a CPU")]}
    text = as_markdown(study, Found(counts, frames, made))
    lines = text.splitlines()
    assert "| 1 | 0 | 90.0 ± 0.0 (2) | – | – | – | – | 0.0 ± 0.0 (2) | – | – |" in lines
    assert "| 1 | 0.1 | 90.0 (1) | – | – | – | – | 100.0 (1) | – | – |" in lines
    assert "| 1 | 0.5 | – | – | – | – | – | – | – | – |" in lines
    assert "| 1 | 0.1 | +0.0 (1) | – | – | – | – | +100.0 (1) | – | – |" in lines
    assert "| 1 | 0.1 | 1 | 4 | 1.000 [1.000, 1.000] | 0.500 [0.500, 0.500] |" in lines
    assert "| 1 | 0.1 | – | – | 2.00 | 1.00 | 1.00 |" in lines
    flat = " ".join(text.split())
    assert "3 of 6 planners" in flat and "play (6 episodes) at revision abc1234 with changes on a CPU" in flat
    assert "- replay: share-1-weight-0.5-seed-0 (0 of 1 episodes), share-1-weight-0.1-seed-1 (0 of 1" in flat
    two = study_of(tmp_path, training_seeds=[0, 1], predictive_weights=[0.0, 0.1, 0.5])
    nothing: dict[Training, dict[Any, Any]] = {training: {} for training in two.trainings}
    text = as_markdown(two, Found(nothing | counts, nothing | frames, made))
    assert "| 0.25 |" not in text and "- replay: all planners of a share of 0.25, share-1-weight-0.5-seed-0 (0" in text
    empty = as_markdown(study, Found({t: {} for t in counts}, {t: {} for t in counts}, {}))
    assert "0 of 6 planners" in " ".join(empty.split()) and "- play: everything" in empty
    of_all = as_markdown(replace(two, played_shares=()), Found(nothing | counts, nothing | frames, made))
    assert "- play: share-1-weight-0.5-seed-0" in text and "- play: all planners of a share of 0.25" in of_all
    alone = replace(study, predictive_weights=(0.1,))
    assert "Against no head" not in as_markdown(alone, Found({t: {} for t in alone.trainings}, frames, {}))
