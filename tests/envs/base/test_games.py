"""The diagnostic environments that are written from their papers: their rules, their teachers, and what chance gets."""

from __future__ import annotations

import numpy as np
import pytest

from predimem.core.interfaces import Environment
from predimem.envs.base import tasks
from predimem.envs.base.game import CAMERA, Game, GameEnvironment, Solved
from predimem.envs.base.memory_length import MemoryLength
from predimem.envs.base.numpad import DOWN, LEFT, RIGHT, UP, Numpad
from predimem.envs.base.tmaze import TMaze
from predimem.envs.base.visual_match import CHOICE_STEPS, COLOURS, CUE_STEPS, VisualMatch
from predimem.envs.benchmark import EnvironmentRequest, load_benchmark

OWN = tasks.all_tasks()


def play(environment: GameEnvironment, seed: int, teacher: bool) -> bool:
    environment.reset(seed)
    random = np.random.default_rng(seed)
    while True:
        right = environment.game.solve() if teacher and isinstance(environment.game, Solved) else None
        draw = random.uniform(-1, 1, environment.action_dim)
        result = environment.step(draw if right is None else environment.scores(right))
        if result.terminated or result.truncated:
            return result.success


@pytest.mark.parametrize("task", OWN)
def test_the_teacher_always_succeeds(task: str) -> None:
    environment = load_benchmark("base").make_environment(task, None, EnvironmentRequest())
    assert isinstance(environment, Environment) and isinstance(environment, GameEnvironment)
    assert all(play(environment, seed, teacher=True) for seed in range(5))


@pytest.mark.parametrize(
    ("task", "low", "high"), [("TMaze10", 0, 0), ("MemoryLength10", 0.3, 0.7), ("Numpad3x3-4", 0, 0.1)]
)
def test_without_memory_chance_decides(task: str, low: float, high: float) -> None:
    environment = GameEnvironment(task, tasks.make_game(task))
    assert low <= np.mean([play(environment, seed, teacher=False) for seed in range(60)]) <= high


@pytest.mark.parametrize("task", ["TMaze10", "MemoryLength10", "VisualMatch10", "Numpad3x3-4"])
def test_a_seed_gives_an_episode(task: str) -> None:
    def steps(seed: int) -> list[tuple[list[float], list[int]]]:
        environment, random = GameEnvironment(task, tasks.make_game(task)), np.random.default_rng(0)
        seen = [environment.reset(seed)]
        while True:
            result = environment.step(random.uniform(-1, 1, environment.action_dim))
            seen.append(result.observation)
            if result.terminated or result.truncated:
                return [(o.state.tolist(), o.images.get(CAMERA, np.zeros(0)).ravel().tolist()) for o in seen]

    assert steps(3) == steps(3)
    assert any(steps(seed) != steps(3) for seed in range(4, 12))


def vectors(game: Game, seed: int, actions: list[int]) -> list[list[float]]:
    return [game.reset(seed).vector.tolist(), *(game.step(action).seen.vector.tolist() for action in actions)]


def test_the_maze_shows_its_goal_once_and_forgives_nothing() -> None:
    right, up, left, _ = range(4)
    seen = vectors(TMaze(3), 0, [right, right, right])
    assert seen[0] in ([0, 1], [0, -1]) and seen[1:] == [[0, 0], [0, 0], [1, 0]]
    game = TMaze(3)
    goal = game.reset(0).vector[1]
    turns = [game.step(action) for action in (right, right, right, 1 if goal > 0 else 3)]
    assert [turn.done for turn in turns] == [False, False, False, True]
    assert turns[-1].success and turns[-1].reward == 1 and turns[-1].seen.vector.tolist() == [1, goal]
    game.reset(0)
    late = [game.step(action) for action in (up, right, right, right)]  # it walked into a wall
    assert not late[-1].success and [turn.reward for turn in late] == [-0.1, -0.1, -0.1, 0]
    game.reset(0)
    assert game.step(left).seen.vector.tolist() == [0, 0], "the goal is not shown again at the beginning"


def test_memory_length_asks_for_a_bit_at_the_end() -> None:
    game = MemoryLength(4, bits=3)
    first = game.reset(5).vector
    assert first[0] == 1 and set(first[2:].tolist()) <= {-1, 1}
    later = [game.step(0).seen.vector for _ in range(4)]
    assert [vector[0] for vector in later] == [0.75, 0.5, 0.25, 0] and not np.any([v[2:] for v in later])
    asked = int(later[-1][1])
    turn = game.step(int(first[2 + asked] > 0))
    assert turn.done and turn.success and turn.reward == 1


def test_visual_match_hides_the_colour_while_apples_grow() -> None:
    game = VisualMatch(delay=20)
    cue = game.reset(1).image
    assert cue is not None and cue.shape == (5, 5, 3)
    colour = cue[1, 1].tolist()
    assert colour in COLOURS.tolist()
    images = [game.step(0).seen.image for _ in range(CUE_STEPS + 19)]
    shown = [colour in np.asarray(image).reshape(-1, 3).tolist() for image in images]
    assert all(shown[: CUE_STEPS - 1]) and not any(shown[CUE_STEPS - 1 :])
    assert game.horizon == CUE_STEPS + 20 + CHOICE_STEPS


def test_numpad_lights_the_path_up_and_resets_it() -> None:
    game = Numpad(3, 3)
    game.reset(0)
    game._path, game._at = [(0, 0), (0, 1), (1, 1)], (1, 0)  # a path that is known here
    rewards = [game.step(action).reward for action in (UP, RIGHT, RIGHT)]  # (0, 0), (0, 1), and (0, 2), which is wrong
    assert rewards == [1, 1, 0] and not game._seen().vector[9:].any()
    rewards = [game.step(action).reward for action in (LEFT, LEFT, RIGHT, DOWN)]
    assert rewards == [0, 1, 1, 1] and game._rounds == 1 and not game._seen().vector[9:].any()


def test_actions_are_chosen_by_the_highest_score() -> None:
    environment = GameEnvironment("TMaze3", TMaze(3))
    environment.reset(0)
    environment.step(np.array([0.1, -1, 0, 0]))
    assert environment.game._x == 1  # type: ignore[attr-defined]
    environment.step(environment.hold_action(None))
    assert environment.game._x == 0  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="TMaze3: expected 4 finite numbers"):
        environment.step(np.zeros(3))


@pytest.mark.parametrize("task", ["TMaze", "TMaze0", "TMaze1000000", "MemoryLength-v0", "popgym-RepeatFirst"])
def test_unknown_tasks_are_refused(task: str) -> None:
    with pytest.raises(ValueError, match=r"base: unknown task .*; there are TMaze<delay>"):
        tasks.check_task(task)


def test_any_delay_can_be_played() -> None:
    assert tasks.make_game("TMaze77").horizon == 78 and tasks.describe("TMaze77").startswith("go down a corridor of 77")
    assert tasks.family_name("popgym-RepeatFirstHard-v0") == "popgym-RepeatFirst"
    assert tasks.family_name("MiniGrid-MemoryS17Random-v0") == "MiniGrid-Memory"
