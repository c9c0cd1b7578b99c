"""The recall planner's network: a small transformer over frames of earlier sessions. It answers at the last token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from planner.recall.examples import SCALARS, WORD_CELLS, Tokens
from predimem.core.faults import SetupError

CONFIG, WEIGHTS = "recall.json", "recall.safetensors"


@dataclass(frozen=True)
class RecallConfig:
    """embedding: D of the frames. answers: all that it may say."""

    embedding: int
    answers: tuple[str, ...]
    width: int = 64
    layers: int = 2
    heads: int = 4


class RecallModel(nn.Module):
    def __init__(self, config: RecallConfig):
        super().__init__()
        self.config, width = config, config.width
        self.register_buffer("mean", torch.zeros(config.embedding))
        self.register_buffer("scale", torch.ones(config.embedding))
        self.frame = nn.Linear(config.embedding, width)
        self.words, self.scalars = nn.Linear(WORD_CELLS, width, bias=False), nn.Linear(SCALARS, width, bias=False)
        layer = nn.TransformerEncoderLayer(
            width, config.heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.answer = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(config.answers)))

    def forward(self, embeddings: Tensor, words: Tensor, scalars: Tensor, padding: Tensor) -> Tensor:
        """embeddings [B, T, D], words [B, T, WORD_CELLS], scalars [B, T, SCALARS], padding bool [B, T], True where
        there is no token; the last token is now. Returns logits [B, answers]."""
        frames = self.frame((embeddings - self.get_buffer("mean")) / self.get_buffer("scale"))
        tokens = frames + self.words(words) + self.scalars(scalars)
        return self.answer(self.body(tokens, src_key_padding_mask=padding)[:, -1])

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).write_text(json.dumps(asdict(self.config), indent=1) + "\n")
        save_file({name: value.to(torch.float16) for name, value in self.state_dict().items()}, folder / WEIGHTS)


def load_model(folder: Path) -> RecallModel:
    """Raises SetupError where the folder holds no recall planner, or a broken one."""
    try:
        data = json.loads((folder / CONFIG).read_text())
        model = RecallModel(RecallConfig(**data | {"answers": tuple(data["answers"])}))
        weights = load_file(folder / WEIGHTS)
        model.load_state_dict({name: value.float() for name, value in weights.items()})
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
        raise SetupError(
            f"the recall planner in {folder} cannot be loaded ({error}): `predimem train interference` makes one"
        ) from error
    return model.eval()


def batch_of(examples: Sequence[Tokens]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The arguments of `RecallModel.forward`, filled up at the beginning, so that now is last everywhere."""
    longest = max(len(tokens.embeddings) for tokens in examples)
    shape = (len(examples), longest)
    parts = [torch.zeros(*shape, n) for n in (examples[0].embeddings.shape[1], WORD_CELLS, SCALARS)]
    padding = torch.ones(shape, dtype=torch.bool)
    for row, tokens in enumerate(examples):
        first = longest - len(tokens.embeddings)
        padding[row, first:] = False
        for part, values in zip(parts, (tokens.embeddings, tokens.words, tokens.scalars), strict=True):
            part[row, first:] = torch.from_numpy(values)
    return parts[0], parts[1], parts[2], padding
