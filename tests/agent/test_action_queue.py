import numpy as np
import pytest

from predimem.agent.action_queue import ActionQueue
from predimem.core.types import ActionChunk


def chunk(start: int, length: int = 4, subtask: str = "a") -> ActionChunk:
    return ActionChunk(start, np.arange(start, start + length, dtype=np.float32)[:, None], subtask)


def test_actions_are_indexed_by_step():
    queue = ActionQueue()
    assert queue.action_at(0) is None and queue.remaining(0) == 0
    queue.replace_from(3, chunk(3))
    action, subtask = queue.action_at(5)
    assert float(action[0]) == 5.0 and subtask == "a"
    assert (queue.remaining(5), queue.executed(5)) == (2, 2)
    assert queue.action_at(7) is None


def test_a_late_chunk_loses_the_steps_that_have_passed():
    queue = ActionQueue()
    queue.replace_from(0, chunk(0))
    queue.replace_from(4, chunk(2, subtask="b"))
    action, subtask = queue.action_at(4)
    assert float(action[0]) == 4.0 and subtask == "b"
    queue.replace_from(9, chunk(0))
    assert queue.action_at(9) is None


def test_wrong_chunks_are_refused():
    with pytest.raises(ValueError, match=r"\[H, A\]"):
        ActionQueue().replace_from(0, ActionChunk(0, np.zeros(3, np.float32), "a"))
    with pytest.raises(ValueError, match="after now"):
        ActionQueue().replace_from(4, chunk(5))


def test_a_chunk_can_lose_what_was_executed_and_not_what_has_passed():
    queue = ActionQueue()
    queue.replace_by_consumed(3, chunk(0))  # nothing was executed: the robot was held
    assert queue.action_at(3)[0] == [0.0] and queue.remaining(3) == 4
    assert (queue.consumed(0, 9), queue.consumed(4, 6), queue.consumed(0, 3)) == (4, 2, 0)
    assert [a[0] for a in queue.queued(5)] == [2.0, 3.0] and len(queue.queued(9)) == 0
    queue.replace_by_consumed(9, chunk(5))  # of the steps 5 to 8 two had an action, then the robot was held
    assert queue.action_at(9)[0] == [7.0]
    queue.clear()
    assert queue.consumed(0, 9) == 0 and len(queue.queued(0)) == 0
