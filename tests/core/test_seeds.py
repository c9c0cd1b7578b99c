"""Training and evaluation share no seed, wherever they come from."""

from itertools import combinations
from pathlib import Path

import pytest

from actor.training.config import ActorTrainConfig, DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.dagger.config import PlannerDaggerConfig
from datagen.demos.config import GenerationConfig
from datagen.demos.mikasa import CollectConfig
from datagen.vision_data.config import VisionDataConfig
from predimem.core.config import load_config
from predimem.core.seeds import (
    ACTOR_DAGGER_SEEDS,
    ACTOR_DATA_SEEDS,
    DEMONSTRATION_SEEDS,
    EVALUATION_SEEDS_FROM,
    PLANNER_DAGGER_SEEDS,
    TRAINING_SEEDS,
    VISION_DATA_SEEDS,
    check_training_seed,
    refuse_evaluation_seed,
    refuse_training_seeds,
)
from predimem.evaluation.run.evaluation import EvaluationConfig
from predimem.pipelines.retrain import RetrainConfig

CONFIGS = Path(__file__).parents[2] / "configs"
OF_TRAINING = (DEMONSTRATION_SEEDS, ACTOR_DATA_SEEDS, PLANNER_DAGGER_SEEDS, ACTOR_DAGGER_SEEDS, VISION_DATA_SEEDS)


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


def test_each_kind_of_training_data_has_seeds_of_its_own() -> None:
    assert all(set(seeds) <= set(TRAINING_SEEDS) for seeds in OF_TRAINING)
    assert not any(set(one) & set(other) for one, other in combinations(OF_TRAINING, 2))


@pytest.mark.parametrize(
    ("cls", "name", "seeds"),
    [
        (GenerationConfig, "datagen.yaml", DEMONSTRATION_SEEDS),
        (ActorDataConfig, "datagen_actor_data.yaml", ACTOR_DATA_SEEDS),
        (PlannerDaggerConfig, "datagen_dagger.yaml", PLANNER_DAGGER_SEEDS),
        (VisionDataConfig, "datagen_vision_data.yaml", VISION_DATA_SEEDS),
    ],
)
def test_shipped_configs_of_data_keep_to_theirs(cls: type, name: str, seeds: range) -> None:
    assert set(cls().seeds) <= set(seeds)
    assert set(load_config(cls, CONFIGS / name).seeds) <= set(seeds)


def test_shipped_configs_of_tasks_and_trainings_keep_to_theirs() -> None:
    for collected in (CollectConfig(), load_config(CollectConfig, CONFIGS / "datagen_mikasa.yaml")):
        assert all(set(spec.seeds) <= set(DEMONSTRATION_SEEDS) for spec in collected.tasks)
    pipeline = load_config(RetrainConfig, CONFIGS / "train_arena.yaml")
    assert all(set(one.seeds) <= set(PLANNER_DAGGER_SEEDS) for one in pipeline.planners.rounds)
    for dagger in (DaggerConfig(rounds=3), *(load_config(ActorTrainConfig, p).dagger for p in CONFIGS.glob("actor/*"))):
        assert all(set(dagger.seeds(number)) <= set(ACTOR_DAGGER_SEEDS) for number in range(dagger.rounds + 1))


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
