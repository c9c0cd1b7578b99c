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
