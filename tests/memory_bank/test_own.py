"""A memory of a user's own: how it is named, made and hosted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory_bank import MemoryBank, MemoryConfig, RecentWindow, make_memory
from memory_bank.contract import MemoryFault, check_snapshot
from memory_bank.own import HostedMemory
from predimem.core.config import ConfigError, from_dict, load_config, merged
from predimem.core.types import Frame, MemorySnapshot, Observation
from tests.memory_bank import own_memories

ROOT = Path(__file__).parents[2]
FILE = Path(own_memories.__file__)
MODULE = "tests.memory_bank.own_memories"


def observation(step: int) -> Observation:
    return Observation(step, {"cam": np.full((4, 4, 3), step, np.uint8)}, np.zeros(2, np.float32), step / 20)


def hosted(name: str, steps: int = 50, **config) -> HostedMemory:
    memory = make_memory(MemoryConfig(implementation=f"{FILE}:{name}", **config))
    assert isinstance(memory, HostedMemory)
    memory.reset("episode", "do it")
    for step in range(steps):
        memory.observe(observation(step))
    return memory


def test_a_class_is_found_by_its_file_and_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (f"{FILE}:Sound", f"{MODULE}:Sound"):
        memory = make_memory(MemoryConfig(recent_window=2, implementation=place, options={"most": 1}))
        memory.reset("e", "do it")
        for step in range(50):
            memory.observe(observation(step))
        assert [frame.step for frame in memory.snapshot().keyframes] == [40]
        assert memory.keyframe_steps == (40,)
    monkeypatch.chdir(FILE.parent)
    config = MemoryConfig(implementation="own_memories.py:Sound")
    monkeypatch.chdir(tmp_path)
    assert config.implementation == f"{FILE}:Sound"
    (tmp_path / "in_the_working_directory.py").write_text(f"from {MODULE} import Sound\n")
    assert make_memory(MemoryConfig(implementation="in_the_working_directory:Sound"))


def test_in_yaml_one_word_names_the_class_and_leaves_the_rest_as_it_is(tmp_path: Path) -> None:
    assert merged({"memory": {"recent_window": 3}}, {"memory": "m:C"}) == {
        "memory": {"recent_window": 3, "implementation": "m:C"}
    }
    from planner.train import TrainConfig
    from predimem.agent.config import AgentConfig

    agent = from_dict(AgentConfig, {"planner": "p", "actor": "a", "memory": f"{FILE}:Sound"})
    assert agent.memory == {"implementation": f"{FILE}:Sound"}
    (tmp_path / "mine.yaml").write_text(f"extends: {ROOT}/configs/planner/tiny.yaml\nmemory: {MODULE}:Sound\n")
    recipe = load_config(TrainConfig, tmp_path / "mine.yaml")
    assert (recipe.memory.implementation, recipe.memory.recent_window) == (f"{MODULE}:Sound", 2)
    assert recipe.prompt.recent_window == 2


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("Sound", "expected file.py:NAME or package.module:NAME, got 'Sound'"),
        ("none.py:Sound", "there is no file .*none.py"),
        (f"{FILE}:Sond", "defines no 'Sond'; it defines: Sound, "),
        ("no_such_module:Sound", "there is no module 'no_such_module', neither installed nor in"),
        ("wrong.py:Sound", r"wrong.py, line 2: ZeroDivisionError"),
        ("torn.py:Sound", r"torn.py, line 1: "),
        ("needy.py:Sound", r"needy.py, line 1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("value.py:Sound", "expected a class, .* is of type int"),
        (f"{FILE}:Half", "has no method nominate and no snapshot"),
    ],
)
def test_what_cannot_be_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.py").write_text("ONE = 1\nONE / 0\n")
    Path("torn.py").write_text("class Sound(:\n")
    Path("needy.py").write_text("import nowhere_at_all\n")
    Path("value.py").write_text("Sound = 3\n")
    with pytest.raises(ConfigError, match=said):
        make_memory(MemoryConfig(implementation=place))


def test_options_that_the_class_does_not_take() -> None:
    with pytest.raises(ConfigError, match=r"takes \(config.*most.*unexpected keyword argument 'seconds'"):
        make_memory(MemoryConfig(implementation=f"{FILE}:Sound", options={"seconds": 3}))
    with pytest.raises(ValueError, match="options are for a class of your own"):
        MemoryConfig(options={"seconds": 3})


def test_images_are_handed_on_frozen_and_copied_once() -> None:
    memory = make_memory(MemoryConfig(recent_window=1, implementation=f"{FILE}:Sound"))
    memory.reset("e", "do it")
    source = observation(0)
    memory.observe(source)
    source.images["cam"][:] = 99
    image = memory.snapshot().recent[0].images["cam"]
    assert not image.any() and not image.flags.writeable
    memory.observe(observation(1))
    assert memory.snapshot().keyframes[0].images["cam"] is image


def test_a_snapshot_that_breaks_the_contract_never_reaches_the_planner() -> None:
    with pytest.raises(MemoryFault, match=re.escape("older than the recent window, which is (18, 19, 20)")):
        hosted("NewerThanTheWindow", 21, recent_window=3).snapshot()
    with pytest.raises(MemoryFault, match="oldest first"):
        hosted("NewestFirst", recent_window=1).snapshot()


def test_only_frames_from_before_the_episode_are_older_than_a_window_that_is_not_full() -> None:
    def snapshot(*steps: int) -> MemorySnapshot:
        return MemorySnapshot("e", 9, "do it", (Frame(9, 0.45, {}),), tuple(Frame(s, s / 20, {}) for s in steps))

    config = MemoryConfig(recent_window=3, recent_stride_steps=10, keyframe_capacity=1)
    assert check_snapshot(before := snapshot(-7, -2), config, "e", "do it", 9) is before
    with pytest.raises(MemoryFault, match=re.escape("which is (9,) (3 timesteps when it is full); they are (-7, 4)")):
        check_snapshot(snapshot(-7, 4), config, "e", "do it", 9)
    full = replace(snapshot(-7, 4, 5), recent=tuple(Frame(s, s / 20, {}) for s in (7, 8, 9)))
    with pytest.raises(MemoryFault, match="2 keyframes, memory: keyframe_capacity is 1"):
        check_snapshot(full, config, "e", "do it", 9)


def test_what_a_memory_leaves_out_has_defaults() -> None:
    memory = hosted("Sound", recent_window=1, past_subtasks=True)
    assert memory.keyframe_steps == ()  # of the last snapshot, and there was none
    for subtask in ("watch", "watch", "touch"):
        memory.note_subtask(subtask)
    assert memory.snapshot().past_subtasks == ("watch", "touch")
    assert memory.keyframe_steps == (0, 20, 40)
    with pytest.raises(ValueError, match="step 60 was nominated"):
        memory.nominate([60])
    memory.reset("next", "do it")
    memory.observe(observation(0))
    assert memory.snapshot().past_subtasks == () and memory.keyframe_steps == ()


def test_memories_are_made_in_one_place() -> None:
    """Everything else goes through `make_memory`, so that a memory of one's own works everywhere."""
    made = [
        str(path.relative_to(ROOT))
        for package in ("predimem", "planner", "actor", "datagen", "memory_bank")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bMemoryBank\(|\(MemoryBank\):", path.read_text())
    ]
    assert made == ["memory_bank/own.py"]
    assert isinstance(make_memory(), MemoryBank)


def test_a_window_hides_what_is_not_older() -> None:
    window = RecentWindow(MemoryConfig(recent_window=2, recent_stride_steps=3))
    frames = [window.add(observation(step)) for step in range(3)]
    assert window.older(frames) == ()  # it is not full yet
    frames += [window.add(observation(step)) for step in range(3, 6)]
    assert [frame.step for frame in window.frames()] == [2, 5]
    assert [frame.step for frame in window.older(frames)] == [0, 1]
