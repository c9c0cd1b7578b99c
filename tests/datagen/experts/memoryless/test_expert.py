"""Experts without memory do their subtasks in physics, and labels say where the gripper will be."""

import numpy as np
import pytest

from datagen.experts.memoryless.advice import Advice, rise, stay, towards
from datagen.experts.memoryless.drawer import handle_m
from datagen.experts.memoryless.expert import advise, fetches, target_m
from datagen.experts.memoryless.hold import grasped_width_m, gripping, holding, jammed
from datagen.experts.memoryless.pick_place import occupied
from datagen.experts.scripted.action_labels import REACHED_SHARE, action_of, advance, chunk
from datagen.experts.scripted.known_grasp import known_grasp
from datagen.experts.scripted.snapshot import OPEN_GAP_M, Gripper, Snapshot
from predimem.envs.arena.predicates import Held
from predimem.envs.arena.robot.arm import CLOSED, OPEN
from predimem.envs.arena.robot.delta_pose import Driver
from predimem.envs.arena.robot.rotations import FLIP, UP, angle_between_rad, rotation_matrix, top_down
from predimem.envs.arena.scene.environment import ArenaEnv
from predimem.envs.arena.subtasks import Skill, Subtask, close_joint, open_joint, pick
from tests.datagen.experts import arena

STEPS, AFTER_STEPS = 200, 10  # a drawer counts as open long before it is open wide enough to be filled
UP_ADVICE = Advice(np.array([0.0, 0.0, 0.01]), np.zeros(3), CLOSED)


def do(env: ArenaEnv, driver: Driver, subtask: Subtask) -> bool:
    left = STEPS
    while left:
        driver.step(action_of(advise(driver.arm, Gripper.of(driver.arm), Snapshot.of(env), subtask)))
        done = bool(subtask.done(env.world())[0])
        left = min(left, AFTER_STEPS + 1) - 1 if done else left - 1
    return bool(subtask.done(env.world())[0])


def over(scene: Snapshot, driver: Driver, object: str) -> Gripper:
    grasp = scene.grasp(driver.arm, object)
    assert grasp is not None
    return Gripper(*grasp, gap_m=0.08)


@pytest.mark.slow
def test_they_fill_and_shut_a_drawer() -> None:
    env = arena(14, 1000)
    driver = Driver(env)
    for subtask in env.variant().subtasks[:4]:
        assert do(env, driver, subtask), subtask.label
    env.close()


@pytest.mark.slow
def test_they_fill_and_shut_the_microwave() -> None:
    env = arena(23, 1001)
    driver = Driver(env)
    for subtask in env.variant().subtasks:
        assert do(env, driver, subtask), subtask.label
    env.close()


@pytest.mark.slow
def test_they_pour_once_a_loop() -> None:
    """Twice round makes two pours: what is tilted low and comes back high needs no memory of how often."""
    env = arena(10, 1000)
    driver = Driver(env)
    first, second = env.variant().subtasks[1:3]
    assert do(env, driver, env.variant().subtasks[0])
    for subtask, pours in ((first, 1), (second, 2)):
        assert do(env, driver, subtask), subtask.label
        assert int(env.progress.pours[0]) == pours and not env.failure()
    env.close()


def test_what_is_carried_fast_stays_in_the_gripper() -> None:
    """In the roll-out the fingers stop at what they hold, however far a step carries it."""
    env = arena(2, 1000)
    driver = Driver(env)
    scene = Snapshot.of(env)
    gripper = over(scene, driver, "butter")
    gripper.gap_m = grasped_width_m(gripper, scene, "butter")
    sideways = Advice(np.array([0.011, 0.0, 0.011]), np.zeros(3), CLOSED)
    for _ in range(10):
        gripper = advance(gripper, scene, sideways)
        assert holding(gripper, scene, "butter")
    env.close()


def test_a_box_that_is_held_by_its_corners_is_held() -> None:
    """Fingers that have closed on a pudding 45 degrees askew stay 6.5 cm apart, which is wider than its side."""
    env = arena(20, 1000)
    driver = Driver(env)
    scene = Snapshot.of(env)
    gripper = over(scene, driver, "chocolate_pudding")
    gripper.rotation = (
        rotation_matrix(np.array([0.0, 0.0, np.pi / 4])) @ scene.rotation("chocolate_pudding") @ np.diag((1, -1, -1))
    )
    gripper.gap_m = 0.065
    assert holding(gripper, scene, "chocolate_pudding")
    for gap_m in (0.070, OPEN_GAP_M):  # letting go
        gripper.gap_m = gap_m
        assert not holding(gripper, scene, "chocolate_pudding")
    env.close()


@pytest.mark.parametrize("task", [5, 25])  # it lies on the table, and on a plate
def test_a_box_that_is_stuck_between_open_fingers_is_freed_and_picked(task: int) -> None:
    """Butter by its corners, 8.2 cm apart: it hangs between the fingers though they are open."""
    env = arena(task, 1000)
    driver = Driver(env)

    def step(advice: Advice) -> tuple[Gripper, Snapshot]:
        driver.step(action_of(advice))
        return Gripper.of(driver.arm), Snapshot.of(env)

    gripper, scene = Gripper.of(driver.arm), Snapshot.of(env)
    butter = scene.position_m("butter")
    diagonal = top_down(float(np.arctan2(*scene.rotation("butter")[1::-1, 1])) + np.radians(28.0))
    diagonal = min((diagonal, diagonal @ FLIP), key=lambda way: angle_between_rad(way, gripper.rotation))
    for above_m in (0.15, 0.0):
        for _ in range(80):
            gripper, scene = step(towards(gripper, butter + above_m * UP, diagonal, OPEN))
    for command in (CLOSED, OPEN):
        for _ in range(8):
            gripper, scene = step(stay(command))
    for _ in range(30):
        gripper, scene = step(rise(gripper, 0.25, OPEN))
    assert scene.position_m("butter")[2] > 0.15 and jammed(gripper, scene, "butter"), "it hangs there"
    assert occupied(gripper, scene, "butter")
    assert do(env, driver, pick("pick butter", "butter"))
    env.close()


def test_a_missed_object_is_picked_all_the_same() -> None:
    env = arena(2, 1000)
    driver = Driver(env)
    for _ in range(6):  # in the air, away from everything
        driver.step(action_of(Advice(np.zeros(3), np.zeros(3), CLOSED)))
    assert driver.arm.finger_gap_m < 0.005
    assert do(env, driver, pick("pick butter", "butter"))
    env.close()


def test_a_chunk_tells_where_the_gripper_will_be() -> None:
    """The roll-out without physics, against physics, over 16 steps of one chunk that is played as it is."""
    env = arena(2, 1001)
    driver = Driver(env)
    scene, gripper = Snapshot.of(env), Gripper.of(driver.arm)
    before = scene.position_m("butter").copy()
    actions = chunk(driver.arm, gripper, scene, pick("pick butter", "butter"), 16)
    assert actions.shape == (16, 7) and actions.dtype == np.float32 and np.abs(actions).max() <= 1
    np.testing.assert_array_equal(scene.position_m("butter"), before)
    started = gripper.position.copy()
    for action in actions:
        driver.step(action)
        gripper = gripper.moved(0.1 * REACHED_SHARE * action[:3].astype(float), np.zeros(3))
    assert np.linalg.norm(gripper.position - started) > 0.1
    np.testing.assert_allclose(driver.arm.true_position, gripper.position, atol=0.015)  # turning at the same time
    env.close()


def test_the_driver_moves_as_the_arena_does() -> None:
    """Its joint targets and ManiSkill's own inverse kinematics, by the same actions."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.4, 0.4, (12, 7)) * np.r_[np.ones(6), 1]
    ends = []
    for mode in ("pd_joint_pos", "pd_ee_delta_pose"):
        env = arena(2, 1002, mode)
        driver = Driver(env) if mode == "pd_joint_pos" else None
        for action in actions:
            action[6] = OPEN
            if driver is not None:
                driver.step(action)
            else:
                env.step(action.astype(np.float32))
        ends.append(env.proprioception()[:10])
        env.close()
    np.testing.assert_allclose(ends[0][:3], ends[1][:3], atol=0.006)
    np.testing.assert_allclose(ends[0][3:9], ends[1][3:9], atol=0.03)


def test_what_is_held_pulled_and_pushed_moves_along() -> None:
    env = arena(4, 1000)
    driver = Driver(env)
    scene = Snapshot.of(env)
    gripper = over(scene, driver, "butter")
    for _ in range(4):
        gripper = advance(gripper, scene, Advice(np.zeros(3), np.zeros(3), CLOSED))
    assert gripper.gap_m == pytest.approx(grasped_width_m(gripper, scene, "butter")) and holding(
        gripper, scene, "butter"
    )
    height = scene.position_m("butter")[2]
    for _ in range(10):
        gripper = advance(gripper, scene, UP_ADVICE)
    assert scene.position_m("butter")[2] == pytest.approx(height + 0.1)
    gripper = advance(gripper, scene, Advice(np.zeros(3), np.zeros(3), OPEN))
    assert not holding(gripper, scene, "butter")

    pulling = Gripper(handle_m(scene, "top_drawer"), driver.arm.rest_rotation, 0.016)
    for _ in range(5):
        pulling = advance(pulling, scene, Advice(np.array([-0.01, 0.0, 0.0]), np.zeros(3), CLOSED))
    assert scene.opening("top_drawer") == pytest.approx(0.05)
    np.testing.assert_allclose(pulling.position, handle_m(scene, "top_drawer"), atol=1e-6)

    pushing = Gripper(handle_m(scene, "top_drawer") - [0.02, 0.0, 0.0], driver.arm.rest_rotation, 0.0)
    for _ in range(8):
        pushing = advance(pushing, scene, Advice(np.array([0.01, 0.0, 0.0]), np.zeros(3), CLOSED))
    assert scene.opening("top_drawer") == pytest.approx(0.0, abs=1e-6)
    env.close()


def test_things_in_a_drawer_move_with_it() -> None:
    env = arena(4, 1000)
    scene = Snapshot.of(env)
    drawer = env.variant().start["cookies"]
    before, butter = scene.position_m("cookies").copy(), scene.position_m("butter").copy()
    scene.slide(drawer, 0.1)
    np.testing.assert_allclose(scene.position_m("cookies"), before - [0.1, 0.0, 0.0])
    np.testing.assert_allclose(scene.position_m("butter"), butter)
    env.close()


def test_targets() -> None:
    env = arena(4, 1000)
    arm, scene = Driver(env).arm, Snapshot.of(env)
    gripper, butter = Gripper.of(arm), scene.position_m("butter").copy()
    np.testing.assert_allclose(target_m(gripper, scene, pick("", "butter")), butter)
    door = scene.position_m("microwave")
    assert np.linalg.norm(target_m(gripper, scene, open_joint("", "microwave")) - door) < 0.25
    scene.openings["microwave"] = 1.6  # swung open: to the robot's right
    assert target_m(gripper, scene, close_joint("", "microwave"))[1] < door[1] - 0.15
    assert not bool(Held("butter")(env.world())[0])
    env.close()


def test_what_is_to_be_placed_or_poured_from_is_looked_for_until_it_is_held() -> None:
    env = arena(4, 1000)
    arm, scene = Driver(env).arm, Snapshot.of(env)
    gripper, butter = Gripper.of(arm), scene.position_m("butter").copy()
    placing = next(s for s in env.variant().subtasks if s.skill is Skill.PLACE)
    np.testing.assert_allclose(target_m(gripper, scene, placing), butter)
    assert fetches(gripper, scene, placing) and not fetches(gripper, scene, pick("", "butter"))
    grasp = scene.grasp(arm, "butter")
    assert grasp is not None
    position, rotation = grasp
    holds = Gripper(position, rotation, 0.0)
    holds = Gripper(position, rotation, grasped_width_m(holds, scene, "butter"))
    assert holding(holds, scene, "butter")
    assert not fetches(holds, scene, placing)
    slot = target_m(holds, scene, placing)
    assert slot[0] > butter[0] + 0.1, "in the drawer"
    scene.carry("butter", holds, holds.moved(slot + 0.02 * UP - butter, np.zeros(3)))
    np.testing.assert_allclose(target_m(gripper, scene, placing), slot, atol=0.01)
    assert not fetches(gripper, scene, placing), "it has been placed"
    env.close()

    env = arena(10, 1000)
    scene, gripper = Snapshot.of(env), Gripper.of(Driver(env).arm)
    pouring = next(s for s in env.variant().subtasks if s.skill is Skill.POUR)
    assert fetches(gripper, scene, pouring)
    np.testing.assert_allclose(target_m(gripper, scene, pouring), scene.position_m(pouring.object))
    env.close()


def test_an_action_turns_the_way_it_is_advised() -> None:
    env = arena(2, 1003)
    driver = Driver(env)
    start = driver.arm.true_rotation
    for _ in range(10):
        driver.step(action_of(Advice(np.zeros(3), np.array([0.0, 0.0, 0.03]), OPEN)))
    turned = driver.arm.true_rotation
    assert angle_between_rad(start, turned) == pytest.approx(0.3, abs=0.03)
    axis = turned @ start.T
    assert axis[1, 0] > 0.2  # about +z of the world
    env.close()


@pytest.mark.parametrize("task", [1, 7, 18])
def test_a_quarter_turn_goes_the_same_way_from_either_side(task: int) -> None:
    """Both ways of closing the fingers are as near there: labels to and fro would teach not to turn."""
    env = arena(task, 1000)
    driver = Driver(env)
    scene, subtask = Snapshot.of(env), env.variant().subtasks[0]
    above = over(scene, driver, subtask.object)
    turns = [
        float(advise(driver.arm, above.moved(0.2 * UP, yaw_rad * UP), scene, subtask).turn_rad[2])
        for yaw_rad in (1.45, 1.65, -1.65, -1.45, 0.8, -0.8)
    ]
    assert turns[0] * turns[1] > 0 and turns[2] * turns[3] > 0
    assert turns[4] < 0 < turns[5]
    env.close()


@pytest.mark.slow
def test_fingers_close_across_the_narrow_side() -> None:
    """The scripted skills also take the long one; a learned actor that is a few millimetres off jams there."""
    wide = []
    for seed in range(20_000, 20_008):
        env = arena(20, seed)
        arm, known = Driver(env).arm, Snapshot.of(env)
        grasp, scripted = known.grasp(arm, "cookies"), known_grasp(arm, known, "cookies")
        assert grasp is not None and scripted is not None
        along = [np.abs(known.rotation("cookies").T @ rotation[:, 1]) for _, rotation in (grasp, scripted)]
        assert along[0].argmax() == 0  # 4.8 of 6.8 cm
        wide.append(along[1].argmax() == 1)
        env.close()
    assert any(wide)


def test_a_drawer_that_was_shut_with_its_bar_between_the_fingers_stays_shut() -> None:
    """They are around it where a planner names the closing as soon as the drawer is open."""
    env = arena(4, 1000)
    driver = Driver(env)

    def follow(subtask: Subtask) -> float:
        driver.step(action_of(advise(driver.arm, Gripper.of(driver.arm), Snapshot.of(env), subtask)))
        return float(env.world().joint[subtask.target][0])

    first = env.variant().subtasks[0]
    assert first.skill is Skill.OPEN
    while not bool(first.done(env.world())[0]):
        follow(first)
    assert gripping(Gripper.of(driver.arm), handle_m(Snapshot.of(env), first.target), 0.02)
    closing = close_joint("", first.target)
    while not bool(closing.done(env.world())[0]):
        follow(closing)
    assert max(follow(closing) for _ in range(60)) < 0.005
    assert Gripper.of(driver.arm).gap_m < 0.005, "nothing between the fingers"
    env.close()
