"""`predimem demo` keeps what it has played: real runs, of a benchmark that needs no simulator."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from predimem.cli.demo import COLOURS, DRAWERS, Part, play_demo
from predimem.evaluation.run.jobs import EvaluationError
from predimem.evaluation.run.journal import clear_run
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


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    play(out)
    return out


def test_a_finished_demo_is_kept_and_goes_on(played: Path) -> None:
    first, video = episodes_played(played), played / "lights/videos/RememberTheLight-seed900000.mp4"
    assert len(first) == 2 and (played / "report.html").is_file()
    written = video.stat().st_mtime_ns
    assert play(played, episodes=2) == played / "report.html"
    assert episodes_played(played)[:2] == first and len(episodes_played(played)) == 4
    assert video.stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_run_of_another_version_is_refused_and_kept_until_it_is_overwritten(played: Path, tmp_path: Path) -> None:
    out = shutil.copytree(played, tmp_path / "demo")
    journal = out / "lights/episodes.jsonl"
    journal.write_text(journal.read_text().replace('"benchmark_version": "1"', '"benchmark_version": "0.9"'))
    before, first = journal.read_text(), episodes_played(out)
    with pytest.raises(EvaluationError, match=r"was made with something else: .*benchmark_version.*or --overwrite"):
        play(out)
    assert journal.read_text() == before and (out / "report.html").is_file()
    play(out, overwrite=True)
    assert len(episodes_played(out)) == 2 and set(episodes_played(out)) & set(first) == set()


def test_a_folder_with_an_evaluation_is_refused_and_kept(tmp_path: Path) -> None:
    """As `predimem eval --out`, and the demo of earlier versions, write it."""
    for name in ("episodes.jsonl", "report.html"):
        (tmp_path / name).write_text("{}\n")
    result = predimem("demo", "--out", str(tmp_path))
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "holds an evaluation (episodes.jsonl); use another --out, or --overwrite" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["episodes.jsonl", "report.html"]
    assert (tmp_path / "report.html").read_text() == "{}\n"
    clear_run(tmp_path)
    (tmp_path / "videos").mkdir()
    clear_run(tmp_path)  # no evaluation: somebody else's videos
    assert [path.name for path in tmp_path.iterdir()] == ["videos"]


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
    assert mistake["text"] in page.read_text()  # which drawer it opens again depends on the machine's timing
    before = (tmp_path / "drawers/episodes.jsonl").read_text()
    play_demo(DRAWERS, replace(COLOURS, tasks=COLOURS.tasks[:1]), tmp_path, 1, 2, False)
    assert (tmp_path / "drawers/episodes.jsonl").read_text() == before
