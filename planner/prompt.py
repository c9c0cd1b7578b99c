"""S2's prompt. Training and inference share one renderer.

The prompt is that of RoboMemArena (arXiv:2605.10921), §8, with the keyframes of the bank.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from memory_bank import MemoryConfig
from planner.crop import check_crop, cropped
from planner.proprioception import MOVES, OPENINGS, proprioception
from predimem.core.subtask_labels import THEN
from predimem.core.types import Frame, MemorySnapshot, PastSession

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_TAG = "<image>"
FOLLOWS_MEMORY = ("recent_window", "keyframes", "past_subtasks")  # a config states them once, under `memory`


@dataclass(frozen=True)
class PromptConfig:
    """How memory is put into words and images.

    cameras: names in the order in which a timestep's images are shown.
    recent_window: timesteps of a full window, as the system prompt states it.
    keyframes: False is the ablation whose prompt has no keyframe section.
    image_patch_size: the vision tower's, by which qwen-vl-utils sizes the images.
    past_subtasks: True adds the section of the text memory.
    timestamps: what is said of the time of a timestep. "absolute": its step and the time since the start; "relative":
        seconds relative to now; "gaps": seconds since the timestep shown before it; "none": nothing. Scripted
        demonstrations keep time so well that the clock alone tells how far they have got: a planner that sees it learns
        to read it in place of its memory. "relative" and "gaps" do not tell the clock. But with "relative" every time
        in the prompt is another one in the next prompt, so that the planner has to read all keyframes anew each time.

    past_sessions: True adds the section of earlier sessions that the memory admits (`memory_bank.retrieval`), before
        this episode's keyframes. Their times count from the start of their own session.
    crop: camera -> left, top, right and bottom of the part of its image that is shown, as fractions. What matters fills
        the image, so that it needs fewer tokens. Labels that name places still count from the whole image.
    plan_ahead: True asks for what comes after the subtask as well.
    hand_position: the entries of the robot's state that are the position of its hand, in metres. The prompt then says
        how far the hand moved from one timestep of the recent window to the next, which images hardly show where it is
        slow. Nothing is said of a timestep whose state was not kept.
    gripper_opening: the entries of the state that add up to the opening of its gripper, in metres. The prompt then says
        at each timestep of the recent window how far it is open: fingers that have met hold nothing.
    numbered: True numbers keyframes and past subtasks from 1, so that the third keyframe is looked up, not counted. A
        keyframe that is forgotten changes the numbers of those after it.

    The fields of `FOLLOWS_MEMORY` say what the memory config says; a config file leaves them out.
    """

    cameras: tuple[str, ...] = ("base_camera", "hand_camera")
    recent_window: int = MemoryConfig.recent_window
    keyframes: bool = MemoryConfig.keyframes
    image_patch_size: int = 16
    past_subtasks: bool = MemoryConfig.past_subtasks
    timestamps: Literal["absolute", "relative", "gaps", "none"] = "absolute"
    past_sessions: bool = False
    crop: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)
    numbered: bool = False
    plan_ahead: bool = False
    hand_position: tuple[int, ...] = ()
    gripper_opening: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.cameras or len(set(self.cameras)) != len(self.cameras):
            raise ValueError(f"cameras must be distinct names, at least one, got {self.cameras}")
        if unknown := sorted(set(self.crop) - set(self.cameras)):
            raise ValueError(f"prompt.crop: {unknown[0]} is none of the cameras {', '.join(self.cameras)}")
        check_crop(self.crop)
        for name in ("hand_position", "gripper_opening"):
            entries = getattr(self, name)
            if len(set(entries)) < len(entries) or any(entry < 0 for entry in entries):
                raise ValueError(f"prompt.{name} must be distinct entries of the state, from 0, got {entries}")

    @property
    def grows_at_the_end(self) -> bool:
        """Whether a prompt begins as the one before it, up to the first timestep that differs."""
        return self.timestamps != "relative"


def follow_memory(data: dict[str, Any]) -> dict[str, Any]:
    """The plain data of a config that has a `prompt` and a `memory`, with what the prompt takes from the memory.

    What the prompt states itself stays: `check_agreement` refuses it where the two differ.
    """
    prompt, memory = data.get("prompt", {}), data.get("memory", {})
    if not isinstance(prompt, dict) or not isinstance(memory, dict):
        return data  # reading them says what is wrong
    follows = {name: memory[name] for name in FOLLOWS_MEMORY if name in memory}
    return {**data, "prompt": {**follows, **prompt}}


def check_agreement(prompt: PromptConfig, memory: MemoryConfig) -> None:
    """Raises ValueError unless the prompt states what the memory holds."""
    for name in FOLLOWS_MEMORY:
        stated, held = getattr(prompt, name), getattr(memory, name)
        if stated != held:
            raise ValueError(
                f"prompt.{name} is {stated} and memory.{name} is {held}: they must be equal; state it under `memory` "
                "alone, and the prompt follows"
            )


@dataclass(frozen=True, eq=False)
class Prompt:
    """A rendered prompt.

    messages: the system's and the user's, as roles and strings in the form that ms-swift reads. Each image has an
        `<image>` in them.
    images: RGB, as the environment gave them, cropped; `size_images` sizes them for the model.
    """

    messages: list[dict[str, str]]
    images: list[np.ndarray]


def render_prompt(snapshot: MemorySnapshot, config: PromptConfig) -> Prompt:
    """The prompt for one snapshot. Raises ValueError if a frame lacks a camera of `config.cameras`, or its state an
    entry of `config.hand_position` or `config.gripper_opening`.

    What changes least comes first. Only with relative times must the snapshot have a recent frame.
    """
    keyframes = snapshot.keyframes if config.keyframes else ()
    sessions = snapshot.past_sessions if config.past_sessions else ()
    frames = (*keyframes, *snapshot.recent)
    past = [frame for session in sessions for frame in session.frames]
    images = [_image(frame, camera, config) for frame in (*past, *frames) for camera in config.cameras]
    timesteps = [f"{time}{IMAGE_TAG * len(config.cameras)}" for time in _times(frames, config)]
    lines = [f"{TASK}{snapshot.instruction}", _camera_order(config)]
    if config.past_sessions:
        lines += [line for session in sessions for line in _session_lines(session, config)] or [NO_SESSIONS]
    if config.keyframes:
        lines.append(KEYFRAMES if keyframes else NO_KEYFRAMES)
        lines += _listed(timesteps[: len(keyframes)], config)
    if config.past_subtasks:
        lines += [PAST, *_listed(snapshot.past_subtasks, config)] if snapshot.past_subtasks else [NO_PAST]
    lines.append(RECENT)
    felt = proprioception(snapshot.recent, config.hand_position, config.gripper_opening)
    lines += [f"{timestep}{told}" for timestep, told in zip(timesteps[len(keyframes) :], felt, strict=True)]
    lines.append(RETURN)
    messages = [
        {"role": "system", "content": system_prompt(config)},
        {"role": "user", "content": "\n".join(lines)},
    ]
    return Prompt(messages, images)


def system_prompt(config: PromptConfig) -> str:
    return "\n".join(_system_lines(config))


def render_answer(subtask: str, keyframe_positions: Sequence[int]) -> str:
    """The label: strict JSON without blanks, as in RoboMemArena, §8."""
    answer = {"current_primitive": subtask, "keyframe_positions": list(keyframe_positions)}
    return json.dumps(answer, separators=(",", ":"))


def fixed_phrases(config: PromptConfig, instructions: Sequence[str] = ()) -> list[str]:
    """The parts of prompts and answers that are always the same: a small tokenizer spends one token on
    each of them (see `planner.tiny.tokenizer`). An instruction with places for words, such as `{drawer}`, has
    several parts."""
    *system, last = _system_lines(config)
    parts = (part for instruction in instructions for part in re.split(r" ?\{\w+\}", f"{TASK}{instruction}\n"))
    tasks = [part for part in dict.fromkeys(parts) if part.strip()]
    user = [_camera_order(config)]
    user += [KEYFRAMES, NO_KEYFRAMES, RECENT]
    if config.past_subtasks:
        user += [PAST, NO_PAST]
    if config.past_sessions:
        user += [NO_SESSIONS]
    answer = ['{"current_primitive":"', '","keyframe_positions":[', "]}"]
    if config.plan_ahead:
        answer += [THEN]
    return [*(f"{line}\n" for line in system), *tasks, *(f"{line}\n" for line in user), last, RETURN, *answer]


def size_images(images: Sequence[np.ndarray], config: PromptConfig) -> list[Image]:
    """RGB uint8 [H, W, 3] to PIL images of the size that qwen-vl-utils chooses, as in training."""
    from PIL import Image
    from qwen_vl_utils import fetch_image

    patch = config.image_patch_size
    return [fetch_image({"image": Image.fromarray(image)}, image_patch_size=patch) for image in images]


def chat_messages(messages: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The messages in the form of transformers' chat templates: `<image>` becomes an image item."""
    result = []
    for message in messages:
        content: list[dict[str, str]] = []
        for index, text in enumerate(message["content"].split(IMAGE_TAG)):
            if index:
                content.append({"type": "image"})
            if text:
                content.append({"type": "text", "text": text})
        result.append({"role": message["role"], "content": content})
    return result


TASK = "Global task: "
SESSIONS = "Keyframes of an earlier session, oldest first"
NO_SESSIONS = "Earlier sessions: none that fits."
KEYFRAMES = "Historical keyframes, oldest first:"
NO_KEYFRAMES = "Historical keyframes: none yet."
PAST = "Subtasks so far, oldest first, the last one was being executed:"
NO_PAST = "Subtasks so far: none."
RECENT = "Recent window, oldest timestep first, ending at the current frame:"
RETURN = (
    "Return strict JSON with the fields current_primitive and keyframe_positions "
    "(1-indexed positions inside the recent window)."
)


def _system_lines(config: PromptConfig) -> list[str]:
    window = f"recent {config.recent_window}-timestep window"
    cameras = " and one ".join(f"{camera} image" for camera in config.cameras)
    evidence = [f"A {window} that ends at the current frame."]
    rules = [
        f"- Each timestep contains {len(config.cameras)} images: one {cameras}.",
        f"- The {window} is the primary evidence for the current action.",
        *([MOVES] if config.hand_position else []),
        *([OPENINGS] if config.gripper_opening else []),
        "- keyframe_positions is an empty list unless a keyframe lies inside the current window.",
        "- Return strict JSON only, without any other text.",
        "- Return exactly two fields:",
        "  - current_primitive: the primitive action that the robot should execute now.",
        *([f'    Where the next ones are known, they follow, each after "{THEN}".'] if config.plan_ahead else []),
        f"  - keyframe_positions: 1-indexed positions of keyframes inside the {window}.",
    ]
    if config.keyframes:
        evidence.insert(0, "Historical keyframes from earlier in the same episode.")
        rules.insert(0, "- Historical keyframes are earlier than the current window.")
    if config.past_sessions:
        evidence.insert(0, "Keyframes of earlier sessions that fit this task.")
        rules.insert(0, "- Earlier sessions show what happened before this episode; things may have moved since.")
    if config.past_subtasks:
        evidence.insert(-1, "The subtasks that you named earlier in the same episode.")
    return [
        "You plan for a robot whose tasks need memory.",
        "Infer the current primitive action from these images:",
        *(f"{number}. {text}" for number, text in enumerate(evidence, start=1)),
        "Rules:",
        *rules,
    ]


def _session_lines(session: PastSession, config: PromptConfig) -> list[str]:
    """The head of an earlier session and its timesteps."""
    when = f"{_age(session.age_s)}, with {session.person}" if session.person else _age(session.age_s)
    head = f"{SESSIONS} ({when}; the task was: {session.instruction or 'not recorded'}):"
    times = (f"{frame.time_s:.1f} s: " if config.timestamps != "none" else "" for frame in session.frames)
    return [head, *(f"{time}{IMAGE_TAG * len(config.cameras)}" for time in times)]


def _age(seconds: float) -> str:
    days = seconds / 86_400
    if days >= 1:
        return f"{days:.0f} days ago"
    return f"{seconds / 3600:.0f} hours ago" if seconds >= 3600 else f"{seconds / 60:.0f} minutes ago"


def _camera_order(config: PromptConfig) -> str:
    return f"Camera order for every timestep: {', '.join(config.cameras)}."


def list_number(number: int) -> str:
    """What stands before the entry `number` of a numbered list."""
    return f"#{number} "


def _listed(lines: Sequence[str], config: PromptConfig) -> list[str]:
    return [f"{list_number(i)}{line}" for i, line in enumerate(lines, start=1)] if config.numbered else list(lines)


def _times(frames: Sequence[Frame], config: PromptConfig) -> list[str]:
    """What is said of the time of each of the frames that are shown."""
    if config.timestamps == "none":
        return [""] * len(frames)
    if config.timestamps == "relative":
        return [f"{frame.time_s - frames[-1].time_s:+.1f} s: " for frame in frames]
    if config.timestamps == "gaps":
        before = (frames[0], *frames[:-1]) if frames else ()
        gaps = (frame.time_s - last.time_s for last, frame in zip(before, frames, strict=True))
        return [f"{max(0.0, gap):+.1f} s: " for gap in gaps]  # below 0 after another episode's memory, in training
    return [f"step {frame.step} ({frame.time_s:.2f} s): " for frame in frames]


def _image(frame: Frame, camera: str, config: PromptConfig) -> np.ndarray:
    try:
        image = frame.images[camera]
    except KeyError:
        raise ValueError(
            f"the frame of step {frame.step} has no camera {camera!r}; it has {', '.join(frame.images)}"
        ) from None
    return cropped(image, camera, config.crop) if isinstance(image, np.ndarray) else image  # else it has a name
