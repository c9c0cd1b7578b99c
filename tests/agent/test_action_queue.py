import numpy as np
import pytest

from predimem.agent.action_queue import ActionQueue
from predimem.core.types import ActionChunk


def chunk(start: int, length: int = 4, subtask: str = "a") -> ActionChunk:
    return ActionChunk(start, np.arange(start, start + length, dtype=np.float32)[:, None], subtask)


def test_actions_are_indexed_by_step():
    queue = ActionQueue()
    assert queue.pop(0) is None and queue.remaining(0) == 0
    queue.merge(chunk(3), now=3)
    action, subtask = queue.pop(5)
    assert float(action[0]) == 5.0 and subtask == "a"
    assert (queue.remaining(5), queue.executed(5)) == (2, 2)
    assert queue.pop(7) is None


def test_a_late_chunk_loses_the_steps_that_have_passed():
    queue = ActionQueue()
    queue.merge(chunk(0), now=0)
    queue.merge(chunk(2, subtask="b"), now=4)
    action, subtask = queue.pop(4)
    assert float(action[0]) == 4.0 and subtask == "b"
    queue.merge(chunk(0), now=9)
    assert queue.pop(9) is None


def test_wrong_chunks_are_refused():
    with pytest.raises(ValueError, match=r"\[H, A\]"):
        ActionQueue().merge(ActionChunk(0, np.zeros(3, np.float32), "a"), now=0)
    with pytest.raises(ValueError, match="after now"):
        ActionQueue().merge(chunk(5), now=4)
