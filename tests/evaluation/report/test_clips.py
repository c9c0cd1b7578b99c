"""Failures that are played again and filmed: which ones, which steps, what the report makes of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
import pytest

from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult, StepResult, Tick
from predimem.evaluation.report.clips import Clip, choose_clips, clip_of, film_clip, read_clip
from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
from tests.evaluation.fake_player import FakePlayer, observation
from tests.evaluation.report.test_report import Page
from tests.needs import find_browser

STEPS, WRONG_FROM = 600, 300
FACTS = json.dumps(
    [
        {"label": "look", "skill": "Open", "target": "drawer", "object": "", "memory": "", "budget_steps": 200}
        | {"evidence": []},
        {"label": "place <it>", "skill": "Place", "target": "drawer", "object": "it", "memory": "occlusion"}
        | {"budget_steps": 200, "evidence": [0]},
    ]
)


@dataclass
class StagePlayer(FakePlayer):
    """600 steps: `look` is passed after 200, and from step 300 on `look` is named again instead of `place <it>`.

    Odd seeds crash. forgets: nothing is in memory, else the keyframe of step 190. name: what is named wrongly.
    """

    forgets: bool = True
    name: str = "look"
    played: int = 0

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult:
        for subscriber in subscribers:
            subscriber.on_reset(observation(0), "put it away", "episode")
        if seed % 2:
            return self._end(subscribers, EpisodeResult(task, agent, seed, "error", 0, message="on fire"))
        for step in range(STEPS):
            self.played = step + 1
            subtask = "look" if step < 200 else "place <it>" if step < WRONG_FROM else self.name
            keyframes = () if self.forgets or step < 195 else (190,)
            answer = (0.625, subtask, max(step - 2, 0))
            tick = Tick(step, subtask, 2, False, False, 0.01, 0.1, step % 10 == 0, "{}", None, keyframes, *answer)
            due = int(step >= 199)
            states = ("+x" if step == STEPS - 1 else "+.") if due else ".."
            info = {"stage_facts": FACTS, "stage_due": due, "stage_states": states, "stage_labels": "look\nplace <it>"}
            seen = replace(observation(step % 20), step=step, time_s=step / 20)
            after = replace(seen, step=step + 1, time_s=(step + 1) / 20)
            for subscriber in subscribers:
                subscriber.on_step(seen, np.zeros(7), tick, StepResult(after, False, step == STEPS - 1, False, info))
        result = EpisodeResult(task, agent, seed, "failure", STEPS, 1, 2, "out of time: place <it>")
        return self._end(subscribers, result)

    def _end(self, subscribers: Sequence[Subscriber], result: EpisodeResult) -> EpisodeResult:
        for subscriber in subscribers:
            subscriber.on_end(result)
        return result


def settings(out: Path, **changes: Any) -> EvaluationConfig:
    config = EvaluationConfig("arena", ("drawers",), ("predimem",), 5, out=str(out), videos_per_task=0)
    return replace(config, **changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("failures")
    return out, run_evaluation(settings(out, clips_per_cause=2), StagePlayer)


def test_what_the_results_say(finished: tuple[Path, dict[str, Any]]) -> None:
    _, results = finished
    found = results["diagnosis"]["predimem"]
    assert (found["n"], found["failed"], found["causes"]) == (3, 3, {"missed keyframe": 3})
    assert found["memory_errors"]["state_aliasing"] == {"episodes": 3, "named": 3, "done": 0}
    assert found["planner"]["keyframe_recall"] == 0.0
    records = results["episodes"]
    assert [record["failure"] is None for record in records] == [False, True, False, True, False]
    assert records[0]["failure"] == {
        **{"cause": "missed keyframe", "stage": 1, "label": "place <it>", "step": WRONG_FROM, "given_label": "look"},
        **{"missing": ["look"], "memory": [], "confidence": 0.625},
    }
    assert "planner" not in records[0] and "plan_ages" not in records[0]  # results.json stays small


def test_the_seconds_around_the_failure_are_filmed(finished: tuple[Path, dict[str, Any]]) -> None:
    out, results = finished
    clips = list(choose_clips(results["episodes"], 2))
    assert [clip.seed for clip in clips] == [900_000, 900_002]
    assert clips[0].steps == range(220, 460)
    frames = list(imageio.imiter(out / clips[0].file(".mp4")))
    assert len(frames) == 60  # every fourth step; the episode went on, and no outcome is shown
    found = read_clip(clips[0], out)
    assert found and found["same"] and found["message"] == ""
    assert len(list((out / "failures").rglob("*.mp4"))) == 2


def test_the_report_shows_them(finished: tuple[Path, dict[str, Any]]) -> None:
    out, _ = finished
    text = (out / "report.html").read_text()
    page = Page()
    page.feed(text)
    links = [link for link in page.links if not link.startswith("data:")]
    assert page.open == [] and len(set(links)) == 2 and all((out / link).is_file() for link in links)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))
    for part in (
        "missed keyframe: 3 S2 did so",
        "drawers, stage 2 “place &lt;it&gt;”: 3 seeds 900000, 900002, 900004",
        "named “look” where “place &lt;it&gt;” was due",
        "S2’s confidence: 62%",
        "Not in memory: look.",
        "memory: no keyframe",
    ):
        assert part in words, part
    assert "<it>" not in text and "came out otherwise" not in text


@pytest.mark.needs("browser")
def test_a_browser_lays_the_report_out(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, _ = finished
    image = tmp_path / "report.png"
    browser = find_browser()
    assert browser is not None
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    page = (out / "report.html").as_uri()
    subprocess.run([*command, "--window-size=900,2400", f"--screenshot={image}", page], check=True, timeout=120)
    assert imageio.imread(image)[..., :3].std() > 10  # something is on it
    dumped = subprocess.run([*command, "--dump-dom", page], check=True, timeout=120, capture_output=True, text=True)
    assert dumped.stdout.count('<figure class="failure">') == 2


@pytest.mark.slow
def test_clips_are_made_afterwards_and_only_once(tmp_path: Path) -> None:
    first = run_evaluation(settings(tmp_path), StagePlayer)
    assert list(choose_clips(first["episodes"], 0)) == [] and not (tmp_path / "failures").exists()
    assert "--clips 2" in (tmp_path / "report.html").read_text()
    run_evaluation(settings(tmp_path, clips_per_cause=1), StagePlayer)
    (video,) = (tmp_path / "failures").rglob("*.mp4")
    before = video.stat().st_mtime_ns
    run_evaluation(settings(tmp_path, clips_per_cause=2), StagePlayer)
    assert video.stat().st_mtime_ns == before and len(list((tmp_path / "failures").rglob("*.mp4"))) == 2
    run_evaluation(settings(tmp_path, overwrite=True), partial(StagePlayer, forgets=False))
    assert not (tmp_path / "failures").exists()


def test_an_episode_ends_with_its_clip_and_memory_is_that_of_the_moment(tmp_path: Path) -> None:
    player = StagePlayer(forgets=False)
    clip = Clip("drawers", "predimem", 900_000, WRONG_FROM, "wrong subtask", "look", (190,))
    data = film_clip(player, clip, tmp_path)
    assert player.played == clip.steps[-1] + 1 == 460
    assert data["same"] and list(data["memory"]) == ["190"]
    assert data["memory"]["190"]["base_camera"].startswith("data:image/jpeg;base64,")
    late = replace(clip, step=STEPS - 10)
    film_clip(player, late, tmp_path)
    assert player.played == STEPS
    frames = list(imageio.imiter(tmp_path / late.file(".mp4")))
    assert len(frames) == 22 + 20  # steps 512 to 596, and the outcome for two seconds


@pytest.mark.slow
def test_another_trajectory_is_told_and_a_crash_has_no_clip(tmp_path: Path) -> None:
    clip = Clip("drawers", "predimem", 900_000, WRONG_FROM, "wrong subtask", "look", ())
    assert film_clip(StagePlayer(), clip, tmp_path)["same"]
    assert not film_clip(StagePlayer(name="dance"), clip, tmp_path)["same"]
    assert not film_clip(StagePlayer(forgets=False), clip, tmp_path)["same"]
    crashed = replace(clip, seed=900_001)
    data = film_clip(StagePlayer(), crashed, tmp_path)
    assert data["clip"] is None and data["message"] == "on fire" and read_clip(crashed, tmp_path) is None


def test_clips_are_of_different_stages_first() -> None:
    def record(seed: int, stage: int, cause: str = "timeout") -> dict[str, Any]:
        failure = {"cause": cause, "stage": stage, "step": 9, "given_label": "", "memory": []}
        return {"task": "t", "agent": "a", "seed": seed, "failure": failure}

    records = [
        record(1, 0),
        record(2, 0),
        record(3, 0),
        record(4, 2),
        record(5, 2, "undone"),
        {"agent": "a", "failure": None},
    ]
    assert [clip.seed for clip in choose_clips(records, 2)] == [1, 4, 5]
    assert [clip.seed for clip in choose_clips(records, 3)] == [1, 4, 2, 5]
    assert clip_of(records[0]).file(".mp4") == "failures/t/a/seed0000000001-step9.mp4"
