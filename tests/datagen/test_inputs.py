"""A folder of data does not go on with weights, tasks or episodes that were made anew under the same path."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datagen.command import KINDS
from datagen.dagger.config import PlannerDaggerConfig
from datagen.decompose.config import VlmConfig
from datagen.demos.config import DecompositionConfig, GenerationConfig
from datagen.demos.controllers import DriverConfig
from datagen.demos.mikasa import CollectConfig
from datagen.generation import DataConfig, run_generation
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.files import write_bytes
from predimem.core.weight_files import WeightsError
from predimem.jobs.journal import JournalError
from predimem.jobs.tasks import Job
from tests.jobs.small_worker import SmallWorker, small_episode

ROOT = Path(__file__).parents[2]


def small_worker(config: DataConfig) -> SmallWorker:
    return SmallWorker(config.out)


def test_an_actor_that_was_trained_anew_is_another_one(tmp_path: Path) -> None:
    weights = tmp_path / "actor" / "model.safetensors"
    write_bytes(weights, b"one")
    config = PlannerDaggerConfig(
        out=str(tmp_path / "data"), tasks=("1",), episodes=1, low_level_policy=str(weights.parent)
    )
    (first,) = run_generation(config, small_worker, progress=False)
    assert run_generation(config, small_worker, progress=False) == [first]
    write_bytes(weights, b"two")
    changed = r'made with something else: weights of low_level_policy \(was "\w{16}", is "\w{16}"\)'
    with pytest.raises(JournalError, match=changed):
        run_generation(replace(config, episodes=2), small_worker, progress=False)


def test_a_task_that_was_changed_is_another_one(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "juice_beside_cookies.py").read_text()
    file = tmp_path / "task.py"
    file.write_text(text)
    config = PlannerDaggerConfig(out=str(tmp_path / "data"), tasks=(str(file),), episodes=1)
    run_generation(config, small_worker, progress=False)
    more = replace(config, tasks=("1", str(file)), episodes=2)
    assert len(run_generation(more, small_worker, progress=False)) == 4, "others can be added"
    file.write_text(text + "# changed\n")
    with pytest.raises(JournalError, match="made with something else: task "):
        run_generation(replace(more, episodes=3), small_worker, progress=False)


def test_an_endpoint_may_change_and_its_key_is_not_kept(tmp_path: Path) -> None:
    def generate(**vlm: Any) -> None:
        asked = DecompositionConfig("vlm", VlmConfig("a-model", **vlm))
        config = GenerationConfig(out=str(tmp_path), tasks=("1",), episodes=1, decomposition=asked)
        run_generation(config, small_worker, progress=False)

    generate(base_url="http://one:8000/v1", api_key="sk-secret")
    generate(base_url="http://two:8000/v1", timeout_s=300.0, max_tokens=9000)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"sk-secret" in path.read_bytes()]
    with pytest.raises(JournalError, match=r"decomposition\.vlm\.temperature \(was null, is 0\.5\)"):
        generate(temperature=0.5)


def test_the_driver_of_mikasa_counts(tmp_path: Path) -> None:
    driven = CollectConfig(driver=DriverConfig(str(tmp_path / "actor")))
    with pytest.raises(WeightsError):
        driven.inputs()
    write_bytes(tmp_path / "actor" / "model.safetensors", b"one")
    first = driven.inputs()
    write_bytes(tmp_path / "actor" / "model.safetensors", b"two")
    assert driven.inputs().keys() == first.keys() and driven.inputs() != first


@pytest.mark.parametrize("kind", [name for name, config in KINDS.items() if hasattr(config(), "sources")])
def test_the_episodes_that_others_are_made_of_count(kind: str, tmp_path: Path) -> None:
    sources = str(tmp_path / "sources")
    made = KINDS[kind]()
    config = replace(made, sources=sources if isinstance(made.sources, str) else (sources,))
    counts = set()
    for seed in (1000, 1001):
        save_episode(episode_path(sources, "a task", seed), small_episode(Job("a task", seed)))
        counts.add(str(config.inputs()))
    assert len(counts) == 2
