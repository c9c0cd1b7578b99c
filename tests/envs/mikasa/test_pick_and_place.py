"""Where GatherAndRecall's cubes are put, and what TakeItBack's subtasks point at."""

from __future__ import annotations

import numpy as np
import pytest

from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.gather_recall import GATHER_RECALL, PICK, PLACES_M, PRESSES, PUT
from predimem.envs.mikasa.families.motion import GRIPPER_CLOSED, GRIPPER_OPEN
from predimem.envs.mikasa.families.pick_place import CUBE_M, GRIPPER_RELEASE, pick, put
from predimem.envs.mikasa.families.take_it_back import BACK, FETCH, MIDDLES_M, TAKE_IT_BACK

HEIGHT_M = 0.026  # of a cube's centre on the disc
PLACES = np.array([[*offset, HEIGHT_M] for offset in PLACES_M])  # of a disc in the middle of the table


def carrying(at: tuple[float, float], *others: tuple[float, float, float], height_m: float = 0.15) -> State:
    """The first cube is held; `others` lie where they lie."""
    cubes = np.array([(*at, height_m), *others])
    upright = {"pointing": np.array([0.0, 0.0, -1.0]), "base_m": np.array([-0.615, 0.0, 0.0]), "turn_rad": 0.0}
    return {"tcp_m": cubes[0], "gripper_m": 0.04, "cubes_m": cubes, "places_m": PLACES, **upright}


def target_m(family: Family, state: State, subtask: str) -> tuple[float, ...]:
    target = family.target_m(state, subtask)
    assert target is not None
    return tuple(target)


def place_m(state: State) -> tuple[float, ...]:
    return target_m(GATHER_RECALL, state, PUT)


@pytest.mark.parametrize("at", [(0.2, 0.01), (0.0, -0.3), (-0.2, 0.3)])
def test_a_cube_goes_to_the_first_free_place_wherever_it_comes_from(at: tuple[float, float]) -> None:
    others: list[tuple[float, float, float]] = []
    for place in PLACES:
        assert place_m(carrying(at, *others)) == tuple(place)
        others.append((place[0], place[1], place[2]))


def test_near_a_place_it_is_put_down_where_it_is() -> None:
    assert place_m(carrying((0.01, 0.012))) == (0.01, 0.012, HEIGHT_M)
    assert place_m(carrying((0.034, 0.012))) == (0.0, 0.0, HEIGHT_M)  # too far from it
    beside = (0.049, 0.0, HEIGHT_M)
    assert place_m(carrying((0.018, 0.0), beside)) == (0.0, 0.0, HEIGHT_M)  # too near to a neighbour


def test_with_many_cubes_there_is_no_room_beside_the_places() -> None:
    others = [(0.3 + 0.1 * k, 0.3, 0.02) for k in range(5)]
    assert place_m(carrying((0.01, 0.012), *others)) == (0.0, 0.0, HEIGHT_M)


def test_a_cube_that_is_lifted_with_the_one_that_is_held_takes_no_place() -> None:
    assert place_m(carrying((0.0, 0.0), (0.0, 0.0, 0.11))) == (0.0, 0.0, HEIGHT_M)


def test_when_all_places_are_taken_the_farthest_from_any_cube_is_named() -> None:
    others = [(*offset + np.array([0.01, 0.0]) * (k != 4), HEIGHT_M) for k, offset in enumerate(PLACES_M)]
    others[7] = (PLACES_M[7][0] + 0.03, PLACES_M[7][1], HEIGHT_M)
    assert place_m(carrying((0.0, 0.0), *others)) == (*PLACES_M[7], HEIGHT_M)


def test_a_cube_is_let_go_where_it_lies_however_low_the_fingers_have_it() -> None:
    place_m, up_m = np.array([0.0, 0.0, HEIGHT_M]), np.array([0.0, 0.0, 0.015])
    tcp_m = place_m + 1.2 * up_m
    assert put(tcp_m, CUBE_M, place_m, tcp_m - up_m)[6] == np.float32(GRIPPER_RELEASE)
    centred = put(tcp_m, CUBE_M, place_m, tcp_m)
    assert centred[6] == GRIPPER_CLOSED and centred[2] < 0  # not down yet
    assert put(tcp_m, CUBE_M, place_m, tcp_m + up_m)[2] == centred[2]  # nor any lower than that


def test_fingers_close_around_a_cube_once_they_lie_along_its_sides() -> None:
    cube_m = np.array([0.1, 0.0, CUBE_M / 2])
    assert [pick(cube_m, 0.08, cube_m, turn)[6] for turn in (0.0, -0.3, 0.6)] == [
        GRIPPER_CLOSED,
        GRIPPER_CLOSED,
        GRIPPER_OPEN,
    ]
    stopped_at_corners = pick(cube_m, 0.055, cube_m, 0.7)
    assert stopped_at_corners[6] == GRIPPER_OPEN and not stopped_at_corners[:3].any()


def test_a_cube_that_is_held_is_held_on_until_the_next_subtask_is_told() -> None:
    held = carrying((0.05, 0.01), (0.0, 0.1, CUBE_M / 2)) | {"turns_rad": np.zeros(2), "there": np.zeros(2, bool)}
    assert GATHER_RECALL.valid(held, PICK) and GATHER_RECALL.valid(held, PUT)
    assert not any(GATHER_RECALL.valid(held, subtask) for subtask in PRESSES)
    assert target_m(GATHER_RECALL, held, PICK) == tuple(held["cubes_m"][0])
    action = GATHER_RECALL.act(held, PICK)
    assert action[6] == GRIPPER_CLOSED and not action[:6].any()


def test_after_a_cube_was_let_go_the_hand_rises() -> None:
    """A planner may say "put" for a while after that."""
    let_go = carrying((0.0, 0.07), height_m=HEIGHT_M) | {"gripper_m": 0.06}
    assert GATHER_RECALL.valid(let_go, PUT)
    up = GATHER_RECALL.act(let_go, PUT)
    assert up[2] > 0.5 and up[6] > 0 and not up[:2].any()
    assert not GATHER_RECALL.valid(let_go | {"tcp_m": np.array([0.3, 0.07, 0.1])}, PUT)
    assert not GATHER_RECALL.valid(let_go | {"gripper_m": 0.0}, PUT)


def test_a_subtask_of_take_it_back_points_at_the_cube_until_it_is_held() -> None:
    cube, target = np.array([0.1, 0.05, 0.02]), np.array([0.2, -0.1, 0.0])
    state: State = {"tcp_m": np.array([0.0, 0.0, 0.2]), "gripper_m": 0.08, "cube_m": cube, "target_m": target}
    held = state | {"tcp_m": cube + np.array([0.0, 0.0, 0.01]), "gripper_m": 0.04}
    for subtask in (FETCH, *BACK):
        assert target_m(TAKE_IT_BACK, state, subtask) == tuple(cube)
    assert target_m(TAKE_IT_BACK, held, FETCH) == tuple(target)
    for subtask, middle in zip(BACK, MIDDLES_M, strict=True):
        assert target_m(TAKE_IT_BACK, held, subtask) == (*middle, 0.0)
    assert TAKE_IT_BACK.target_m(state, "touch the red cube") is None
