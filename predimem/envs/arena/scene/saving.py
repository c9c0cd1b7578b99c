"""The whole state of an environment, so that an episode can be left and taken up again.

A state is a nested dict of tensors [N, D]: "actors" and "articulations" as ManiSkill has them (poses and
velocities of all that can move or be placed, joints of the robot and of the furniture), "drive_targets"
(of the robot's joints: where its controller was heading) and "task" (the task's memory). The controllers
of the two control modes remember nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch

from predimem.envs.arena.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from predimem.envs.arena.scene.simulation import ArenaSimulation

State = dict[str, Any]


def own_state(env: ArenaSimulation) -> State:
    """What ManiSkill's state leaves out: copies, [N, D]."""
    return {
        "drive_targets": env.agent.robot.drive_targets.clone(),
        "task": {
            "task_id": torch.full((env.num_envs, 1), env.task.task_id, device=env.device),
            "elapsed_steps": env.elapsed_steps[:, None].clone(),
            "rest_bottom_m": env.rest_bottom_m.clone(),
            **{entry.name: getattr(env.progress, entry.name)[:, None].clone() for entry in fields(Progress)},
            **({} if env.visitor is None else {"visitor": env.visitor.state()}),
        },
    }


def restore_own_state(env: ArenaSimulation, state: Mapping[str, Any], env_idx: Tensor) -> None:
    """Undo what happened since `own_state`, in the worlds `env_idx`; `state` has been through `checked`."""
    robot = env.agent.robot
    with only(env, env_idx):
        robot.set_joint_drive_targets(state["drive_targets"], robot.active_joints)
    task = state["task"]
    env.elapsed_steps[env_idx] = task["elapsed_steps"][:, 0].round().to(env.elapsed_steps)
    env.rest_bottom_m[env_idx] = task["rest_bottom_m"].to(env.rest_bottom_m)
    for entry in fields(Progress):
        values = getattr(env.progress, entry.name)
        values[env_idx] = task[entry.name][:, 0].round().to(values)
    if env.visitor is not None:
        env.visitor.restore(task["visitor"])


def unflatten(flat: Any, template: Mapping[str, Any]) -> State:
    """A state from its flat form [n, D] (`get_state`): one after the other what `template` holds."""
    flat = torch.as_tensor(flat)
    flat = flat[None] if flat.ndim == 1 else flat
    widths = [width for _, width in _leaves(template)]
    if flat.ndim != 2 or flat.shape[1] != sum(widths):
        raise ValueError(
            f"a flat state of this task has {sum(widths)} numbers per world, shape (n, {sum(widths)}); "
            f"got {tuple(flat.shape)}: is it from another task?"
        )
    pieces = iter(torch.split(flat, widths, dim=1))
    return _filled(template, pieces)


def checked(state: Mapping[str, Any], template: Mapping[str, Any], n: int, device: torch.device) -> State:
    """The state as float tensors on `device`. Raises ValueError unless it is one of `n` worlds of this task.

    template: any state of this environment. A state of one world may lack the first dimension.
    """
    names, expected = dict(_leaves(state)), dict(_leaves(template))
    missing, foreign = sorted(expected.keys() - names.keys()), sorted(names.keys() - expected.keys())
    if missing or foreign:
        raise ValueError(f"this is not a state of this task: it lacks {missing} and has besides {foreign}")
    made = _tensors(state, device)
    for name, value in _items(made):
        if tuple(value.shape) != (n, expected[name]):
            raise ValueError(f"the state's {name!r} has to be of shape {(n, expected[name])}, not {tuple(value.shape)}")
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the state's {name!r} holds numbers that are not finite")
    ids, own = made["task"]["task_id"], int(template["task"]["task_id"][0, 0])
    if bool((ids != own).any()):
        raise ValueError(f"this is a state of task {int(ids.flatten()[0])}, and the environment plays task {own}")
    return made


@contextmanager
def only(env: ArenaSimulation, env_idx: Tensor) -> Iterator[None]:
    """What is set meanwhile is set in the worlds `env_idx` alone: ManiSkill's way, used on a GPU."""
    before = env.scene._reset_mask
    env.scene._reset_mask = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
    env.scene._reset_mask[env_idx] = True
    try:
        yield
    finally:
        env.scene._reset_mask = before


def _items(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in state.items():
        if isinstance(value, Mapping):
            yield from _items(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


def _leaves(state: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(name, width) of all that a state holds, in its order."""
    for name, value in _items(state):
        yield name, value.shape[-1]


def _filled(template: Mapping[str, Any], pieces: Iterator[Tensor]) -> State:
    return {
        key: _filled(value, pieces) if isinstance(value, Mapping) else next(pieces) for key, value in template.items()
    }


def _tensors(state: Mapping[str, Any], device: torch.device) -> State:
    """As float32 [n, D]."""
    made: State = {}
    for key, value in state.items():
        if isinstance(value, Mapping):
            made[key] = _tensors(value, device)
        else:
            tensor = torch.as_tensor(value).to(device, torch.float32)
            made[key] = tensor[None] if tensor.ndim == 1 else tensor
    return made
