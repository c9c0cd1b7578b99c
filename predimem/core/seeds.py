"""Which seeds make training data and which evaluate: ranges that share no seed, kept in this one place.

The ranges below `TRAINING_SEEDS` are where the shipped configs take their seeds from, so that no two kinds of training
data show the same episode. A config of your own may take any training seeds.
"""

from __future__ import annotations

TRAINING_SEEDS = range(1_000, 100_000)
EVALUATION_SEEDS_FROM = 900_000  # and all above, such as the MIKASA suite's own first seed, 4_242_424_242

DEMONSTRATION_SEEDS = range(1_000, 20_000)
ACTOR_DATA_SEEDS = range(20_000, 40_000)  # states and roll-outs with the memoryless expert's labels
PLANNER_DAGGER_SEEDS = range(40_000, 60_000)
ACTOR_DAGGER_SEEDS = range(60_000, 70_000)  # roll-outs in the actor's own rounds of DAgger
VISION_DATA_SEEDS = range(70_000, 80_000)  # images of scenes for the planner's vision tower


def check_training_seed(seed: int, where: str) -> None:
    """Raises ValueError unless demonstrations may be generated with `seed`. where: begins the message."""
    if seed not in TRAINING_SEEDS:
        raise ValueError(
            f"{where}: seed {seed} is not a training seed: those are {TRAINING_SEEDS.start}.."
            f"{TRAINING_SEEDS.stop - 1}, and {EVALUATION_SEEDS_FROM} and up are for evaluation"
        )


def check_training_seeds(seeds: range, where: str) -> None:
    """`check_training_seed` of all of them."""
    for seed in (seeds[0], seeds[-1]):
        check_training_seed(seed, where)


def refuse_evaluation_seed(seed: int, where: str) -> None:
    """Raises ValueError if an episode of `seed` is kept for evaluation and must not be trained on.

    Weaker than `check_training_seed`, since imported data sets count their seeds as they like.
    """
    if seed >= EVALUATION_SEEDS_FROM:
        raise ValueError(
            f"{where}: seed {seed} is kept for evaluation (as all from {EVALUATION_SEEDS_FROM}): "
            "take this episode out of the training data"
        )


def refuse_training_seeds(first: int, count: int, where: str) -> None:
    """Raises ValueError if one of `count` seeds from `first` may have been trained on."""
    if first < TRAINING_SEEDS.stop and first + count > TRAINING_SEEDS.start:
        raise ValueError(
            f"{where}: seeds {first}..{first + count - 1} reach into the training seeds "
            f"({TRAINING_SEEDS.start}..{TRAINING_SEEDS.stop - 1}): evaluate from {EVALUATION_SEEDS_FROM} upward"
        )
