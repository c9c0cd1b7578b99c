"""The models behind an inference server."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory_bank import make_memory
from memory_bank.own import HostedMemory
from predimem.agent.config import INSTRUCTION, NO_MEMORY, is_remote
from predimem.agent.own_planner import check_own_planner, make_own_planner, memory_of
from predimem.core.config import from_dict
from predimem.core.interfaces import FullMemory, Policy
from predimem.core.own_code import code_hash, is_place
from predimem.core.weight_files import WeightsError, weights_folder, weights_hash
from predimem.serving.config import ModelsConfig
from predimem.serving.known_tasks import KnownTasks
from predimem.serving.robot import RobotSpec, Served

if TYPE_CHECKING:
    from actor.weights import ActorConfig


def make_served(models: ModelsConfig) -> Served:
    """The models that a server serves.

    Raises WeightsError (or the model's own error) without usable weights, OwnCodeError where the code of a planner or a
    memory of the user's own cannot be used, and ValueError for a prompt that contradicts its memory, and for a planner
    and an actor that look through different cameras.
    """
    import torch

    from actor.policy import load_policy
    from planner.checkpoint import changed_spec, check_sessions_are_seen, read_spec, untrained_prompt
    from planner.decoding import load_planner
    from planner.endpoint import EndpointPlanner
    from planner.instructions import trained_on

    torch.set_num_threads(models.torch_threads)
    if is_remote(models.actor):
        policy, robot = _remote(models)
        weights = {}
    else:
        folder = model_folder(models.weights, models.actor)
        place = models.placement(models.actor_on)
        policy = load_policy(folder, models.seed, device=place.device, dtype=place.dtype, engine=models.engine)
        robot = _robot_of(policy.config)
        weights = {_name(models.actor): weights_hash(folder)}
    make_planner, memory, tasks = None, NO_MEMORY, KnownTasks()
    if is_place(models.planner):
        check_own_planner(models.planner, models.planner_options)
        memory = memory_of(models.planner, models.memory)
        _prepare(make_memory(memory))
        weights[_name(models.planner)] = code_hash(models.planner)
        make_planner = functools.partial(make_own_planner, models.planner, models.planner_options)
    elif models.planner != INSTRUCTION:
        folder = model_folder(models.weights, models.planner)
        trained = read_spec(folder)
        spec = changed_spec(trained, models.memory, models.prompt)
        if difference := untrained_prompt(trained, spec):
            print(f"note: the planner {models.planner} was trained with another prompt: {difference}", file=sys.stderr)
        if not set(spec.prompt.cameras) <= set(robot.cameras):
            raise ValueError(
                f"the planner {models.planner!r} looks through the cameras {list(spec.prompt.cameras)} and the actor "
                f"{models.actor!r} through {list(robot.cameras)}: serve two that were trained on the same robot"
            )
        optional = tuple(name for name in robot.optional_cameras if name not in spec.prompt.cameras)
        robot = replace(robot, optional_cameras=optional)
        memory = spec.memory
        check_sessions_are_seen(made := make_memory(memory), spec.prompt)
        _prepare(made)
        weights[_name(models.planner)] = weights_hash(folder)
        if models.planner_endpoint is not None:
            make_planner = functools.partial(EndpointPlanner, folder, models.planner_endpoint, spec)
        else:
            place = models.placement(models.planner_on)
            options = {"spec": spec, "dtype": place.dtype, "constrained": models.constrained}
            settings = (folder, place.device, models.planner_caches, models.torch_threads)
            make_planner = functools.partial(load_planner, *settings, **options)
        tasks = KnownTasks(*trained_on(folder, trained))
    return Served(robot, policy, make_planner, memory, weights, tasks)


def _prepare(memory: FullMemory) -> None:
    """Loads what a memory of somebody's own needs before the first robot comes; later ones find it in this process."""
    if isinstance(memory, HostedMemory):
        memory.prepare()


def _robot_of(actor: ActorConfig) -> RobotSpec:
    height, width = actor.camera_shape
    return RobotSpec(
        actor.cameras,
        (height, width),
        actor.state_dim,
        actor.action_dim,
        actor.optional_cameras,
        actor.relative_to_state,
    )


def _remote(models: ModelsConfig) -> tuple[Policy, RobotSpec]:
    """S1 on another machine. It is never waited for: a robot is told at once that there are no actions."""
    from actor.remote import RemoteConfig, RemotePolicy

    options = from_dict(RemoteConfig, models.actor_options, "models: actor_options")
    told = {name: getattr(options, name) for name in ("cameras", "camera_shape", "state_dim", "action_dim")}
    if missing := [name for name, value in told.items() if not value]:
        raise ValueError(
            f"models: actor_options: {', '.join(missing)} missing: a server of openpi does not say which robot it is "
            "for, and this server has to tell its clients"
        )
    assert options.camera_shape is not None and options.state_dim is not None and options.action_dim is not None
    height, width = options.camera_shape
    robot = RobotSpec(tuple(options.cameras), (height, width), options.state_dim, options.action_dim)
    return RemotePolicy(models.actor, replace(options, patience_s=0.0)), robot


def model_folder(root: str | None, model: str) -> Path:
    """The folder of a model: of that name below `root` (or among the shipped weights), or at that path, such as
    `./export`. Raises WeightsError where there is none."""
    if not _is_path(model):
        return weights_folder(root, model)
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise WeightsError(f"no weights in {model}: there is no such folder")
    return folder.resolve()


def _is_path(model: str) -> bool:
    return os.sep in model or model in (".", "..")


def _name(model: str) -> str:
    """What clients are told that a model is called: of a path no more than its last two parts."""
    return "/".join(Path(os.path.abspath(model)).parts[-2:]) if _is_path(model) else model
