"""`predimem demo` keeps what it has played: real runs, of a benchmark that needs no simulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from predimem.cli.demo import COLOURS, DRAWERS, Part, play_demo
from predimem.evaluation.run.jobs import EvaluationError
from tests.cli.test_cli import ROOT, predimem

LIGHT = Part(
    name="lights",
    benchmark=str(ROOT / "examples/remember_the_light.py"),
    tasks=("RememberTheLight",),
    agents=("oracle", "random"),
    seed_start=900_000,
    every_steps=1,
    fps=4.0,
)


def play(out: Path, episodes: int = 1, overwrite: bool = False) -> Path:
    return play_demo(LIGHT, replace(LIGHT, name="more-lights"), out, episodes, 1, overwrite)


def episodes_played(out: Path) -> list[str]:
    """Of each finished episode how long it took to the last digit, which tells whether it was played again."""
    lines = [json.loads(line) for line in (out / "lights/episodes.jsonl").read_text().splitlines()]
    return [f"{line['episode']['agent']} {line['episode']['wall_s']}" for line in lines if "episode" in line]


def test_a_finished_demo_is_kept_and_goes_on(tmp_path: Path) -> None:
    page = play(tmp_path)
    first = episodes_played(tmp_path)
    assert len(first) == 2 and page == tmp_path / "report.html"
    video = tmp_path / "lights/videos/RememberTheLight-seed900000.mp4"
    written = video.stat().st_mtime_ns
    play(tmp_path, episodes=2)
    assert episodes_played(tmp_path)[:2] == first and len(episodes_played(tmp_path)) == 4
    assert video.stat().st_mtime_ns == written
    play(tmp_path, overwrite=True)
    assert len(episodes_played(tmp_path)) == 2 and set(episodes_played(tmp_path)) & set(first) == set()


def test_a_run_of_another_version_is_refused_and_kept(tmp_path: Path) -> None:
    play(tmp_path)
    journal = tmp_path / "lights/episodes.jsonl"
    journal.write_text(journal.read_text().replace('"benchmark_version": "1"', '"benchmark_version": "0.9"'))
    before = journal.read_text()
    with pytest.raises(EvaluationError, match=r"was made with something else: .*benchmark_version.*or --overwrite"):
        play(tmp_path)
    assert journal.read_text() == before and (tmp_path / "report.html").is_file()


def test_a_folder_with_an_evaluation_is_refused_and_kept(tmp_path: Path) -> None:
    """As `predimem eval --out`, and the demo of earlier versions, write it."""
    for name in ("episodes.jsonl", "report.html"):
        (tmp_path / name).write_text("{}\n")
    result = predimem("demo", "--out", str(tmp_path))
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "holds an evaluation (episodes.jsonl); use another --out, or --overwrite" in result.stderr
    assert (tmp_path / "report.html").read_text() == "{}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["episodes.jsonl", "report.html"]
    play(tmp_path, overwrite=True)
    assert not (tmp_path / "episodes.jsonl").exists() and "<html" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_memory_decides_both_parts(tmp_path: Path) -> None:
    """The shipped models in SAPIEN: the drawer search, and the smallest RememberColor."""
    page = play_demo(DRAWERS, replace(COLOURS, tasks=COLOURS.tasks[:1]), tmp_path, 1, 2, False)
    results = json.loads((tmp_path / "drawers/results.json").read_text())
    status = {record["agent"]: record["status"] for record in results["episodes"]}
    assert status == {"predimem-skills": "success", "no-keyframes-skills": "failure"}
    mistake = next(record["mistake"] for record in results["episodes"] if record["status"] == "failure")
    assert "again" in mistake["text"] and mistake["due"] == "open bottom drawer"
    assert "did “open top drawer” again" in page.read_text()
    before = (tmp_path / "drawers/episodes.jsonl").read_text()
    play_demo(DRAWERS, replace(COLOURS, tasks=COLOURS.tasks[:1]), tmp_path, 1, 2, False)
    assert (tmp_path / "drawers/episodes.jsonl").read_text() == before
