"""`predimem train actor --plan`: what is computed from a config, on a small model whose figures can be counted."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from actor.pi05 import Pi05
from actor.training.config import ComputeConfig, LoraConfig, OptimiserConfig
from actor.training.plan import activation_memory, flops_of_a_frame, forward, memory_needed, memory_table
from tests.actor.test_train import CONFIG, MODEL

PLAIN = dataclasses.replace(
    CONFIG,
    auxiliary=dataclasses.replace(CONFIG.auxiliary, pointing=0.0, position=0.0),
    optimiser=OptimiserConfig(ema_decay=0.99),
)


def test_what_is_held_is_counted():
    model = Pi05(MODEL)
    weights = sum(4 * parameter.numel() for parameter in model.parameters())
    last = model.language_model.layers[-1]
    unread = [last.self_attn.q_proj, last.self_attn.o_proj, last.post_attention_layernorm, last.mlp]
    unread.append(model.language_model.norm)
    trained = weights - sum(4 * p.numel() for module in unread for p in module.parameters())  # type: ignore[union-attr]
    alone = memory_needed(PLAIN, 1, 100)
    assert dataclasses.astuple(alone) == (weights, trained, 2 * trained, trained, 100, 0)
    fsdp = dataclasses.replace(PLAIN, compute=ComputeConfig(parallel="fsdp"))
    four = memory_needed(fsdp, 4, 100)
    assert (four.weights, four.optimiser) == (weights // 4, trained // 2) and 0 < four.gathered < 2 * weights
    adapted = memory_needed(dataclasses.replace(PLAIN, lora=LoraConfig(2, expert_rank=2)), 1, 0)
    assert adapted.weights > weights and adapted.gradients < trained / 2


@pytest.mark.slow
def test_activations_are_those_that_autograd_keeps():
    """At least what is saved for the backward pass of so many frames; less where layers are computed again."""
    one, two = (activation_memory(PLAIN, frames) for frames in (1, 2))
    again = dataclasses.replace(PLAIN, compute=ComputeConfig(gradient_checkpointing=True))
    assert 1.9 < two / one < 2.1 and activation_memory(again, 2) < two
    saved: dict[int, int] = {}  # by address: what the model itself keeps for its backward pass, weights left out
    model = Pi05(MODEL)
    weights = {parameter.data_ptr() for parameter in model.parameters()}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.data_ptr() not in weights:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = forward(model, PLAIN, 2)
    assert sum(saved.values()) < two < 2 * sum(saved.values())
    assert kept.requires_grad
    assert flops_of_a_frame(again) > flops_of_a_frame(PLAIN) > 0


@pytest.mark.slow
def test_a_table_for_all_gpus():
    config = dataclasses.replace(PLAIN, sampling=dataclasses.replace(PLAIN.sampling, frames_per_batch=4))
    rows = [line.split("|")[1:4] for line in memory_table(config).splitlines() if line.startswith("| ")][2:]
    assert [[cell.strip() for cell in row] for row in rows] == [
        [name, str(gpus), str(4 // gpus)] for name in ("full", "LoRA 16/32") for gpus in (1, 2, 4)
    ]


@pytest.mark.slow
def test_the_plan_is_what_a_training_takes():
    """Against the peak of a process that trains (docs/benchmarks/actor_memory.md)."""
    from benchmarks.actor_memory import CASES, compare

    for case in CASES:
        computed, measured = compare(case)
        assert 0.95 < measured / computed < 1.1, case
