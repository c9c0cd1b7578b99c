"""Makes `lerobot_pi05`: a tiny pi05 policy that LeRobot wrote, and what LeRobot computes with it.

    uv venv --python 3.12 lr && uv pip install --python lr/bin/python 'lerobot[pi]==0.6.1'
    HF_HUB_OFFLINE=1 lr/bin/python tests/golden/make_lerobot_pi05.py tests/golden/lerobot_pi05
    HF_HUB_OFFLINE=1 lr/bin/python tests/golden/make_lerobot_pi05.py --check EXPORTED tests/golden/lerobot_pi05

With `--check` a folder of `predimem export actor --format lerobot` is loaded instead, strictly, and has to give the
same actions to the last bit. Only the sizes are not LeRobot's own: it knows none that are small enough to keep.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lerobot.policies.pi05.modeling_pi05 as pi05
import lerobot.processor.tokenizer_processor as tokenizing
import numpy as np
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies.pi05.configuration_pi05 import PI05Config
from lerobot.policies.pi05.processor_pi05 import make_pi05_pre_post_processors
from lerobot.processor import PolicyProcessorPipeline
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

ARMS, VOCABULARY = 14, 400
CAMERAS = ("cam_high", "cam_left_wrist", "cam_right_wrist")
JOINTS = [f"{side}_{joint}" for side in ("left", "right") for joint in (*map(str, range(6)), "gripper")]
SIZES = {"depth": 2, "num_heads": 4, "num_kv_heads": 1, "head_dim": 8}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 16}


def make_tiny() -> None:
    paligemma, gemma = pi05.PaliGemmaForConditionalGenerationWithPiGemma, pi05.PiGemmaForCausalLM

    def sizes(variant: str) -> pi05.GemmaConfig:
        wide = variant == "gemma_2b"
        return pi05.GemmaConfig(width=32 if wide else 16, mlp_dim=64 if wide else 32, **SIZES)

    def tiny_paligemma(config):
        for name, value in (VISION | {"patch_size": 14, "projection_dim": 32}).items():
            setattr(config.vision_config, name, value)
        config.text_config.vocab_size = config._vocab_size = VOCABULARY
        config.projection_dim = config.hidden_size = 32
        return paligemma(config=config)

    def tiny_gemma(config):
        config.vocab_size = VOCABULARY
        return gemma(config=config)

    pi05.get_gemma_config = sizes
    pi05.PaliGemmaForConditionalGenerationWithPiGemma = tiny_paligemma
    pi05.PiGemmaForCausalLM = tiny_gemma
    tokenizing.TokenizerProcessorStep.__post_init__ = lambda self: None  # PaliGemma's tokenizer is not to be had freely


def make_policy(folder: Path) -> pi05.PI05Policy:
    images = {f"observation.images.{name}": PolicyFeature(FeatureType.VISUAL, (3, 48, 64)) for name in CAMERAS}
    config = PI05Config(
        device="cpu",
        image_resolution=(28, 28),
        input_features={**images, "observation.state": PolicyFeature(FeatureType.STATE, (ARMS,))},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (ARMS,))},
        use_relative_actions=True,
        action_feature_names=JOINTS,
    )
    torch.manual_seed(0)
    policy = pi05.PI05Policy(config)
    for parameter in policy.parameters():
        parameter.data.add_(0.02 * torch.randn_like(parameter))
    rng, stats = np.random.default_rng(0), {}
    for name in ("observation.state", "action"):
        low, high = -1 - rng.random(ARMS), 1 + rng.random(ARMS)
        low[3] = high[3] = 0.25  # a joint that never moved
        found = {"q01": low, "q99": high, "mean": (low + high) / 2, "std": (high - low) / 4}
        stats[name] = {field: torch.tensor(value, dtype=torch.float32) for field, value in found.items()}
    before, after = make_pi05_pre_post_processors(config, stats)
    for part in (policy, before, after):
        part.save_pretrained(folder)
    return policy


def compute(policy: pi05.PI05Policy, folder: Path) -> dict[str, np.ndarray]:
    policy.eval()
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(1, 3, 3, 28, 28, generator=generator) * 2 - 1
    image_mask = torch.tensor([[True, True, False]])
    tokens = torch.randint(3, VOCABULARY, (1, 20), generator=generator)
    token_mask = torch.arange(20)[None] < 15
    noise = torch.randn(1, 50, 32, generator=generator)
    with torch.no_grad():
        sampled = policy.model.sample_actions(
            list(images.unbind(1)), list(image_mask.unbind(1)), tokens, token_mask, noise=noise, num_steps=10
        )
    before = PolicyProcessorPipeline.from_pretrained(folder, config_filename="policy_preprocessor.json")
    after = PolicyProcessorPipeline.from_pretrained(
        folder,
        config_filename="policy_postprocessor.json",
        to_transition=policy_action_to_transition,
        to_output=transition_to_policy_action,
    )
    before.steps = before.steps[:5]  # up to the text of the prompt
    after.steps[1].relative_step = before.steps[2]
    state = torch.rand(1, ARMS, generator=generator) * 5 - 2.5
    actions = torch.rand(1, 50, ARMS, generator=generator) * 2 - 1
    given = {"observation.state": state, "action": actions, "task": ["pick up the_cup"]}
    read = before(given)
    return {
        "images": images.numpy(),
        "image_mask": image_mask.numpy(),
        "tokens": tokens.numpy(),
        "token_mask": token_mask.numpy(),
        "noise": noise.numpy(),
        "sampled": sampled.numpy(),
        "state": state.numpy(),
        "actions": actions.numpy(),
        "normalised": read["action"].numpy(),
        "prompt": np.array(read["task"]),
        "commanded": after(sampled[..., :ARMS]).numpy(),
    }


def main(arguments: list[str]) -> None:
    make_tiny()
    folder = Path(arguments[-1])
    if arguments[0] != "--check":
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "expected.npz", **compute(make_policy(folder), folder))
        return
    exported = Path(arguments[1])
    got = compute(pi05.PI05Policy.from_pretrained(exported, strict=True), exported)
    with np.load(folder / "expected.npz") as expected:
        for name, value in got.items():
            print(f"{name}: {'equal' if np.array_equal(value, expected[name]) else 'DIFFERENT'}")


if __name__ == "__main__":
    main(sys.argv[1:])
