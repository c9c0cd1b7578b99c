"""Run by an interpreter that has `lerobot`: reads a data set with it and writes what it saw to an .npz file."""

import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

LANGUAGE = ("language_persistent", "language_events")


def main(root: str, out: str) -> None:
    dataset = LeRobotDataset("local/predimem", root=root, video_backend="pyav")
    items = [dataset[index] for index in range(len(dataset))]
    keys = [key for key in items[0] if key not in ("task", "subtask", *LANGUAGE)]
    columns = {key: np.stack([item[key].numpy() for item in items]) for key in keys}
    images = {key: np.rint(columns[key] * 255).astype(np.uint8) for key in keys if key.startswith("observation.images")}
    ahead = LeRobotDataset(
        "local/predimem", root=root, video_backend="pyav", episodes=[1], delta_timestamps={"action": [0.0, 0.05, 0.1]}
    )
    stats = {f"stats/{key}/{name}": v for key, values in dataset.meta.stats.items() for name, v in values.items()}
    names = {f"names/{key}": np.array(dataset.meta.features[key]["names"]) for key in ("observation.state", "action")}
    np.savez(
        out,
        task=np.array([item["task"] for item in items]),
        subtask=np.array([subtask(item) for item in items]),
        ahead=np.stack([ahead[index]["action"].numpy() for index in range(len(ahead))]),
        ahead_is_pad=np.stack([ahead[index]["action_is_pad"].numpy() for index in range(len(ahead))]),
        episodes=np.array([dataset.num_episodes, dataset.num_frames, dataset.fps]),
        **columns | images | stats | names,
    )


def subtask(item: dict) -> str:
    """The subtask as this LeRobot resolves it; "" where it does not."""
    if LANGUAGE[0] in item:
        from lerobot.datasets.language_render import active_at

        return active_at(item["timestamp"].item(), persistent=item[LANGUAGE[0]], style="subtask")["content"]
    return item.get("subtask", "")


if __name__ == "__main__":
    main(*sys.argv[1:])
