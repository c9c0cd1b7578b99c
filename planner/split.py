"""Which episodes are trained on, and which are held out."""

from __future__ import annotations

from collections.abc import Sequence

from predimem.core.episodes import Episode


def split_episodes(
    episodes: Sequence[Episode], validation_fraction: float, training_share: float = 1.0
) -> tuple[list[Episode], list[Episode]]:
    """(training, validation): of each task, the episodes with the highest seeds are held out, all of a seed's. Of the
    other seeds the lowest ones are trained on, `training_share` of them and at least one.

    Episodes that were made from the images of others (metadata `edited_from`) are never held out where these are among
    `episodes`, and are trained on only if all of these are: otherwise the held-out images would be trained on.
    """
    there = {(episode.task, episode.seed) for episode in episodes}
    ordered = sorted(episodes, key=lambda e: (e.task, e.seed))
    edited = [episode for episode in ordered if edited_from(episode) & there]
    own = [episode for episode in ordered if not edited_from(episode) & there]
    training, validation = [], []
    for group in by_task(own).values():
        seeds = sorted({episode.seed for episode in group})
        first_held_out = len(seeds) - round(len(seeds) * validation_fraction)
        used = set(seeds[:first_held_out][: max(1, round(first_held_out * training_share))])
        held_out = set(seeds[first_held_out:])
        training += [episode for episode in group if episode.seed in used]
        validation += [episode for episode in group if episode.seed in held_out]
    trained_on = {(episode.task, episode.seed) for episode in training}
    return training + [e for e in edited if edited_from(e) & there <= trained_on], validation


def edited_from(episode: Episode) -> set[tuple[str, int]]:
    """(task, seed) of the episodes that it was made from, as `datagen.demos` notes them: a task and a seed, or the
    seeds of several episodes of its own task. Empty for an episode that was recorded."""
    first, *rest = episode.metadata.get("edited_from") or (None,)
    if first is None:
        return set()
    if isinstance(first, str):
        return {(first, rest[0])}
    return {(episode.task, seed) for seed in (first, *rest)}


def by_task(episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
    """Task -> its episodes, both in the order in which they come."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.task, []).append(episode)
    return groups
