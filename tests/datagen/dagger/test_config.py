"""Which DAgger data are made."""

from pathlib import Path

import pytest

from datagen.dagger.config import DisturbanceConfig, OracleSpellConfig, PlannerDaggerConfig
from predimem.core.config import load_config

ROOT = Path(__file__).parents[3]


def test_the_shipped_recipe_is_the_default() -> None:
    assert load_config(PlannerDaggerConfig, ROOT / "configs/datagen_dagger.yaml") == PlannerDaggerConfig()


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: PlannerDaggerConfig(first_seed=900_000), "seed 900000 is not a training seed"),
        (lambda: PlannerDaggerConfig(image_every=0), "image_every must be >= 1"),
        (lambda: PlannerDaggerConfig(s2_latency_steps=-1), "s2_latency_steps must be >= 0"),
        (lambda: PlannerDaggerConfig(driver="weights", image_every=4), "has to be a multiple of image_every"),
        (lambda: PlannerDaggerConfig(tasks=("4", "4")), "each task may be listed once"),
        (lambda: PlannerDaggerConfig(variation={"textures": 0.1}), "variation: textures is kept for evaluation"),
        (lambda: DisturbanceConfig(late_share=1.2), r"late_share must be in \[0, 1\]"),
        (lambda: DisturbanceConfig(pause_s=(2.0, 1.0)), r"pause_s is \[lowest, highest\] in s, got \[2.0, 1.0\]"),
        (lambda: DisturbanceConfig(wrong_per_minute=-1.0), "wrong_per_minute must be >= 0"),
        (lambda: OracleSpellConfig(share=1.0), r"share must be in \[0, 1\)"),
    ],
)
def test_what_cannot_be_made_is_refused(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
