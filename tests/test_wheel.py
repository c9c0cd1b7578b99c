"""The built wheel, installed outside the checkout: everything is in it, and it runs with light packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("predimem", "planner", "actor", "memory_bank", "datagen")
# Beside the code; below predimem/weights, everything.
DATA_SUFFIXES = (".html", ".j2", ".css", ".js", ".svg", ".yaml", ".glsl", ".vert", ".frag")
UV = Path(sys.executable).with_name("uv")


def run(*command: str | Path, cwd: Path) -> str:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shipped_files() -> set[str]:
    """What the wheel has to hold, as paths from the root: code, templates, weights, configs."""
    files = {f"predimem/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "configs").rglob("*.yaml")}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            weights = name.startswith("predimem/weights/")
            if path.is_file() and (weights or path.suffix in (".py", *DATA_SUFFIXES)):
                files.add(name)
    return {name for name in files if "__pycache__" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources, so that nothing stale in build/ slips in."""
    source = tmp_path_factory.mktemp("source")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("*.toml"), *ROOT.glob("*.md"), *ROOT.glob("LICENSE*")):
        shutil.copy(path, source)
    run(UV, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and its own dependencies, nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    run(UV, "venv", "--python", sys.executable, folder / "venv", cwd=folder)
    interpreter = folder / "venv/bin/python"
    install = [UV, "pip", "install", "--python", interpreter, "-c", ROOT / "constraints.txt", wheel]
    try:
        run(*install, "--offline", cwd=folder)  # set-up left everything in uv's cache
    except AssertionError:
        run(*install, cwd=folder)
    return interpreter


def test_nothing_is_left_out_and_nothing_slips_in(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == shipped_files()


def test_packages_import_outside_the_checkout(python: Path) -> None:
    script = (
        f"import {', '.join(PACKAGES)}, predimem.cli, predimem.evaluation, predimem.rendering.vulkan\n"
        "print(predimem.__file__)"
    )
    place = Path(run(python, "-c", script, cwd=python.parent).strip())
    assert python.parents[1] in place.parents


def test_command_line(python: Path) -> None:
    text = run(python.with_name("predimem"), "--help", cwd=python.parent)
    for command in ("demo", "doctor", "eval", "train"):
        assert command in text


def test_default_configs_are_found_outside_the_checkout(python: Path, tmp_path: Path) -> None:
    """Its stages read those of DAgger, actor data, vision data, planners and the actor, too."""
    text = run(python.with_name("predimem"), "train", "arena", "--dry-run", cwd=tmp_path)
    assert "arena-planner: predimem train planner" in text and "actor-data: predimem datagen" in text
    script = "from predimem.core.config import read_yaml; print(read_yaml('configs/eval/mikasa.yaml')['benchmark'])"
    assert run(python, "-c", script, cwd=tmp_path).strip() == "mikasa"


def test_doctor_without_the_heavy_packages(python: Path) -> None:
    """Says what is missing and ends with 1, instead of a traceback."""
    done = subprocess.run([python.with_name("predimem"), "doctor"], capture_output=True, text=True, cwd=python.parent)
    assert done.returncode == 1, done.stderr
    assert "missing: torch" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
