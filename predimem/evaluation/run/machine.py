"""Says where a result comes from: the code's revision and the machine that it was made on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("predimem", "numpy", "torch", "transformers", "mani_skill", "sapien", "mikasa_robo_suite")


def revision() -> tuple[str | None, bool | None]:
    """(commit, dirty) of the checkout that this code runs from; (None, None) outside a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():  # installed: a repository further up would be somebody else's
        return None, None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit, bool(_git(root, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return None, None


def machine() -> dict[str, Any]:
    """The processor, the system and the versions of the packages that matter; no names of hosts or users."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), platform.processor())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
