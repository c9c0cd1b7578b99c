"""Run by an interpreter that has `lerobot`: writes a small data set as MIKASA-Robo-VLA's converter does, through
LeRobot's own writer. tests/datagen/imports/lerobot/ was made with LeRobot 0.4.4 by

    python tests/datagen/imports/write_lerobot.py tests/datagen/imports/lerobot
"""

import sys
from pathlib import Path

from lerobot.datasets.lerobot_dataset import LeRobotDataset
from released import FOLDER, INSTRUCTION, LENGTHS, PX, episode


def main(out: str) -> None:
    image = {"dtype": "video", "shape": (PX, PX, 3), "names": ["height", "width", "channel"]}
    features = {
        "observation.images.top": image,
        "observation.state": {"dtype": "float32", "shape": (7,), "names": None},
        "action": {"dtype": "float32", "shape": (7,), "names": None},
        "observation.images.wrist": image,
    }
    dataset = LeRobotDataset.create(
        repo_id=f"local/{FOLDER}", root=Path(out) / FOLDER, fps=10, robot_type="mikasa_robo", features=features
    )
    for number, steps in enumerate(LENGTHS):
        made = episode(number)
        for t in range(steps):
            frame = {
                "observation.images.top": made["image"][t],
                "observation.images.wrist": made["wrist_image"][t],
                "observation.state": made["proprio"][t],
                "action": made["action"][t],
                "task": INSTRUCTION,
            }
            dataset.add_frame(frame)
        dataset.save_episode(parallel_encoding=False)
    dataset.finalize()


if __name__ == "__main__":
    main(sys.argv[1])
