"""A trained head: its networks, its weights on disk, and how it acts in many episodes side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from actor.memory_head.config import HeadConfig
from actor.memory_head.nets import GruHead, MemoryHead, Nominator, StackHead, parameters
from actor.memory_head.rows import RowLayout
from memory_bank import make_memory
from predimem.core.config import from_dict, to_dict
from predimem.core.files import AtomicWrite, write_json
from predimem.core.interfaces import FullMemory
from predimem.core.types import MemorySnapshot, Observation
from predimem.core.weight_files import WeightsError

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


@dataclass
class Head:
    """actions: how many there are. trained: what is known of the training, for `predimem eval` and for readers."""

    config: HeadConfig
    layout: RowLayout
    actions: int
    trained: dict[str, Any]

    def __post_init__(self) -> None:
        kinds = {"memory": MemoryHead, "stack": StackHead, "gru": GruHead}
        self.net: Any = kinds[self.config.kind](self.layout, self.actions, self.config)
        self.nominator = Nominator(self.layout, self.config.width) if self.config.nomination == "learned" else None

    @property
    def modules(self) -> torch.nn.ModuleDict:
        parts = {"net": self.net} if self.nominator is None else {"net": self.net, "nominator": self.nominator}
        return torch.nn.ModuleDict(parts)

    @property
    def parameters(self) -> int:
        return parameters(self.modules)

    def is_novel(self, snapshot: MemorySnapshot) -> bool:
        """Whether the newest frame of a snapshot differs from all others in it: the rule `novelty`."""
        newest = self.layout.of_frame(snapshot.recent[-1])
        others = [self.layout.of_frame(frame) for frame in (*snapshot.keyframes, *snapshot.recent[:-1])]
        return all(np.sqrt(np.mean((newest - other) ** 2)) > self.config.novelty for other in others)

    def save(self, folder: Path) -> None:
        with AtomicWrite(folder) as partial:
            partial.mkdir(parents=True)
            save_file(self.modules.state_dict(), partial / WEIGHTS_FILE)
            data = {
                "head": to_dict(self.config),
                "layout": to_dict(self.layout),
                "actions": self.actions,
                "trained": self.trained,
            }
            write_json(partial / CONFIG_FILE, data, indent=2)


def load_head(folder: Path) -> Head:
    """Raises WeightsError where the folder holds no head."""
    try:
        data = json.loads((folder / CONFIG_FILE).read_text())
        layout = from_dict(RowLayout, data["layout"], f"{folder}: layout")
        head = Head(from_dict(HeadConfig, data["head"], f"{folder}: head"), layout, data["actions"], data["trained"])
        head.modules.load_state_dict(load_file(folder / WEIGHTS_FILE))
    except (OSError, KeyError, ValueError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"{folder} holds no head that can be read: {error}") from error
    return head


class HeadPlayer:
    """Plays any number of episodes side by side, with a memory or a recurrent state for each."""

    def __init__(self, head: Head):
        self.head = head
        self._memories: dict[int, FullMemory] = {}
        self._states: dict[int, torch.Tensor] = {}

    def begin(self, episode: int, instruction: str = "", episode_id: str = "") -> None:
        self._states[episode] = torch.zeros(1, 1, self.head.config.width)
        if self.head.config.kind != "gru":
            self._memories.setdefault(episode, make_memory(self.head.config.memory)).reset(episode_id, instruction)

    def keyframe_steps(self, episode: int) -> tuple[int, ...]:
        return self._memories[episode].keyframe_steps if episode in self._memories else ()

    @torch.inference_mode()
    def act(self, observations: Mapping[int, Observation]) -> dict[int, np.ndarray]:
        """Episode -> scores, float32 [A], of the actions for the step that was observed."""
        episodes, layout = list(observations), self.head.layout
        if self.head.config.kind == "gru":
            rows = np.stack([layout.of_frame(observations[n]) for n in episodes])[:, None]
            states = torch.cat([self._states[n] for n in episodes], 1)
            logits, states = self.head.net(torch.from_numpy(rows), states)
            self._states.update((n, states[:, k : k + 1]) for k, n in enumerate(episodes))
            return dict(zip(episodes, logits[:, 0].numpy(), strict=True))
        snapshots = [self._observe(n, observations[n]) for n in episodes]
        length = self.head.config.memory.recent_window
        windows = torch.from_numpy(np.stack([layout.window(s, length) for s in snapshots]))
        if self.head.config.kind == "stack":
            logits = self.head.net(windows).logits
        else:
            self._nominate(episodes, snapshots, windows)
            logits = self.head.net(*self._inputs(windows, snapshots)).logits[:, 0]
        return dict(zip(episodes, logits.numpy(), strict=True))

    def _observe(self, episode: int, observation: Observation) -> MemorySnapshot:
        memory = self._memories[episode]
        memory.observe(observation)
        return memory.snapshot()

    def _nominate(self, episodes: list[int], snapshots: list[MemorySnapshot], windows: torch.Tensor) -> None:
        if self.head.nominator is not None:
            worth = (self.head.nominator(windows[:, :2]) > 0).tolist()
        else:
            worth = [self.head.config.nomination == "novelty" and self.head.is_novel(s) for s in snapshots]
        for episode, snapshot, is_worth in zip(episodes, snapshots, worth, strict=True):
            if is_worth:
                self._memories[episode].nominate((snapshot.step,))

    def _inputs(self, windows: torch.Tensor, snapshots: list[MemorySnapshot]) -> tuple[torch.Tensor, ...]:
        kept = [self.head.layout.keyframes(snapshot) for snapshot in snapshots]
        most = max(1, *(len(ages) for _, ages in kept))
        rows = np.zeros((len(kept), most, self.head.layout.width), np.float32)
        ages, there = np.zeros((len(kept), 1, most), np.int64), np.zeros((len(kept), 1, most), bool)
        for n, (of_frames, since) in enumerate(kept):
            rows[n, : len(since)], ages[n, 0, : len(since)], there[n, 0, : len(since)] = of_frames, since, True
        encoder = self.head.net.encoder
        tokens = encoder(torch.from_numpy(rows))
        return encoder(windows).unsqueeze(1), tokens, torch.from_numpy(ages), torch.from_numpy(there)
