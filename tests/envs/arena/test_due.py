"""Which subtask is due when an earlier one has come undone. The world is moved by hand, without physics."""

from __future__ import annotations

import torch

from predimem.envs.arena.due import STILL_STEPS, DueStage
from predimem.envs.arena.fixtures import DOOR
from predimem.envs.arena.predicates import DOOR_OPEN_RAD
from predimem.envs.arena.progress import Progress
from predimem.envs.arena.tasks import task_of
from predimem.envs.arena.variant import Variant
from tests.envs.arena.worlds import Scene

OPEN_DOOR, PICK_COOKIES, PLACE_COOKIES, PICK_POPCORN, PLACE_POPCORN, CLOSE_DOOR = range(6)


class ByHand:
    """What `DueStage` reads of an environment, for one world that is moved by hand: task 24, the microwave."""

    num_envs = 1
    waiting = visited = False
    elapsed_steps = torch.tensor([0])

    def __init__(self, task: int = 24):
        self.task = task_of(task)
        self.progress = Progress.fresh(1)
        self.progress.reset(torch.tensor([0]), torch.tensor([0]))
        self.scene = Scene(self.task, 1)
        self.due = DueStage(self)

    def variant(self) -> Variant:
        return self.task.variants[0]

    def step(self, steps: int = 1) -> int:
        for _ in range(steps):
            self._step()
        return self.due.stage

    def _step(self) -> None:
        world = self.scene.world(self.progress.pours)
        self.progress.advance(self.task, world)
        self.due.look(world)

    def with_cookies_in(self) -> ByHand:
        self.scene.joint(0, DOOR, 1.6)
        assert self.step() == PICK_COOKIES
        self.scene.hold(0, "cookies")
        assert self.step() == PLACE_COOKIES
        self.put_cookies()
        assert self.step() == PICK_POPCORN
        return self

    def put_cookies(self) -> None:
        self.scene.put(0, "cookies", "microwave_left")


def test_what_fell_out_is_due_again_until_it_has_been_let_go_of() -> None:
    played = ByHand().with_cookies_in()
    played.scene.lay(0, "cookies")
    assert played.step(STILL_STEPS - 1) == PICK_POPCORN
    assert played.step() == PICK_COOKIES and played.due.again
    played.scene.hold(0, "cookies")
    assert played.step() == PLACE_COOKIES
    played.put_cookies()
    played.scene.grip(0, "cookies")
    assert played.step() == PLACE_COOKIES, "inside, and still in the gripper"
    played.put_cookies()
    assert played.step() == PICK_POPCORN and not played.due.again


def test_what_is_in_the_gripper_is_put_where_it_belongs_first() -> None:
    played = ByHand().with_cookies_in()
    played.scene.hold(0, "popcorn")
    assert played.step() == PLACE_POPCORN
    played.scene.lay(0, "cookies")
    assert played.step(2 * STILL_STEPS) == PLACE_POPCORN
    played.scene.put(0, "popcorn", "microwave_left")
    played.scene.grip(0, "popcorn")
    assert played.step() == PLACE_POPCORN, "it is low, and not let go of"
    played.scene.put(0, "popcorn", "microwave_left")
    assert played.step() == PICK_COOKIES
    assert int(played.progress.stage[0]) == CLOSE_DOOR
    played.put_cookies()
    assert played.step() == CLOSE_DOOR


def test_a_door_that_was_shut_since_is_opened_first() -> None:
    played = ByHand().with_cookies_in()
    played.scene.lay(0, "cookies")
    played.scene.joint(0, DOOR, DOOR_OPEN_RAD - 0.1)
    assert played.step(STILL_STEPS + 1) == PICK_COOKIES, "it is open enough"
    played.scene.hold(0, "cookies")
    played.scene.joint(0, DOOR, 0.6)
    assert played.step() == OPEN_DOOR
    played.scene.joint(0, DOOR, DOOR_OPEN_RAD - 0.1)
    assert played.step() == OPEN_DOOR, "once it is being opened, all the way"
    played.scene.joint(0, DOOR, DOOR_OPEN_RAD)
    assert played.step() == PLACE_COOKIES, "it is in the gripper"


def test_what_is_still_moving_is_not_due() -> None:
    played = ByHand().with_cookies_in()
    played.scene.lay(0, "cookies", speed_m_s=0.3)
    assert played.step(2 * STILL_STEPS) == PICK_POPCORN
    played.put_cookies()
    assert played.step(2 * STILL_STEPS) == PICK_POPCORN, "it came back by itself"


def test_a_drawer_that_was_pulled_open_again_is_closed_unless_it_has_to_be_opened_later() -> None:
    """Task 4 opens the top drawer again, and no other."""
    played = ByHand(4)
    for opening in ("top_drawer", "middle_drawer"):
        for opened_m in (0.18, 0.0):
            played.scene.joint(0, opening, opened_m)
            played.step()
    assert played.due.stage == 4
    played.scene.joint(0, "top_drawer", 0.1)
    assert played.step(2 * STILL_STEPS) == 4
    played.scene.joint(0, "middle_drawer", 0.1)
    assert played.step(2 * STILL_STEPS) == 3
    played.scene.joint(0, "middle_drawer", 0.0)
    assert played.step() == 4


def test_what_was_dropped_is_picked_up_first() -> None:
    played = ByHand()
    played.scene.joint(0, DOOR, 1.6)
    played.step()
    played.scene.hold(0, "cookies")
    assert played.step() == PLACE_COOKIES
    played.scene.lay(0, "cookies")
    assert played.step(STILL_STEPS - 1) == PLACE_COOKIES
    assert played.step() == PICK_COOKIES and played.due.again
    played.scene.grip(0, "cookies")
    assert played.step() == PICK_COOKIES, "between the fingers, and not lifted"
    played.scene.hold(0, "cookies")
    assert played.step() == PLACE_COOKIES and not played.due.again


def test_what_lies_where_it_belongs_is_not_picked_up_again() -> None:
    played = ByHand().with_cookies_in()
    played.scene.hold(0, "popcorn")
    assert played.step() == PLACE_POPCORN
    played.scene.put(0, "popcorn", "microwave_left")
    played.scene.grip(0, "popcorn")
    assert played.step(2 * STILL_STEPS) == PLACE_POPCORN, "the gripper has yet to leave it"


def test_a_bottle_that_was_put_down_before_it_was_poured_is_picked_up_again() -> None:
    played = ByHand(16)
    played.scene.hold(0, "milk")
    assert played.step() == 1
    played.scene.lay(0, "milk")
    assert played.step(STILL_STEPS) == 0
    played.scene.hold(0, "milk")
    assert played.step() == 1
