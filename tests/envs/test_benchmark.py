"""The benchmark interface: found by name, file or module, and played by `predimem eval` without a line of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from predimem.core.interfaces import Environment
from predimem.envs.benchmark import BENCHMARKS, EnvironmentRequest, GradedByItself, benchmark_key, load_benchmark
from predimem.envs.gymnasium_env import GymnasiumEnvironment

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "remember_the_light.py"


def test_benchmarks_are_found_by_name_by_file_and_by_module() -> None:
    assert [load_benchmark(name).name for name in BENCHMARKS] == list(BENCHMARKS)
    assert load_benchmark("predimem.envs.arena.benchmark:ARENA") is load_benchmark("arena")
    assert load_benchmark(benchmark_key(str(EXAMPLE))).name == "remember-the-light"
    assert isinstance(load_benchmark("mikasa"), GradedByItself) and not isinstance(
        load_benchmark("arena"), GradedByItself
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("robo", "unknown benchmark 'robo'; there are: mikasa, arena, robomme, base, interference"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("predimem.nowhere:X", "there is no module .predimem.nowhere., .*path/to/file.py:NAME"),
        ("predimem.core.seeds:X", "predimem.core.seeds defines no 'X'; it defines: check_training_seed"),
    ],
)
def test_what_is_no_benchmark_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_benchmark(name)


def test_a_file_without_a_benchmark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("")
    with pytest.raises(ValueError, match="defines no BENCHMARK"):
        load_benchmark(str(path))


def test_the_example_is_an_environment_of_ours() -> None:
    benchmark = load_benchmark(str(EXAMPLE))
    env = benchmark.make_environment("RememberTheLight", benchmark.options(), EnvironmentRequest())
    assert isinstance(env, Environment) and isinstance(env, GymnasiumEnvironment)
    first = env.reset(3)
    assert first.images["render"].shape == (64, 64, 3) and first.images["render"].max() == 255
    assert (env.reset(3).images["render"] == first.images["render"]).all()
    after = [env.step(np.array([5.0])).observation.state[0] for _ in range(5)]
    assert after == pytest.approx([0, 0, 0, 0.1, 0.2])  # still during the cue, then clipped to the action space
    with pytest.raises(ValueError, match="expected 1 finite numbers"):
        env.step(np.array([np.nan]))


@pytest.mark.slow
def test_eval_plays_a_benchmark_of_ones_own(tmp_path: Path) -> None:
    command = [
        "eval",
        "--benchmark",
        str(EXAMPLE),
        "--agent",
        "oracle,random,memory,no-memory",
        "--episodes",
        "4",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run([sys.executable, "-m", "predimem.cli", *command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    cells = results["results"]["RememberTheLight"]
    assert cells["oracle"]["success"] == 1.0 and cells["random"]["success"] == 0.0
    assert cells["memory"]["success"] == 1.0 and cells["no-memory"]["success"] == 0.0
    assert results["benchmark"] == "remember-the-light" and len(list(tmp_path.rglob("*.mp4"))) == 8
    verify = ["eval", "--verify", str(tmp_path / "results.json"), "--sample", "4"]
    again = subprocess.run([sys.executable, "-m", "predimem.cli", *verify], capture_output=True, text=True, cwd=ROOT)
    assert again.returncode == 0 and "in every action and answer: 4 of 4" in again.stdout, again.stderr
