"""Which versions of Rerun accept the .rrd files that others of them write: `python -m benchmarks.rerun_versions`.

Each version's SDK is installed into a folder of its own, without its dependencies, so that it runs with our numpy; it
writes one made-up episode by `predimem.serving.rerun`, and `rerun rrd verify` of each version reads all files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.serving.rerun import recording_of_episode, write_rerun

INSTALLED = "installed"
VERSIONS = ("0.23.1", "0.28.2", INSTALLED)
WRITE = "import sys; from benchmarks.rerun_versions import write; write(sys.argv[1])"
RERUN = "import sys; from rerun_cli.__main__ import main; sys.exit(main())"  # `-m rerun_cli` hides the exit status


def main() -> None:
    parser = argparse.ArgumentParser(description="Which versions of Rerun accept the files that others write.")
    parser.add_argument(
        "versions",
        nargs="*",
        default=VERSIONS,
        help=f"versions of rerun-sdk; `{INSTALLED}`: that of this environment (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/rerun"), help="where SDKs and files are kept")
    arguments = parser.parse_args()
    environments = {version: _environment(version, arguments.out.resolve()) for version in arguments.versions}
    names = {version: _version(environment) for version, environment in environments.items()}
    print("| Written by | " + " | ".join(f"verify of {name}" for name in names.values()) + " |")
    print("| --- |" + " --- |" * len(names))
    for version, environment in environments.items():
        path = arguments.out.resolve() / f"{version}.rrd"
        _python(environment, "-c", WRITE, path, check=True)
        print(f"| {names[version]} | {' | '.join(_verdict(reader, path) for reader in environments.values())} |")


def write(path: str) -> None:
    """An episode of 20 steps with all that an episode has, by the SDK that this process imports."""
    rng = np.random.default_rng(0)
    images = {"camera": Frames(rng.integers(0, 255, (20, 32, 32, 3), np.uint8))}
    spans = (SubtaskSpan(0, 10, "open drawer"), SubtaskSpan(10, 20, "close drawer"))
    state, actions = rng.normal(size=(20, 3)).astype(np.float32), rng.normal(size=(20, 7)).astype(np.float32)
    episode = Episode("made-up", "task", 1, "do it", 20.0, True, images, state, actions, spans, (3, 12))
    write_rerun(recording_of_episode(episode), Path(path))


def _environment(version: str, out: Path) -> dict[str, str]:
    if version == INSTALLED:
        return dict(os.environ)
    folder = out / version
    if not folder.exists():
        uv = Path(sys.executable).with_name("uv")
        package = f"rerun-sdk=={version}"
        command = [uv, "pip", "install", "-q", "--python", sys.executable, "--no-deps", "--target", folder, package]
        subprocess.run(command, check=True)
    # Older wheels put the package into a folder that a .pth file names, which is heeded in site-packages only.
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "rerun_sdk"), str(folder)])}


def _version(environment: dict[str, str]) -> str:
    return _python(environment, "-c", "import rerun; print(rerun.__version__)", check=True).stdout.split()[-1]


def _verdict(environment: dict[str, str], path: Path) -> str:
    if _verify(environment, path) == 0:
        return "accepted"
    without_footer = _verify(environment, path, "--check-footers=false") == 0
    return "readable, but has no footer" if without_footer else "refused"


def _verify(environment: dict[str, str], path: Path, *options: str) -> int:
    return _python(environment, "-c", RERUN, "rrd", "verify", *options, path).returncode


def _python(environment: dict[str, str], *arguments: object, check: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, check=check, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()
