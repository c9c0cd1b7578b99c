"""Training and evaluation share no seed, wherever they come from."""

import pytest

from predimem.core.seeds import (
    EVALUATION_SEEDS_FROM,
    TRAINING_SEEDS,
    check_training_seed,
    refuse_evaluation_seed,
    refuse_training_seeds,
)
from predimem.evaluation.run.evaluation import EvaluationConfig


def test_the_ranges_are_disjoint() -> None:
    assert max(TRAINING_SEEDS) < EVALUATION_SEEDS_FROM
    for seed in (TRAINING_SEEDS[0], TRAINING_SEEDS[-1]):
        check_training_seed(seed, "here")
        refuse_evaluation_seed(seed, "here")
        with pytest.raises(ValueError, match=f"here: seeds {seed}..{seed} reach into the training seeds"):
            refuse_training_seeds(seed, 1, "here")
    for seed in (EVALUATION_SEEDS_FROM, 4_242_424_242):
        refuse_training_seeds(seed, 50, "here")
        with pytest.raises(ValueError, match=f"here: seed {seed} is not a training seed"):
            check_training_seed(seed, "here")
        with pytest.raises(ValueError, match=f"here: seed {seed} is kept for evaluation"):
            refuse_evaluation_seed(seed, "here")


@pytest.mark.parametrize("seed", [-1, 0, 999, 100_000])
def test_only_training_seeds_generate_but_imported_data_count_as_they_like(seed: int) -> None:
    with pytest.raises(ValueError, match="not a training seed"):
        check_training_seed(seed, "here")
    refuse_evaluation_seed(seed, "here")


@pytest.mark.parametrize(("first", "count"), [(0, 1001), (1000, 1), (99_999, 5), (0, 10**6)])
def test_evaluation_on_training_seeds_is_refused(first: int, count: int) -> None:
    with pytest.raises(ValueError, match="reach into the training seeds"):
        EvaluationConfig("mikasa", ("T",), ("random",), episodes=count, seed_start=first)


@pytest.mark.parametrize(("first", "count"), [(0, 1000), (100_000, 10), (900_000, 100)])
def test_other_seeds_evaluate(first: int, count: int) -> None:
    assert EvaluationConfig("mikasa", ("T",), ("random",), episodes=count, seed_start=first).seed_start == first
