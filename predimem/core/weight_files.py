"""Where weights lie: shipped inside the package, or in a folder of the same shape made by training.

A checkpoint in several files (`model-00001-of-00002.safetensors`, ...) may share some of them with the folders beside
it, through relative links: git keeps those, and a wheel holds copies in their place. Nothing else is ever linked.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from predimem.core.faults import SetupError
from predimem.core.files import AtomicWrite

EMBEDDED = Path(__file__).parents[1] / "weights"
# How names of models begin, of which the first that fits counts, and names of their recipes.
RECIPES = {
    "arena-": "arena",
    "mikasa-sequences-": "mikasa_sequences",
    "mikasa-": "mikasa_touch",
    "robomme-": "robomme",
}
SHARDS = "model-*-of-*.safetensors"
INSTRUCTIONS_FILE = "instructions.json"  # what a planner was trained on; it changes no answer


class WeightsError(SetupError, FileNotFoundError):
    """Weights that are not there; the message says which and how to make them."""


def weights_folder(root: str | Path | None, name: str) -> Path:
    """The folder of one model (`planner`, `actor`, ...) below `root`, or below the shipped weights."""
    folder = Path(root) / name if root else EMBEDDED / name
    if not folder.is_dir():
        known = sorted(p.name for p in folder.parent.iterdir() if p.is_dir()) if folder.parent.is_dir() else []
        raise WeightsError(
            f"no weights for {name!r} in {folder.parent} (there: {', '.join(known) or 'nothing'}); "
            f"{_recipe(name)}{_shipped(root, name)}"
        )
    return folder


def model_folder(name: str) -> Path:
    """The folder of the weights that a data config names: a folder, or the name of shipped weights, which a folder
    without weights, such as that of a package, does not hide.

    Raises WeightsError where there is none.
    """
    folder = Path(name)
    hides = (folder / "config.json").is_file() or not (EMBEDDED / name).is_dir()
    return folder if folder.is_dir() and hides else weights_folder(None, name)


def _shipped(root: str | Path | None, name: str) -> str:
    """How to have the shipped weights of a model below `root`, if there are any."""
    shipped = EMBEDDED / name
    return f"; or take the shipped ones: `cp -rL {shipped} {root}/`" if root and shipped.is_dir() else ""


def check_exists(path: Path) -> None:
    """Raises WeightsError where there is nothing at a path that a user named."""
    if not path.exists():
        raise WeightsError(f"there is nothing at {path}: expected a folder with weights, such as a training exports")


def _recipe(name: str) -> str:
    """The command that makes a model: `arena-planner-text` is made by configs/planner/arena_text.yaml."""
    prefix = next((prefix for prefix in RECIPES if name.startswith(prefix)), "")
    family = RECIPES.get(prefix, "tiny")
    kind, _, rest = name.removeprefix(prefix).partition("-")
    if kind not in ("planner", "actor"):
        return "train them with `predimem train planner` and `predimem train actor`"
    if kind == "planner" and re.search(r"(corrected|driven|seed-\d+)$", rest):
        return "train them in rounds (docs/guides/training.md, `predimem train rounds`) and put them there"
    recipe = "_".join([family, *rest.split("-")] if rest else [family])
    return f"train them with `predimem train {kind} --config configs/{kind}/{recipe}.yaml` and put them there"


def weights_hash(folder: Path) -> str:
    """SHA-256 over names and bytes of a model's files, the first 16 hexadecimal digits; a link counts as its file.

    The list of a planner's instructions is left out: it was added to planners whose results are published.

    Raises WeightsError for a link to a file that is not there.
    """
    digest = hashlib.sha256()
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_symlink() and not path.exists():
            raise WeightsError(
                f"{path} is a link to {os.readlink(path)}, which is not there: folders of weights that share a file "
                "belong side by side; copy single ones with `cp -rL`"
            )
    for path in (p for p in paths if p.is_file() and p.name != INSTRUCTIONS_FILE):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def place_weights(source: Path, root: Path, name: str) -> Path:
    """Copy a model's folder to `root`/`name`, in place of what is there; files that folders below `root` share are
    kept once. Other models of `root` stay as they are, whatever they shared with what was there.
    """
    target = root / name
    with AtomicWrite(target) as partial:
        shutil.copytree(source, partial)
        for link in _links(root):
            if link.parent != target and link.resolve().parent == target.resolve():
                _replace_by_copy(link)
    share_files(root)
    return target


def share_files(root: Path) -> None:
    """Of equal shards in the folders below `root` the first by name keeps its file, the others link to it."""
    kept: dict[tuple[str, str], Path] = {}
    for path in sorted(p for p in root.glob(f"*/{SHARDS}") if p.parent.suffix != ".partial"):
        if not path.exists():
            continue
        with path.open("rb") as file:
            content = path.name, hashlib.file_digest(file, "sha256").hexdigest()
        first = kept.setdefault(content, path)
        if first is path and path.is_symlink():
            _replace_by_copy(path)
        elif first is not path:
            with AtomicWrite(path) as link:
                link.symlink_to(Path("..", first.parent.name, first.name))


def _links(root: Path) -> list[Path]:
    return [path for path in root.glob(f"*/{SHARDS}") if path.is_symlink()]


def _replace_by_copy(link: Path) -> None:
    with AtomicWrite(link) as copy:
        shutil.copyfile(link, copy)
