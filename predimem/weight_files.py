"""Where weights lie: shipped inside the package, or in a folder of the same shape made by training."""

from __future__ import annotations

import hashlib
from pathlib import Path

EMBEDDED = Path(__file__).parent / "weights"


class WeightsError(FileNotFoundError):
    """Weights that are not there; the message says which and how to make them."""


def weights_folder(root: str | Path | None, name: str) -> Path:
    """The folder of one model (`planner`, `actor`, ...) below `root`, or below the shipped weights."""
    folder = Path(root) / name if root else EMBEDDED / name
    if not folder.is_dir():
        known = sorted(p.name for p in folder.parent.iterdir()) if folder.parent.is_dir() else []
        raise WeightsError(
            f"no weights for {name!r} in {folder.parent} (there: {', '.join(known) or 'nothing'}); "
            f"{_recipe(name)}; or leave --weights out to use those that are shipped"
        )
    return folder


def _recipe(name: str) -> str:
    """The command that makes a model; recipes of the arena are called after it: `arena-planner-text` is made by
    configs/planner/arena_text.yaml."""
    suite = "arena" if name.startswith("arena-") else "tiny"
    kind, _, rest = name.removeprefix("arena-").partition("-")
    if kind not in ("planner", "actor"):
        return "train them with `predimem train planner` and `predimem train actor`"
    recipe = "_".join([suite, *rest.split("-")] if rest else [suite])
    return f"train them with `predimem train {kind} --config configs/{kind}/{recipe}.yaml` and put them there"


def weights_hash(folder: Path) -> str:
    """SHA-256 over names and bytes of a model's files, the first 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
