"""The video is written and read back; thumbnails show the frames of their steps; memory stays bounded."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from PIL import Image, ImageDraw

from predimem.core.types import EpisodeResult, StepResult, Tick
from predimem.evaluation.analysis.stages import PANEL_PX, ROW_PX, Stage, draw_stages, stage_text, stages_of
from predimem.evaluation.report.frame import BAD, GOOD, WARN
from predimem.evaluation.report.thumbnails import KeyframeThumbnails
from predimem.evaluation.report.video import Film, VideoRecorder
from tests.evaluation.fake_player import CAMERAS, HORIZON, observation, play_frames, tick


@pytest.mark.parametrize("status,colour", [("success", GOOD), ("failure", BAD), ("error", WARN)])
def test_a_video_can_be_watched(tmp_path: Path, status: str, colour: tuple[int, int, int]) -> None:
    path = tmp_path / "videos" / "episode.mp4"
    result = EpisodeResult("task", "predimem", 1, status, HORIZON, message="a message")  # type: ignore[arg-type]
    play_frames([VideoRecorder(path, scale=4, title="task predimem seed 1")], result)
    assert [p.name for p in path.parent.iterdir()] == ["episode.mp4"]
    about = imageio.immeta(path)
    frames = list(imageio.imiter(path))
    assert (about["codec"], about["fps"], about["pix_fmt"].split("(")[0]) == ("h264", 5.0, "yuv420p")
    assert len(frames) == HORIZON + 10  # the outcome stays for two seconds
    height, width = frames[0].shape[:2]
    assert width >= 640 and height % 2 == 0 and width % 2 == 0
    # The camera's image is there: its red channel grows by 10 a step.
    assert frames[9][150, 40].astype(int) == pytest.approx((90, 80, 1), abs=8)
    border = frames[-1][93:97, 300:340].reshape(-1, 3).mean(axis=0)  # six pixels from row 92 on
    assert border == pytest.approx(colour, abs=25)
    # The strip of keyframes is empty before the first one is stored, then shows step 0 (and 5).
    strip = slice(height - 95, height - 65)
    assert abs(frames[3][strip, 15:25].astype(int).mean(axis=(0, 1)) - (0, 80, 1)).max() < 12
    second = frames[9][strip, 10 + 204 + 5 : 10 + 204 + 15].astype(int).mean(axis=(0, 1))
    assert abs(second - (50, 80, 1)).max() < 12


STAGES = {"stage_labels": "pick wine bottle\npour 1st\npour 2nd\nput it back", "stage_states": "+-x."}


def test_stages_are_named_with_what_became_of_them() -> None:
    stages = stages_of(STAGES)
    assert stages[0] == Stage("pick wine bottle", "+")
    texts = [stage_text(stage) for stage in stages]
    assert texts == ["pick wine bottle", "undone: pour 1st", "failed: pour 2nd", "put it back"]
    assert stages_of({}) == ()
    assert stage_text(Stage("place " * 20, "+")).endswith("…")


def test_each_stage_has_a_row_and_a_mark_of_its_own_colour() -> None:
    canvas = Image.new("RGB", (PANEL_PX, 4 * ROW_PX))
    draw_stages(ImageDraw.Draw(canvas), 0, 0, stages_of(STAGES))
    rows = np.asarray(canvas).reshape(4, ROW_PX, PANEL_PX, 3)
    for drawn, colour in zip(rows[:3], (GOOD, WARN, BAD), strict=True):
        assert (drawn[:, :20].reshape(-1, 3).max(axis=0) == colour).all()
    assert (rows[:, :, 24:].max(axis=(1, 2, 3)) > 100).all()  # words beside each of them


def test_long_episodes_are_filmed_now_and_then_with_their_stages(tmp_path: Path) -> None:
    """An agent without S1 and S2: a panel of stages, no strip of keyframes."""
    recorder = VideoRecorder(tmp_path / "a.mp4", Film(every_steps=4, fps=10.0), scale=2)
    assert recorder.every_steps == 4
    recorder.on_reset(observation(0), "pour the wine twice and put the bottle back " * 3, "id")
    for step in range(HORIZON):
        blind = Tick(step, "pour 1st", None, stale_action=False, held_action=False)
        result = StepResult(observation(step + 1), False, False, False, STAGES)
        recorder.on_step(observation(step), np.zeros(7), blind, result)
    recorder.on_end(EpisodeResult("task", "a", 0, "failure", HORIZON, message="out of time: pour 2nd"))
    frames = list(imageio.imiter(tmp_path / "a.mp4"))
    assert len(frames) == HORIZON // 4 + 20 and imageio.immeta(tmp_path / "a.mp4")["fps"] == 10.0
    assert frames[0].shape[0] < 92 + 17 + 64 + 20  # nothing below the cameras


def test_an_episode_without_a_step_leaves_no_video(tmp_path: Path) -> None:
    recorder = VideoRecorder(tmp_path / "a.mp4")
    recorder.on_end(EpisodeResult("task", "a", 0, "error", 0))
    recorder.on_reset(observation(0), "do", "id")
    recorder.on_end(EpisodeResult("task", "a", 0, "error", 0))
    assert not (tmp_path / "a.mp4").exists()


def test_thumbnails_are_the_frames_of_their_steps() -> None:
    thumbnails = KeyframeThumbnails()
    play_frames([thumbnails], EpisodeResult("task", "a", 7, "success", HORIZON))
    data = thumbnails.as_json()
    assert list(data) == ["0", "5"] and list(data["5"]) == list(CAMERAS)
    kind, encoded = data["5"]["base_camera"].split(",")
    assert kind == "data:image/jpeg;base64"
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))
    assert pixels.shape == (32, 32, 3)
    assert pixels.astype(int).mean(axis=(0, 1)) == pytest.approx((50, 80, 7), abs=4)


def test_thumbnails_hold_a_bounded_number_of_frames() -> None:
    thumbnails = KeyframeThumbnails(history_steps=4)
    thumbnails.on_reset(observation(0), "do", "id")
    for step in range(20):
        now = observation(step)
        thumbnails.on_step(now, np.zeros(7), tick(step), StepResult(now, False, False, False))
        assert len(thumbnails._frames) <= 4
    assert sorted(thumbnails.thumbnails) == [0, 5]
    assert all(not isinstance(p, np.ndarray) for cameras in thumbnails.thumbnails.values() for p in cameras.values())
