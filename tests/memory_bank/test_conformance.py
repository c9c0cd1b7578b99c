"""The conformance checks find each fault, and none where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

import memory_bank.conformance as conformance
from memory_bank import MemoryConfig
from memory_bank.conformance import check_memory
from predimem.core.config import ConfigError
from tests.memory_bank import own_memories

FILE = Path(own_memories.__file__)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "LONG_STEPS", 1600)


def faults(place: str, **config: object) -> str:
    found = check_memory(MemoryConfig(implementation=place, **config))  # type: ignore[arg-type]
    return "\n".join(finding.fault for finding in found if finding.fault)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NewerThanTheWindow", "keyframes have to be older than the recent window"),
        ("NewestFirst", "has to be oldest first"),
        ("NoWindow", "the recent window has to be [0, 1]"),
        ("AnyOrder", "observe() took step 4 after step 4"),
        ("ShowsNothing", "returned MemorySnapshot before anything was observed"),
        ("PaintsOver", "shows something else by step"),
        ("Writeable", "can be written to"),
        ("Leaks", "an episode that follows another one differs"),
        ("Shares", "they share something"),
        ("ByTheClock", "observation.time_s, not from a clock"),
        ("ByChance", "randomness from a generator with a fixed seed"),
        ("KeepsAll", "something is kept of every step"),
        ("LooksBack", "ms late in"),
        ("FromZero", "raised IndexError"),
        ("Recalls", "set the attribute shows_sessions = True"),
        ("RecallsForEver", "an episode that follows one with earlier sessions differs"),
        ("OverCapacity", "keyframe_capacity is 1"),
    ],
)
def test_each_fault_is_found(name: str, said: str) -> None:
    assert said in faults(f"{FILE}:{name}", recent_window=2)


@pytest.mark.parametrize(
    "place",
    [
        "memory_bank:MemoryBank",
        f"{FILE}:Sound",
        f"{EXAMPLES}/every_few_seconds.py:EveryFewSeconds",
        f"{EXAMPLES}/novel_frames.py:NovelFrames",
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(place: str) -> None:
    assert faults(place, recent_window=3, recent_stride_steps=2) == ""


@pytest.mark.slow
def test_a_memory_with_earlier_sessions_keeps_the_contract() -> None:
    place = "memory_bank.retrieval:SessionMemory"
    assert faults(place, recent_window=2, options={"select": "uncapped"}) == ""
    assert faults(place, recent_window=2, options={"select": "last-n", "frames": 2, "shown_as": "keyframes"}) == ""


def test_what_is_no_memory_is_not_checked() -> None:
    with pytest.raises(ConfigError, match="has no method nominate and no snapshot"):
        list(check_memory(MemoryConfig(implementation=f"{FILE}:Half")))
