"""How a tiny vision tower is pretrained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VisionConfig:
    """How the tower is pretrained, or whose tower is taken.

    directory: where the tower is kept, for all planners that share it.
    from_planner: the folder of an exported planner whose tower is taken as it is, or null. Nothing is pretrained then,
        `directory` holds features alone, and the other fields do not count.
    palette_size: how many colours the palette has.
    present_pixels: a colour counts as present in a cell from this many pixels on.
    spot_weight: the weight of which colours are present where in a cell, in its 4 x 4 spots. With 0 a tower need not
        know where in a cell a small thing is, as labels that name places ask.
    whiten: features get about the same variance in all directions (`vision_features.unit_scale`), so that the place of
        a token does not drown what differs between two scenes.
    steps, batch_size, learning_rate, seed: as usual.
    shift_pixels: frames are moved by up to this many pixels.
    max_frames: how many frames are used; they are drawn at random.
    save_steps: a checkpoint is written after every so many steps.
    step_weight: the weight of the readout of whole timesteps (`planner.tiny.vision_readout`), a training-only aid that
        needs labelled episodes. With 0 the tower learns from pixels alone.
    scenes: a folder of images of scenes with facts (`planner.tiny.vision_scenes`), another training-only aid; or null.
    scene_share: the share of each batch that shows these scenes.
    scene_weight: the weight of the readout of their facts.
    cell_weight: within that, the weight of what each cell tells by itself: which thing has its middle there. To learn
        small shapes it takes about 100, because most things are not in most cells.
    """

    directory: str = "runs/train/planner-vision"
    from_planner: str | None = None
    palette_size: int = 32
    present_pixels: int = 5
    spot_weight: float = 0.0
    whiten: bool = False
    steps: int = 900
    batch_size: int = 32
    learning_rate: float = 2e-3
    shift_pixels: int = 6
    max_frames: int = 6_000
    save_steps: int = 200
    seed: int = 0
    step_weight: float = 0.0
    scenes: str | None = None
    scene_share: float = 0.5
    scene_weight: float = 1.0
    cell_weight: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.scene_share < 1:
            raise ValueError(f"vision.scene_share is of each batch: expected in (0, 1), got {self.scene_share}")
