"""One prompt for training and inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.prompt import IMAGE_TAG, PromptConfig, chat_messages, render_prompt, size_images
from planner.replay import Replay
from predimem.core.types import Frame, MemorySnapshot, PastSession
from tests.planner.builders import INSTRUCTION, MEMORY, PROMPT


def test_keyframes_come_first_and_every_timestep_is_stamped(episodes):
    snapshot = Replay(episodes[0], MEMORY, [0])[7]
    prompt = render_prompt(snapshot, PROMPT)
    assert prompt.messages[1]["content"].split("\n") == [
        f"Global task: {INSTRUCTION}",
        "Camera order for every timestep: base_camera, hand_camera.",
        "Historical keyframes, oldest first:",
        "step 0 (0.00 s): <image><image>",
        "Recent window, oldest timestep first, ending at the current frame:",
        "step 6 (0.30 s): <image><image>",
        "step 7 (0.35 s): <image><image>",
        "Return strict JSON with the fields current_primitive and keyframe_positions "
        "(1-indexed positions inside the recent window).",
    ]
    images = episodes[0].images
    shown = [(0, "base"), (0, "hand"), (6, "base"), (6, "hand"), (7, "base"), (7, "hand")]
    for image, (step, camera) in zip(prompt.images, shown, strict=True):
        assert np.array_equal(image, images[f"{camera}_camera"][step])


def test_a_young_episode_has_a_short_window_and_no_keyframes(episodes):
    prompt = render_prompt(Replay(episodes[0], MEMORY, [0])[0], PROMPT)
    assert "Historical keyframes: none yet." in prompt.messages[1]["content"]
    assert prompt.messages[1]["content"].count(IMAGE_TAG) == len(prompt.images) == 2


def test_without_a_keyframe_bank_there_is_no_keyframe_section(episodes):
    snapshot = Replay(episodes[0], MEMORY, [0])[7]
    prompt = render_prompt(snapshot, PromptConfig(recent_window=2, keyframes=False))
    assert "istorical" not in prompt.messages[0]["content"] + prompt.messages[1]["content"]
    assert len(prompt.images) == 4


def test_a_text_memory_is_a_section_of_its_own(episodes):
    snapshot = replace(Replay(episodes[0], MEMORY, [])[7], past_subtasks=("watch", "wait"))
    config = PromptConfig(recent_window=2, keyframes=False, past_subtasks=True)
    assert "\nwatch\nwait\nRecent window" in render_prompt(snapshot, config).messages[1]["content"]
    empty = render_prompt(replace(snapshot, past_subtasks=()), config)
    assert "Subtasks so far: none.\n" in empty.messages[1]["content"]
    assert "that you named earlier" in empty.messages[0]["content"]


def test_a_numbered_prompt_counts_keyframes_and_past_subtasks_for_the_planner(episodes):
    snapshot = replace(Replay(episodes[0], MEMORY, [0, 5])[7], past_subtasks=("watch", "wait"))
    config = replace(PROMPT, past_subtasks=True, numbered=True)
    lines = render_prompt(snapshot, config).messages[1]["content"].split("\n")
    assert [line for line in lines if line.startswith("#")] == [
        "#1 step 0 (0.00 s): <image><image>",
        "#2 step 5 (0.25 s): <image><image>",
        "#1 watch",
        "#2 wait",
    ]


def test_the_prompt_says_how_far_the_hand_moved():
    def frame(step: int, state: np.ndarray | None) -> Frame:
        return Frame(step, step / 20, {name: np.zeros((32, 32, 3), np.uint8) for name in PROMPT.cameras}, state)

    config = PromptConfig(recent_window=4, timestamps="none", hand_position=(1, 2))
    moved = ([9, 0, 0], [8, 0.003, -0.004], None, [7, 0, 0])
    states = [None if entries is None else np.array(entries, np.float32) for entries in moved]
    snapshot = MemorySnapshot("e", 9, "do it", tuple(frame(6 + i, state) for i, state in enumerate(states)))
    system, user = (message["content"] for message in render_prompt(snapshot, config).messages)
    assert [line for line in user.split("\n") if IMAGE_TAG in line] == [
        "<image><image>", "<image><image> The hand moved 5 mm.", "<image><image>", "<image><image>",
    ]  # fmt: skip
    assert "how far the hand moved" in system
    assert "hand moved" not in str(render_prompt(snapshot, PROMPT).messages)
    with pytest.raises(ValueError, match=r"the state of step 6 has 3 entries, and entry 3 is asked for"):
        render_prompt(snapshot, replace(config, hand_position=(2, 3)))
    for wrong in ((0, 0), (-1,)):
        with pytest.raises(ValueError, match=r"prompt.hand_position must be distinct entries of the state"):
            replace(config, hand_position=wrong)


def test_the_prompt_says_how_far_the_gripper_is_open():
    config = PromptConfig(recent_window=2, timestamps="none", hand_position=(0,), gripper_opening=(1, 2))
    images = {name: np.zeros((32, 32, 3), np.uint8) for name in PROMPT.cameras}
    states = [np.array(entries, np.float32) for entries in ((1, 0.04, 0.04), (1, 0.0, -0.001))]
    snapshot = MemorySnapshot("e", 9, "do it", tuple(Frame(8 + i, 0.4, images, s) for i, s in enumerate(states)))
    system, user = (message["content"] for message in render_prompt(snapshot, config).messages)
    assert [line for line in user.split("\n") if IMAGE_TAG in line] == [
        "<image><image> The gripper is open by 80 mm.",
        "<image><image> The hand moved 0 mm. The gripper is open by 0 mm.",
    ]
    assert "how far the gripper is open" in system
    with pytest.raises(ValueError, match=r"prompt.gripper_opening: the state of step 8 has 3 entries, and entry 9"):
        render_prompt(snapshot, replace(config, gripper_opening=(9,)))


def test_relative_times_do_not_tell_how_long_the_episode_is(episodes):
    config = PromptConfig(recent_window=2, timestamps="relative")
    lines = render_prompt(Replay(episodes[0], MEMORY, [0])[7], config).messages[1]["content"].split("\n")
    assert [line for line in lines if IMAGE_TAG in line] == [
        "-0.3 s: <image><image>", "-0.0 s: <image><image>", "+0.0 s: <image><image>",
    ]  # fmt: skip


def test_the_rules_name_the_window_and_the_cameras():
    system = render_prompt(
        MemorySnapshot("e", 0, "do it", (Frame(0, 0.0, {"front": np.zeros((32, 32, 3), np.uint8)}),)),
        PromptConfig(cameras=("front",), recent_window=5),
    ).messages[0]["content"]
    assert "recent 5-timestep window" in system and "1 images: one front image." in system
    assert "current_primitive" in system and "keyframe_positions" in system and "strict JSON" in system


def test_a_missing_camera_is_an_error(episodes):
    snapshot = Replay(episodes[0], MEMORY, [])[3]
    with pytest.raises(ValueError, match="no camera 'wrist'; it has base_camera, hand_camera"):
        render_prompt(snapshot, PromptConfig(cameras=("base_camera", "wrist"), recent_window=2))


def test_chat_messages_keep_order():
    messages = [{"role": "user", "content": "a <image><image>\nb"}]
    assert chat_messages(messages)[0]["content"] == [
        {"type": "text", "text": "a "},
        {"type": "image"},
        {"type": "image"},
        {"type": "text", "text": "\nb"},
    ]


def test_images_are_sized_to_whole_cells():
    image = np.zeros((100, 130, 3), np.uint8)
    assert size_images([image], PROMPT)[0].size == (128, 96)
    exact = np.arange(128 * 128 * 3, dtype=np.uint32).astype(np.uint8).reshape(128, 128, 3)
    assert np.array_equal(np.asarray(size_images([exact], PROMPT)[0]), exact)


def test_image_tokens_match_between_prompt_and_processor(processor, episodes):
    prompt = render_prompt(Replay(episodes[0], MEMORY, [0])[7], PROMPT)
    text = processor.apply_chat_template(chat_messages(prompt.messages), add_generation_prompt=True)
    inputs = processor(text=[text], images=size_images(prompt.images, PROMPT), do_resize=False, return_tensors="pt")
    assert inputs["image_grid_thw"].tolist() == [[1, 4, 4]] * 6  # 64 px, patches of 16
    assert int((inputs["input_ids"] == processor.image_token_id).sum()) == 6 * 4


def test_earlier_sessions_are_a_section_of_their_own_before_the_keyframes(episodes):
    snapshot = Replay(episodes[0], MEMORY, [0])[7]
    old = Replay(episodes[1], MEMORY, [])[3].recent
    past = PastSession("s1", 2.2 * 86_400, "Put it away.", old, person="Anna")
    config = replace(PROMPT, past_sessions=True)
    prompt = render_prompt(replace(snapshot, past_sessions=(past,)), config)
    assert prompt.messages[1]["content"].split("\n")[2:6] == [
        "Keyframes of an earlier session, oldest first (2 days ago, with Anna; the task was: Put it away.):",
        "0.1 s: <image><image>",
        "0.1 s: <image><image>",
        "Historical keyframes, oldest first:",
    ]
    assert np.array_equal(prompt.images[0], episodes[1].images["base_camera"][2])
    assert prompt.messages[1]["content"].count(IMAGE_TAG) == len(prompt.images) == 10
    assert "Keyframes of earlier sessions that fit this task." in prompt.messages[0]["content"]
    none = render_prompt(snapshot, config).messages[1]["content"]
    assert "Earlier sessions: none that fits.\nHistorical keyframes" in none
    without = render_prompt(replace(snapshot, past_sessions=(past,)), PROMPT)
    assert without.messages == render_prompt(snapshot, PROMPT).messages  # a planner that was not trained with them


def test_a_prompt_shows_the_part_of_an_image_that_its_crop_names(episodes):
    config = replace(PROMPT, crop={"base_camera": (0.25, 0.0, 0.75, 0.5)})
    snapshot = Replay(episodes[0], MEMORY, [0])[7]
    whole, part = render_prompt(snapshot, PROMPT), render_prompt(snapshot, config)
    assert part.messages == whole.messages
    height, width = whole.images[0].shape[:2]
    assert np.array_equal(part.images[0], whole.images[0][: height // 2, width // 4 : width * 3 // 4])
    assert np.array_equal(part.images[1], whole.images[1])  # of the other camera


@pytest.mark.parametrize(
    "crop", [{"wrist": (0, 0, 1, 1)}, {"base_camera": (0.5, 0, 0.5, 1)}, {"base_camera": (0, 0, 1, 1.2)}]
)
def test_a_crop_is_inside_the_image_of_a_camera(crop):
    with pytest.raises(ValueError, match=r"crop of base_camera must be|none of the cameras"):
        PromptConfig(crop=crop)
