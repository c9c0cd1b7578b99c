"""Versions of installed packages as result files name them: "robomme 0.1.0 (598e3b4), sapien 3.0.3"."""

from __future__ import annotations

from importlib import metadata
from itertools import zip_longest

UNKNOWN_VERSION = "of unknown version"  # of a package that runs from its unpacked sources


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return UNKNOWN_VERSION


def versions_agree(first: str, second: str) -> bool:
    """Whether two texts name the same packages, and the same version of each whose version both know."""
    return all(
        one == other or (UNKNOWN_VERSION in one + other and one.split()[:1] == other.split()[:1])
        for one, other in zip_longest(first.split(", "), second.split(", "), fillvalue="")
    )
