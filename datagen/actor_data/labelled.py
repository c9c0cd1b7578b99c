"""One image with what the expert would do for each subtask, and episodes that are made of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datagen.experts.memoryless.expert import fetches, target_m
from datagen.experts.memoryless.hold import OPENED_GAP_M, holding
from datagen.experts.memoryless.pick_place import occupied
from datagen.experts.scripted.action_labels import chunk
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.envs.arena.fixtures import DOOR, DRAWERS, PLACES, ROBOT_BASE_M
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.task import Task

OTHERS = 3  # subtasks, of those that could be done instead, in whichever variant
OPEN_ENOUGH = {**dict.fromkeys(DRAWERS, 0.15), DOOR: 1.45}  # to put something in: m, and rad
FREE_M = 0.20  # of the TCP: from here on the gripper may as well do something else


@dataclass(frozen=True, eq=False)
class Labelled:
    """One state with the expert's chunks for several subtasks.

    images: camera -> uint8 [H, W, 3].
    state: float32 [17].
    subtask: the label that was followed.
    motions: label -> what the expert does for it now: the label itself, or "pick butter" where the butter that is to be
    placed or poured from has to be picked up first, or "free for butter" where the fingers cannot grasp it yet.
    chunks: label -> float32 [H, 7].
    targets_m: label -> [3] in the robot's base frame.
    pixels: label -> [C, 2], fractions of width and height, NaN where the target is not in the image.
    """

    images: dict[str, np.ndarray]
    state: np.ndarray
    subtask: str
    motions: dict[str, str]
    chunks: dict[str, np.ndarray]
    targets_m: dict[str, np.ndarray]
    pixels: dict[str, np.ndarray]


def look(env: Any, arm: Arm, subtask: Subtask, steps: int, known: Snapshot, rng: np.random.Generator) -> Labelled:
    """What is seen and felt now, and the expert's chunks for `subtask` and for some that could be done instead.

    known: a state of the same scene, whose grasps are taken over, and which takes over those that are found here.
    """
    scene, gripper = Snapshot.of(env), Gripper.of(arm)
    scene.adopt_grasps(known)
    images = {name: np.array(data["rgb"][0].cpu(), np.uint8) for name, data in env.observe("rgb").items()}
    cameras = [_matrix(env, name) for name in images]
    chosen = {s.label: s for s in (subtask, *others(env.task, subtask, gripper, scene, rng))}
    chunks = {label: chunk(arm, gripper, scene, s, steps) for label, s in chosen.items()}
    known.adopt_grasps(scene)
    points = {label: target_m(gripper, scene, s) for label, s in chosen.items()}
    sizes = [image.shape[1::-1] for image in images.values()]
    return Labelled(
        images=images,
        state=env.proprioception(),
        subtask=subtask.label,
        motions={label: motion_of(gripper, scene, s) for label, s in chosen.items()},
        chunks=chunks,
        targets_m={label: point - np.array(ROBOT_BASE_M) for label, point in points.items()},
        pixels={
            label: np.stack([project(point, m, size) for m, size in zip(cameras, sizes, strict=True)])
            for label, point in points.items()
        },
    )


def without(frame: Labelled, labels: Collection[str]) -> Labelled | None:
    """The state without some of its labels; None where the subtask that was followed is one of them."""
    if frame.subtask in labels:
        return None
    return replace(frame, chunks={label: chunk for label, chunk in frame.chunks.items() if label not in labels})


def motion_of(gripper: Gripper, scene: Snapshot, subtask: Subtask) -> str:
    """What the expert does for a subtask now, as in `Labelled.motions`."""
    picks = fetches(gripper, scene, subtask)
    thing = subtask.object.replace("_", " ")
    if (picks or subtask.skill is Skill.MOVE) and occupied(gripper, scene, subtask.object):
        return f"free for {thing}"
    return f"pick {thing}" if picks else subtask.label


def others(task: Task, subtask: Subtask, gripper: Gripper, scene: Snapshot, rng: np.random.Generator) -> list[Subtask]:
    """At most `OTHERS` subtasks of a task, in whichever variant, that could be done from here instead of `subtask`."""
    known = {s.label: s for v in task.variants for s in v.subtasks if s.label != subtask.label}
    labels = sorted(label for label, s in known.items() if possible(s, gripper, scene))
    return [known[labels[i]] for i in rng.permutation(len(labels))[:OTHERS]]


def possible(subtask: Subtask, gripper: Gripper, scene: Snapshot) -> bool:
    """Whether a free gripper could do a subtask from here instead of what it is at."""
    if gripper.position[2] < FREE_M:
        return False
    held = next((o for o in scene.objects if holding(gripper, scene, o)), "")
    if subtask.skill is Skill.PLACE:
        frame = PLACES[subtask.target].frame
        return held == subtask.object and (frame not in OPEN_ENOUGH or scene.opening(frame) > OPEN_ENOUGH[frame])
    if subtask.skill is Skill.POUR:
        return held == subtask.object
    if held or gripper.gap_m < OPENED_GAP_M:
        return False
    if subtask.skill is Skill.MOVE:
        return bool(scene.position_m(subtask.object)[0] < 0.0)  # out on the table or in front, not in furniture
    if subtask.skill is Skill.CLOSE:
        return scene.opening(subtask.target) > 0.3 * OPEN_ENOUGH[subtask.target]
    return all(scene.opening(joint) < 0.1 * most for joint, most in OPEN_ENOUGH.items())


def episode_of(
    frames: Sequence[Labelled], task: str, seed: int, instruction: str, hz: float, metadata: dict[str, Any]
) -> Episode:
    """An episode whose steps are the frames: `hz` of them a second, 0 where they are independent of each other."""
    labels = tuple(sorted({label for frame in frames for label in frame.chunks}))
    first = frames[0].chunks[frames[0].subtask]
    cameras = len(frames[0].images)
    chunks = np.zeros((len(frames), len(labels), *first.shape), np.float32)
    valid = np.zeros(chunks.shape[:2], bool)
    targets_m = np.full((*valid.shape, 3), np.nan, np.float32)
    pixels = np.full((*valid.shape, cameras, 2), np.nan, np.float32)
    for t, frame in enumerate(frames):
        for label in frame.chunks:
            at = (t, labels.index(label))
            chunks[at], valid[at] = frame.chunks[label], True
            targets_m[at], pixels[at] = frame.targets_m[label], frame.pixels[label]
    return Episode(
        benchmark="arena",
        task=task,
        seed=seed,
        instruction=instruction,
        control_hz=hz,
        success=True,
        images={name: np.stack([frame.images[name] for frame in frames]) for name in frames[0].images},  # type: ignore[arg-type]
        state=np.stack([frame.state for frame in frames]),
        actions=np.stack([frame.chunks[frame.subtask][0] for frame in frames]),
        subtasks=tuple(SubtaskSpan(t, t + 1, frame.subtask) for t, frame in enumerate(frames)),
        keyframes=(),
        alternatives=Alternatives(labels, chunks, valid, targets_m, pixels),
        metadata=metadata,
    )


def project(point_m: np.ndarray, matrix: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """(u, v) of a world point as fractions of width and height; NaN where it is not in the image."""
    u, v, depth = matrix @ np.append(point_m, 1.0)
    fraction = np.array([u, v]) / depth / np.asarray(size) if depth > 0.01 else np.full(2, np.nan)
    return fraction if bool(((fraction >= 0) & (fraction < 1)).all()) else np.full(2, np.nan)


def _matrix(env: Any, camera: str) -> np.ndarray:
    """[3, 4]: from world metres to pixels of a camera, now."""
    known = env._sensors[camera].get_params()
    return (known["intrinsic_cv"][0] @ known["extrinsic_cv"][0]).cpu().numpy().astype(float)
