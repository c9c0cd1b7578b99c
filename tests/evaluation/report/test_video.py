"""The video is written and read back; thumbnails show the frames of their steps; memory stays bounded."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from PIL import Image, ImageDraw

from predimem.core.types import EpisodeResult, StepResult, Tick
from predimem.evaluation.analysis.stages import (
    PANEL_PX,
    ROW_PX,
    Stage,
    draw_stage_marks,
    draw_stages,
    stage_text,
    stages_of,
)
from predimem.evaluation.report.frame import BAD, GOOD, WARN, FrameDrawer, Layout, Scene
from predimem.evaluation.report.pair import CAPTION_PX, RULE_PX, Half, side_by_side
from predimem.evaluation.report.thumbnails import KeyframeThumbnails
from predimem.evaluation.report.video import Film, VideoRecorder
from tests.evaluation.fake_player import CAMERAS, HORIZON, MISTAKE_STEP, observation, play_frames, tick


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


def test_the_first_mistake_is_marked_from_when_it_was_done_on(tmp_path: Path) -> None:
    play_frames([VideoRecorder(tmp_path / "a.mp4", scale=4)], EpisodeResult("task", "a", 1, "failure", HORIZON))
    play_frames([VideoRecorder(tmp_path / "b.mp4", scale=4)], EpisodeResult("task", "b", 1, "success", HORIZON))
    failed, good = (list(imageio.imiter(tmp_path / name)) for name in ("a.mp4", "b.mp4"))
    bar = slice(92 + 128 - 20, 92 + 128 - 10), slice(200, 260)  # at the foot of the cameras' images, beside the words
    red = [abs(frame[bar].astype(int).mean(axis=(0, 1)) - BAD).max() < 40 for frame in failed[:HORIZON]]
    assert red == [step >= MISTAKE_STEP for step in range(HORIZON)]
    assert not any(abs(frame[bar].astype(int).mean(axis=(0, 1)) - BAD).max() < 40 for frame in good[:HORIZON])


def test_a_wrong_subtask_is_written_in_red_with_the_one_that_is_due() -> None:
    drawer = FrameDrawer(Layout(scale=4), "title", "do", has_memory=True)
    scene = Scene(observation(9), tick(9), (), {})
    right, wrong = drawer.draw(scene), drawer.draw(replace(scene, due="open middle drawer"))
    assert right.shape == wrong.shape
    head = wrong[50:85].reshape(-1, 3)
    assert (head == BAD).all(axis=1).any() and not (right[50:85].reshape(-1, 3) == BAD).all(axis=1).any()


def test_two_agents_stand_side_by_side_with_their_memory_below(tmp_path: Path) -> None:
    """The second one ends sooner and stands still; the first one's keyframes are in rows, below the cameras."""
    film = Film(fps=4.0, narrow=True)
    first = EpisodeResult("task", "predimem", 1, "success", HORIZON)
    play_frames([VideoRecorder(tmp_path / "a.mp4", film, scale=10)], first)
    play_frames([VideoRecorder(tmp_path / "b.mp4", film, scale=10)], EpisodeResult("t", "b", 1, "failure", 4), False)
    side_by_side(Half(tmp_path / "a.mp4", "with"), Half(tmp_path / "b.mp4", "without"), tmp_path / "pair" / "ab.mp4")
    frames, alone = list(imageio.imiter(tmp_path / "pair" / "ab.mp4")), list(imageio.imiter(tmp_path / "a.mp4"))
    assert len(frames) == len(alone) == HORIZON + 8
    height, width = alone[0].shape[:2]
    assert frames[0].shape == (height + CAPTION_PX, 2 * width + RULE_PX, 3)
    assert abs(frames[9][CAPTION_PX:, :width].astype(int) - alone[9]).mean() < 4
    assert abs(frames[-1][:, width + 4 :].astype(int) - frames[13][:, width + 4 :]).mean() < 2
    # Keyframes of steps 0 and 5, both cameras of each: 124 px wide, 32 + 18 px below the cameras.
    row = slice(CAPTION_PX + 92 + 320 + 60, CAPTION_PX + 92 + 320 + 160)
    for left, colour in ((10, (0, 80, 1)), (134, (200, 0, 30)), (270, (50, 80, 1)), (394, (200, 50, 30))):
        assert abs(frames[9][row, left + 10 : left + 110].astype(int).mean(axis=(0, 1)) - colour).max() < 12
    assert list(tmp_path.joinpath("pair").iterdir()) == [tmp_path / "pair" / "ab.mp4"]


def test_videos_of_two_rates_are_not_put_together(tmp_path: Path) -> None:
    for name, fps in (("a", 4.0), ("b", 5.0)):
        result = EpisodeResult("task", name, 1, "success", 2)
        play_frames([VideoRecorder(tmp_path / f"{name}.mp4", Film(fps=fps, narrow=True))], result)
    with pytest.raises(ValueError, match=r"the same rate, got 4\.0 and 5\.0"):
        side_by_side(Half(tmp_path / "a.mp4", ""), Half(tmp_path / "b.mp4", ""), tmp_path / "ab.mp4")
    assert not (tmp_path / "ab.mp4").exists()


def test_a_narrow_video_shows_the_stages_as_marks(tmp_path: Path) -> None:
    canvas = Image.new("RGB", (400, 30))
    draw_stage_marks(ImageDraw.Draw(canvas), 0, 4, stages_of(STAGES))
    for i, colour in enumerate((GOOD, WARN, BAD)):
        assert (np.asarray(canvas)[:, 20 * i : 20 * i + 16].reshape(-1, 3).max(axis=0) == colour).all()
    assert Film(narrow=True).layout(has_stages=True).keyframe_rows == 3
