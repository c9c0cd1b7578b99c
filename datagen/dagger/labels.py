"""The label of each control step: the subtask that a planner should have named, whatever it did name."""

from __future__ import annotations

from typing import Any

from datagen.dagger.low_level_policy import TrackedPolicy

LONGEST_STEPS = 80  # of the end of a motion, should an arm never come to rest


class SubtaskLabeller:
    """Follows one episode and tells the label of each control step.

    The label is the subtask that is due (`DueStage`), except that it stays the one before until the motion in which
    that was achieved has ended: a drawer counts as open while it is still being pulled, and the robot has yet to see
    what is in it. Demonstrations switch there, too. No subtask is left out: one that was passed together with the one
    before has one control step. The label goes back at once to a subtask that has come undone, and when that is done
    again, on to the one that is due then.

    index: of the subtask that is the label now.
    """

    def __init__(self, env: Any, policy: TrackedPolicy):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._env, self._policy = env, policy
        self._subtasks = env.variant().subtasks
        self._due, self._motion, self._left = 0, None, 0
        self._again = False  # a subtask that had come undone is due
        self.index = 0

    def label(self) -> int:
        """The index of the subtask that is the label; to be called once at every control step, before it."""
        due = min(self._env.due.stage, len(self._subtasks) - 1)
        if due < self._due:
            self.index, self._motion, self._again = due, None, True
        elif due > self._due:
            achieved = self._subtasks[self._due if self._again else due - 1]
            doing = self._policy.doing
            own = doing is not None and doing.motion == achieved.motion
            self._motion, self._left = self._policy.motion if own else None, LONGEST_STEPS
        self._due = due
        self._left -= 1
        ending = self._motion is not None and self._policy.motion == self._motion and self._left > 0
        if self._again:
            if self.index < due and not ending:
                self.index, self._again = due, self._env.due.again
        elif self.index < due - 1 or (self.index < due and not ending):
            self.index += 1
        return self.index
