"""The script of BunchOfColors, SeqOfColors and ChainOfColors."""

import itertools

import numpy as np
import pytest

from predimem.envs.mikasa.families.motion import moved
from predimem.envs.mikasa.families.touch_many import BUNCH, PRESS, SEQ, TOUCH_ABOVE_M, State, TouchMany
from predimem.envs.mikasa.suite import MikasaEnvironment

CUBE_M, STEP_M = np.array([0.05, -0.1, 0.02]), 0.001
TOUCH = "touch the red cube"


def state(tcp_m: np.ndarray) -> State:
    return {
        "step": 20,
        "appear_step": 10,
        "tcp_m": tcp_m,
        "labels": ("red cube",),
        "objects_m": CUBE_M[None],
        "button_m": CUBE_M + np.array([0.0, 0.2, 0.0]),
    }


@pytest.mark.parametrize(("subtask", "goal_m"), [(TOUCH, CUBE_M), (PRESS, state(CUBE_M)["button_m"])])
def test_a_millimetre_does_not_turn_the_arm_round(subtask: str, goal_m: np.ndarray) -> None:
    """Where it would, a learned actor stands still: it has learned both ways."""
    sides, heights = np.arange(0.0, 0.1, STEP_M), np.arange(0.02, 0.16, STEP_M)
    actions = np.array(
        [[SEQ.act(state(goal_m + np.array([side, 0.0, up])), subtask)[:3] for up in heights] for side in sides]
    )
    assert max(np.abs(np.diff(actions, axis=axis)).max() for axis in (0, 1)) < 0.25


def test_the_fingers_do_not_push_what_they_touch() -> None:
    for side, up in itertools.product((-0.08, -0.03, -0.022, 0.06), (0.03, 0.05, 0.12)):
        now, path = state(CUBE_M + np.array([side, 0.01, up])), []
        for _ in range(60):
            now = {**now, **moved(now, SEQ.act(now, TOUCH))}
            path.append(now["tcp_m"] - CUBE_M)
        assert np.linalg.norm(path[-1] - [0, 0, TOUCH_ABOVE_M]) < 0.01
        moving = np.diff(path, axis=0, prepend=[[side, 0.01, up]])
        low = np.array(path)[:, 2] < TOUCH_ABOVE_M + 0.01
        assert np.linalg.norm(moving[low, :2], axis=1).max(initial=0) < 0.008


@pytest.mark.parametrize(
    ("family", "touched", "right", "mistakes"),
    [
        (BUNCH, [2, 0], [0.5, 1.0], {}),  # in any order
        (BUNCH, [1, 0, 2], [0.0, 0.0, 0.0], {0: "touched the red cube; the teal cube was right"}),
        (BUNCH, [0, 2, 1], [0.5, 1.0, 1.0], {2: "touched the red cube; the button was right"}),
        (SEQ, [0, 2], [0.5, 1.0], {}),
        (SEQ, [2, 0], [0.0, 0.0], {0: "touched the olive cube; the teal cube was right"}),
    ],
)
def test_the_report_knows_which_touches_are_right(
    family: TouchMany, touched: list[int], right: list[float], mistakes: dict[int, str]
) -> None:
    report, labels = family.report(), ("teal cube", "red cube", "olive cube")
    seen = [
        report.update({"due": (0, 2), "labels": labels, "touched": tuple(touched[: count + 1]), "pushed": ()}, False)
        for count in range(len(touched))
    ]
    assert [info["right_touches"] for info in seen] == right
    assert {turn: info["mistake"] for turn, info in enumerate(seen) if "mistake" in info} == mistakes


@pytest.mark.needs("suite")
def test_a_cube_that_is_pushed_away_is_reported_once() -> None:
    import sapien

    environment = MikasaEnvironment("BunchOfColors3-VLA-v0", images=False)
    environment.reset(3000)
    while environment.true_state()["step"] < environment.true_state()["appear_step"] + 12:  # held still at first
        info = environment.step(environment.hold_action(None)).info
    assert not environment.true_state()["pushed"] and info["pushed_cube"] == 0
    cube = environment._env.unwrapped.cubes[2]
    cube.set_pose(sapien.Pose(p=cube.pose.sp.p + np.array([0.07, 0.0, 0.0])))
    mistakes = []
    for _ in range(3):
        info = environment.step(environment.hold_action(None)).info
        mistakes.append(info.get("mistake", ""))
    assert environment.true_state()["pushed"] == (2,) and info["pushed_cube"] == 1
    label = environment.true_state()["labels"][2]
    assert [text for text in mistakes if text] == [f"pushed the {label} away, so that the button does not count"]
    environment.close()
