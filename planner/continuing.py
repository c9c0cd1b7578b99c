"""Training that goes on from an exported planner: from its language model and from its vision tower.

Its tokenizer comes along and gets what it lacks: labels and instructions of new tasks. The tower does not have to be
trained again. The predictive head is not part of an exported planner and starts anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer, Qwen2Tokenizer, Qwen3VLForConditionalGeneration
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

from planner.checkpoint import read_spec
from planner.model import PrediMemForConditionalGeneration
from planner.prompt import PromptConfig
from planner.tiny.tokenizer import CHAT_TEMPLATE, extend_tokenizer
from planner.tiny.tokenizer_config import TokenizerConfig
from planner.tiny.vision import WEIGHTS as TOWER_FILE
from predimem.core.config import ConfigError

HEAD = "predictive_head."
PER_TOKEN = ("embed_tokens.weight", "lm_head.weight")
LAYER = re.compile(r"model\.language_model\.layers\.\d+\.")
WRITING = ("self_attn.o_proj.weight", "mlp.down_proj.weight")  # the ends of a layer's two branches


def extended_tokenizer(planner: Path, config: TokenizerConfig, prompt: PromptConfig) -> Qwen2Tokenizer:
    """The tokenizer of an exported planner, with what it lacks of this config. Raises PlannerCheckpointError if
    `planner` is no folder of an exported planner."""
    read_spec(planner)
    tokenizer: Qwen2Tokenizer = AutoTokenizer.from_pretrained(planner, local_files_only=True)
    tokenizer.chat_template = CHAT_TEMPLATE
    extend_tokenizer(tokenizer, config, prompt)
    return tokenizer


def take_weights(base: Path, planner: Path) -> tuple[dict[str, Tensor], list[str]]:
    """Put the weights of an exported planner into the checkpoint `base`.

    Of tables with a row for each token, the rows of tokens that both know are taken, whatever their numbers; those of
    tokens that are new to the planner stay as they were drawn for `base`. Layers that `base` has beyond those of the
    planner's language model begin with nothing to add, so that it answers as the planner does.

    Returns the planner's tower, float32, and the tokens that are new to it. Raises ConfigError if the two differ in
    the size of another weight, or in how they tell positions apart.
    """
    _check_positions(base, planner)
    before, now = (AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (planner, base))
    shared = [token for token in now if token in before]
    state = Qwen3VLForConditionalGeneration.from_pretrained(planner, dtype=torch.float32).state_dict()
    model = PrediMemForConditionalGeneration.from_pretrained(base)
    drawn = model.state_dict()
    try:
        if before != now:
            for name in filter(lambda name: name.endswith(PER_TOKEN), state):
                rows = drawn[name].clone()
                rows[[now[token] for token in shared]] = state[name][[before[token] for token in shared]]
                state[name] = rows
        state |= _layers_beyond(state, drawn)
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
    tower = {name: tensor.clone() for name, tensor in model.visual.state_dict().items()}
    return tower, [token for token in now if token not in before]


def _check_positions(base: Path, planner: Path) -> None:
    """No weight tells of another `rope_theta`, with which a planner would have to learn everything anew."""
    theirs, ours = (AutoConfig.from_pretrained(folder).text_config.rope_parameters for folder in (planner, base))
    for name in ("rope_theta", "mrope_section"):
        if theirs.get(name) != ours.get(name):
            raise ConfigError(
                f"continue_from: {planner} was trained with {name} {theirs.get(name)}, but this config says "
                f"{ours.get(name)}: set base: {{tiny: {{{name}: {theirs.get(name)}}}}}"
            )


def _layers_beyond(state: dict[str, Tensor], drawn: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights that were drawn for layers of the language model which a planner of this state lacks; what such a
    layer writes is multiplied by zero."""
    known = {layer[0] for layer in map(LAYER.match, state) if layer}
    new = {name: drawn[name] for name in drawn if (layer := LAYER.match(name)) and layer[0] not in known}
    return {name: torch.zeros_like(weight) if name.endswith(WRITING) else weight for name, weight in new.items()}


def take_tower(tower: Qwen3VLVisionModel, planner: Path) -> dict[str, Tensor]:
    """Give `tower` the weights of an exported planner's; its state, float32.

    Raises PlannerCheckpointError if `planner` is no folder of an exported planner, and ConfigError for a tower of
    another size.
    """
    read_spec(planner)
    model = Qwen3VLForConditionalGeneration.from_pretrained(planner, dtype=torch.float32)
    try:
        tower.load_state_dict(model.model.visual.state_dict())
    except RuntimeError as error:
        raise ConfigError(
            f"vision.from_planner: the tower of {planner} has another size than base.tiny says: {error}"
        ) from error
    return {name: tensor.clone() for name, tensor in tower.state_dict().items()}


def claim_features(folder: Path, tower: dict[str, Tensor]) -> None:
    """Note in a folder of features which tower gave them, or check that it was this one.

    Raises ConfigError if it was another one.
    """
    path = folder / TOWER_FILE
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: tensor.contiguous() for name, tensor in tower.items()}, path)
        return
    known = load_file(path)
    if known.keys() != tower.keys() or not all(torch.equal(known[name], tower[name]) for name in tower):
        raise ConfigError(f"{folder} belongs to another vision tower: choose another vision.directory")
