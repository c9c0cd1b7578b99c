"""A planner whose every answer can be computed by hand: after a token always the same ones follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.decoding import QwenPlanner


def teach(planner: QwenPlanner, first: int, follows: Mapping[int, Mapping[int, float]]) -> None:
    """Make `planner` a Markov chain over tokens, in place: follows[token][next] is the probability of `next`.

    first: the prompt's last token. Layers add nothing to the last token's embedding, and the head is solved for the
    logits wanted; everything is computed all the same. Probabilities that do not add up to one are completed by an
    unused token.
    """
    model: Any = planner._model
    text = model.model.language_model
    for layer in text.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    tokens = list(follows)
    assert first in tokens and len(tokens) <= text.embed_tokens.weight.shape[1]
    with torch.no_grad():
        hidden = text.norm(text.embed_tokens(torch.tensor(tokens))).double()  # [n, D]
        size = text.embed_tokens.weight.shape[0]
        logits = torch.full((len(tokens), size), -40.0, dtype=torch.float64)
        for row, token in enumerate(tokens):
            rest = 1.0 - sum(follows[token].values())
            for following, probability in follows[token].items():
                logits[row, following] = torch.tensor(probability).double().log()
            if rest > 1e-9:
                logits[row, size - 1] = torch.tensor(rest).double().log()
        head = torch.nn.Linear(hidden.shape[1], size, bias=False)
        head.weight.data = torch.linalg.pinv(hidden).matmul(logits).T.float()
    model.lm_head = head
    planner._forward._head = head


def say(planner: QwenPlanner, first: int, answer: str, **doubts: float) -> None:
    """Make `planner` say this answer, every token of it with certainty but those spelled in `doubts`."""
    tokenizer = planner._tokenizer
    script = tokenizer(answer + "<|im_end|>").input_ids
    assert len(set(script)) == len(script), "a token that stands twice would need two successors"
    sure = {tokenizer.decode([token]).strip(): token for token in script}
    chance = {sure[word]: probability for word, probability in doubts.items()}
    teach(planner, first, {a: {b: chance.get(b, 1.0)} for a, b in zip([first, *script], [*script, first], strict=True)})
