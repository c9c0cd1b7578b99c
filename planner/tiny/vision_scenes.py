"""A training-only aid for a tiny vision tower: it learns facts of scenes.

The facts say where objects and mats are, what is in the gripper and what is open. Data from DAgger shows few layouts,
and a tower learns them by heart. Images of scenes (`predimem datagen` with `kind: vision_data`) show many layouts,
with facts, which all merged features of a timestep together have to tell. The readout is thrown away afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from planner.crop import Crop, cropped
from predimem.core.episodes import Episode
from predimem.core.scene_facts import SceneFacts

UNKNOWN = -100  # what cross-entropy leaves out
POSITION_WEIGHT, OPENING_WEIGHT, SEEN_WEIGHT = 10.0, 5.0, 0.5  # of errors in fractions, and of easy yes or no
FOUND_WEIGHT = 4.0  # most things are not in most cells


@dataclass(frozen=True, eq=False)
class SceneLabels:
    """The facts of N timesteps with C cameras, up to O objects and J joints.

    Numbers are indices into the tuples of names. `objects` and `mats` begin with "", which stands for none.

    cameras: C.
    objects, places, mats: all names that there are.
    object: int64 [N, O], the objects of each timestep; 0 pads.
    place: int64 [N, O], where each object is; `UNKNOWN` for what no camera sees.
    pixels: float32 [N, O, C, 2], where each camera sees it, in fractions of the image; NaN where it does not.
    mat: int64 [N], the mat that is seen, or 0.
    mat_pixels: float32 [N, C, 2], where each camera sees the mat.
    held: int64 [N], the object in the gripper, or 0.
    openings: float32 [N, J], how far drawers and doors are open.
    """

    cameras: int
    objects: tuple[str, ...]
    places: tuple[str, ...]
    mats: tuple[str, ...]
    object: Tensor
    place: Tensor
    pixels: Tensor
    mat: Tensor
    mat_pixels: Tensor
    held: Tensor
    openings: Tensor

    def __len__(self) -> int:
        return len(self.held)

    @property
    def seen(self) -> Tensor:
        """bool [N, O, C]"""
        return ~self.pixels[..., 0].isnan()


@dataclass(frozen=True, eq=False)
class Scenes:
    """Images of scenes with their facts.

    images: uint8 [N C, H, W, 3]; the cameras of a timestep are adjacent.
    labels: the facts of the N timesteps.
    """

    images: np.ndarray
    labels: SceneLabels

    def every(self, stride: int) -> Scenes:
        """These scenes with only every `stride`-th timestep."""
        known = self.labels
        cameras = known.cameras
        rows = np.arange(0, len(known), stride)
        parts = {name: value[rows] for name, value in vars(known).items() if isinstance(value, Tensor)}
        return Scenes(self.images[(rows[:, None] * cameras + np.arange(cameras)).ravel()], replace(known, **parts))


def scenes_of(
    episodes: Sequence[Episode],
    cameras: Sequence[str],
    known: SceneLabels | None = None,
    crop: Crop | None = None,
) -> Scenes:
    """All frames of episodes with facts: the steps at which images were taken, which the facts are about.

    known: labels whose numbering is taken over, as held-out scenes use that of training.
    crop: as `PromptConfig.crop`; what lies outside is not seen.

    Raises ValueError for episodes without facts or with facts about other steps, for things that `known` does not
    number, and for a crop that gives cameras images of different sizes.
    """
    crop = crop or {}
    facts = [_cropped_facts(_facts(episode), list(episode.images), crop) for episode in episodes]
    columns = [list(episodes[0].images).index(camera) for camera in cameras]
    if known is None:
        objects = ("", *sorted({name for f in facts for name in f.objects}))
        places = tuple(sorted({name for f in facts for row in f.places for name in row}))
        mats = ("", *sorted({name for f in facts for name in f.mats} - {""}))
    else:
        objects, places, mats = known.objects, known.places, known.mats
    most, steps = max(len(f.objects) for f in facts), sum(len(f) for f in facts)
    object, place = torch.zeros(steps, most, dtype=torch.long), torch.full((steps, most), UNKNOWN)
    pixels = torch.full((steps, most, len(cameras), 2), torch.nan)
    row = 0
    for f in facts:
        for t in range(len(f)):
            for k, name in enumerate(f.objects):
                object[row, k] = objects.index(name)
                pixels[row, k] = torch.from_numpy(f.pixels[t, k, columns])
                if not np.isnan(f.pixels[t, k, columns]).all():
                    place[row, k] = places.index(f.places[t][k])
            row += 1
    mat_pixels = torch.from_numpy(np.concatenate([f.mat_pixels[:, columns] for f in facts]))
    shown = ~mat_pixels[..., 0].isnan().all(1)
    sizes = {camera: cropped(episodes[0].images[camera][0], camera, crop).shape for camera in cameras}
    size = sizes[cameras[0]]
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{height} x {width} px of {camera}" for camera, (height, width, _) in sizes.items())
        raise ValueError(f"vision.scenes needs images of one size, and prompt.crop leaves {shown}")
    images = np.empty((steps * len(cameras), *size), np.uint8)
    at = 0
    for episode in episodes:
        taken = np.flatnonzero(episode.image_steps)
        end = at + len(taken) * len(cameras)
        for c, camera in enumerate(cameras):
            views = episode.images[camera][taken]
            images[at + c : end : len(cameras)] = [cropped(view, camera, crop) for view in views]
        at = end
    labels = SceneLabels(
        len(cameras),
        objects,
        places,
        mats,
        object,
        place,
        pixels,
        torch.tensor([mats.index(name) for f in facts for name in f.mats]) * shown,
        mat_pixels,
        torch.tensor([objects.index(name) for f in facts for name in f.held]),
        torch.from_numpy(np.concatenate([f.openings for f in facts])),
    )
    return Scenes(images, labels)


def _facts(episode: Episode) -> SceneFacts:
    where = f"{episode.task} seed {episode.seed}"
    facts, taken = SceneFacts.of_metadata(episode.metadata, where), int(episode.image_steps.sum())
    if len(facts) != taken:
        raise ValueError(f"{where} has images of {taken} steps and facts about {len(facts)}")
    return facts


def _cropped_facts(facts: SceneFacts, cameras: Sequence[str], crop: Crop) -> SceneFacts:
    """The facts about the parts of the images that are shown."""
    pixels, mat_pixels = facts.pixels.copy(), facts.mat_pixels.copy()
    for camera, (left, top, right, bottom) in crop.items():
        c = cameras.index(camera)
        for places in (pixels[:, :, c], mat_pixels[:, c]):
            places[...] = (places - [left, top]) / [right - left, bottom - top]
            places[((places < 0) | (places >= 1)).any(-1)] = np.nan
    return replace(facts, pixels=pixels, mat_pixels=mat_pixels)


class SceneReadout(nn.Module):
    """Reads the facts off all merged features of a timestep; those of an object are asked for by its number.

    Besides, it reads off the features of each single cell whether the middle of a thing is in it, and where. What is
    learnt of one place then holds in all places.

    width: the size of one merger's features.
    levels: how many mergers there are.
    grid: how many rows and columns of cells an image has.
    """

    def __init__(self, width: int, levels: int, grid: tuple[int, int], labels: SceneLabels, hidden: int = 256):
        super().__init__()
        cameras, joints, cells = labels.cameras, labels.openings.shape[1], math.prod(grid)
        features, self._shape = width * levels * cells * cameras, (levels, cameras, cells, width)
        self.grid = grid
        self.in_cell = nn.Sequential(
            nn.Linear(levels * width, hidden // 2), nn.GELU(), nn.Linear(hidden // 2, 3 * len(labels.objects))
        )
        self.hidden = nn.Sequential(nn.Linear(features, hidden), nn.GELU())
        self.object = nn.Embedding(len(labels.objects), hidden)
        self.of_object = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU())
        self.place = nn.Linear(hidden, len(labels.places))
        self.seen = nn.Linear(hidden, cameras)
        self.pixels = nn.Linear(hidden, 2 * cameras)
        self.mat, self.mat_pixels = nn.Linear(hidden, len(labels.mats)), nn.Linear(hidden, 2 * cameras)
        self.held, self.openings = nn.Linear(hidden, len(labels.objects)), nn.Linear(hidden, joints)

    def forward(self, features: Tensor, object: Tensor) -> dict[str, Tensor]:
        """Logits by name; positions and openings as they are. features: [B, F]; object: int64 [B, O].

        in_cell: [B, C, cells, K, 3], for each object, and for the mat in the place of object 0: a logit, and (u, v)
            in the cell.
        """
        hidden = self.hidden(features)
        asked = self.of_object(hidden[:, None] * (1 + self.object(object)))
        cameras = self.seen.out_features
        tokens = features.unflatten(1, self._shape).permute(0, 2, 3, 1, 4).flatten(3)
        return {
            "in_cell": self.in_cell(tokens).unflatten(-1, (-1, 3)),
            "place": self.place(asked),
            "seen": self.seen(asked),
            "pixels": self.pixels(asked).unflatten(-1, (cameras, 2)),
            "mat": self.mat(hidden),
            "mat_pixels": self.mat_pixels(hidden).unflatten(-1, (cameras, 2)),
            "held": self.held(hidden),
            "openings": self.openings(hidden),
        }

    def loss(
        self, features: Tensor, labels: SceneLabels, index: Tensor, cell_weight: float, moved: Tensor | None = None
    ) -> Tensor:
        """The loss of the timesteps `index`, int64 [B], with the features [B, F].

        cell_weight: how much finding things in single cells counts.
        moved: [B, C, 2], how far the images were shifted, in fractions of their size.
        """
        object = labels.object[index]
        said, real = self(features, object), object > 0
        pixels, mat_pixels = labels.pixels[index], labels.mat_pixels[index]
        if moved is not None:
            pixels, mat_pixels = pixels + moved[:, None], mat_pixels + moved
        seen = labels.seen[index].float()
        where = _by_name(object, pixels, mat_pixels, len(labels.objects))
        found, placed = _cell_errors(said["in_cell"], where, self.grid)
        return (
            cell_weight * found
            + placed
            + F.cross_entropy(said["place"].flatten(0, 1), labels.place[index].flatten(), ignore_index=UNKNOWN)
            + SEEN_WEIGHT * F.binary_cross_entropy_with_logits(said["seen"][real], seen[real])
            + POSITION_WEIGHT * _known_error(said["pixels"], pixels)
            + F.cross_entropy(said["mat"], labels.mat[index])
            + POSITION_WEIGHT * _known_error(said["mat_pixels"], mat_pixels)
            + F.cross_entropy(said["held"], labels.held[index])
            + OPENING_WEIGHT * F.mse_loss(said["openings"], labels.openings[index])
        )


@torch.no_grad()
def scene_report(readout: SceneReadout, features: Tensor, labels: SceneLabels) -> dict[str, Any]:
    """Accuracies on held-out scenes; errors of positions are in image sides, those of openings in the whole way.

    in_cell: of the things that are seen, those whose own cell names them before all others.

    features: [N, F] of all timesteps.
    """
    said = readout(features, labels.object)
    known, place = labels.place != UNKNOWN, labels.place
    right = said["place"].argmax(-1) == place
    by_place = {
        name: [round(float(right[place == i].float().mean()), 3), int((place == i).sum())]
        for i, name in enumerate(labels.places)
        if bool((place == i).any())
    }
    mat, marked = said["mat"].argmax(-1) == labels.mat, labels.mat > 0
    real = labels.object > 0
    position = (said["pixels"] - labels.pixels).abs()
    where = _by_name(labels.object, labels.pixels, labels.mat_pixels, len(labels.objects))
    return {
        "timesteps": len(labels),
        "place": _mean(right[known]),
        "mat_where_seen": _mean(mat[marked]),
        "mat": _mean(mat),
        "held": _mean(said["held"].argmax(-1) == labels.held),
        "held_where_something_is": _mean((said["held"].argmax(-1) == labels.held)[labels.held > 0]),
        "in_cell": _mean(_named_first(said["in_cell"], where, readout.grid)),
        "seen": _mean(((said["seen"] > 0) == labels.seen)[real]),
        "position_error": _mean(position[~position.isnan()]),
        "opening_error": _mean((said["openings"] - labels.openings).abs()),
        "by_place": by_place,
    }


def _by_name(object: Tensor, pixels: Tensor, mat_pixels: Tensor, names: int) -> Tensor:
    """[B, C, K, 2]: where each camera sees each thing, by its number; the mat's number is 0."""
    cameras = pixels.shape[2]
    where = torch.full((len(object), cameras, names, 2), torch.nan)
    where.scatter_(2, object[:, None, :, None].expand(-1, cameras, -1, 2), pixels.transpose(1, 2))
    where[:, :, 0] = mat_pixels  # padding is object 0 as well
    return where


def _in_cells(where: Tensor, grid: tuple[int, int]) -> Tensor:
    """Places in the unit of cells: (column, row). where: [..., 2], (u, v) in fractions of the image; NaN is outside."""
    rows, columns = grid
    return where.nan_to_num(-1.0) * torch.tensor([columns, rows])


def _inside(where: Tensor, grid: tuple[int, int]) -> Tensor:
    """bool [B, C, cells, K]: whether the middle of a thing is in a cell. where: as in `_cell_errors`."""
    rows, columns = grid
    column, row = _in_cells(where, grid).floor()[:, :, None].unbind(-1)
    cell = torch.arange(rows * columns)[:, None]
    return (row == cell // columns) & (column == cell % columns)


def _cell_errors(said: Tensor, where: Tensor, grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Of whether things are in cells, and of where in them.

    said: [B, C, cells, K, 3]; where: [B, C, K, 2], fractions of the image, NaN where a thing is not seen.
    """
    inside = _inside(where, grid)
    scaled = _in_cells(where, grid)
    offset = (scaled - scaled.floor())[:, :, None].expand(-1, -1, said.shape[2], -1, -1)
    known = inside[..., None].expand_as(offset)
    found = F.binary_cross_entropy_with_logits(
        said[..., 0], inside.float(), pos_weight=torch.tensor(FOUND_WEIGHT), reduction="mean"
    )
    return found, ((said[..., 1:] - offset) ** 2 * known).sum() / known.sum().clamp(min=1)


def _named_first(said: Tensor, where: Tensor, grid: tuple[int, int]) -> Tensor:
    """bool [things]: for each thing that is seen, whether its cell names it first. As in `_cell_errors`."""
    inside = _inside(where, grid)
    inside[..., 0] = False  # the mat
    return (said[..., 1:, 0].argmax(-1) + 1)[..., None].eq(torch.arange(said.shape[3]))[inside]


def _mean(values: Tensor) -> float | None:
    return round(float(values.float().mean()), 4) if values.numel() else None


def _known_error(said: Tensor, true: Tensor) -> Tensor:
    """Mean squared error where the true value is known; 0 if none is."""
    known = ~true.isnan()
    return ((said - true.nan_to_num()) ** 2 * known).sum() / known.sum().clamp(min=1)
