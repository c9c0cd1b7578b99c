import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from actor.dataset import SamplingConfig
from actor.gemma import GemmaConfig
from actor.pi05 import Pi05Config
from actor.policy import load_policy
from actor.tiny.auxiliary import AuxiliaryConfig
from actor.tiny.conv_stem import ConvStemConfig
from actor.tokenizer import load_tokenizer
from actor.train import train
from actor.training.config import ActorTrainConfig, OptimiserConfig
from actor.weights import ActorConfig
from predimem.core.config import ConfigError, from_dict, load_config
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.types import Observation
from tests.actor.conftest import APPEAR, CAMERAS, HORIZON, make_episode, save_episodes

CONFIGS = Path(__file__).parents[2] / "configs" / "actor"
SIZES = {"depth": 2, "num_heads": 4, "num_kv_heads": 1, "head_dim": 16}
MODEL = Pi05Config(
    vision="conv",
    conv=ConvStemConfig(image_size=128, channels=(8, 12, 16), queries=4),
    paligemma=GemmaConfig(width=48, mlp_dim=96, **SIZES),
    action_expert=GemmaConfig(width=32, mlp_dim=64, **SIZES),
    vocab_size=320,
    max_token_len=48,
    action_dim=7,
    action_horizon=HORIZON,
)
CONFIG = ActorTrainConfig(
    steps=6,
    val_every=6,
    log_every=2,
    validate_every=3,
    checkpoint_every=100,
    threads=1,
    actor=ActorConfig(model=MODEL, num_steps=2),
    sampling=SamplingConfig(frames_per_batch=2, prompts_per_frame=3),
)


def steps_logged(run: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_run_leaves_what_the_policy_needs(episodes: Path, tmp_path: Path):
    folder = train(CONFIG, episodes=episodes, out=tmp_path, progress=False)
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "norm_stats.json",
        "tokenizer.json",
    ]
    weights = load_file(folder / "model.safetensors")
    assert all(w.dtype == np.float16 for w in weights.values())
    assert not any("position." in name and "head" in name for name in weights)
    assert "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight" in weights
    assert steps_logged(tmp_path) == [2, 3, 4, 6, 6]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["training_episodes"] == 10 and summary["validation_episodes"] == 2
    assert set(summary["validation"]) == {"action_l1", "hold_l1", "position_error_m", "pointing_accuracy"}
    with pytest.raises(ValueError, match="already holds a run: pass --resume"):
        train(CONFIG, episodes=episodes, out=tmp_path, progress=False)
    other = dataclasses.replace(CONFIG, seed=1)
    with pytest.raises(ValueError, match="was trained with seed = 0, the config says 1"):
        train(other, episodes=episodes, out=tmp_path, resume=True, progress=False)


SCRIPT = """
import sys
from actor.train import train
from tests.actor.test_train import CONFIG
import dataclasses
config = dataclasses.replace(CONFIG, steps=int(sys.argv[3]), log_every=1)
train(config, episodes=sys.argv[1], out=sys.argv[2], resume=True, progress=False)
"""


@pytest.mark.slow
def test_ctrl_c_then_resume_equals_an_uninterrupted_run(episodes: Path, tmp_path: Path):
    steps, run = 20, tmp_path / "interrupted"
    command = [sys.executable, "-c", SCRIPT, str(episodes), str(run), str(steps)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 500  # starting Python and torch takes minutes on an overloaded machine
    try:
        while not (run / "log.jsonl").is_file() or len(steps_logged(run)) < 3:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "no step was logged in time"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0 and "of which" in errors and "has a checkpoint" in errors
    stopped = max(steps_logged(run))
    assert 2 <= stopped < steps
    config = dataclasses.replace(CONFIG, steps=steps, log_every=1)
    resumed = train(config, episodes=episodes, out=run, resume=True, progress=False)
    whole = train(config, episodes=episodes, out=tmp_path / "whole", progress=False)
    first, second = (load_file(folder / "model.safetensors") for folder in (resumed, whole))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert sorted(steps_logged(run)) == sorted(steps_logged(tmp_path / "whole"))


def test_changed_episodes_cannot_be_resumed(tmp_path: Path):
    data = save_episodes(tmp_path / "data", range(1000, 1006))
    train(CONFIG, episodes=data, out=tmp_path / "run", progress=False)
    save_episodes(data, range(1006, 1007))
    with pytest.raises(ValueError, match=r"not those that .* was trained on"):
        train(CONFIG, episodes=data, out=tmp_path / "run", resume=True, progress=False)


def test_going_on_with_other_tasks_learns_their_words(tmp_path: Path):
    """A word of both is read as before, a new one begins near the unknown word; and no two are the same."""
    first = train(
        CONFIG, episodes=save_episodes(tmp_path / "a", range(1000, 1006)), out=tmp_path / "first", progress=False
    )
    labels = {f"touch the {name} square": f"touch the {name} disc" for name in ("red", "green", "blue")}
    for seed in range(1000, 1006):
        episode = make_episode(seed)
        assert episode.alternatives is not None
        renamed = dataclasses.replace(
            episode,
            subtasks=tuple(dataclasses.replace(s, label=labels.get(s.label, s.label)) for s in episode.subtasks),
            goal=labels[str(episode.goal)],
            alternatives=dataclasses.replace(
                episode.alternatives, subtasks=tuple(labels.get(s, s) for s in episode.alternatives.subtasks)
            ),
        )
        save_episode(episode_path(tmp_path / "b", "Squares", seed), renamed)
    config = dataclasses.replace(
        CONFIG, continue_from=str(first), steps=1, optimiser=OptimiserConfig(learning_rate=0.0)
    )
    second = train(config, episodes=tmp_path / "b", out=tmp_path / "second", progress=False)
    before, after = (load_tokenizer(folder / "tokenizer.json") for folder in (first, second))
    (disc,) = after.encode("disc")[1:]
    assert disc == before.vocab_size == after.vocab_size - 1
    (name,) = [key for key in load_file(first / "model.safetensors") if key.endswith("embed_tokens.weight")]
    was, now = (load_file(folder / "model.safetensors")[name].astype(np.float32) for folder in (first, second))
    np.testing.assert_allclose(now[:disc], was[:disc], atol=1e-3)
    np.testing.assert_allclose(now[disc], was[2] + 0.5 * was[disc], atol=1e-2)


def test_exported_weights_keep_a_share_of_those_at_the_start(episodes: Path, tmp_path: Path):
    first = train(CONFIG, episodes=episodes, out=tmp_path / "first", progress=False)
    weights = [load_file(first / "model.safetensors")]
    for share in (0.0, 0.75):
        config = dataclasses.replace(CONFIG, continue_from=str(first), start_share=share)
        folder = train(config, episodes=episodes, out=tmp_path / f"share-{share}", progress=False)
        weights.append(load_file(folder / "model.safetensors"))
    for name, begun in weights[0].items():
        begun, trained, kept = (np.asarray(value[name], np.float32) for value in weights)
        np.testing.assert_allclose(kept, 0.25 * trained + 0.75 * begun, atol=2e-3)
    assert any(not np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_share_of_the_start_needs_a_start():
    with pytest.raises(ValueError, match="start_share is for continue_from"):
        dataclasses.replace(CONFIG, start_share=0.5)
    with pytest.raises(ValueError, match="less than 1, got 1"):
        dataclasses.replace(CONFIG, continue_from="weights", start_share=1.0)


def test_damaged_checkpoint_is_named(episodes: Path, tmp_path: Path):
    train(CONFIG, episodes=episodes, out=tmp_path, progress=False)
    (tmp_path / "checkpoint-00000006" / "__0_0.distcp").write_bytes(b"PK half a file")
    with pytest.raises(ValueError, match=r"checkpoint-00000006 is not a whole checkpoint"):
        train(CONFIG, episodes=episodes, out=tmp_path, resume=True, progress=False)
    (tmp_path / "checkpoint-00000006" / "checkpoint.json").unlink()
    with pytest.raises(ValueError, match=r"checkpoint-00000006 is not a whole checkpoint"):
        train(CONFIG, episodes=episodes, out=tmp_path, resume=True, progress=False)


def test_learning_rate_schedule():
    schedule = OptimiserConfig(learning_rate=1.0, warmup_steps=10, decay_share=0.4)
    rates = [schedule.learning_rate_at(step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and rates[9:60] == [1.0] * 51
    assert rates[80] == pytest.approx(0.5) and rates[99] == pytest.approx(0.025)


def test_configs_load_and_wrong_ones_do_not():
    tiny = load_config(ActorTrainConfig, CONFIGS / "tiny.yaml")
    assert tiny.actor.model.vision == "conv"
    assert load_config(ActorTrainConfig, CONFIGS / "pi05.yaml").actor.model.vision == "siglip"
    with pytest.raises(ConfigError, match="unknown key 'learning_rate'"):
        from_dict(ActorTrainConfig, {"learning_rate": 1.0})
    with pytest.raises(ConfigError, match="expected one of 'siglip', 'conv', got 'vit'"):
        from_dict(ActorTrainConfig, {"actor": {"model": {"vision": "vit"}}})
    with pytest.raises(ValueError, match="steps must be at least 1"):
        ActorTrainConfig(steps=0)
    with pytest.raises(ValueError, match="num_cameras is 2, but 1 cameras"):
        ActorConfig(cameras=("base_camera",))


def test_auxiliary_losses_need_the_conv_stem(episodes: Path, tmp_path: Path):
    config = from_dict(
        ActorTrainConfig,
        {
            "actor": {
                "model": {
                    "vision": "siglip",
                    "siglip": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                               "num_attention_heads": 2, "image_size": 28},
                    "paligemma": {"width": 16, "mlp_dim": 16, **SIZES},
                    "action_expert": {"width": 16, "mlp_dim": 16, **SIZES},
                    "vocab_size": 320, "action_dim": 8, "action_horizon": HORIZON,
                }
            },
            "steps": 1, "val_every": 6, "precision": "bfloat16",
        },
    )  # fmt: skip
    with pytest.raises(ValueError, match="auxiliary losses need vision: conv"):
        train(config, episodes=episodes, out=tmp_path / "a", progress=False)
    plain = dataclasses.replace(config, auxiliary=AuxiliaryConfig(pointing=0, position=0))
    folder = train(plain, episodes=episodes, out=tmp_path / "b", progress=False)
    episode = make_episode(1000)
    observation = Observation(0, {name: episode.images[name][0] for name in CAMERAS}, episode.state[0])
    assert load_policy(folder).infer(observation, "wait").actions.shape == (HORIZON, 7)


@pytest.mark.slow
def test_learns_to_point_at_unseen_squares(tmp_path: Path):
    """The whole recipe, small: after 300 steps the actor finds the named square in unseen images."""
    data = save_episodes(tmp_path / "data", range(1000, 1200))
    config = dataclasses.replace(
        CONFIG,
        steps=300,
        val_every=10,
        validate_every=300,
        sampling=SamplingConfig(frames_per_batch=8, prompts_per_frame=4),
        auxiliary=AuxiliaryConfig(pointing=0.2, position=0.5),
        optimiser=OptimiserConfig(learning_rate=2e-3, warmup_steps=30, ema_decay=0.98),
    )
    folder = train(config, episodes=data, out=tmp_path / "run", progress=False)
    figures = json.loads((tmp_path / "run" / "summary.json").read_text())["validation"]
    assert figures["pointing_accuracy"] > 0.9
    policy = load_policy(folder, num_steps=5)
    right, errors = [], []
    for seed in range(2000, 2020):
        episode = make_episode(seed)
        images = {name: episode.images[name][APPEAR] for name in CAMERAS}
        assert episode.alternatives is not None
        for k in (1, 2, 3):
            observation = Observation(APPEAR, images, episode.state[APPEAR])
            chunk = policy.infer(observation, episode.alternatives.subtasks[k]).actions
            distances = np.abs(chunk - episode.alternatives.chunks[APPEAR, 1:])[..., :2].mean((1, 2))
            right.append(int(distances.argmin()) == k - 1)
            errors.append(distances[k - 1])
    assert np.mean(right) > 0.65  # chance is 1/3; the gripper is in the state alone, which takes longer
    assert np.median(errors) < 0.15  # the squares are about 0.35 from each other, in each coordinate
