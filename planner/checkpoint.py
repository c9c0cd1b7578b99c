"""`predimem.json`: what a planner's weights were trained for, beside its Hugging Face files.

The runtime builds its memory bank and its prompts from this file, so that they cannot drift from the
training. The rest of the folder is a stock Qwen3-VL checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from planner.prompt import PromptConfig
from predimem.config import ConfigError, from_dict

FILE_NAME = "predimem.json"
FORMAT = "predimem-planner"
VERSION = 1


class PlannerCheckpointError(ValueError):
    """A planner folder that cannot be used: says what is missing or broken, and how to mend it."""


@dataclass(frozen=True)
class PlannerSpec:
    """prompt and memory: as in training. max_new_tokens: the longest answer decoded.
    training: where the weights come from (config, seed, figures), for the record."""

    prompt: PromptConfig = field(default_factory=PromptConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    max_new_tokens: int = 64
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prompt.recent_window != self.memory.recent_window:
            raise ValueError(
                f"the prompt says a window of {self.prompt.recent_window} timesteps and the memory keeps "
                f"{self.memory.recent_window}: they must be equal"
            )
        if self.prompt.keyframes != self.memory.keyframes:
            raise ValueError("prompt.keyframes and memory.keyframes must be equal")
        if self.prompt.past_subtasks != self.memory.past_subtasks:
            raise ValueError("prompt.past_subtasks and memory.past_subtasks must be equal")


def write_spec(folder: str | Path, spec: PlannerSpec) -> None:
    data = {"format": FORMAT, "version": VERSION, **asdict(spec)}
    (Path(folder) / FILE_NAME).write_text(json.dumps(data, indent=2) + "\n")


def read_spec(folder: str | Path) -> PlannerSpec:
    """Raises PlannerCheckpointError if the folder has no readable `predimem.json` of this version."""
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise PlannerCheckpointError(f"{path} not found: {folder} is no planner made by `predimem train planner`")
    try:
        data = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise PlannerCheckpointError(f"{path} is not JSON ({error}): export the planner again") from error
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise PlannerCheckpointError(f"{path} is not a {FORMAT} file: export the planner again")
    version = data.pop("version", None)
    if version != VERSION:
        raise PlannerCheckpointError(f"{path} has version {version}; this code reads {VERSION}")
    try:
        return from_dict(PlannerSpec, data, where=str(path))
    except (ConfigError, ValueError) as error:
        raise PlannerCheckpointError(f"{error}: export the planner again") from error
