"""Gives what robots see: the recorded episode of the tests, over and over, with no image twice."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

RECORDED = Path(__file__).resolve().parents[2] / "tests/golden/remember_color.npz"


class Views:
    """Observations that fit a server's metadata."""

    def __init__(self, told: dict[str, Any]):
        height, width = told["image_size"]
        with np.load(RECORDED) as data:
            recorded = [name for name in data.files if f"{name}_sizes" in data.files]
            self._images = {
                name: [
                    np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB").resize((width, height)))
                    for file in np.split(data[source], np.cumsum(data[f"{source}_sizes"])[:-1])
                ]
                for name, source in zip(told["cameras"], recorded, strict=True)
            }
            self._states = np.resize(data["state"], (len(data["state"]), told["state_dim"])).astype(np.float32)
        self._prompt = told["example_prompt"]

    def at(self, robot: int, step: int, turn: int = 0) -> dict[str, Any]:
        """The observation of a control step. A few values in a corner tell who, when and in which episode it was, so
        that the planner, which remembers what it has looked at, sees nothing twice."""
        place = step % len(self._states)
        mark = np.frombuffer(np.array([robot, step, turn], "<u4").tobytes(), np.uint8).reshape(4, 3)
        found: dict[str, Any] = {"state": self._states[place], "prompt": self._prompt}
        for name, images in self._images.items():
            found[name] = images[place].copy()
            found[name][0, :4] = mark
        return found
