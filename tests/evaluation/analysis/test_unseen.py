"""What conditions cost: counted from small results files, and paired with `plain` on the same seeds."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from predimem.cli.app import app
from predimem.evaluation.analysis.counts import Count
from predimem.evaluation.analysis.metrics import paired_difference, wilson_interval
from predimem.evaluation.analysis.unseen import read_outcomes, rows_of
from predimem.evaluation.report.unseen import HEAD, note_of, write_unseen

A, B = "PourSauceOnFrypanTwice", "TransferChocolateButter"
# Of task A and B, seeds 0 to 3: "+" a success, "-" a failure, "e" an error.
OUTCOMES = {"plain": ("++++", "+++-"), "camera": ("++--", "+--+"), "instructions": ("++e+", "+++-")}


def results(path: Path, outcomes: dict[str, tuple[str, str]], agent: str = "ours", **changes: Any) -> Path:
    status = {"+": "success", "-": "failure", "e": "error"}
    episodes = [
        {"task": f"{task}-{condition}" if condition else task, "agent": agent, "seed": seed, "status": status[letter]}
        for condition, both in outcomes.items()
        for task, letters in zip((A, B), both, strict=True)
        for seed, letter in enumerate(letters)
    ]
    made = {"benchmark": "arena", "benchmark_version": "arena 1.1", "episodes": episodes}
    made["provenance"] = {"agent_configs": {agent: {"actor": "skills"}}}
    path.write_text(json.dumps(made | changes))
    return path


def test_each_condition_is_counted_and_paired_with_plain(tmp_path: Path) -> None:
    outcomes = read_outcomes([results(tmp_path / "results.json", OUTCOMES)])
    plain, camera, instructions = rows_of(outcomes)
    assert (plain.condition, plain.count, plain.pairs, plain.difference) == ("plain", Count(7, 8), None, None)
    assert (camera.condition, camera.count) == ("camera", Count(4, 8))
    assert camera.count.interval == wilson_interval(4, 8)
    assert camera.pairs is not None and camera.difference is not None
    # Task A loses seeds 2 and 3; task B loses 1 and 2 and gains 3.
    assert (camera.pairs.n, camera.pairs.only_first, camera.pairs.only_second) == (8, 1, 4)
    assert camera.pairs.p_value == pytest.approx(2 * (1 + 5) / 2**5)
    assert camera.difference.mean == pytest.approx((-0.5 - 0.25) / 2)
    ours, theirs = {A: [1, 1, 0, 0], B: [1, 0, 0, 1]}, {A: [1, 1, 1, 1], B: [1, 1, 1, 0]}
    assert camera.difference == paired_difference(ours, theirs)
    # An error is in no rate and in no pair.
    assert instructions.count == Count(6, 7) and instructions.pairs is not None and instructions.pairs.n == 7
    assert outcomes.errors == 1 and "1 episodes ended in an error" in note_of(outcomes)


def test_files_are_put_together_and_a_task_as_it_is_counts_as_plain(tmp_path: Path) -> None:
    paths = [
        results(tmp_path / "camera.json", {"camera": OUTCOMES["camera"]}),
        results(tmp_path / "before.json", {"": OUTCOMES["plain"]}),
        results(tmp_path / "other.json", {"camera": ("++++", "++++")}, agent="other"),
    ]
    rows = rows_of(read_outcomes(paths))
    assert [(row.agent, row.condition) for row in rows] == [
        ("ours", "plain"), ("ours", "camera"), ("other", "camera")
    ]  # fmt: skip
    assert rows[1].pairs is not None and rows[1].pairs.n == 8 and rows[2].pairs is None
    with pytest.raises(ValueError, match="ours at PourSauceOnFrypanTwice in camera, seed 0, is there twice"):
        read_outcomes([paths[0], paths[0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"benchmark": "interference"}, "expected results of the arena, got 'interference'"),
        ({"benchmark_version": "arena 2"}, r"something else than .*version \(was .arena 1.1., is .arena 2.\)"),
        ({"provenance": {"agent_configs": {"ours": {"actor": "new"}}}}, r"agent.actor \(was .skills., is .new.\)"),
    ],
)
def test_what_does_not_belong_together_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    first = results(tmp_path / "first.json", {"plain": OUTCOMES["plain"]})
    with pytest.raises(ValueError, match=message):
        read_outcomes([first, results(tmp_path / "second.json", {"camera": OUTCOMES["camera"]}, **changes)])


def test_an_option_that_came_between_two_files_is_no_difference(tmp_path: Path) -> None:
    agent = {"planner": "oracle", "actor": "skills"}
    paths = [
        results(tmp_path / f"{name}.json", {name: OUTCOMES[name]}, provenance={"agent_configs": {"ours": config}})
        for name, config in (("plain", agent), ("camera", agent | {"confirm_plans": None}))
    ]
    assert [row.condition for row in rows_of(read_outcomes(paths))] == ["plain", "camera"]
    other = agent | {"confirm_plans": 2}
    third = results(
        tmp_path / "x.json", {"instructions": OUTCOMES["plain"]}, provenance={"agent_configs": {"ours": other}}
    )
    with pytest.raises(ValueError, match=r"agent.confirm_plans \(was null, is 2\)"):
        read_outcomes([*paths, third])


def test_files_without_episodes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(ValueError, match=r"no.json: expected the results\.json of an evaluation"):
        read_outcomes([tmp_path / "no.json"])
    with pytest.raises(ValueError, match="no episodes without an error"):
        write_unseen(read_outcomes([results(tmp_path / "e.json", {"camera": ("eeee", "eeee")})]), tmp_path / "out")


def test_the_command_writes_table_and_chart(tmp_path: Path) -> None:
    path, out = results(tmp_path / "results.json", OUTCOMES), tmp_path / "out"
    done = CliRunner().invoke(app, ["analyze", "unseen", str(path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "ours   camera        4          8  50.0 [22, 78]" in done.output
    with (out / "unseen.csv").open(newline="") as file:
        plain, camera, _ = csv.DictReader(file)
    assert tuple(plain) == HEAD and plain["difference"] == "" and float(plain["rate"]) == 7 / 8
    assert (camera["condition"], camera["only_plain"], float(camera["difference"])) == ("camera", "4", -0.375)
    markdown = (out / "unseen.md").read_text()
    assert "| ours | camera | 4 | 8 | 50.0 [22, 78] | -37.5 [" in markdown and "McNemar's exact test" in markdown
    assert (out / "unseen.png").stat().st_size > 5000 and "<svg" in (out / "unseen.svg").read_text()
