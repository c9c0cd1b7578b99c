"""`predimem verify`: checks models against independent references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Check a model against an independent reference, or a memory of your own.")


@app.command("actor")
def verify_actor(
    golden: Annotated[Path, typer.Option(help="Folder with a config, weights, inputs and expected outputs.")],
) -> None:
    """Compare the actor with openpi's PyTorch implementation on golden tensors."""
    from predimem.core.progress import stage

    if not (golden / "config.json").is_file():
        raise ValueError(f"{golden} is no folder of golden tensors: config.json is missing")
    with stage("loading PyTorch"):
        from actor.verify import TOLERANCE, verify

    errors = verify(golden)
    for name, error in errors.items():
        print(f"{name}: max abs error {error:.2e}")
    if max(errors.values()) > TOLERANCE:
        raise SystemExit(f"predimem: the actor differs from the reference by more than {TOLERANCE:g}")


@app.command("memory")
def verify_memory(
    memory: Annotated[
        str, typer.Argument(help="The class: path/to/file.py:Class, or package.module:Class.", show_default=False)
    ],
    options: Annotated[str, typer.Option(help="Its options as YAML, such as '{seconds: 5}'.")] = "{}",
    config: Annotated[
        Path | None, typer.Option(help="Recipe (configs/planner/) whose window is used; default: 5 timesteps in a row.")
    ] = None,
) -> None:
    """Check that a memory of your own keeps the contract (docs/guides/own-memory.md), on made-up episodes."""
    import yaml

    from memory_bank import MemoryConfig
    from memory_bank.conformance import check_memory, milliseconds_of_a_step
    from predimem.core.config import ConfigError, from_dict, merged, read_yaml

    try:
        given = yaml.safe_load(options) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"--options: expected YAML such as '{{seconds: 5}}', got {options!r}: {error}") from error
    recipe = {} if config is None else read_yaml(config)
    data = merged({"memory": recipe.get("memory", {})}, {"memory": {"implementation": memory, "options": given}})
    settings = from_dict(MemoryConfig, data["memory"], "memory")
    faults = 0
    for finding in check_memory(settings):
        print(f"{'FAULT' if finding.fault else 'ok   '}  {finding.check}", flush=True)
        if finding.fault:
            faults += 1
            print(f"       {finding.fault}")
    if faults:
        raise SystemExit(f"predimem: {memory} breaks the contract in {faults} way{'s' * (faults > 1)}")
    print(f"A control step with two cameras of 128 px takes {milliseconds_of_a_step(settings):.2f} ms.")


@app.command("planner")
def verify_planner(
    planner: Annotated[
        Path | None, typer.Option(help="Folder of an exported planner; default: the shipped planner.")
    ] = None,
    episodes: Annotated[
        list[Path], typer.Option(help="Folder with recorded episodes; give it once for each that was trained on.")
    ] = [Path("runs/data/mikasa")],  # noqa: B006
    device: Annotated[str, typer.Option(help="Device that the planner runs on, such as `cuda`.")] = "cpu",
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16; default: float32 on the CPU, else bfloat16.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server that serves the planner, in place of a device.")
    ] = None,
) -> None:
    """Replay recorded episodes that were held out to a planner with its own memory, and print its accuracy.

    Which ones were held out follows from the planner's training, if that had the episodes of these folders alone.
    """
    from predimem.core.episode_folder import list_episodes, load_episodes
    from predimem.core.episodes import check_subtasks
    from predimem.core.placement import Placement
    from predimem.core.progress import stage
    from predimem.core.weight_files import check_exists, weights_folder
    from predimem.envs.benchmark import load_benchmark

    for folder in episodes:
        list_episodes(folder)
    weights = planner or weights_folder(None, "planner")
    check_exists(weights)
    with stage("loading PyTorch"):
        from planner.checkpoint import read_spec
        from planner.decoding import load_planner
        from planner.endpoint import EndpointConfig, EndpointPlanner
        from planner.evaluate import replay_planner
        from planner.split import split_episodes
        from planner.tracking import TrackingConfig, score_by_group, track_planner
        from planner.train import TrainConfig

    trained = read_spec(weights).training.get("config", {}).get("dataset", {})
    fraction = trained.get("validation_fraction", TrainConfig().dataset.validation_fraction)
    recorded = []
    for folder in episodes:
        loaded = load_episodes(folder)
        for episode in loaded:
            check_subtasks(episode, folder)
        recorded += loaded
    _, held_out = split_episodes(recorded, fraction)
    if not held_out:
        tasks, folders = len({episode.task for episode in recorded}), ", ".join(map(str, episodes))
        raise ValueError(
            f"{folders}: expected enough episodes of a task to hold out {fraction:.0%} of them, at least 6; "
            f"it has {len(recorded)} of {tasks} task{'s' * (tasks != 1)}: record more with `predimem datagen`"
        )
    place = Placement(device, dtype)
    if endpoint is not None:
        model = EndpointPlanner(weights, EndpointConfig(endpoint))
    else:
        model = load_planner(weights, place.device, dtype=place.dtype)
    if load_benchmark(held_out[0].benchmark).long_episodes:
        tracking_config = TrackingConfig(
            nominate=trained.get("nominate", "subtask_ends"),
            traceless=tuple(trained.get("traceless", ())),
            told=tuple(trained.get("told", ())),
            events=tuple(trained.get("events", ())),
        )
        tracks = track_planner(model, held_out, model.spec.memory, tracking_config)
        for name, tracking in score_by_group(tracks, tracking_config).items():
            print(name, json.dumps(tracking.to_dict()))
        return
    for task in sorted({episode.task for episode in held_out}):
        scores = replay_planner(model, [e for e in held_out if e.task == task], model.spec.memory)
        print(task, json.dumps(scores.to_dict()))
