"""What the conditions draw: the same for the same seed, what they say, and nothing else."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.layout import Layout, draw_layout
from predimem.envs.arena.objects import DISTRACTORS
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.unseen import positions
from predimem.envs.arena.unseen.camera import MOVED_M, TURNED_DEG
from predimem.envs.arena.unseen.conditions import CONDITIONS, PLAIN, TRAINABLE, draw_setting, vary
from predimem.envs.arena.unseen.lights import BRIGHTNESS
from predimem.envs.arena.unseen.room import free_points, outside_m
from predimem.envs.arena.unseen.setting import ROOM, Lamps, Setting, Style, View

SEEDS = (900_000, 900_001, 900_007)
# What each condition changes of a setting, besides what it says of it.
CHANGES = {
    PLAIN: set(),
    "positions": {"layout"},
    "colours": {"styles"},
    "textures": {"styles"},
    "distractors": {"distractors"},
    "lights": {"lamps"},
    "camera": {"view"},
    "instructions": {"instruction"},
}


def plain_data(setting: Setting) -> dict[str, Any]:
    """Each part of a setting as text, so that two of them can be compared exactly."""
    layout = setting.layout
    poses = {
        part: {name: (position.tolist(), yaw) for name, (position, yaw) in getattr(layout, part).items()}
        for part in ("fixtures", "mats", "objects")
    }
    stood = {name: (position.tolist(), yaw) for name, (position, yaw) in setting.distractors.items()}
    parts = {
        "layout": (layout.variant, poses, layout.qpos.tolist()),
        "instruction": setting.instruction,
        "view": setting.view,
        "lamps": setting.lamps,
        "styles": setting.styles,
        "distractors": stood,
        "changed": setting.changed,
    }
    return {name: repr(part) for name, part in parts.items()}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_seed_gives_one_setting_that_differs_from_plain_in_one_thing(condition: str) -> None:
    for task in (task_of(4), task_of(7), task_of(18)):
        drawn = [plain_data(draw_setting(task, seed, condition)) for seed in SEEDS]
        assert drawn == [plain_data(draw_setting(task, seed, condition)) for seed in SEEDS]
        for seed, data in zip(SEEDS, drawn, strict=True):
            before = plain_data(draw_setting(task, seed))
            assert {name for name in data if data[name] != before[name]} - {"changed"} == CHANGES[condition]
        if condition not in (PLAIN, "instructions"):
            assert len({data["changed"] for data in drawn}) > 1


def test_plain_is_the_arena_of_the_training() -> None:
    def same(one: Layout, other: Layout) -> bool:
        return plain_data(Setting(one)) == plain_data(Setting(other))

    setting = draw_setting(task_of(4), 900_000)
    assert same(setting.layout, draw_layout(task_of(4), 900_000))
    assert not same(setting.layout, draw_layout(task_of(4), 900_001))
    assert (setting.view, setting.lamps, setting.styles, setting.distractors) == (View(), Lamps(), {}, {})
    assert setting.changed == {} and setting.instruction == ""


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_record_says_what_was_changed(condition: str) -> None:
    changed = draw_setting(task_of(7), 900_000, condition).changed
    assert json.loads(json.dumps(changed)) == changed
    said = {
        PLAIN: (), "positions": ("objects_m", "containers_moved_m"), "colours": ("hues_deg",),
        "textures": ("pattern",), "distractors": ("distractors_m",), "lights": ("brightness", "warmth",
        "light_turned_deg"), "camera": ("camera_moved_m", "camera_turned_deg"), "instructions": ("instruction",),
    }  # fmt: skip
    assert tuple(changed) == said[condition]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_positions_are_outside_the_training_and_keep_apart(task: Any) -> None:
    for seed in SEEDS:
        before, after = draw_setting(task, seed), draw_setting(task, seed, "positions")
        start = task.variants[before.layout.variant].start
        loose = [name for name in task.objects if name not in start]
        points = [after.layout.objects[name][0][:2] for name in loose]
        assert all(positions.OUTSIDE_M[0] <= outside_m(point) <= positions.OUTSIDE_M[1] for point in points)
        assert all(np.linalg.norm(a - b) >= f.SPAWN_SPACING_M for a, b in combinations(points, 2))
        for name in task.fixtures:
            moved = after.layout.fixtures[name][0] - before.layout.fixtures[name][0]
            assert abs(moved[0]) == pytest.approx(0.05) and moved[1:].tolist() == [0, 0]
            assert abs(after.layout.fixtures[name][0][0] - f.FIXTURES[name].position_m[0]) > f.FIXTURES[name].jitter_m
        for name, place in start.items():  # what is in a container goes along, what is in a drawer stays
            along = after.layout.objects[name][0] - before.layout.objects[name][0]
            frame = f.PLACES[place].frame
            wanted = after.layout.fixtures[frame][0] - before.layout.fixtures[frame][0] if frame in task.fixtures else 0
            np.testing.assert_allclose(along, wanted, atol=1e-12)
        for name in f.KITCHEN:
            np.testing.assert_array_equal(after.layout.fixtures[name][0], before.layout.fixtures[name][0])


def test_mats_go_along_with_their_basket() -> None:
    before, after = (draw_setting(task_of(1), 900_000, condition).layout for condition in (PLAIN, "positions"))
    ((basket, (mat, _)),) = after.mats.items()
    offset = after.fixtures[basket][0] - before.fixtures[basket][0]
    np.testing.assert_allclose(mat - before.mats[basket][0], offset, atol=1e-12)
    assert abs(offset[0]) == pytest.approx(0.05)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_two_distractors_stand_apart_from_everything(task: Any) -> None:
    for seed in SEEDS:
        setting = draw_setting(task, seed, "distractors")
        assert len(setting.distractors) == 2 and set(setting.distractors) <= set(DISTRACTORS)
        (a, _), (b, _) = setting.distractors.values()
        objects = [position[:2] for position, _ in setting.layout.objects.values()]
        for point in (a[:2], b[:2]):
            assert 0.05 <= outside_m(point) <= 0.12
            assert all(np.linalg.norm(point - other) >= 0.12 for other in objects)
        assert np.linalg.norm(a[:2] - b[:2]) >= 0.12


def test_without_room_it_is_said() -> None:
    fixtures = draw_layout(task_of(1), 0).fixtures
    with pytest.raises(ValueError, match="no room for 30 things"):
        free_points(30, (0.02, 0.07), 0.14, fixtures, [], np.random.default_rng(0))


def test_the_camera_moves_and_turns_by_what_is_said() -> None:
    before = View()
    ahead = np.subtract(before.target_m, before.eye_m)
    for seed in SEEDS:
        setting = draw_setting(task_of(4), seed, "camera")
        moved = np.subtract(setting.view.eye_m, before.eye_m)
        assert MOVED_M[0] <= np.linalg.norm(moved) <= MOVED_M[1]
        np.testing.assert_allclose(moved, setting.changed["camera_moved_m"], atol=1e-4)
        now = np.subtract(setting.view.target_m, setting.view.eye_m)
        assert np.linalg.norm(now) == pytest.approx(np.linalg.norm(ahead))
        turned = np.degrees(np.arccos(now @ ahead / (ahead @ ahead)))
        assert TURNED_DEG[0] <= turned <= TURNED_DEG[1]
        assert turned == pytest.approx(setting.changed["camera_turned_deg"], abs=0.01)


def test_lights_keep_their_height_and_are_as_bright_as_is_said() -> None:
    for seed in SEEDS:
        setting = draw_setting(task_of(4), seed, "lights")
        assert BRIGHTNESS[0] <= setting.changed["brightness"] <= BRIGHTNESS[1]
        assert setting.lamps.colour[1] == pytest.approx(1.70 * setting.changed["brightness"], abs=1e-3)
        assert setting.lamps.direction[2] == Lamps().direction[2]
        turned = np.degrees(np.arctan2(*setting.lamps.direction[1::-1]) - np.arctan2(-0.25, 0.45))
        said = setting.changed["light_turned_deg"]
        assert (turned - said + 180) % 360 - 180 == pytest.approx(0, abs=0.06)


def test_what_instructions_name_by_its_colour_keeps_it_and_twins_stay_alike() -> None:
    styles = draw_setting(task_of(16), 900_000, "colours").styles
    assert set(styles) == {ROOM, "cabinet", "microwave", "drainer", "milk", "orange_juice"}
    assert all(style.hue_deg and not style.pattern for style in styles.values())
    baskets = [draw_setting(task_of(1), seed, "colours").styles for seed in range(20)]
    assert all(drawn["basket_left"] == drawn["basket_right"] for drawn in baskets)
    assert len({drawn["basket_left"].hue_deg for drawn in baskets}) > 3


def test_patterns_are_for_furniture_alone() -> None:
    styles = draw_setting(task_of(1), 900_000, "textures").styles
    assert set(styles) == {ROOM, "cabinet", "basket_left", "basket_right"} and len(set(styles.values())) == 1
    drawn = {draw_setting(task_of(1), seed, "textures").styles[ROOM] for seed in range(60)}
    assert len(drawn) > 8 and Style() not in drawn


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown condition 'camra'; did you mean camera\?.*the arena has: plain"):
        draw_setting(task_of(4), 0, "camra")


ALL = dict.fromkeys(TRAINABLE, 1.0)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_training_data_vary_several_things_at_once(task: Task) -> None:
    """And there is room for all of it in every task."""
    for seed in range(48_000, 48_004):
        varied = vary(task, seed, ALL)
        assert plain_data(varied) == plain_data(vary(task, seed, ALL))
        before, now = plain_data(vary(task, seed, {})), plain_data(varied)
        assert before == plain_data(draw_setting(task, seed))
        changed = {name for name in now if now[name] != before[name]}
        assert changed == {"changed"}.union(*(CHANGES[name] for name in TRAINABLE))
        said = {"objects_m", "hues_deg", "distractors_m", "brightness", "camera_moved_m"}
        assert said <= set(varied.changed) and json.dumps(varied.changed)
        taken = [position[:2] for position, _ in varied.layout.objects.values()]
        stood = [position[:2] for position, _ in varied.distractors.values()]
        assert min(np.linalg.norm(one - other) for one in stood for other in taken) >= 0.12


def test_each_thing_varies_in_its_share_of_the_episodes() -> None:
    shares = {"lights": 0.25, "camera": 0.75}
    drawn = [vary(task_of(4), seed, shares) for seed in range(48_000, 48_400)]
    lit = [setting.lamps != Lamps() for setting in drawn]
    moved = [setting.view != View() for setting in drawn]
    assert 0.18 < np.mean(lit) < 0.32 and 0.68 < np.mean(moved) < 0.82
    assert 0.6 < np.mean(np.array(moved)[lit]) < 0.9, "whether one varies says nothing about the other"


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ({"textures": 0.5}, "textures is kept for evaluation: training data may vary positions, colours,"),
        ({"instructions": 0.5}, "instructions is kept for evaluation"),
        ({"lamps": 0.5}, "lamps is no condition"),
        ({"lights": 1.5}, r"lights: expected the share of episodes that it varies, in \[0, 1\], got 1.5"),
    ],
)
def test_what_training_data_may_not_vary_is_refused(shares: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        vary(task_of(4), 48_000, shares)
