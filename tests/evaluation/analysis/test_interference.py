"""Success under interference: the published tables come out of the published counts, and our own results are read."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from predimem.cli.app import app
from predimem.evaluation.analysis.interference import Cell, Count, condition_key, effects, read_counts, totals
from predimem.evaluation.report.interference import write_interference

PUBLISHED = Path(__file__).parent / "robomme_interference"
BY_FAMILY = PUBLISHED / "by_family_condition.csv"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_aggregates_follow_from_the_counts_by_family() -> None:
    counts = read_counts([BY_FAMILY])
    whole = totals(counts)
    rows = table(PUBLISHED / "main_success_rates.csv")
    assert len(rows) == len(whole) == 41
    assert len(counts) == 369 and sum(count.n for count in counts.values()) == 18_450
    for row in rows:
        count = whole[row["variant"], row["condition"]]
        assert (count.successes, count.n) == (int(row["successes"]), int(row["n"]))
        assert count.rate == float(row["rate"])
        # They are Wilson's with z = 1.96, ours with 1.959964.
        assert count.interval == pytest.approx((float(row["ci_low"]), float(row["ci_high"])), abs=2e-6)
    assert round(100 * whole["perceptual-framesamp-modul", "k0"].rate, 1) == 45.3
    assert round(100 * whole["perceptual-framesamp-modul", "k7"].rate, 1) == 19.3


def test_lift_and_erosion_are_the_published_effect_sizes() -> None:
    ours = {(e.variant, e.condition, e.baseline): e for e in effects(totals(read_counts([BY_FAMILY])))}
    compared = 0
    for row in table(PUBLISHED / "effect_sizes.csv"):
        for name, value in row.items():
            if value and "_minus_" in name:
                condition, _, baseline = name.replace("_", "-").partition("-minus-")
                effect = ours[row["variant"], condition, baseline]
                assert effect.difference == pytest.approx(float(value), abs=1e-12)
                assert effect.low < effect.difference < effect.high
                compared += 1
    assert compared == 48  # six for each of eight memories; the baseline has no history


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """56 of 70 minus 48 of 80: 0.0524 to 0.3339 (Newcombe 1998, table II, method 10)."""
    (effect,) = effects({("v", "no-history"): Count(48, 80), ("v", "k0"): Count(56, 70)})
    assert effect.difference == pytest.approx(0.2)
    assert (effect.low, effect.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_condition_of_which_nothing_was_played_has_no_effect() -> None:
    counts = {("v", "k0"): Count(0, 0), ("v", "k3"): Count(5, 10)}
    assert not list(effects(counts))


def test_rollouts_of_another_system_stand_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "retrieval.csv"
    path.write_text(
        "family,condition,episode,status,success,retrieval_model\n"
        "InsertPeg,k0,0,fail,0,siglip\nInsertPeg,k0,1,success,1,siglip\nInsertPeg,k0,2,error,0,siglip\n"
        "InsertPeg,k7,0,ongoing,0,siglip\nMoveCube,k7,0,success,1,siglip\n"
    )
    whole = totals(read_counts([BY_FAMILY, path]))
    assert len(whole) == 43
    assert whole["siglip", "k0"] == Count(1, 2)  # the error is in no rate
    assert whole["siglip", "k7"] == Count(1, 2)
    with pytest.raises(ValueError, match="is in another file, too"):
        read_counts([path, path])


def test_our_own_results_are_read_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    episodes = [
        {"task": "drawer-k7", "agent": "retrieval", "seed": 1, "status": "success"},
        {"task": "drawer-k7", "agent": "retrieval", "seed": 2, "status": "failure"},
        {"task": "drawer-k7", "agent": "retrieval", "seed": 3, "status": "error"},
        {"task": "drawer-no-history", "agent": "retrieval", "seed": 1, "status": "failure"},
    ]
    path.write_text(json.dumps({"episodes": episodes}))
    assert read_counts([path]) == {
        Cell("drawer", "retrieval", "k7"): Count(1, 2),
        Cell("drawer", "retrieval", "no-history"): Count(0, 1),
    }
    more = tmp_path / "more.json"  # another run, of two of these episodes and a new one
    new = {"task": "drawer-k7", "agent": "retrieval", "seed": 4, "status": "failure"}
    more.write_text(json.dumps({"episodes": [*episodes[:2], new]}))
    assert read_counts([path, more])[Cell("drawer", "retrieval", "k7")] == Count(1, 3)
    more.write_text(json.dumps({"episodes": [episodes[0] | {"status": "failure"}]}))
    with pytest.raises(ValueError, match=r"more\.json: drawer, retrieval, k7: another file has seed 1 with another"):
        read_counts([path, more])
    path.write_text(json.dumps({"episodes": [episodes[0] | {"task": "RememberColor9"}]}))
    with pytest.raises(ValueError, match="is not `<family>-<condition>`"):
        read_counts([path])


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    other = PUBLISHED / "effect_sizes.csv"
    with pytest.raises(ValueError, match="expected a CSV with the columns family, variant"):
        read_counts([other])
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("family,condition,success\nInsertPeg,k0,yes\n")
    with pytest.raises(ValueError, match=r"wrong\.csv: success has to be 0 or 1, got 'yes'"):
        read_counts([wrong])
    wrong.write_text("family,variant,condition,successes,n\nInsertPeg,a,k0,3,2\n")
    with pytest.raises(ValueError, match="expected 0 <= successes <= n, got 3 of 2"):
        read_counts([wrong])


def test_conditions_have_an_order() -> None:
    named = ["k7-older", "k31", "k7", "no-history", "k0", "k1-older", "k3"]
    ordered = ["no-history", "k0", "k3", "k7", "k31", "k1-older", "k7-older"]
    assert sorted(named, key=condition_key) == ordered


@pytest.mark.slow
def test_the_command_writes_tables_and_charts(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["analyze", "interference", str(BY_FAMILY), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "perceptual-framesamp-modul    18.2        45.3  38.4  30.0  19.3" in result.output
    assert "18450 episodes" in result.output
    rows = table(tmp_path / "out/success.csv")
    assert list(rows[0]) == ["variant", "condition", "successes", "n", "rate", "ci_low", "ci_high"]
    assert len(rows) == 41 and len(table(tmp_path / "out/success_by_family.csv")) == 369
    for name in ("success", "families"):
        assert (tmp_path / f"out/{name}.svg").stat().st_size > 10_000
        assert (tmp_path / f"out/{name}.png").stat().st_size > 10_000


def test_nothing_but_errors_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no episodes without an error"):
        write_interference({Cell("drawer", "a", "k0"): Count(0, 0)}, tmp_path)
    assert math.isnan(Count(0, 0).rate)
