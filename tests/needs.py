"""What some tests need of the machine, besides the pinned packages: how it is found, and how to get it.

`@pytest.mark.needs("browser")` leaves a test out where there is none; the last lines of the run say so. CI runs every
test: there, the run ends at once with what is missing (tests/conftest.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from predimem.envs.robomme.package import INSTALL

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def find_browser() -> str | None:
    """The path of Chromium or Chrome."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def has_driver() -> bool:
    from predimem.rendering.vulkan import find_driver

    return find_driver().kind != "none"


@dataclass(frozen=True)
class Need:
    found: Callable[[], bool]
    missing: str
    remedy: str
    optional: bool = False  # what is not in the set-up: without it CI leaves a test out

    @property
    def reason(self) -> str:
        return f"{self.missing}: {self.remedy}"


def has_postgres() -> bool:
    from tests.memory_bank.store.postgres import find_server

    return find_server() is not None


def installed(module: str, name: str) -> Need:
    return Need(lambda: find_spec(module) is not None, f"{name} is not installed", "`make setup`")


NEEDS = {
    "suite": installed("mikasa_robo_suite", "the MIKASA-Robo suite"),
    "robomme": Need(
        lambda: find_spec("robomme") is not None,
        "RoboMME is not installed",
        f"`{INSTALL}`",
        optional=True,
    ),
    "popgym": installed("popgym", "POPGym"),
    "minigrid": installed("minigrid", "Minigrid"),
    "memory_gym": installed("memory_gym", "Memory Gym"),
    "openvino": installed("openvino", "OpenVINO"),
    "ray": installed("ray", "Ray"),
    "rerun": installed("rerun", "rerun-sdk"),
    "vla_eval": installed("vla_eval", "vla-eval"),
    "vulkan": Need(
        has_driver,
        "no Vulkan driver was found",
        "`make setup` gets one, and `predimem doctor` says what it met",
    ),
    "faiss": installed("faiss", "faiss"),
    "postgres": Need(
        has_postgres,
        "no PostgreSQL with pgvector was found",
        "`make setup` gets one, or `apt-get install postgresql-17-pgvector`",
    ),
    "browser": Need(
        lambda: find_browser() is not None,
        f"no browser was found, none of {', '.join(BROWSERS)}",
        "`apt-get install chromium`",
    ),
}
