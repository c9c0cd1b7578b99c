"""A server of openpi's protocol in a process of its own: `python -m tests.actor.openpi_server PORT`.

Its answer shows what it was asked: actions[k] = (k, red value of the first image, state[0], length of the prompt). A
red value of 100 takes long, 101 fails, 102 gives an answer without actions, and 103 one that is no number.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.server.openpi_loop import serve_policy

HORIZON = 50


class Shown:
    def infer(self, message: dict[str, Any]) -> dict[str, Any]:
        image, state = message["images"]["cam_high"], message["joints"]
        assert image.shape == (3, 28, 28) and image.dtype == np.uint8, f"image of shape {image.shape}"
        mark = int(image[0, 14, 14])
        if mark == 100:
            time.sleep(3.0)
        if mark == 101:
            raise KeyError("observation/wrist_image")
        if mark == 102:
            return {}
        row = [mark, state[0], len(message["prompt"])] if mark != 103 else [np.nan] * 3
        return {"actions": np.array([[k, *row] for k in range(HORIZON)], np.float64)}


if __name__ == "__main__":
    serve_policy(Shown(), {"reset_pose": [0.0]}, int(sys.argv[1]))
