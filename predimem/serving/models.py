"""The models behind an inference server."""

from __future__ import annotations

import functools
import sys

from memory_bank import make_memory
from predimem.agent.config import INSTRUCTION, NO_MEMORY
from predimem.agent.own_planner import make_own_planner, memory_of
from predimem.core.own_code import code_hash, is_place
from predimem.core.weight_files import weights_folder, weights_hash
from predimem.serving.config import ModelsConfig
from predimem.serving.robot import RobotSpec, Served


def make_served(models: ModelsConfig) -> Served:
    """The models that a server serves.

    Raises WeightsError (or the model's own error) without usable weights, OwnCodeError where the code of a planner or a
    memory of the user's own cannot be used, and ConfigError for a prompt that contradicts its memory.
    """
    import torch

    from actor.policy import load_policy
    from planner.checkpoint import changed_spec, read_spec, untrained_prompt
    from planner.decoding import load_planner

    torch.set_num_threads(models.torch_threads)
    folder = weights_folder(models.weights, models.actor)
    policy = load_policy(folder, models.seed, device=models.device)
    weights, make_planner, memory = {models.actor: weights_hash(folder)}, None, NO_MEMORY
    instructions = None
    if is_place(models.planner):
        memory = memory_of(models.planner, models.memory)
        make_memory(memory)
        weights[models.planner] = code_hash(models.planner)
        make_planner = functools.partial(make_own_planner, models.planner, models.planner_options)
    elif models.planner != INSTRUCTION:
        folder = weights_folder(models.weights, models.planner)
        trained = read_spec(folder)
        instructions = trained.known_instructions
        spec = changed_spec(trained, models.memory, models.prompt)
        if difference := untrained_prompt(trained, spec):
            print(f"note: the planner {models.planner} was trained with another prompt: {difference}", file=sys.stderr)
        memory = spec.memory
        make_memory(memory)
        weights[models.planner] = weights_hash(folder)
        make_planner = functools.partial(load_planner, folder, models.device, threads=models.torch_threads, spec=spec)
    actor = policy.config
    height, width = actor.camera_shape
    robot = RobotSpec(actor.cameras, (height, width), actor.state_dim, actor.action_dim)
    return Served(robot, policy, make_planner, memory, weights, instructions)
