"""Whether a prediction error peaks at keyframes, which it must if it is to nominate them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

OFFSETS = (-2, -1, 0, 1, 2)
RESAMPLES = 1000
Frames = Sequence[Sequence[float]]  # of one episode, each as (whether it is to be nominated, error), in order


class Auc(NamedTuple):
    """The area under the ROC curve of an error that tells frames to be nominated from others, and its interval."""

    value: float
    low: float
    high: float
    keyframes: int
    frames: int


def auc(positive: np.ndarray, error: np.ndarray) -> float | None:
    """The probability that a frame to be nominated has a larger error than another one; ties count half. None where
    all frames are of one kind. positive: bool [N]; error: [N]."""
    from scipy.stats import rankdata

    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return None
    return float((rankdata(error)[positive].sum() - n * (n + 1) / 2) / (n * m))


def auc_over_trainings(
    trainings: Sequence[Mapping[str, Frames]], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Auc | None:
    """The mean over trainings of the AUC over all their frames; episode -> its frames.

    95 % interval by a bootstrap that draws trainings and, independently, episodes anew, as frames of an episode are
    alike: the percentiles 2.5 and 97.5. None where no training has frames of both kinds.
    """
    names = sorted({name for training in trainings for name in training})
    if not names:
        return None
    of_episodes = [[np.array(t.get(name, ()), float).reshape(-1, 2) for name in names] for t in trainings]
    value = _mean_auc(of_episodes, range(len(trainings)), range(len(names)))
    if value is None:
        return None
    drawn = []
    for _ in range(resamples):
        rows = rng.integers(0, len(trainings), len(trainings)).tolist()
        columns = rng.integers(0, len(names), len(names)).tolist()
        drawn.append(_mean_auc(of_episodes, rows, columns))
    low, high = np.percentile([one for one in drawn if one is not None], (2.5, 97.5))
    everything = np.concatenate([frames for episodes in of_episodes for frames in episodes])
    return Auc(value, float(low), float(high), int(everything[:, 0].sum()), len(everything))


def profile(trainings: Sequence[Mapping[str, Frames]]) -> dict[int | None, float]:
    """The mean error of frames by how many frames they come after the nearest keyframe, None standing for all that are
    further away than `OFFSETS`, as a multiple of the mean error of the latter."""
    errors: dict[int | None, list[float]] = {}
    for training in trainings:
        for frames in training.values():
            keyframes = [i for i, (positive, _) in enumerate(frames) if positive]
            for i, (_, error) in enumerate(frames):
                nearest = min((i - k for k in keyframes), key=abs, default=None)
                errors.setdefault(nearest if nearest in OFFSETS else None, []).append(error)
    if not errors.get(None):
        return {}
    elsewhere = float(np.mean(errors[None]))
    return {offset: float(np.mean(errors[offset])) / elsewhere for offset in (*OFFSETS, None) if offset in errors}


def _mean_auc(
    of_episodes: Sequence[Sequence[np.ndarray]], trainings: Iterable[int], episodes: Sequence[int]
) -> float | None:
    found = []
    for training in trainings:
        frames = np.concatenate([of_episodes[training][episode] for episode in episodes])
        found.append(auc(frames[:, 0] > 0, frames[:, 1]))
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None
