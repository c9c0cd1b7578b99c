"""GatherAndRecall*: N cubes are put on a disc one by one, then the button is pressed whose colour a lamp showed.

What is seen: the cubes, the grey disc, a red, a green, and a blue button, and a lamp that is lit in one of these
colours for 8 to 14 steps, as soon as a certain number of cubes lies on the disc. What a learner must remember: the
first image in which the lamp is lit (`evidence`); when all cubes lie on the disc, it has long been dark. Which cube is
next, and that none is left, can be seen. A wrong button ends the episode.

The controller takes the cube that is nearest to the hand, and puts it on the first free place of a grid on the disc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import EpisodeReport, Family, State
from predimem.envs.mikasa.families.motion import GRIPPER_OPEN, hold
from predimem.envs.mikasa.families.pick_place import (
    CUBE_M,
    HELD_OPENING_M,
    carried,
    carry_goal_m,
    is_held,
    pick,
    pick_goal_m,
    put,
)
from predimem.envs.mikasa.families.posture import turn_to_rad, upright
from predimem.envs.mikasa.families.press import press, press_goal_m
from predimem.envs.mikasa.families.scene import BULB_M, pointing, position_m, robot_state

PICK, PUT = "pick up a cube", "put the cube on the disc"
COLOURS = ("red", "green", "blue")
PRESSES = tuple(f"press the {colour} button" for colour in COLOURS)

# From the disc's centre, in metres; along y the open fingers have to fit between cubes.
PLACES_M = np.array([(x, y) for x in (0.0, 0.05, -0.05) for y in (0.0, 0.07, -0.07)])
CLEAR_OF_M = np.array([0.035, 0.055])  # a place is taken by a cube that is nearer to it in x and in y
NEAR_PLACE_M = 0.035  # a cube that is carried as near to its place may be put down where it is ...
ROOMY_CUBES = 5  # ... while there are so few cubes that those put down beside their places leave room
BESIDE_DISC_M = 0.15  # from its centre
TURNS_ABOVE_M = 0.08  # while it carries a cube, the hand turns upright above this height


class GatherRecall(Family):
    """Its state has, beside `scene.robot_state`:

    pointing: float64 [3], where the fingers point; turn_rad: how far they have to turn to lie along the world's axes,
    as all cubes do at first; turns_rad: float64 [N], the same for each cube (`posture.turn_to_rad`);
    cubes_m: float64 [N, 3]; there: bool [N], whether each lies on the disc; places_m: float64 [9, 3], where cubes are
    put; tops_m: float64 [3, 3], the tops of the unpressed buttons; lamp_m: float64 [3], the bulb; all in the world
    frame. flash: whether the lamp is lit; colour, pressed: int, indices of `COLOURS` (pressed: -1 before).
    """

    name = "GatherAndRecall"
    tasks = tuple(f"GatherAndRecall{n}-VLA-v0" for n in (1, 3, 5, 7, 9))

    def state(self, base: Any, step: int) -> dict[str, Any]:
        cubes = np.array([position_m(cube) for cube in base.cubes])
        disc = np.asarray(base.disc_xy[0].cpu(), np.float64)
        height = 2 * base.DISC_HALF_HEIGHT + base.CUBE_HALF_SIZE
        since = step - int(base.flash_start_step[0])
        top = float(base.button_top_z[0])
        return robot_state(base, step) | {
            "pointing": pointing(base),
            "turn_rad": turn_to_rad(base),
            "turns_rad": np.array([turn_to_rad(base, cube) for cube in base.cubes]),
            "cubes_m": cubes,
            "there": np.linalg.norm(cubes[:, :2] - disc, axis=1) < base.DISC_ON_THRESH,
            "places_m": np.array([[*(disc + offset), height] for offset in PLACES_M]),
            "tops_m": np.array([[*xy, top] for xy in np.asarray(base.buttons_xy[:, 0].cpu(), np.float64)]),
            "lamp_m": np.asarray(base.lamp_visible_pos[0].cpu(), np.float64) + BULB_M,
            "flash": bool(base.flash_triggered[0]) and 0 <= since < int(base.flash_duration[0]),
            "colour": int(base.flash_color[0]),
            "pressed": int(base.pressed_button[0]),
        }

    def subtask(self, state: State) -> str:
        if _held(state) is not None:
            return PUT
        return PRESSES[state["colour"]] if state["there"].all() else PICK

    def subtasks(self, task: str) -> Sequence[str]:
        return (PICK, PUT, *PRESSES)

    def goal(self, state: State) -> str:
        return PRESSES[state["colour"]]

    def act(self, state: State, subtask: str) -> np.ndarray:
        tcp, gripper = state["tcp_m"], state["gripper_m"]
        if subtask == PICK and (cube := _next(state)) is not None:
            turn = state["turns_rad"][cube]
            return upright(pick(tcp, gripper, state["cubes_m"][cube], turn), state, turn)
        if subtask == PUT:
            action = put(tcp, gripper, _place_m(state), state["cubes_m"][_carried(state)])
            # low over the disc, a cube that was set down on another one has to be able to slip off
            return upright(action, state, state["turn_rad"]) if tcp[2] > TURNS_ABOVE_M else action
        if subtask in PRESSES:  # with open fingers: closing, they would take up again the cube that was put down last
            action = press(tcp, state["tops_m"][PRESSES.index(subtask)], GRIPPER_OPEN)
            return upright(action, state, state["turn_rad"])
        return hold()

    def valid(self, state: State, subtask: str) -> bool:
        if subtask == PUT:  # a planner says so for a while after the cube has been let go: then the hand rises
            return _held(state) is not None or _has_let_go(state)
        if _held(state) is not None:  # nor is the next subtask told at once where a cube has been picked up
            return subtask == PICK
        return subtask == PICK if not state["there"].all() else subtask in PRESSES

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        if subtask == PICK:
            cube = _next(state)
            return None if cube is None else state["cubes_m"][cube]
        if subtask == PUT:
            return _place_m(state)
        return state["tops_m"][PRESSES.index(subtask)] if subtask in PRESSES else None

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        tcp, target = state["tcp_m"], self.target_m(state, subtask)
        if target is None:
            return None
        if subtask == PUT:
            return carry_goal_m(tcp, target, state["cubes_m"][_carried(state)])
        return (pick_goal_m if subtask == PICK else press_goal_m)(tcp, target)

    def advance(self, state: State, action: np.ndarray) -> State:
        cubes = state["cubes_m"].copy()
        cube = _carried(state)
        after, cubes[cube] = carried(state, action, cubes[cube])
        return {**state, **after, "cubes_m": cubes}

    def evidence(self, state: State) -> str:
        return "lit lamp" if state["flash"] else ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        lamp = f"{COLOURS[state['colour']]} lamp" if state["flash"] else "dark lamp"
        buttons = {f"{colour} button": top for colour, top in zip(COLOURS, state["tops_m"], strict=True)}
        return {lamp: state["lamp_m"], "disc": state["places_m"][0], **buttons}

    def report(self) -> EpisodeReport:
        return Gathered()


def _held(state: State) -> int | None:
    for index, cube in enumerate(state["cubes_m"]):
        if is_held(state["tcp_m"], state["gripper_m"], cube):
            return index
    return None


def _has_let_go(state: State) -> bool:
    """Whether the hand is open over the disc or beside it."""
    away_m = np.linalg.norm((state["tcp_m"] - state["places_m"][0])[:2])
    return state["gripper_m"] > HELD_OPENING_M[1] and bool(away_m < BESIDE_DISC_M)


def _carried(state: State) -> int:
    """The cube that is held if any is."""
    return int(np.argmin(np.linalg.norm(state["cubes_m"] - state["tcp_m"], axis=1)))


def _next(state: State) -> int | None:
    """The cube that is held, else that nearest to the hand (in x and y) of those that are not on the disc yet."""
    held = _held(state)
    if held is not None or state["there"].all():
        return held
    distances = np.linalg.norm((state["cubes_m"] - state["tcp_m"])[:, :2], axis=1)
    return int(np.argmin(np.where(state["there"], np.inf, distances)))


def _place_m(state: State) -> np.ndarray:
    """float64 [3]: where the cube that is carried is put: the first free place, or below it if that is about the same.

    The nearest free place would be another one after a small turn of the way, and a learner aimed between the two. If
    all places are taken, it is the one that is farthest from any cube on the disc.
    """
    cube = state["cubes_m"][_carried(state)]
    places = state["places_m"]
    others = np.delete(state["cubes_m"], _carried(state), axis=0)
    others = others[others[:, 2] < places[0, 2] + CUBE_M]  # one that is lifted with the first takes no place
    free = places[[_is_free(place, others) for place in places]]
    if not len(free):
        away = [np.linalg.norm((others - place)[:, :2], axis=1).min() for place in places]
        return places[int(np.argmax(away))]
    below = np.array([*cube[:2], places[0, 2]])
    roomy = len(state["cubes_m"]) <= ROOMY_CUBES and np.linalg.norm((free[0] - cube)[:2]) < NEAR_PLACE_M
    return below if roomy and _is_free(below, others) else free[0]


def _is_free(place_m: np.ndarray, others_m: np.ndarray) -> bool:
    return not (np.abs((others_m - place_m)[:, :2]) < CLEAR_OF_M).all(1).any()


class Gathered(EpisodeReport):
    """How many cubes lie on the disc."""

    def update(self, state: State, success_now: bool) -> Mapping[str, float | str | bool]:
        """`cubes_on_disc`; `mistake` at the step at which a wrong button is pressed, which ends the episode."""
        report: dict[str, float | str | bool] = {"cubes_on_disc": float(state["there"].sum())}
        pressed, colour = state["pressed"], state["colour"]
        if pressed not in (-1, colour):
            report["mistake"] = f"pressed the {COLOURS[pressed]} button; the lamp had been {COLOURS[colour]}"
        return report


GATHER_RECALL = GatherRecall()
