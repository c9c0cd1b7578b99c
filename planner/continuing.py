"""Training that goes on from an exported planner: its language model, and its tower, which nobody has to train again.

The predictive head is not part of an exported planner: it starts anew.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

from planner.model import PrediMemForConditionalGeneration
from planner.vision import WEIGHTS as TOWER_FILE
from predimem.config import ConfigError

HEAD = "predictive_head."


def take_weights(base: Path, planner: Path) -> dict[str, Tensor]:
    """Put the weights of an exported planner into the checkpoint `base`; the tower among them, float32.

    Raises ConfigError if the two differ in their vocabulary or in the size of a weight.
    """
    before, now = (AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (planner, base))
    if before != now:
        other = sorted({token for token, _ in before.items() ^ now.items()})
        raise ConfigError(
            f"continue_from: {planner} was trained with other tokens, among them {other[:3]}: its prompt and tokenizer "
            "have to be those of this config"
        )
    state = Qwen3VLForConditionalGeneration.from_pretrained(planner, dtype=torch.float32).state_dict()
    model = PrediMemForConditionalGeneration.from_pretrained(base)
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise ConfigError(
            f"continue_from: {planner} has weights of another size than this config's: {error}"
        ) from error
    missing = [name for name in missing if not name.startswith(HEAD)]
    if missing or unexpected:
        raise ConfigError(
            f"continue_from: {planner} and this config's model differ in their weights: {[*missing, *unexpected][:3]}"
        )
    model.save_pretrained(base)
    return {name: tensor.clone() for name, tensor in model.visual.state_dict().items()}


def claim_features(folder: Path, tower: dict[str, Tensor]) -> None:
    """Note in `folder`, of a table of features, whose they are, or check that it is this tower.

    Raises ConfigError if it holds another one.
    """
    path = folder / TOWER_FILE
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: tensor.contiguous() for name, tensor in tower.items()}, path)
        return
    known = load_file(path)
    if known.keys() != tower.keys() or not all(torch.equal(known[name], tower[name]) for name in tower):
        raise ConfigError(f"continue_from: {folder} belongs to another vision tower: choose another vision.directory")
