"""Run by an interpreter that has `tensorflow-datasets`: writes a small data set with the features of MIKASA-Robo-VLA's
RLDS release, in two files. tests/datagen/imports/rlds/ was made by

    python tests/datagen/imports/write_rlds.py tests/datagen/imports/rlds
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds
from released import FOLDER, INSTRUCTION, LENGTHS, PX, episode


class MikasaDataset(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        scalar = tfds.features.Scalar
        image = tfds.features.Image(shape=(PX, PX, 3), dtype=np.uint8, encoding_format="png")
        vector = tfds.features.Tensor(shape=(7,), dtype=np.float32)
        steps = {
            "observation": {"image": image, "wrist_image": image, "proprio": vector},
            "action": vector,
            "discount": scalar(np.float32),
            "reward": scalar(np.float32),
            "is_first": scalar(np.bool_),
            "is_last": scalar(np.bool_),
            "is_terminal": scalar(np.bool_),
            "language_instruction": tfds.features.Text(),
        }
        features = {"steps": tfds.features.Dataset(steps), "episode_metadata": {"file_path": tfds.features.Text()}}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for number, steps in enumerate(LENGTHS):
            made = episode(number)
            rows = [
                {
                    "observation": {name: made[name][t] for name in ("image", "wrist_image", "proprio")},
                    "action": made["action"][t],
                    "discount": 1.0,
                    "reward": float(t == steps - 1),
                    "is_first": t == 0,
                    "is_last": t == steps - 1,
                    "is_terminal": t == steps - 1,
                    "language_instruction": INSTRUCTION,
                }
                for t in range(steps)
            ]
            yield number, {"steps": rows, "episode_metadata": {"file_path": f"train_data_{number:06d}.npz"}}


def main(out: str) -> None:
    made = Path(out) / "made"
    builder = MikasaDataset(data_dir=made)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=2))
    shutil.move(str(made / "mikasa_dataset/1.0.0"), Path(out) / FOLDER / "1.0.0")
    shutil.rmtree(made)


if __name__ == "__main__":
    main(sys.argv[1])
