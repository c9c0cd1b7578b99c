"""Run by an interpreter that has `lerobot`: reads a data set with it and writes what it saw to an .npz file."""

import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def main(root: str, out: str) -> None:
    dataset = LeRobotDataset("local/predimem", root=root, video_backend="pyav", return_uint8=True)
    items = [dataset[index] for index in range(len(dataset))]
    keys = [key for key in items[0] if key != "task"]
    columns = {key: np.stack([item[key].numpy() for item in items]) for key in keys}
    ahead = LeRobotDataset(
        "local/predimem", root=root, video_backend="pyav", episodes=[1], delta_timestamps={"action": [0.0, 0.05, 0.1]}
    )
    stats = {f"stats/{key}/{name}": v for key, values in dataset.meta.stats.items() for name, v in values.items()}
    np.savez(
        out,
        task=np.array([item["task"] for item in items]),
        ahead=np.stack([ahead[index]["action"].numpy() for index in range(len(ahead))]),
        ahead_is_pad=np.stack([ahead[index]["action_is_pad"].numpy() for index in range(len(ahead))]),
        episodes=np.array([dataset.num_episodes, dataset.num_frames, dataset.fps]),
        **columns,
        **stats,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
