"""Greedy decoding that checks a guess: the planner's last answer is usually also its next one.

A guess (a *draft*, in the terms of speculative decoding) is read together with the prompt. Its tokens are kept as
far as the model would have said them; from the first other one on decoding goes on as usual. The answer is the one
that greedy decoding gives without a guess, float rounding aside, and a right guess costs a single pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from planner.forward import KeyValues, TextForward
from planner.inputs import Inputs


@dataclass
class Decoded:
    """One decoded answer.

    tokens: the answer's tokens without the end token.
    probabilities: the probability of each token, given those before it.
    finished: whether the answer has come to its end, or is as long as is allowed.
    """

    tokens: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    finished: bool = False


def greedy_decode(
    forward: TextForward,
    batch: Sequence[Inputs],
    end: int,
    max_new_tokens: int,
    guesses: Sequence[Sequence[int]] | None = None,
) -> list[Decoded]:
    """Decodes an answer to each of the inputs: the most likely token each time, until `end`.

    Callers switch gradients off.

    guesses: for each input, tokens that its answer may well begin with. Any guess is allowed; a right one saves time.
    """
    guesses = guesses or [()] * len(batch)
    answers = [Decoded() for _ in batch]
    drafts = [list(guess[: max_new_tokens - 1]) for guess in guesses]
    logits, known = _read(forward, batch, drafts)
    kept = _accept(answers, drafts, logits, end, max_new_tokens)
    # Slots in use: the prompt and the part of the draft that was right. Padding and the rest never count.
    lengths = torch.tensor([len(inputs.tokens) + kept[i] for i, inputs in enumerate(batch)], device=logits.device)
    used = torch.arange(known.slots, device=logits.device) < lengths[:, None]
    while not all(answer.finished for answer in answers):
        drafts = [_draft(answer.tokens, guess, max_new_tokens) for answer, guess in zip(answers, guesses, strict=True)]
        width = 1 + max(len(draft) for draft, answer in zip(drafts, answers, strict=True) if not answer.finished)
        blocks = [_padded([*answer.tokens[-1:], *draft], width) for answer, draft in zip(answers, drafts, strict=True)]
        starts = [inputs.next_position + len(a.tokens) - 1 for inputs, a in zip(batch, answers, strict=True)]
        positions = torch.tensor(starts, device=logits.device)[:, None] + torch.arange(width, device=logits.device)
        logits = forward.extend(torch.tensor(blocks, device=logits.device), positions, known, used)
        kept = _accept(answers, drafts, logits, end, max_new_tokens)
        right = torch.arange(width, device=logits.device) < 1 + torch.tensor(kept, device=logits.device)[:, None]
        used = torch.cat((used, right), 1)
    return answers


def _read(forward: TextForward, batch: Sequence[Inputs], drafts: list[list[int]]) -> tuple[Tensor, KeyValues]:
    """Prompts and drafts in one pass: logits [B, n, V], the first those of the answer's first token."""
    device = forward.device
    length = max(len(inputs.tokens) + len(draft) for inputs, draft in zip(batch, drafts, strict=True))
    asked = 1 + max(len(draft) for draft in drafts)
    tokens = torch.zeros(len(batch), length, dtype=torch.long)
    positions = torch.zeros(3, len(batch), length, dtype=torch.long)
    images = torch.zeros(len(batch), length, dtype=torch.bool)
    wanted = torch.zeros(len(batch), asked, dtype=torch.long)
    for row, (inputs, draft) in enumerate(zip(batch, drafts, strict=True)):
        prompt, whole = len(inputs.tokens), len(inputs.tokens) + len(draft)
        tokens[row, :whole] = torch.tensor([*inputs.tokens.tolist(), *draft])
        positions[:, row, :prompt] = torch.from_numpy(inputs.positions)
        positions[:, row, prompt:] = inputs.next_position + torch.arange(length - prompt)
        images[row, :prompt] = torch.from_numpy(inputs.is_image)
        wanted[row] = (prompt - 1 + torch.arange(asked)).clamp(max=whole - 1)
    shown = [image for inputs in batch for image in inputs.images]
    images = images.to(device)
    embeddings = forward.embed(tokens.to(device))
    embeddings[images] = torch.cat([image.merged for image in shown]).to(embeddings.dtype)
    deepstack = [torch.cat(parts) for parts in zip(*(image.deepstack for image in shown), strict=True)]
    return forward.prefill(embeddings, positions.to(device), wanted.to(device), images, deepstack)


def _accept(
    answers: list[Decoded], drafts: list[list[int]], logits: Tensor, end: int, max_new_tokens: int
) -> list[int]:
    """Prolong every unfinished answer by what logits [B, n, V] say; how many tokens of each draft were right."""
    best = logits.argmax(-1, keepdim=True)
    chances = logits.float().softmax(-1).gather(-1, best)
    kept = [0] * len(answers)
    for row, (tokens, probabilities) in enumerate(zip(best[..., 0].tolist(), chances[..., 0].tolist(), strict=True)):
        answer, draft = answers[row], drafts[row]
        if answer.finished:
            continue
        for index in range(len(draft) + 1):
            if tokens[index] == end:
                answer.finished = True
                break
            answer.tokens.append(tokens[index])
            answer.probabilities.append(probabilities[index])
            answer.finished = len(answer.tokens) >= max_new_tokens
            if answer.finished or index == len(draft) or draft[index] != tokens[index]:
                break
            kept[row] += 1
    return kept


def _draft(tokens: list[int], guess: Sequence[int], max_new_tokens: int) -> list[int]:
    """How the answer may go on: as the guess does after its last token, else as if one token had been another."""
    if not tokens:
        return []
    known = list(guess)
    start = len(known) - known[::-1].index(tokens[-1]) if tokens[-1] in known else len(tokens)
    return known[start:][: max_new_tokens - len(tokens) - 1]


def _padded(tokens: list[int], width: int) -> list[int]:
    return (tokens + [0] * width)[:width]
