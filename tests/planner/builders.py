"""Tiny models and hand-made episodes for the planner's tests."""

from __future__ import annotations

import numpy as np
import torch

from memory_bank import MemoryConfig
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.prompt import PromptConfig, chat_messages, render_answer, render_prompt, size_images
from planner.replay import Replay
from planner.tiny.base import BaseConfig, TinyConfig, tiny_hf_config
from planner.tiny.tokenizer_config import TokenizerConfig
from predimem.core.episodes import Episode, SubtaskSpan

COLOURS = {"red": (200, 20, 20), "lime": (20, 200, 20), "blue": (20, 20, 200)}
INSTRUCTION = "Look at the square, wait, then touch the square of that colour."
SIZES = TinyConfig(
    hidden_size=32,
    intermediate_size=48,
    layers=2,
    heads=2,
    kv_heads=1,
    head_dim=16,
    mrope_section=(3, 3, 2),
    vision_hidden_size=32,
    vision_intermediate_size=48,
    vision_heads=2,
    image_size=64,
)
BASE = BaseConfig(
    tiny=SIZES,
    tokenizer=TokenizerConfig(
        vocab_size=500,
        instructions=(INSTRUCTION,),
        subtasks=("watch", "wait", "touch the {colour} cube"),
        words={"colour": tuple(COLOURS)},
    ),
)
PROMPT = PromptConfig(recent_window=2)
MEMORY = MemoryConfig(recent_window=2, cluster_gap_steps=3)


def make_model(processor, seed: int = 0, **objective) -> PrediMemForConditionalGeneration:
    torch.manual_seed(seed)
    config = tiny_hf_config(SIZES, processor.tokenizer, ObjectiveConfig(**{"window": 2, **objective}))
    return PrediMemForConditionalGeneration(config)


def make_episode(seed: int, colour: str, cue: int = 2, appear: int = 5, length: int = 10) -> Episode:
    """A coloured square, an empty table, then all squares, from two cameras of 64 px."""
    rng = np.random.default_rng(seed)
    images = {"base_camera": [], "hand_camera": []}
    order = rng.permutation(list(COLOURS))
    for step in range(length):
        for camera, frames in images.items():
            frame = np.full((64, 64, 3), 90 if camera == "base_camera" else 140, np.uint8)
            frame += rng.integers(0, 8, frame.shape, dtype=np.uint8)
            if step < cue:
                frame[24:40, 24:40] = COLOURS[colour]
            elif step >= appear:
                for place, name in enumerate(order):
                    frame[44:56, 4 + 20 * place : 16 + 20 * place] = COLOURS[name]
            frames.append(frame)
    goal = f"touch the {colour} cube"
    return Episode(
        benchmark="synthetic",
        task="Squares-v0",
        seed=seed,
        instruction=INSTRUCTION,
        control_hz=20.0,
        success=True,
        images={camera: np.stack(frames) for camera, frames in images.items()},
        state=np.zeros((length, 7), np.float32),
        actions=np.zeros((length, 7), np.float32),
        subtasks=(
            SubtaskSpan(0, cue, "watch"),
            SubtaskSpan(cue, appear, "wait"),
            SubtaskSpan(appear, length, goal),
        ),
        keyframes=(0, length - 2),
        goal=goal,
    )


def encode_batch(processor, episodes, steps, prompt: PromptConfig = PROMPT) -> dict[str, torch.Tensor]:
    """Right-padded training batch of one sample per (episode, step), keyframes as annotated."""
    texts, images, answers = [], [], []
    for episode, step in zip(episodes, steps, strict=True):
        snapshot = Replay(episode, MEMORY, episode.keyframes)[step]
        rendered = render_prompt(snapshot, prompt)
        answers.append(render_answer(episode.subtask_at(step), []) + "<|im_end|>")
        texts.append(
            processor.apply_chat_template(chat_messages(rendered.messages), tokenize=False, add_generation_prompt=True)
            + answers[-1]
        )
        images += size_images(rendered.images, prompt)
    batch = dict(processor(text=texts, images=images, do_resize=False, padding=True, return_tensors="pt"))
    labels = torch.full_like(batch["input_ids"], -100)
    for row, answer in enumerate(answers):
        count = len(processor.tokenizer(answer).input_ids)
        end = int(batch["attention_mask"][row].nonzero().max()) + 1
        labels[row, end - count : end] = batch["input_ids"][row, end - count : end]
    return batch | {"labels": labels}
